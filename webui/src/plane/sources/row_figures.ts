// The figures of the rows of a track, as the server decides them: what each row has in the range in
// view, and in one step or token of it (docs/heat.md). A change of the view asks again when it is over;
// until the answer arrives, the figures before it are shown, which say what they are of.
import { signal, type ReadonlySignal } from '@preact/signals';
import type { ApiResult } from '../../net/api';
import type { Picture } from '../../net/frames';
import { sameRange, type Range } from '../range';

export interface FiguresWanted {
  readonly x: Range | null; // whole units; null: the whole axis
  readonly y: Range | null;
}

export interface RowFigures {
  readonly of: NonNullable<Picture['row_figures']>;
  readonly sums: Float32Array; // of the range of x, by row
  readonly x: Range | null; // what was asked for
  readonly y: Range; // which the rows divide as pixels do
}

export type LoadFigures = (wanted: FiguresWanted, signal: AbortSignal) => ApiResult<Picture>;

const DELAY_MS = 40; // as that of a picture

export class RowFiguresSource {
  readonly version: ReadonlySignal<number>;
  private readonly changes = signal(0);
  private readonly load: LoadFigures;
  private readonly isReady: () => boolean; // whether the session can be asked
  private shown: RowFigures | null = null;
  private wanted: FiguresWanted | null = null;
  private running: FiguresWanted | null = null;
  private known: FiguresWanted | null = null; // answered, and the session has not grown since
  private growths = 0;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private control: AbortController | null = null;

  constructor(load: LoadFigures, isReady: () => boolean = () => true) {
    this.load = load;
    this.isReady = isReady;
    this.version = this.changes;
  }

  destroy(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.control?.abort();
  }

  // The session has grown.
  outdate(): void {
    this.growths += 1;
    this.known = null;
    this.askLater(DELAY_MS);
  }

  // The newest figures; null: none have arrived, or there are none.
  of(wanted: FiguresWanted): RowFigures | null {
    this.wanted = wanted;
    this.askLater(DELAY_MS);
    return this.shown;
  }

  private askLater(delay: number): void {
    // The answer to the same question asks again if the session has grown.
    if (!this.wanted || isSame(this.wanted, this.known) || isSame(this.wanted, this.running))
      return;
    this.timer ??= setTimeout(() => {
      this.timer = null;
      void this.ask();
    }, delay);
  }

  private async ask(): Promise<void> {
    const { wanted } = this;
    if (!wanted || isSame(wanted, this.known) || isSame(wanted, this.running)) return;
    if (!this.isReady()) return;
    if (this.running) this.control?.abort();
    const control = new AbortController();
    this.control = control;
    this.running = wanted;
    const { growths } = this;
    const begin = performance.now();
    const answer = await this.load(wanted, control.signal);
    if (control.signal.aborted) return;
    this.running = null;
    this.known = this.growths === growths ? wanted : null;
    // A file without a server has no answer of a part.
    this.shown = answer.ok ? figuresIn(answer.value, wanted) : null;
    this.changes.value += 1;
    // Computing for a growing session takes at most half of the time.
    this.askLater(Math.max(DELAY_MS, performance.now() - begin));
  }
}

function figuresIn(
  { cells, y, row_figures: of }: Picture,
  { x }: FiguresWanted,
): RowFigures | null {
  return of ? { sums: cells, of, x, y: { from: y.from, to: y.to } } : null;
}

const isSame = (a: FiguresWanted, b: FiguresWanted | null): boolean =>
  b !== null && sameRange(a.x, b.x) && sameRange(a.y, b.y);
