// Plays a session again, slower or faster than it ran. Its position is the view's step and selected
// op, so every view that shows the selection moves in the same frame.
import { signal, type ReadonlySignal } from '@preact/signals';
import { quantile } from '../../quantile';
import type { Navigation, HistoryMode } from './navigation';
import { adjacentStep, type OpenSession } from '../session/open_session';
import { stepOpsOf } from '../session/per_session';
import { advance, isPlayed, opAt, passageOf, type Moment, type Passage } from './playback_time';
import { readableSpeed } from './speeds';
import { opOf, sameSelection, type Selection } from './selection';
import { withStep } from './view';

const TICK_MS = 30;
const LONGEST_TICK_MS = 100; // after a pause of the browser, for example in a background tab
// A step that is shown for a shorter time is shown as a whole, without its ops.
const SHORTEST_STEP_MS = 250;

interface Clock {
  readonly request: (tick: (nowMs: number) => void) => number;
  readonly cancel: (tick: number) => void;
}

// Timers, not frames: views that paint in the next frame then show the same position as the others.
const pageClock: Clock = {
  request: (tick) =>
    setTimeout(() => {
      tick(performance.now());
    }, TICK_MS) as unknown as number,
  cancel: (tick) => {
    clearTimeout(tick);
  },
};

export class Playback {
  readonly playing: ReadonlySignal<boolean>;
  private readonly isPlaying = signal(false);
  private readonly open: ReadonlySignal<OpenSession | null>;
  private readonly navigation: Navigation;
  private readonly clock: Clock;
  private timer = 0;
  private lastMs = 0;
  private moment: Moment | null = null;
  // What playback showed last: another step or selection is the user's.
  private shown: { readonly step: number; readonly selection: Selection | null } | null = null;

  constructor(
    open: ReadonlySignal<OpenSession | null>,
    navigation: Navigation,
    clock: Clock = pageClock,
  ) {
    this.playing = this.isPlaying;
    this.open = open;
    this.navigation = navigation;
    this.clock = clock;
  }

  toggle(): void {
    if (this.isPlaying.peek()) this.pause();
    else this.play();
  }

  play(): void {
    const session = this.open.peek();
    const passage = session && this.passage(session);
    if (!session || !passage || this.isPlaying.peek()) return;
    const { step, speed } = this.navigation.view.peek();
    const start = this.momentOf(session, passage);
    const isAtEnd = step === null || (start.step === passage.last && this.isLastOp(session));
    this.moment = isAtEnd ? { step: passage.first, ns: passage.fromNs } : start;
    if (speed === null) this.chooseSlowMotion();
    this.isPlaying.value = true;
    this.shown = null;
    this.show(session, this.moment, 'push');
    this.lastMs = 0;
    this.next();
  }

  // Plays what is selected from its start, once.
  playOnce(): void {
    const session = this.open.peek();
    const passage = session && this.passage(session);
    if (!passage) return;
    this.pause();
    const view = this.navigation.view.peek();
    this.navigation.go({ ...withStep(view, passage.first), selection: null, loop: false }, 'push');
    this.play();
  }

  // So slow that a step of the usual time can be watched.
  chooseSlowMotion(): void {
    const session = this.open.peek();
    const passage = session && this.passage(session);
    if (!passage) return;
    const times = session.data.steps
      .slice(passage.first, passage.last + 1)
      .map((step) => (step ? step.end_ns - step.begin_ns : 0))
      .sort((a, b) => a - b);
    this.navigation.change({ speed: readableSpeed(quantile(times, 0.5) ?? 0) }, 'replace');
  }

  pause(): void {
    this.isPlaying.value = false;
    this.moment = this.shown = null;
    this.clock.cancel(this.timer);
  }

  // Moves by ops, from step to step.
  moveOp(by: 1 | -1, how: HistoryMode): void {
    const session = this.open.peek();
    const step = session?.step.peek() ?? null;
    if (!session || step === null) return;
    const { selection, phase } = this.navigation.view.peek();
    const count = opCount(session, step);
    const before = opOf(selection);
    const op = before === null ? (by > 0 ? 0 : count - 1) : before + by;
    if (op >= 0 && op < count) {
      this.showOp(session, step, op, how);
      return;
    }
    const next = adjacentStep(session.data, phase, step, by);
    if (next === null) return;
    this.showOp(session, next, by > 0 ? 0 : Math.max(0, opCount(session, next) - 1), how);
  }

  // The position as steps and a part of a step.
  seek(at: number): void {
    const session = this.open.peek();
    if (!session) return;
    const { steps } = session.data;
    const step = Math.max(0, Math.min(steps.length - 1, Math.floor(at)));
    const count = opCount(session, step);
    const op = Math.max(0, Math.min(count - 1, Math.floor((at - step) * count)));
    this.showOp(session, step, op, 'coalesce');
  }

  // Shows an op of a step, with its layer as soon as it is known.
  showOp(session: OpenSession, step: number, op: number, how: HistoryMode): void {
    const view = withStep(this.navigation.view.peek(), step);
    const layer = stepOpsOf(session).known(step)?.[op]?.op_layer_id ?? view.layer;
    stepOpsOf(session).prefetch(step);
    this.navigation.go({ ...view, layer, selection: { kind: 'op', op } }, how);
  }

  // ---- The clock ---------------------------------------------------------------------

  private next(): void {
    this.timer = this.clock.request((nowMs) => {
      this.tick(nowMs);
    });
  }

  private tick(nowMs: number): void {
    const session = this.open.peek();
    const passage = session && this.passage(session);
    const { step, selection, speed, phase, loop } = this.navigation.view.peek();
    if (!session || !passage || step === null) {
      this.pause();
      return;
    }
    this.next();
    if (this.lastMs === 0) this.lastMs = nowMs;
    const elapsedMs = nowMs - this.lastMs;
    this.lastMs = nowMs;
    const isMoved =
      this.shown !== null &&
      (this.shown.step !== step || !sameSelection(this.shown.selection, selection));
    const at = isMoved || !this.moment ? this.momentOf(session, passage) : this.moment;
    const rate = speed ?? 1;
    if (isByOp(session, at.step, rate)) {
      const following = adjacentStep(session.data, phase, at.step, 1);
      if (following !== null && following <= passage.last) stepOpsOf(session).prefetch(following);
    }
    const by = Math.min(LONGEST_TICK_MS, elapsedMs) * 1e6 * rate;
    const after = advance(session.data, phase, at, by, passage, loop);
    if (!after) {
      this.show(session, { step: passage.last, ns: passage.toNs }, 'debounced');
      this.pause();
      return;
    }
    // The clock waits for the ops of a step that is shown op by op, before it shows the step: all
    // views have them then.
    const isWaiting = [at, after].some((moment) => this.isAwaited(session, moment, rate));
    this.moment = isWaiting ? at : after;
    if (!isWaiting) this.show(session, after, 'debounced');
  }

  // Whether the ops of the step are needed and have not arrived yet.
  private isAwaited(session: OpenSession, { step }: Moment, speed: number): boolean {
    const ops = stepOpsOf(session);
    if (!isByOp(session, step, speed) || ops.known(step)) return false;
    ops.prefetch(step);
    return true;
  }

  private show(session: OpenSession, { step, ns }: Moment, how: HistoryMode): void {
    const before = this.navigation.view.peek();
    const isDetailed = isByOp(session, step, before.speed ?? 1);
    const op = isDetailed ? opAt(stepOpsOf(session).known(step) ?? [], ns) : null;
    const token = session.data.steps[step]?.token_id;
    const selection: Selection | null = op
      ? { kind: 'op', op: op.op }
      : isDetailed || token === undefined
        ? null
        : { kind: 'token', token };
    this.shown = { step, selection };
    if (before.step === step && sameSelection(before.selection, selection)) return;
    const layer = op?.op_layer_id ?? before.layer;
    this.navigation.go({ ...before, step, selection, layer }, how);
  }

  // The moment that the view shows: the begin of the selected op, else of the step.
  private momentOf(session: OpenSession, passage: Passage): Moment {
    const { phase, selection } = this.navigation.view.peek();
    const step = session.step.peek() ?? passage.first;
    if (!isPlayed(session.data, phase, step, passage))
      return { step: passage.first, ns: passage.fromNs };
    const op = opOf(selection);
    const known = op === null ? undefined : stepOpsOf(session).known(step)?.[op];
    const begin = known?.timestamp_ns ?? session.data.steps[step]?.begin_ns ?? 0;
    return { step, ns: Math.max(begin, step === passage.first ? passage.fromNs : begin) };
  }

  private isLastOp(session: OpenSession): boolean {
    const op = opOf(this.navigation.view.peek().selection);
    const step = session.step.peek() ?? 0;
    return op !== null && op >= opCount(session, step) - 1;
  }

  private passage(session: OpenSession): Passage | null {
    const { phase, range } = this.navigation.view.peek();
    return passageOf(session.data, phase, range);
  }
}

// Number of ops that the step executed.
export function opCount(session: OpenSession, step: number): number {
  return stepOpsOf(session).known(step)?.length ?? session.data.steps[step]?.ops_timed ?? 0;
}

function isByOp({ data }: OpenSession, step: number, speed: number): boolean {
  const summary = data.steps[step];
  if (!summary || summary.dropped || summary.ops_timed === 0) return false;
  return (summary.end_ns - summary.begin_ns) / speed / 1e6 >= SHORTEST_STEP_MS;
}
