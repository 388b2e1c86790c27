import type { LayoutWorker } from '../graph/layout_cache';

export const startLayoutWorker = (): LayoutWorker =>
  new Worker(new URL('./layout.worker.ts', import.meta.url), { type: 'module' });
