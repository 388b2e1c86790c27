// A picture of an array of values, rows downwards and columns to the right, with a selected value: the
// plane of the panels Weights and Values.
import { computed, signal, type ReadonlySignal } from '@preact/signals';
import { formatCount, plural } from '../../format';
import type { WeightsPicture } from '../../net/frames';
import { axisOf } from '../../plane/axis';
import type { Hit } from '../../plane/layout';
import type { Camera } from '../../plane/camera';
import type { Marked } from '../../plane/paint_overlay';
import type { Plane } from '../../plane/plane';
import type { PlaneModel } from '../../plane/PlaneView';
import { spanOf, type Range } from '../../plane/range';
import type { Scene } from '../../plane/scene';
import { ServerSource, type LoadPicture } from '../../plane/sources/server_source';
import type { Store } from '../../state/store';
import type { TipText } from '../../ui/tip';
import type { Place } from '../option_parts';
import { shortText } from './value_text';

const OVERVIEW = { width: 1024, height: 512 };
const REST_MS = 120; // of the pointer, before its value is asked for

// The part of a panel's options that the picture reads and changes.
export interface PictureView {
  readonly at: Place | null; // the selected value
  readonly camera: Camera;
}

// What a cell is of one value, and of several.
export interface CellText {
  readonly ofOne: string; // '': the value itself
  readonly ofSeveral: string;
}

export class ValuePicture implements PlaneModel {
  readonly scene: ReadonlySignal<Scene | null>;
  readonly camera: ReadonlySignal<Camera>;
  readonly marked: ReadonlySignal<Marked>;
  readonly brush = signal(null);
  readonly pointed = signal(null);
  readonly theme: ReadonlySignal<unknown>;
  readonly source: ServerSource<WeightsPicture>;
  // Where the pointer rests, or else the selected value.
  readonly place: ReadonlySignal<Place | null>;
  private readonly resting = signal<Place | null>(null);
  private timer: ReturnType<typeof setTimeout> | null = null;
  protected readonly cells: CellText;
  private readonly change: (part: Partial<PictureView>, how: 'push' | 'debounced') => void;

  constructor(
    store: Store,
    load: LoadPicture<WeightsPicture>,
    cells: CellText,
    view: ReadonlySignal<PictureView>,
    change: (part: Partial<PictureView>, how: 'push' | 'debounced') => void,
  ) {
    this.cells = cells;
    this.change = change;
    this.theme = store.theme;
    this.source = new ServerSource<WeightsPicture>(load, 'values');
    this.camera = computed(() => view.value.camera);
    this.scene = computed(() => {
      const picture = this.source.picture.value;
      return picture && sceneOf(picture, this.source);
    });
    this.marked = computed((): Marked => {
      const { at } = view.value;
      const unit = (from: number) => ({ from, to: from + 1 });
      return {
        x: at && unit(at.column),
        ys: [at && unit(at.row)],
        compared: { x: null, ys: [] },
        frame: at && { x: this.columnsOf(at), y: unit(at.row) },
      };
    });
    this.place = computed(() => this.resting.value ?? view.value.at);
    void this.source.refresh(OVERVIEW.width, OVERVIEW.height);
  }

  // The columns that are framed with the selected value.
  protected columnsOf({ column }: Place): Range {
    return { from: column, to: column + 1 };
  }

  destroy(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.source.destroy();
  }

  reload(): void {
    void this.source.refresh(OVERVIEW.width, OVERVIEW.height);
  }

  move(camera: Camera): void {
    this.change({ camera }, 'debounced');
  }

  select(hit: Hit): void {
    const at = placeOf(hit);
    if (at) this.change({ at }, 'push');
  }

  brushed(): void {
    // Nothing is computed of a range.
  }

  pointsAt(hit: Hit | null): void {
    if (this.timer !== null) clearTimeout(this.timer);
    const place = hit && placeOf(hit);
    this.timer = setTimeout(() => {
      this.timer = null;
      this.resting.value = place;
    }, REST_MS);
  }

  // What is under the pointer: a value, or how many values the cell covers.
  describe(hit: Hit, plane: Plane): TipText | null {
    const cell = plane.cellOf(hit);
    const place = placeOf(hit);
    if (!cell.y || !place) return null;
    const count = spanOf(cell.x) * spanOf(cell.y);
    if (count > 1) {
      return {
        title: `${range('rows', cell.y)}, ${range('columns', cell.x)}`,
        head: shortText(cell.value),
        lines: [['cell', `${this.cells.ofSeveral} of ${plural(count, 'value')}`]],
      };
    }
    const title = `row ${formatCount(place.row)}, column ${formatCount(place.column)}`;
    return { title, ...this.describeValue(place, cell.value) };
  }

  // `cell`: of the value alone.
  protected describeValue(_place: Place, cell: number): Pick<TipText, 'head' | 'lines'> {
    return { head: `${this.cells.ofOne} ${shortText(cell)}`.trim(), lines: [] };
  }
}

const range = (name: string, { from, to }: { from: number; to: number }): string =>
  `${name} ${formatCount(from)} – ${formatCount(to - 1)}`;

const placeOf = ({ x, y }: Hit): Place | null =>
  y === null || Number.isNaN(x) ? null : { row: Math.floor(y), column: Math.floor(x) };

const sceneOf = ({ x, y }: WeightsPicture, source: ServerSource<WeightsPicture>): Scene => ({
  x: axisOf('index', 'column', x.size),
  tracks: [{ title: 'row', y: axisOf('index', 'row', y.size), share: 1, source, figures: null }],
  log: false,
  palette: 'diverging',
  shown: null,
  lens: false,
  bare: true,
  valueText: shortText,
  marks: null,
});
