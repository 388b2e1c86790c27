// The map of a session: its options and its camera, and what the user does with them. The scene,
// the pictures and the selection are in files of their own.
import { computed, effect, signal, untracked, type ReadonlySignal } from '@preact/signals';
import type { ApiError } from '../../net/api';
import type { Axis, AxisKind } from '../../plane/axis';
import { type Hit } from '../../plane/layout';
import { wholeCamera, type Camera } from '../../plane/camera';
import type { Brush, Marked } from '../../plane/paint_overlay';
import { panRange } from '../../plane/range';
import type { Scene } from '../../plane/scene';
import { expertRows, parseFilter } from '../../state/view/filter';
import type { OpenSession } from '../../state/session/open_session';
import { filteredSums } from '../../state/view/range_query';
import type { Store } from '../../state/store';
import type { RangeFilter } from '../../state/view/view';
import {
  decodeOptions,
  encodeOptions,
  withAxes,
  type MapOptions,
  type MapView,
} from './map_options';
import { MapPictures } from './map_pictures';
import { MapResidency, type Residency } from './map_residency';
import { brushIn, filterIn, firstRange, liesIn, rangeOf } from './map_range';
import { MapScene } from './map_scene';
import { MapSelection } from './map_selection';

const GROWING: readonly AxisKind[] = ['count', 'time'];

export class MapModel {
  readonly options: ReadonlySignal<MapOptions>; // the same object while only the camera moves
  readonly scene: ReadonlySignal<Scene | null>;
  readonly shown: ReadonlySignal<MapOptions>; // whose axes and values the scene has
  readonly camera: ReadonlySignal<Camera>;
  readonly marked: ReadonlySignal<Marked>;
  readonly brush: ReadonlySignal<Brush | null>;
  readonly error: ReadonlySignal<ApiError | null>;
  readonly busy: ReadonlySignal<boolean>;
  readonly isBehind: ReadonlySignal<boolean>; // the session grows, but its end is not in view
  readonly total: ReadonlySignal<number>; // the sum of everything that the filter selects; 0: unknown
  readonly box = signal({ w: 1200, h: 500 }); // pixels of the plane
  // The parts of the range that are a filter here, because this map does not have their axis.
  readonly filter: ReadonlySignal<RangeFilter | null>;
  readonly residency: ReadonlySignal<Residency | null>; // null: not shown
  private readonly view: ReadonlySignal<MapView>;
  private readonly store: Store;
  private readonly session: OpenSession;
  private readonly panel: string;
  private readonly pictures: MapPictures;
  private readonly memory: MapResidency;
  private readonly map: MapScene;
  private readonly selection: MapSelection;
  private readonly stops: (() => void)[];
  private followsEnd = false; // of a growing axis, while zoomed

  constructor(store: Store, session: OpenSession, panel: string) {
    this.store = store;
    this.session = session;
    this.panel = panel;
    const { view } = store.navigation;
    const text = computed(() => view.value.options[panel] ?? '');
    this.view = computed(() => decodeOptions(text.value));
    this.camera = computed(() => this.view.value.camera);
    const rest = computed(() => encodeOptions({ ...this.view.value, camera: wholeCamera }));
    this.options = computed(() => decodeOptions(rest.value));
    this.pictures = new MapPictures(session, this.box);
    this.memory = new MapResidency(store, session, this.options);
    this.residency = this.memory.state;
    const experts = computed(() => expertRows(parseFilter(view.value.filter)));
    this.map = new MapScene(session, this.options, this.pictures, this.memory, experts);
    this.selection = new MapSelection(store, session, this.options, this.map);
    this.scene = this.map.scene;
    this.shown = computed(() => this.pictures.shown.value?.options ?? this.options.value);
    this.marked = this.selection.marked;
    ({ error: this.error, busy: this.busy, total: this.total } = this.pictures);
    const range = computed(() => view.value.range);
    this.filter = computed(() => filterIn(range.value, this.options.value));
    this.brush = computed(() => brushIn(range.value, this.options.value, this.scene.value));
    this.isBehind = computed(() => {
      void this.scene.value;
      return session.active.value && !this.showsEnd(this.camera.value) && !this.followsEnd;
    });
    this.stops = [
      effect(() => {
        const options = this.options.value;
        const { phase, filter } = view.value;
        const { query } = filteredSums({ phase, filter, range: this.filter.value }, store.layers.value); // prettier-ignore
        untracked(() => {
          this.pictures.show(options, query, phase);
        });
      }),
      effect(() => {
        void this.scene.value;
        if (this.followsEnd && session.active.value)
          untracked(() => {
            this.toEnd();
          });
      }),
    ];
  }

  destroy(): void {
    for (const stop of this.stops) stop();
    this.map.destroy();
    this.memory.destroy();
    this.pictures.destroy();
  }

  set(options: MapView, how: 'push' | 'replace' | 'debounced' = 'push'): void {
    this.store.navigation.setOptions(this.panel, encodeOptions(options), how);
  }

  change(part: Partial<MapView>, how: 'push' | 'replace' | 'debounced' = 'push'): void {
    this.set({ ...this.view.peek(), ...part }, how);
  }

  changeAxes(part: Partial<Pick<MapOptions, 'x' | 'y' | 'value'>>): void {
    const options = withAxes(this.options.peek(), part);
    const { step, data } = this.session;
    const x = firstRange(options, data, step.peek());
    this.set(x ? { ...options, camera: { ...options.camera, x } } : options);
  }

  move(camera: Camera): void {
    this.followsEnd = this.session.active.peek() && this.showsEnd(camera);
    this.change({ camera }, 'debounced');
  }

  // Shows the newest step, at the same zoom, and follows it.
  toLive(): void {
    const { navigation } = this.store;
    if (navigation.view.peek().step !== null) navigation.toStep(null);
    this.followsEnd = true;
    this.toEnd();
  }

  private toEnd(): void {
    const camera = this.camera.peek();
    const whole = this.scene.peek()?.x.whole;
    if (!camera.x || !whole || this.showsEnd(camera)) return;
    const x = panRange(camera.x, whole.to - camera.x.to, { from: -Infinity, to: Infinity });
    this.change({ camera: { ...camera, x } }, 'debounced');
  }

  // Whether the end of the x axis, which grows, is in view.
  private showsEnd(camera: Camera): boolean {
    const axis = this.scene.peek()?.x;
    if (!axis || !GROWING.includes(axis.kind)) return true;
    return !camera.x || camera.x.to >= axis.whole.to - (axis.kind === 'count' ? 1 : 1e6);
  }

  setBrush(brush: Brush | null): void {
    const { navigation } = this.store;
    const range = brush && rangeOf(brush, this.options.peek());
    const { selection, range: before } = navigation.view.peek();
    if (!range && (brush !== null || before === null)) return;
    // The range has no figures of what is outside it.
    const isIn = !range || liesIn(selection, range, this.session.data);
    navigation.change({ range, selection: isIn ? selection : null });
  }

  select(hit: Hit): void {
    this.selection.select(hit);
  }

  // Compares the selected token or layer with the one at a place. Returns false if there is none.
  compare(hit: Hit): boolean {
    return this.selection.compare(hit);
  }

  // The tensor at a byte of the files or buffers.
  tensorAt(axis: Axis, at: number): string | null {
    return this.map.tensorAt(axis, at);
  }
}
