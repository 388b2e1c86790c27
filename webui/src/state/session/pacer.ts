// Limits how often a growing session updates the page: at most 10 times a second, and the less
// often the more an update costs, so that updates take at most an eighth of the main thread. The
// model may need the processor that the page would use.

const MIN_INTERVAL_MS = 100;
const MAX_INTERVAL_MS = 500;
const LEAST_MS = 20; // what arrives together is shown together
const IDLE_PER_BUSY = 7;

export class Pacer {
  private timer: ReturnType<typeof setTimeout> | null = null;
  // Of the last update: its effects, and the frame after it.
  private effectsMs = 0;
  private frameMs = 0;
  private updatedMs = -Infinity;
  private readonly update: () => void;

  constructor(update: () => void) {
    this.update = update;
  }

  // Calls `update` once, in a later task: soon, unless the last update was just now. A timer,
  // because hidden tabs get no animation frames.
  request(): void {
    if (this.timer !== null) return;
    const due = this.updatedMs + intervalOf(this.effectsMs + this.frameMs);
    this.timer = setTimeout(
      () => {
        this.timer = null;
        this.run();
      },
      Math.max(LEAST_MS, due - performance.now()),
    );
  }

  cancel(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }

  private run(): void {
    const begin = performance.now();
    // Requested before the update requests its own frames: this callback runs first in the frame.
    measureFrame((ms) => {
      this.frameMs = ms;
    });
    this.update();
    this.updatedMs = performance.now();
    this.effectsMs = this.updatedMs - begin;
  }
}

export const intervalOf = (costMs: number): number =>
  Math.min(MAX_INTERVAL_MS, Math.max(MIN_INTERVAL_MS, IDLE_PER_BUSY * costMs));

// Measures the next frame from its first callback until its painting has ended: a message is
// delivered after it. A hidden tab has no frames.
function measureFrame(report: (ms: number) => void): void {
  if (typeof requestAnimationFrame !== 'function') return;
  requestAnimationFrame(() => {
    const begin = performance.now();
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      report(performance.now() - begin);
      port1.close();
    };
    port2.postMessage(null);
  });
}
