// Layouts by structure: layers of a model are mostly equal but for their names
// and numbers, so each structure is laid out once. At most one worker; a
// question that nobody waits for any more is not answered.
import type { LayoutAnswer, LayoutQuestion } from '../workers/layout.worker';
import type { Layout, LayoutGraph } from './layout';

const KEPT = 32;

// The part of a Worker that this needs.
export interface LayoutWorker {
  postMessage(question: LayoutQuestion): void;
  terminate(): void;
  onmessage: ((event: MessageEvent<LayoutAnswer>) => void) | null;
}

export class Layouts {
  private readonly known = new Map<string, Layout>();
  private readonly make: () => LayoutWorker;
  private worker: LayoutWorker | null = null;
  private waiting: { readonly id: number; readonly done: (layout: Layout) => void } | null = null;
  private last = 0;

  constructor(make: () => LayoutWorker) {
    this.make = make;
  }

  // Calls `done` with the layout, now if it is known; never after the function
  // that it gives was called.
  ask(graph: LayoutGraph, done: (layout: Layout) => void): () => void {
    const key = structureOf(graph);
    const known = this.known.get(key);
    if (known) {
      done(known);
      return () => undefined;
    }
    this.cancel();
    this.last += 1;
    const id = this.last;
    this.waiting = {
      id,
      done: (layout) => {
        this.remember(key, layout);
        done(layout);
      },
    };
    this.running().postMessage({ id, graph });
    return () => {
      if (this.waiting?.id === id) this.cancel();
    };
  }

  private running(): LayoutWorker {
    this.worker ??= this.make();
    this.worker.onmessage = ({ data: { id, layout } }) => {
      const { waiting } = this;
      if (waiting?.id !== id) return;
      this.waiting = null;
      waiting.done(layout);
    };
    return this.worker;
  }

  // A worker cannot be interrupted, only ended.
  private cancel(): void {
    if (!this.waiting) return;
    this.waiting = null;
    this.worker?.terminate();
    this.worker = null;
  }

  private remember(key: string, layout: Layout): void {
    this.known.set(key, layout);
    const oldest = this.known.keys().next();
    if (this.known.size > KEPT && !oldest.done) this.known.delete(oldest.value);
  }
}

// Equal for graphs that are laid out alike.
export function structureOf({ nodes, edges }: LayoutGraph): string {
  const boxes = nodes.map(({ w, h, loose }) => `${w},${h}${loose ? 'l' : ''}`).join(' ');
  return `${boxes}|${edges.map(([from, to]) => `${from},${to}`).join(' ')}`;
}
