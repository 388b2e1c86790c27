// Takes the place of start_layout_worker.ts in the page that is one file (vite.file.config.ts).
import type { LayoutWorker } from '../graph/layout_cache';
import InlineWorker from './layout.worker.ts?worker&inline';

export const startLayoutWorker = (): LayoutWorker => new InlineWorker();
