// The server's raster of one pair of axes. Holds an overview of everything and a few details of
// ranges that were in view. A request is superseded by the next one: at most one runs, and it is
// cancelled if what is in view is not what it asked for. While a detail loads, the overview and
// older details are drawn in its place.
import { signal, type ReadonlySignal } from '@preact/signals';
import type { ApiError, ApiResult } from '../../net/api';
import type { Picture } from '../../net/frames';
import { normalized, type Raster } from '../raster';
import { covers, extend, sameRange, spanOf, type Range } from '../range';
import type { Source, Wanted } from './source';

export interface PictureRequest {
  readonly x: Range | null; // null: the whole axis
  readonly y: Range | null;
  readonly width: number;
  readonly height: number;
}

// What the source needs of a picture.
export interface PlanePicture {
  readonly x: Range & { readonly size: number };
  readonly y: Range & { readonly size: number };
  readonly width: number;
  readonly height: number;
  readonly cells: Float32Array;
}

export type LoadPicture<P extends PlanePicture = Picture> = (
  request: PictureRequest,
  signal: AbortSignal,
) => ApiResult<P>;

const DELAY_MS = 40; // a gesture changes the view many times a second
const MARGIN = 0.25; // of the view, loaded on each side in advance
const KEPT = 8;
const MAX_PIXELS = 4096; // of the server

// What one use of the source (the plane, its lens) shows and asks for.
interface Use {
  details: Raster[]; // the newest last
  wanted: Wanted | null;
  asked: PictureRequest | null;
  control: AbortController | null;
  timer: ReturnType<typeof setTimeout> | null;
}

const emptyUse = (): Use => ({
  details: [],
  wanted: null,
  asked: null,
  control: null,
  timer: null,
});

export class ServerSource<P extends PlanePicture = Picture> implements Source {
  readonly version: ReadonlySignal<number>;
  readonly error: ReadonlySignal<ApiError | null>;
  readonly busy: ReadonlySignal<boolean>;
  // The description of the axes and the totals; null: not loaded yet.
  readonly picture: ReadonlySignal<P | null>;
  private readonly changes = signal(0);
  private readonly failure = signal<ApiError | null>(null);
  private readonly running = signal(false);
  private readonly current = signal<P | null>(null);
  private whole: Raster | null = null;
  private readonly uses = { plane: emptyUse(), lens: emptyUse() };
  private overviewControl: AbortController | null = null;
  private readonly load: LoadPicture<P>;
  private readonly rasterOf: (picture: P) => Raster;

  // `cells`: sums over the units of a pixel, or values that do not depend on their number.
  constructor(load: LoadPicture<P>, cells: 'sums' | 'values' = 'sums') {
    this.rasterOf = cells === 'sums' ? rasterOfSums : rasterOfValues;
    this.version = this.changes;
    this.error = this.failure;
    this.busy = this.running;
    this.picture = this.current;
    this.load = load;
  }

  destroy(): void {
    this.overviewControl?.abort();
    for (const use of Object.values(this.uses)) {
      use.control?.abort();
      if (use.timer !== null) clearTimeout(use.timer);
    }
  }

  // Loads everything again, because the session has grown. Pictures that are shown are kept until
  // the new ones arrive.
  async refresh(width: number, height: number): Promise<void> {
    this.overviewControl?.abort();
    const control = new AbortController();
    this.overviewControl = control;
    const answer = await this.load({ x: null, y: null, ...limited(width, height) }, control.signal);
    if (control.signal.aborted) return;
    this.failure.value = answer.ok ? null : answer.error;
    if (answer.ok) {
      this.whole = this.rasterOf(answer.value);
      for (const use of Object.values(this.uses)) {
        use.details = [];
        use.asked = null;
      }
      this.current.value = answer.value;
    }
    this.changes.value += 1;
  }

  overview(): Raster | null {
    return this.whole;
  }

  pictures(wanted: Wanted, by: 'plane' | 'lens' = 'plane'): readonly Raster[] {
    const { whole } = this;
    if (!whole) return [];
    const use = this.uses[by];
    use.wanted = wanted;
    const shown = use.details.filter(
      ({ x, y }) =>
        x.from < wanted.x.to &&
        x.to > wanted.x.from &&
        y.from < wanted.y.to &&
        y.to > wanted.y.from,
    );
    const ordered = [whole, ...shown].sort((a, b) => densityOf(a) - densityOf(b));
    const axes = this.current.peek();
    if (!ordered.some((raster) => isEnough(raster, wanted, axes))) this.loadLater(use);
    // A coarser picture under one that covers everything would be drawn for nothing.
    const bottom = ordered.findLastIndex((raster) => coversView(raster, wanted, axes));
    return ordered.slice(Math.max(0, bottom));
  }

  private loadLater(use: Use): void {
    use.timer ??= setTimeout(() => {
      use.timer = null;
      void this.loadDetail(use);
    }, DELAY_MS);
  }

  private async loadDetail(use: Use): Promise<void> {
    const { whole } = this;
    const { wanted, details } = use;
    const axes = this.current.peek();
    if (!wanted || !whole || !axes) return;
    if ([whole, ...details].some((raster) => isEnough(raster, wanted, axes))) return;
    const request = requestFor(wanted, wholeOf(axes));
    if (use.asked && sameRange(use.asked.x, request.x) && sameRange(use.asked.y, request.y)) return;
    use.control?.abort();
    const control = new AbortController();
    use.control = control;
    use.asked = request;
    this.running.value = true;
    const answer = await this.load(request, control.signal);
    if (control.signal.aborted) return;
    this.running.value = false;
    use.asked = null;
    this.failure.value = answer.ok ? null : answer.error;
    if (answer.ok) use.details = [...use.details, this.rasterOf(answer.value)].slice(-KEPT);
    this.changes.value += 1;
  }
}

const limited = (width: number, height: number) => ({
  width: Math.min(MAX_PIXELS, Math.max(1, Math.round(width))),
  height: Math.min(MAX_PIXELS, Math.max(1, Math.round(height))),
});

function rasterOfSums({ x, y, width, height, cells }: PlanePicture): Raster {
  return normalized({ from: x.from, to: x.to }, { from: y.from, to: y.to }, width, height, cells);
}

const rasterOfValues = ({ x, y, width, height, cells }: PlanePicture): Raster => ({
  x: { from: x.from, to: x.to },
  y: { from: y.from, to: y.to },
  width,
  height,
  cells,
});

interface Axes {
  readonly x: Range;
  readonly y: Range;
}

const wholeOf = ({ x, y }: PlanePicture): Axes => ({
  x: { from: Math.min(x.from, x.size), to: x.size },
  y: { from: Math.min(y.from, y.size), to: y.size },
});

export function requestFor({ x, y, width, height }: Wanted, whole: Axes): PictureRequest {
  const [wideX, wideY] = [extend(x, MARGIN, whole.x), extend(y, MARGIN, whole.y)];
  return {
    x: wideX,
    y: wideY,
    ...limited((width * spanOf(wideX)) / spanOf(x), (height * spanOf(wideY)) / spanOf(y)),
  };
}

const densityOf = ({ x, y, width, height }: Raster): number =>
  (width / spanOf(x)) * (height / spanOf(y));

// Whether the raster covers what is wanted and has its resolution: a pixel per pixel of the screen,
// or all units of the axis.
export function isEnough(raster: Raster, wanted: Wanted, axes: PlanePicture | null): boolean {
  const isFine = (pixels: number, range: Range, want: Range, room: number): boolean =>
    pixels >= spanOf(range) || pixels / spanOf(range) >= (0.7 * room) / spanOf(want);
  return (
    coversView(raster, wanted, axes) &&
    isFine(raster.width, raster.x, wanted.x, wanted.width) &&
    isFine(raster.height, raster.y, wanted.y, wanted.height)
  );
}

// Whether nothing in view is outside of the raster.
function coversView(raster: Raster, wanted: Wanted, axes: PlanePicture | null): boolean {
  if (!axes) return false;
  const whole = wholeOf(axes);
  return covers(raster.x, clipTo(wanted.x, whole.x)) && covers(raster.y, clipTo(wanted.y, whole.y));
}

const clipTo = (range: Range, whole: Range): Range => ({
  from: Math.max(range.from, whole.from),
  to: Math.min(range.to, whole.to),
});
