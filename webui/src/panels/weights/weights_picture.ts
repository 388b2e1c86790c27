// The picture of one tensor: its plane, and the value that is pointed at or selected.
import { computed, signal, type ReadonlySignal } from '@preact/signals';
import { formatCount, plural } from '../../format';
import type { WeightsPicture } from '../../net/frames';
import type { WeightsValue } from '../../net/types';
import { axisOf } from '../../plane/axis';
import type { Camera, Hit } from '../../plane/layout';
import type { Marked } from '../../plane/paint_overlay';
import type { Plane } from '../../plane/plane';
import type { PlaneModel } from '../../plane/PlaneView';
import { spanOf, type Range } from '../../plane/range';
import type { Scene } from '../../plane/scene';
import { ServerSource } from '../../plane/sources/server_source';
import { Resource } from '../../state/resource';
import type { Store } from '../../state/store';
import type { TipText } from '../../ui/tip';
import { blockText, floatText, formulaText, shortText } from './value_text';
import { CELLS, type CellsOf, type Place, type WeightsOptions } from './weights_options';

const OVERVIEW = { width: 1024, height: 512 };
const REST_MS = 120; // of the pointer, before its value is asked for
const KEPT_VALUES = 256;

export class TensorPicture implements PlaneModel {
  readonly scene: ReadonlySignal<Scene | null>;
  readonly camera: ReadonlySignal<Camera>;
  readonly marked: ReadonlySignal<Marked>;
  readonly brush = signal(null);
  readonly pointed = signal(null);
  readonly theme: ReadonlySignal<unknown>;
  readonly source: ServerSource<WeightsPicture>;
  // The value where the pointer rests, or else the selected one.
  readonly value: Resource<WeightsValue>;
  readonly place: ReadonlySignal<Place | null>;
  private readonly resting = signal<Place | null>(null);
  private block: (Place & { readonly x: Range }) | null = null; // of the selected value, when it was known
  private timer: ReturnType<typeof setTimeout> | null = null;
  private readonly cells: CellsOf;
  private readonly change: (part: Partial<WeightsOptions>, how: 'push' | 'debounced') => void;

  constructor(
    store: Store,
    of: { readonly model: string; readonly tensor: string; readonly cells: CellsOf },
    options: ReadonlySignal<WeightsOptions>,
    change: (part: Partial<WeightsOptions>, how: 'push' | 'debounced') => void,
  ) {
    const { model, tensor, cells } = of;
    this.cells = cells;
    this.change = change;
    this.theme = store.theme;
    this.source = new ServerSource<WeightsPicture>(
      ({ x, y, width, height }, signal) =>
        store.api.weightsPicture(
          model,
          {
            name: tensor,
            value: cells,
            width,
            height,
            ...(x ? { x_from: Math.floor(x.from), x_to: Math.ceil(x.to) } : {}),
            ...(y ? { y_from: Math.floor(y.from), y_to: Math.ceil(y.to) } : {}),
          },
          signal,
        ),
      'values',
    );
    this.camera = computed(() => options.value.camera);
    this.scene = computed(() => {
      const picture = this.source.picture.value;
      return picture && sceneOf(picture, this.source);
    });
    this.marked = computed((): Marked => {
      const { at } = options.value;
      const unit = (from: number) => ({ from, to: from + 1 });
      return {
        x: at && unit(at.column),
        ys: [at && unit(at.row)],
        compared: { x: null, ys: [] },
        frame: at && { x: this.blockOf(at) ?? unit(at.column), y: unit(at.row) },
      };
    });
    this.place = computed(() => this.resting.value ?? options.value.at);
    this.value = new Resource<WeightsValue>({
      key: () => {
        const place = this.place.value;
        return place && `${place.row} ${place.column}`;
      },
      load: (signal) => {
        const { row, column } = this.place.peek() ?? { row: 0, column: 0 };
        return store.api.weightsValue(model, tensor, row, column, signal);
      },
      reconnects: store.connection.reconnects,
      cacheSize: KEPT_VALUES,
    });
    void this.source.refresh(OVERVIEW.width, OVERVIEW.height);
  }

  // The columns of the block of the selected value, which stay known while the pointer asks for others;
  // null: not yet known.
  private blockOf({ row, column }: Place): Range | null {
    const { value } = this.value.state.value;
    if (value?.row === row && value.column === column) {
      const { first, values } = value.block;
      this.block = { row, column, x: { from: first, to: first + values } };
    }
    const known = this.block;
    return known?.row === row && known.column === column ? known.x : null;
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

  // What is under the pointer: a value with its block, or how many values the cell covers.
  describe(hit: Hit, plane: Plane): TipText | null {
    const cell = plane.cellOf(hit);
    const place = placeOf(hit);
    if (!cell.y || !place) return null;
    const count = spanOf(cell.x) * spanOf(cell.y);
    if (count > 1) {
      return {
        title: `${range('rows', cell.y)}, ${range('columns', cell.x)}`,
        head: shortText(cell.value),
        lines: [['cell', `${CELLS[this.cells].ofSeveral} of ${plural(count, 'value')}`]],
      };
    }
    const title = `row ${formatCount(place.row)}, column ${formatCount(place.column)}`;
    const { ofOne } = CELLS[this.cells];
    const head = `${ofOne} ${shortText(cell.value)}`.trim();
    const { value, loadedKey } = this.value.state.peek();
    if (!value || loadedKey !== `${place.row} ${place.column}`) return { title, head, lines: [] };
    const formula = formulaText(value);
    const exact = floatText(value.value ?? NaN);
    return {
      title,
      head: ofOne === '' ? exact : head,
      lines: [
        ...(ofOne === '' ? [] : [['value', exact] as const]),
        ...(formula === null ? [] : [['decoded', formula] as const]),
        ['raw', blockText(value)],
      ],
    };
  }
}

const range = (name: string, { from, to }: { from: number; to: number }): string =>
  `${name} ${formatCount(from)} – ${formatCount(to - 1)}`;

const placeOf = ({ x, y }: Hit): Place | null =>
  y === null || Number.isNaN(x) ? null : { row: Math.floor(y), column: Math.floor(x) };

const sceneOf = ({ x, y }: WeightsPicture, source: ServerSource<WeightsPicture>): Scene => ({
  x: axisOf('index', 'column', x.size),
  tracks: [{ title: 'row', y: axisOf('index', 'row', y.size), share: 1, source }],
  log: false,
  palette: 'diverging',
  shown: null,
  lens: false,
  bare: true,
  medians: null,
  valueText: shortText,
  marks: null,
});
