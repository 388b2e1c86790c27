// The rows of a grid: any number, of which only those in view are asked for.
import { signal, type ReadonlySignal } from '@preact/signals';
import type { ApiError, ApiResult } from '../net/api';

export interface Rows<Row> {
  readonly count: number;
  // The row, or undefined while it is loading.
  at(index: number): Row | undefined;
  // Tells which rows are in view: [first, last).
  need?(first: number, last: number): void;
}

export const arrayRows = <Row>(rows: readonly Row[]): Rows<Row> => ({
  count: rows.length,
  at: (index) => rows[index],
});

const PAGE = 200; // rows per request
const MAX_PAGES = 60; // in memory
const SETTLE_MS = 30; // no request while the user scrolls past

export type LoadRows<Row> = (
  from: number,
  limit: number,
  signal: AbortSignal,
) => ApiResult<readonly Row[]>;

// Rows that are loaded by page. One request runs at a time; one for rows that are no longer in view
// is aborted.
export class PagedRows<Row> implements Rows<Row> {
  readonly count: number;
  readonly version: ReadonlySignal<number>; // counts the pages that arrived
  readonly error: ReadonlySignal<ApiError | null>;
  private readonly arrived = signal(0);
  private readonly failed = signal<ApiError | null>(null);
  private readonly pages = new Map<number, readonly Row[]>(); // the least recently used first
  private readonly load: LoadRows<Row>;
  private view = { first: 0, last: 0 };
  private running: { readonly page: number; readonly control: AbortController } | null = null;
  private timer: ReturnType<typeof setTimeout> | null = null;

  constructor(count: number, load: LoadRows<Row>) {
    this.count = count;
    this.load = load;
    this.version = this.arrived;
    this.error = this.failed;
  }

  at(index: number): Row | undefined {
    return this.pages.get(Math.floor(index / PAGE))?.[index % PAGE];
  }

  need(first: number, last: number): void {
    if (first === this.view.first && last === this.view.last) return;
    this.view = { first, last };
    if (this.running && !this.isInView(this.running.page)) this.cancel();
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = setTimeout(
      () => {
        this.timer = null;
        void this.next();
      },
      this.arrived.peek() === 0 ? 0 : SETTLE_MS,
    );
  }

  // Asks again for the pages that failed.
  retry(): void {
    this.failed.value = null;
    void this.next();
  }

  // Rows of any range, also those that are not in view.
  range(from: number, limit: number, signal: AbortSignal): ApiResult<readonly Row[]> {
    return this.load(from, limit, signal);
  }

  destroy(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.cancel();
  }

  private cancel(): void {
    this.running?.control.abort();
    this.running = null;
  }

  private isInView(page: number): boolean {
    return page * PAGE < this.view.last && (page + 1) * PAGE > this.view.first;
  }

  private missing(): number | null {
    const { first, last } = this.view;
    for (let page = Math.floor(first / PAGE); page * PAGE < Math.min(last, this.count); page += 1) {
      if (!this.pages.has(page)) return page;
    }
    return null;
  }

  private async next(): Promise<void> {
    const page = this.missing();
    if (page === null || this.running || this.failed.peek()) return;
    const control = new AbortController();
    this.running = { page, control };
    const from = page * PAGE;
    const answer = await this.load(from, Math.min(PAGE, this.count - from), control.signal);
    if (control.signal.aborted) return;
    this.running = null;
    if (answer.ok) {
      this.pages.set(page, answer.value);
      for (const oldest of this.pages.keys()) {
        if (this.pages.size <= MAX_PAGES) break;
        if (!this.isInView(oldest)) this.pages.delete(oldest);
      }
    } else this.failed.value = answer.error;
    this.arrived.value += 1;
    void this.next();
  }
}
