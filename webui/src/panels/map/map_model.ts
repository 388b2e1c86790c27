// The map of a session: turns its options, the range and the steps that arrived into the scene of a
// plane, and what the user does there into changes of the view.
import { computed, effect, signal, untracked, type ReadonlySignal } from '@preact/signals';
import type { ApiError } from '../../net/api';
import type { Picture } from '../../net/frames';
import type { PictureQuery, StepSummary } from '../../net/types';
import { sectionAt, type Axis, type AxisKind } from '../../plane/axis';
import type { Camera, Hit } from '../../plane/layout';
import type { Brush, Marked } from '../../plane/paint_overlay';
import type { Scene, Track } from '../../plane/scene';
import { panRange, type Range } from '../../plane/range';
import { LiveSource } from '../../plane/sources/live_source';
import { ServerSource } from '../../plane/sources/server_source';
import type { Source } from '../../plane/sources/source';
import { TokenMarks } from '../../plane/sources/token_marks';
import { ok } from '../../result';
import type { OpenSession } from '../../state/open_session';
import { graphOf, opsOf, perSession, templateOf } from '../../state/per_session';
import { Resource } from '../../state/resource';
import { filteredSums, type SumQuery } from '../../state/range_query';
import { headName, opOf, type Selection } from '../../state/selection';
import type { Store } from '../../state/store';
import { comparedOf, type AxisRange, type RangeFilter } from '../../state/view';
import {
  axisFrom,
  baseName,
  bufferGroups,
  bufferPlaces,
  layerAxis,
  layerOfName,
  layersOf,
  partsOf,
  tokenAxis,
  weightPlaces,
  type BufferTensor,
} from './map_axes';
import { decodeOptions, encodeOptions, tracksOf, withAxes, type MapOptions } from './map_options';
import { axisName, unitOf } from './units';

// The tensors in the buffers: the KV cache, repacked weights. Compute buffers are shared by many
// tensors, one after the other, and have no names.
const bufferTensorsOf = perSession((session) => {
  const { api, reconnects } = session.context;
  const template = templateOf(session);
  return new Resource<readonly BufferTensor[]>({
    key: () => (template.value === 0 ? null : String(template.value)),
    load: async (signal) => {
      const step = session.step.peek() ?? 0;
      const rows = await api.query(session.id, bufferSql(step), 10_000, signal);
      if (!rows.ok) return rows;
      const merged = new Map<string, BufferTensor>();
      for (const [text, from, to] of rows.value.rows) {
        const name = baseName(String(text));
        const known = merged.get(name);
        merged.set(name, {
          name,
          from: Math.min(known?.from ?? Infinity, Number(from)),
          to: Math.max(known?.to ?? 0, Number(to)),
        });
      }
      return ok([...merged.values()]);
    },
    reconnects,
    cacheSize: 4,
  });
});

const bufferSql = (step: number): string =>
  `SELECT tensor_name, min(tensor_ptr), max(tensor_ptr + tensor_bytes) FROM access
   WHERE step = ${step} AND memory_source IN ('kv', 'repacked', 'buffer') GROUP BY tensor_name`;

// The names of the rows of the axis `head`.
const HEAD = /^blk\.(\d+) head (\d+)$/;

const GROWING: readonly AxisKind[] = ['count', 'time'];
const REFRESH_MS = 1000; // minimum interval between pictures of a growing session

interface Made {
  readonly key: string;
  readonly options: MapOptions;
  readonly live: LiveSource | null;
  readonly servers: readonly ServerSource[]; // by track; empty if live
}

export class MapModel {
  readonly options: ReadonlySignal<MapOptions>;
  readonly scene: ReadonlySignal<Scene | null>;
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
  private readonly store: Store;
  private readonly session: OpenSession;
  private readonly panel: string;
  private readonly made = signal<Made | null>(null); // shown, or becoming so
  private readonly shown = signal<Made | null>(null); // whose pictures have arrived
  private readonly marks = new TokenMarks();
  private readonly stops: (() => void)[] = [];
  private followsEnd = false; // of a growing axis, while zoomed
  private refreshAt = 0;
  private refreshTimer: ReturnType<typeof setTimeout> | null = null;
  private loadedSteps = 0;

  constructor(store: Store, session: OpenSession, panel: string) {
    this.store = store;
    this.session = session;
    this.panel = panel;
    const { view } = store.navigation;
    const text = computed(() => view.value.options[panel] ?? '');
    this.options = computed(() => decodeOptions(text.value));
    this.camera = computed(() => this.options.value.camera);
    const range = computed(() => view.value.range);
    this.filter = computed(() => filterIn(range.value, this.options.value));
    this.brush = computed(() => brushIn(range.value, this.options.value, this.scene.value));
    this.scene = computed(() => this.makeScene());
    this.marked = computed(() => this.markedIn(this.scene.value));
    const servers = computed(() => this.shown.value?.servers ?? []);
    this.error = computed(
      () =>
        (this.made.value?.servers ?? [])
          .map(({ error }) => error.value)
          .find((one) => one !== null) ?? null,
    );
    this.busy = computed(
      () => this.made.value !== this.shown.value || servers.value.some(({ busy }) => busy.value),
    );
    this.isBehind = computed(() => {
      void this.scene.value;
      return session.active.value && !this.showsEnd(this.camera.value) && !this.followsEnd;
    });
    this.total = computed(() =>
      servers.value.reduce((most, { picture }) => Math.max(most, picture.value?.total ?? 0), 0),
    );
    this.watch();
  }

  destroy(): void {
    for (const stop of this.stops) stop();
    if (this.refreshTimer !== null) clearTimeout(this.refreshTimer);
    for (const one of [this.made.peek(), this.shown.peek()]) destroyAll(one);
  }

  // ---- What the user does --------------------------------------------------------------

  set(options: MapOptions, how: 'push' | 'replace' | 'debounced' = 'push'): void {
    this.store.navigation.setOptions(this.panel, encodeOptions(options), how);
  }

  change(part: Partial<MapOptions>, how: 'push' | 'replace' | 'debounced' = 'push'): void {
    this.set({ ...this.options.peek(), ...part }, how);
  }

  changeAxes(part: Partial<Pick<MapOptions, 'x' | 'y' | 'value'>>): void {
    this.set(withAxes(this.options.peek(), part));
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
    const { camera } = this.options.peek();
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
    if (!brush) {
      if (navigation.view.peek().range !== null) navigation.change({ range: null });
      return;
    }
    const options = this.options.peek();
    const track = tracksOf(options.y)[brush.track];
    const part = (axis: string, { from, to }: Range): AxisRange => ({
      axis,
      from: Math.round(from),
      to: Math.round(to),
    });
    const x = options.x === 'all' ? null : part(options.x, brush.x);
    const y = brush.y && track ? part(track, brush.y) : null;
    if (x || y) navigation.change({ range: { x, y } });
  }

  select(hit: Hit): void {
    const scene = this.scene.peek();
    const axis = scene?.tracks[hit.track]?.y;
    if (!scene || !axis) return;
    const { x } = this.options.peek();
    const { data } = this.session;
    const row = hit.y === null ? null : Math.floor(hit.y);
    const track = tracksOf(this.options.peek().y)[hit.track];
    const step = Number.isNaN(hit.x) ? null : this.stepAt(x, hit.x);
    const layer =
      row === null
        ? null
        : track === 'layer'
          ? row < axis.whole.to - 1
            ? row
            : null
          : layerOfName(axis.names[row] ?? '');
    if (track !== 'layer' || x !== 'token') {
      const selection = hit.y === null ? null : this.selectionAt(track ?? '', axis, hit.y);
      if (selection) {
        const view = this.store.navigation.view.peek();
        this.store.navigation.change({
          selection,
          ...(step === null ? {} : { step }),
          layer: layer ?? view.layer,
        });
        return;
      }
    }
    if (x === 'token' && !Number.isNaN(hit.x)) {
      this.store.selectToken(this.session, Math.floor(hit.x), layer);
    } else if (layer !== null) {
      this.store.navigation.change({
        layer,
        selection: { kind: 'layer', layer },
        ...(step === null ? {} : { step }),
      });
    } else if (step !== null) {
      this.store.navigation.toStep(step);
    }
    void data;
  }

  // Compares the selected token or layer with the one at a place. Returns false if there is none.
  compare(hit: Hit): boolean {
    const { x, y } = this.options.peek();
    const { navigation } = this.store;
    const { selection, layer } = navigation.view.peek();
    const row = hit.y === null ? null : Math.floor(hit.y);
    const isToken = x === 'token' && !Number.isNaN(hit.x);
    if (isToken) {
      const step = this.session.step.peek();
      const token =
        selection?.kind === 'token'
          ? selection.token
          : step === null
            ? null
            : (this.session.data.steps[step]?.token_id ?? null);
      if (token === null) return false;
      navigation.change({
        selection: { kind: 'token', token },
        compared: { kind: 'token', token: Math.floor(hit.x) },
      });
      return true;
    }
    const other =
      x === 'layer' && !Number.isNaN(hit.x) ? Math.floor(hit.x) : y === 'layer' ? row : null;
    if (other === null || other >= this.store.layers.peek()) return false;
    navigation.change({
      selection: selection?.kind === 'layer' ? selection : { kind: 'layer', layer },
      compared: { kind: 'layer', layer: other },
    });
    return true;
  }

  // The step at a position of the x axis; null: none.
  stepAt(x: MapOptions['x'], at: number): number | null {
    const { data } = this.session;
    if (x === 'token') return data.stepOfToken(Math.floor(at));
    if (x === 'step') return data.steps[Math.floor(at)] ? Math.floor(at) : null;
    if (x !== 'time') return null;
    let low = 0;
    let high = data.steps.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((data.steps[middle]?.begin_ns ?? 0) <= at) low = middle + 1;
      else high = middle;
    }
    const step = data.steps[low - 1];
    return step && at < step.end_ns ? step.step : null;
  }

  private selectionAt(track: string, axis: Axis, y: number): Selection | null {
    const name =
      axis.kind === 'bytes'
        ? this.tensorAt(axis, y)
        : track === 'tensor'
          ? (axis.names[Math.floor(y)] ?? null)
          : null;
    if (name !== null) {
      const graph = graphOf(this.session).state.peek().value;
      return graph?.tensorOf.has(name) === true ? { kind: 'tensor', name } : null;
    }
    if (track === 'expert') {
      const expert = Number(axis.names[Math.floor(y)]);
      return Number.isInteger(expert) ? { kind: 'expert', expert } : null;
    }
    if (track === 'head') {
      const [, layer, head] = HEAD.exec(axis.names[Math.floor(y)] ?? '') ?? [];
      return layer === undefined
        ? null
        : { kind: 'head', layer: Number(layer), head: Number(head) };
    }
    if (track !== 'op') return null;
    const output = axis.names[Math.floor(y)];
    const op = opsOf(this.session)
      .state.peek()
      .value?.rows.find((one) => one.tensor_name === output);
    return op ? { kind: 'op', op: op.op } : null;
  }

  // The tensor of the model at a byte of the file.
  tensorAt(axis: Axis, at: number): string | null {
    if (axis.name !== 'file') return sectionAt(axis.parts, at)?.name ?? null;
    return sectionAt(this.places.value, at)?.name ?? null;
  }

  // ---- Sources -----------------------------------------------------------------------

  private watch(): void {
    const { session, store } = this;
    const graph = graphOf(session);
    this.stops.push(
      graph.use(),
      effect(() => {
        const isBuffer = tracksOf(this.options.value.y).includes('buffer');
        return isBuffer ? bufferTensorsOf(session).use() : undefined;
      }),
      effect(() => {
        const options = this.options.value;
        const { phase, filter } = store.navigation.view.value;
        const view = { phase, filter, range: this.filter.value };
        const { query } = filteredSums(view, store.layers.value);
        const key = JSON.stringify([options.x, options.y, options.value, query]);
        untracked(() => {
          if (key !== this.made.peek()?.key) this.make(key, options, query);
        });
      }),
      effect(() => {
        void session.feed.version.value;
        void session.active.value;
        untracked(() => {
          this.grow();
        });
      }),
      effect(() => {
        void this.scene.value;
        if (this.followsEnd && session.active.value)
          untracked(() => {
            this.toEnd();
          });
      }),
      // The new pictures replace the old ones when all have arrived.
      effect(() => {
        const made = this.made.value;
        const isReady =
          made?.live !== null || made.servers.every(({ picture }) => picture.value !== null);
        if (!made || !isReady) return;
        untracked(() => {
          const before = this.shown.peek();
          if (before === made) return;
          this.shown.value = made;
          destroyAll(before);
        });
      }),
    );
  }

  private make(key: string, options: MapOptions, query: SumQuery): void {
    const before = this.made.peek();
    if (before !== this.shown.peek()) destroyAll(before);
    const { phase } = this.store.navigation.view.peek();
    const metric = options.value === 'time' ? 'ns' : options.value === 'bytes' ? 'bytes' : null;
    const isPlain = Object.keys(query).every((name) => name === 'phase');
    if (options.x === 'token' && options.y === 'layer' && metric && isPlain) {
      const live = new LiveSource(metric, phase);
      live.update(this.session.data);
      this.marks.update(this.session.data);
      this.made.value = { key, options, live, servers: [] };
      return;
    }
    const servers = tracksOf(options.y).map(
      (y) =>
        new ServerSource((request, abort) => {
          const { api } = this.session.context;
          const whole: PictureQuery = {
            ...query,
            x: options.x,
            y,
            value: options.value,
            width: request.width,
            height: request.height,
          };
          return api.heatmap(
            this.session.id,
            {
              ...whole,
              ...(request.x ? { x_from: request.x.from, x_to: request.x.to } : {}),
              ...(request.y ? { y_from: request.y.from, y_to: request.y.to } : {}),
            },
            abort,
          );
        }),
    );
    this.made.value = { key, options, live: null, servers };
    this.refresh();
  }

  private grow(): void {
    const { data } = this.session;
    this.marks.update(data);
    const made = this.made.peek();
    if (made?.live) made.live.update(data);
    else if (data.steps.length !== this.loadedSteps) this.refreshLater();
  }

  private refreshLater(): void {
    const wait = this.session.active.peek() ? this.refreshAt - Date.now() : 0;
    this.refreshTimer ??= setTimeout(
      () => {
        this.refreshTimer = null;
        this.refresh();
      },
      Math.max(0, wait),
    );
  }

  private refresh(): void {
    this.refreshAt = Date.now() + REFRESH_MS;
    this.loadedSteps = this.session.data.steps.length;
    const { w, h } = this.box.peek();
    const servers = this.made.peek()?.servers ?? [];
    for (const source of servers)
      void source.refresh(w * devicePixelRatio, (h * devicePixelRatio) / servers.length);
  }

  // ---- Scene -------------------------------------------------------------------------

  private readonly places = computed(() => {
    const graph = graphOf(this.session).state.value.value;
    const info = this.session.info.value;
    const experts = info.is === 'ready' ? (info.value.n_experts ?? 0) : 0;
    const picture = this.pictureOf('file');
    const files = picture?.y.sections ?? [];
    return graph ? weightPlaces(graph.tensors, files, experts) : [];
  });

  private pictureOf(track: string): Picture | null {
    const shown = this.shown.value;
    const index = shown ? tracksOf(shown.options.y).findIndex((one) => one === track) : -1;
    return shown?.servers[index]?.picture.value ?? null;
  }

  private makeScene(): Scene | null {
    const shown = this.shown.value;
    if (!shown) return null;
    const { options, live, servers } = shown;
    const { log, palette, shown: range, lens } = this.options.value;
    const names = tracksOf(options.y);
    const units = names.map((name) => unitOf(options, name));
    const figure = options.x === 'token' || options.x === 'step' ? 'median' : 'mean';
    const common = {
      log,
      palette,
      shown: range,
      lens,
      figure,
      figureTitle: options.x === 'all' ? '' : figure === 'median' ? 'median' : 'mean',
      valueText: (value: number, track: number) => units[track]?.text(value) ?? '',
      marks: options.x === 'token' ? this.markScene() : null,
    } as const;
    const { data } = this.session;
    if (live) {
      void live.version.value;
      const x = tokenAxis(data, live.values.tokens);
      return { ...common, x, tracks: [track('layer', layerAxis(live.values.rows), live)] };
    }
    const pictures = servers.map(({ picture }) => picture.value);
    const first = pictures[0];
    if (!first) return null;
    const text = options.x === 'token' ? tokenAxis(data, 1).textOf : undefined;
    const x = axisFrom(first.x, text ? { textOf: text } : {});
    const tracks = servers.flatMap((source, i): readonly Track[] => {
      const picture = pictures[i];
      const name = names[i] ?? '';
      return picture
        ? [track(titleOf(name), this.yAxis(name, picture), source, name === 'buffer' ? 2 : 3)]
        : [];
    });
    return { ...common, x, tracks };
  }

  private yAxis(name: string, { y }: Picture): Axis {
    if (name === 'buffer') {
      const places = bufferPlaces(
        bufferTensorsOf(this.session).state.value.value ?? [],
        y.sections,
      );
      const axis = axisFrom(y);
      return { ...axis, groups: bufferGroups(axis.groups, places), parts: partsOf(places) };
    }
    if (name !== 'file') return axisFrom(y);
    const places = this.places.value;
    return places.length === 0
      ? axisFrom(y)
      : axisFrom(y, { groups: layersOf(places), parts: partsOf(places) });
  }

  private markScene(): Scene['marks'] {
    const { data } = this.session;
    return {
      pixels: (x, width) => this.marks.pixels(x, width),
      columnEnds: (token) => {
        const step = data.stepOfToken(token);
        return step === null || step !== data.stepOfToken(token + 1);
      },
    };
  }

  private markedIn(scene: Scene | null): Marked {
    if (!scene) return { x: null, ys: [], compared: { x: null, ys: [] } };
    const { selection, layer } = this.store.navigation.view.value;
    const options = this.options.value;
    const step = this.session.step.value;
    const summary = step === null ? undefined : this.session.data.steps[step];
    const x =
      !summary || step === null
        ? null
        : options.x === 'token'
          ? { from: summary.token_id, to: summary.token_id + summary.token_count }
          : options.x === 'step'
            ? { from: step, to: step + 1 }
            : options.x === 'time'
              ? this.timeOf(selection, summary)
              : options.x === 'layer'
                ? { from: layer, to: layer + 1 }
                : null;
    const name = this.selectedName(selection);
    const ys = tracksOf(options.y).map((track, i): Range | null => {
      const axis = scene.tracks[i]?.y;
      if (!axis) return null;
      if (track === 'layer') return { from: layer, to: layer + 1 };
      if (name === null) return null;
      if (axis.kind === 'bytes')
        return this.places.value.find((place) => place.name === name) ?? null;
      const row = axis.names.indexOf(name);
      return row < 0 ? null : { from: row, to: row + 1 };
    });
    return { x, ys, compared: this.comparedIn(options) };
  }

  // What the selection is compared with.
  private comparedIn({ x, y }: MapOptions): Marked['compared'] {
    const compared = comparedOf(this.store.navigation.view.value);
    const at = compared?.kind === 'token' ? compared.token : (compared?.layer ?? 0);
    const range = compared && { from: at, to: at + 1 };
    return {
      x: compared?.kind === x ? range : null,
      ys: tracksOf(y).map((track) => (compared?.kind === track ? range : null)),
    };
  }

  // The time of the selected op, else of the step.
  private timeOf(selection: Selection | null, { step, begin_ns, end_ns }: StepSummary): Range {
    const ops = opsOf(this.session).state.value.value;
    const index = opOf(selection);
    const op =
      ops?.step === step && index !== null ? ops.rows.find((one) => one.op === index) : undefined;
    return op && op.duration_ns !== null
      ? { from: op.timestamp_ns, to: op.timestamp_ns + op.duration_ns }
      : { from: begin_ns, to: end_ns };
  }

  // The name of the row of the selected tensor, expert, head, or output of the selected op.
  private selectedName(selection: Selection | null): string | null {
    if (selection?.kind === 'tensor') return selection.name.replace(/~\d+$/, '');
    if (selection?.kind === 'expert') return String(selection.expert);
    if (selection?.kind === 'head') return headName(selection);
    const op = opOf(selection);
    if (op === null) return null;
    return (
      opsOf(this.session).state.value.value?.rows.find((one) => one.op === op)?.tensor_name ?? null
    );
  }
}

const track = (title: string, y: Axis, source: Source, share = 1): Track => ({
  title,
  y,
  source,
  share,
});

const titleOf = (name: string): string =>
  name === 'file' ? 'file, mapped' : name === 'buffer' ? 'buffers' : axisName(name);

function destroyAll(made: Made | null): void {
  for (const source of made?.servers ?? []) source.destroy();
}

const hasX = (options: MapOptions, axis: string): boolean => options.x === axis;
const hasY = (options: MapOptions, axis: string): boolean =>
  tracksOf(options.y).some((one) => one === axis);

// The parts of a range that the map does not show as axes.
export function filterIn(range: RangeFilter | null, options: MapOptions): RangeFilter | null {
  if (!range) return null;
  const isShown = (part: AxisRange): boolean =>
    hasX(options, part.axis) || hasY(options, part.axis);
  const x = range.x && !isShown(range.x) ? range.x : null;
  const y = range.y && !isShown(range.y) ? range.y : null;
  return x || y ? { x, y } : null;
}

// The parts of a range that the map shows as axes, as a brush.
export function brushIn(
  range: RangeFilter | null,
  options: MapOptions,
  scene: Scene | null,
): Brush | null {
  if (!range || !scene) return null;
  const parts = [range.x, range.y].flatMap((part) => (part ? [part] : []));
  const x = parts.find(({ axis }) => hasX(options, axis));
  const y = parts.find(({ axis }) => hasY(options, axis));
  if (!x && !y) return null;
  const index = y ? tracksOf(options.y).findIndex((one) => one === y.axis) : 0;
  return { x: x ?? scene.x.whole, track: index, y: y ?? null };
}
