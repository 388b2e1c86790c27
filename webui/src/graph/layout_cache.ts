// Cache of layouts by graph structure: most layers of a model differ only in names and numbers, so
// each structure is laid out once. Uses at most one worker. A new request cancels the pending one.
import type { LayoutResponse, LayoutRequest } from '../workers/layout.worker';
import type { Layout, LayoutGraph } from './layout';

const CACHE_SIZE = 32;

// The parts of a Worker that Layouts uses.
export interface LayoutWorker {
  postMessage(question: LayoutRequest): void;
  terminate(): void;
  onmessage: ((event: MessageEvent<LayoutResponse>) => void) | null;
}

export class LayoutCache {
  private readonly cache = new Map<string, Layout>();
  private readonly make: () => LayoutWorker;
  private worker: LayoutWorker | null = null;
  private pending: { readonly id: number; readonly done: (layout: Layout) => void } | null = null;
  private last = 0;

  constructor(make: () => LayoutWorker) {
    this.make = make;
  }

  // Calls `done` with the layout, synchronously if it is cached. Returns a function that cancels
  // the request.
  request(graph: LayoutGraph, done: (layout: Layout) => void): () => void {
    const key = structureOf(graph);
    const known = this.cache.get(key);
    if (known) {
      done(known);
      return () => undefined;
    }
    this.cancel();
    this.last += 1;
    const id = this.last;
    this.pending = {
      id,
      done: (layout) => {
        this.store(key, layout);
        done(layout);
      },
    };
    this.running().postMessage({ id, graph });
    return () => {
      if (this.pending?.id === id) this.cancel();
    };
  }

  private running(): LayoutWorker {
    this.worker ??= this.make();
    this.worker.onmessage = ({ data: { id, layout } }) => {
      const { pending } = this;
      if (pending?.id !== id) return;
      this.pending = null;
      pending.done(layout);
    };
    return this.worker;
  }

  // A running layout can only be stopped by terminating the worker.
  private cancel(): void {
    if (!this.pending) return;
    this.pending = null;
    this.worker?.terminate();
    this.worker = null;
  }

  private store(key: string, layout: Layout): void {
    this.cache.set(key, layout);
    const oldest = this.cache.keys().next();
    if (this.cache.size > CACHE_SIZE && !oldest.done) this.cache.delete(oldest.value);
  }
}

// The cache key: equal for graphs with the same layout.
export function structureOf({ nodes, edges }: LayoutGraph): string {
  const boxes = nodes.map(({ w, h, canSink }) => `${w},${h}${canSink ? 'l' : ''}`).join(' ');
  return `${boxes}|${edges.map(([from, to]) => `${from},${to}`).join(' ')}`;
}
