// The layer graph on its canvas: observes the graph, the selection and the pointer, and paints at
// most once per frame.
import { computed, effect, signal, untracked, type ReadonlySignal } from '@preact/signals';
import {
  graphPalette,
  hoveredArea,
  paintGraph,
  paintHovered,
  type GraphMarks,
  type GraphPalette,
} from '../../graph/paint';
import { groupKey } from '../../graph/whole';
import { decodeGraph, encodeGraph, type GraphOptions } from '../../graph/graph_options';
import { heatColours } from '../../graph/heat';
import { findItems, timesOf, valuesOf, type LaidOutScene } from '../../graph/scene';
import {
  initialCamera,
  cameraOf,
  fitCamera,
  hit,
  isCutBelow,
  isCutRight,
  panCamera,
  rectOf,
  cameraRevealing,
  windowOf,
  zoomCamera,
  type Box,
  type Camera,
} from '../../graph/view';
import { neighbour, type Direction } from '../../graph/neighbours';
import type { OpenSession } from '../../state/session/open_session';
import { graphOf, opsOf, type TemplateGraph } from '../../state/session/per_session';
import type { Selection } from '../../state/view/selection';
import type { Viewport } from '../../state/shell';
import type { Store } from '../../state/store';
import { withKey, type View } from '../../state/view/view';
import { paintInto, within } from '../../ui/paint_into';
import { Tip } from '../../ui/tip';
import { listAccesses } from './list_accesses';
import { nodeFilter } from './node_filter';
import { placedOf } from './placed_op';
import { selectionOf } from './selection_of';
import { tipText } from './tip_text';

export interface GraphParts {
  readonly store: Store;
  readonly session: OpenSession;
  readonly panel: string;
  readonly host: HTMLElement;
  readonly canvas: HTMLCanvasElement;
  readonly over: HTMLCanvasElement; // what is under the pointer
  readonly values: ReadonlySignal<ReadonlyMap<number, number>>; // by op, for the heat
  readonly tip: HTMLElement;
  readonly announcement: { value: string }; // text for screen readers
}

export class GraphChart implements Viewport {
  private readonly parts: GraphParts;
  private readonly box = signal<Box>({ w: 0, h: 0 });
  private readonly drawn = signal<LaidOutScene | null>(null);
  private readonly hovered = signal<number | null>(null);
  private readonly focused = signal<number | null>(null);
  private readonly stops: (() => void)[] = [];
  private readonly tip: Tip;
  private frame = 0;
  private hoverFrame = 0;
  private palette: GraphPalette | null = null; // of the theme

  private readonly times = computed(() => {
    const drawn = this.drawn.value;
    const ops = opsOf(this.parts.session).state.value.value;
    return drawn ? timesOf(drawn.scene, ops?.rows ?? []) : new Float64Array();
  });
  // Parts of the view by themselves: what depends on them stays as it is when the camera moves.
  private readonly selection = computed(() => this.parts.store.navigation.view.value.selection);
  private readonly filter = computed(() => this.parts.store.navigation.view.value.filter);
  private readonly range = computed(() => this.parts.store.navigation.view.value.range);
  private readonly query = computed(
    () => this.parts.store.navigation.view.value.filters[this.parts.panel] ?? '',
  );
  private readonly optionText = computed(
    () => this.parts.store.navigation.view.value.options[this.parts.panel] ?? '',
  );
  private readonly selected = computed(() => {
    const drawn = this.drawn.value;
    const selection = this.selection.value;
    const graph = graphOf(this.parts.session).state.value.value;
    return new Set(drawn ? itemsOf(drawn, selection, graph) : []);
  });
  private readonly hits = computed(() => {
    const drawn = this.drawn.value;
    const query = this.query.value;
    const view = { filter: this.filter.value, range: this.range.value };
    const matches = nodeFilter(view, this.parts.store.layers.value);
    if (!drawn || (query.trim() === '' && !matches)) return null;
    const found = query.trim() === '' ? null : findItems(drawn.scene, query);
    return new Set(
      drawn.scene.items.flatMap((item, i) =>
        (!found || found.has(i)) && (!matches || matches(item)) ? [i] : [],
      ),
    );
  });

  private readonly options = computed((): GraphOptions => decodeGraph(this.optionText.value));
  private readonly heat = computed(() => {
    const drawn = this.drawn.value;
    const { values } = this.parts;
    if (!drawn || this.options.value.heat === 'none') return null;
    return heatColours(valuesOf(drawn.scene, values.value));
  });
  // The op that runs now; of a played step, the one at the cursor is the selection.
  private readonly running = computed(() => {
    const drawn = this.drawn.value;
    const { session } = this.parts;
    const { stop } = this.parts.store.debug.state.value ?? {};
    if (drawn && stop) return new Set(itemsWith(drawn, stop.place.tensor_name));
    void session.feed.version.value;
    const { flight } = session.data;
    if (!drawn || !flight || !session.active.value) return NONE;
    return new Set(itemsOf(drawn, { kind: 'op', op: flight.ops }, null));
  });
  private readonly breakpoints = computed((): GraphMarks['breakpoints'] => {
    const { debug } = this.parts.store;
    const found = new Map<number, 'on' | 'off'>();
    if (debug.breakpoints.value.length === 0) return found;
    this.drawn.value?.scene.items.forEach((item, i) => {
      const op = placedOf(item);
      const mark = op === null ? '' : debug.markOf(op);
      if (mark === 'on' || mark === 'off') found.set(i, mark);
    });
    return found;
  });
  private readonly hidden = computed(() => new Set(this.options.value.hide));

  constructor(parts: GraphParts) {
    this.parts = parts;
    this.tip = new Tip(parts.tip);
    this.watch();
  }

  destroy(): void {
    cancelAnimationFrame(this.frame);
    cancelAnimationFrame(this.hoverFrame);
    this.tip.destroy();
    for (const stop of this.stops) stop();
  }

  show(drawn: LaidOutScene | null): void {
    const before = this.drawn.peek();
    if (before?.scene.graph.layer !== drawn?.scene.graph.layer) {
      this.focused.value = null;
      this.hover(null, 0, 0);
    }
    this.drawn.value = drawn;
    this.parts.host.dataset.drawn = drawn ? String(drawn.scene.graph.layer) : '';
  }

  // ---- Camera ----------------------------------------------------------------------

  camera(): Camera {
    const drawn = this.drawn.peek();
    const box = this.box.peek();
    const { store, panel } = this.parts;
    const window = store.navigation.view.peek().windows[panel];
    if (window) return cameraOf(window, box);
    return drawn ? initialCamera(box, drawn.layout) : { scale: 1, left: 0, top: 0 };
  }

  setCamera(camera: Camera): void {
    const { store, panel } = this.parts;
    if (this.drawn.peek()) store.navigation.setWindow(panel, windowOf(camera, this.box.peek()));
  }

  zoom(factor: number): void {
    const { w, h } = this.box.peek();
    this.setCamera(zoomCamera(this.camera(), factor, w / 2, h / 2));
  }

  pan(share: number): void {
    this.setCamera(panCamera(this.camera(), -share * this.box.peek().w, 0));
  }

  fit(): void {
    const drawn = this.drawn.peek();
    if (drawn) this.setCamera(fitCamera(this.box.peek(), drawn.layout));
  }

  reset(): void {
    this.parts.store.navigation.setWindow(this.parts.panel, null);
  }

  // ---- Hover and selection ---------------------------------------------------------

  hitAt(x: number, y: number): number | null {
    const drawn = this.drawn.peek();
    const item = drawn ? hit(drawn.layout, drawn.scene.items, this.camera(), x, y) : null;
    const category = item === null ? undefined : drawn?.scene.items[item]?.node.category;
    return category !== undefined && this.hidden.peek().has(category) ? null : item;
  }

  hover(item: number | null, x: number, y: number): void {
    this.hovered.value = item;
    this.showTip(item, x, y);
  }

  select(item: number | null, how: 'push' | 'coalesce' = 'push'): void {
    const drawn = this.drawn.peek();
    const chosen = item === null ? undefined : drawn?.scene.items[item];
    if (!chosen) return;
    const { node, group } = chosen;
    const { store, session } = this.parts;
    this.focused.value = item;
    if (group) {
      if (group.layer !== null) store.select({ kind: 'layer', layer: group.layer }, how);
      return;
    }
    store.selectInGraph(selectionOf(session, node), how);
    if (how === 'push') listAccesses(store);
  }

  // Opens a box of the whole model, or closes the one that contains the node. Returns whether the item
  // is of a box.
  toggle(item: number | null): boolean {
    const chosen = item === null ? undefined : this.drawn.peek()?.scene.items[item];
    const options = this.options.peek();
    if (!chosen || options.form !== 'model') return false;
    const key = chosen.group?.key ?? groupKey(chosen.node.layer, chosen.node.component);
    const open = options.open.includes(key)
      ? options.open.filter((one) => one !== key)
      : [...options.open, key];
    const { store, panel } = this.parts;
    const text = encodeGraph({ ...options, open });
    const { options: all } = store.navigation.view.peek();
    store.navigation.change({ options: withKey(all, panel, text) });
    return true;
  }

  // Sets or removes a breakpoint at the op of a node.
  toggleBreakpoint(item: number | null): void {
    const chosen = item === null ? undefined : this.drawn.peek()?.scene.items[item];
    const output = (chosen && placedOf(chosen)?.output) ?? null;
    const { store, announcement } = this.parts;
    if (output === null || !store.has('debug')) return;
    store.debug.toggleAt(output);
    announcement.value = `Breakpoint at ${output} ${store.debug.breakpointOf(output) === null ? 'removed' : 'set'}`;
  }

  toggleFocused(): boolean {
    return this.toggle(this.focused.peek());
  }

  // The picture of the whole graph, for export.
  picture(): {
    readonly drawn: LaidOutScene;
    readonly marks: GraphMarks;
    readonly palette: GraphPalette;
  } | null {
    const drawn = this.drawn.peek();
    if (!drawn) return null;
    return {
      drawn,
      marks: { ...this.marks(), focused: null },
      palette: this.colours(),
    };
  }

  private marks(): GraphMarks {
    return {
      times: this.times.peek(),
      selected: this.selected.peek(),
      running: this.running.peek(),
      breakpoints: this.breakpoints.peek(),
      heat: this.heat.peek(),
      hidden: this.hidden.peek(),
      focused: this.focused.peek(),
      found: this.hits.peek(),
    };
  }

  // Moves the focus along an edge or a rank. Starts at the selected node if none has the focus.
  moveFocus(direction: Direction): void {
    const drawn = this.drawn.peek();
    if (!drawn) return;
    const from = this.focused.peek() ?? [...this.selected.peek()][0];
    this.focus(from === undefined ? firstComputed(drawn) : neighbour(drawn, from, direction));
  }

  selectFocused(): void {
    this.select(this.focused.peek());
  }

  // Moves the focus to the next or previous search result. Returns its index; null: there is none.
  focusResult(by: 1 | -1): number | null {
    const hits = [...(this.hits.peek() ?? [])];
    if (hits.length === 0) return null;
    const at = hits.indexOf(this.focused.peek() ?? -1);
    const next = at < 0 ? 0 : (at + by + hits.length) % hits.length;
    this.focus(hits[next] ?? 0);
    return next;
  }

  // Scrolls to the first result.
  revealResult(): void {
    const [first] = this.hits.peek() ?? [];
    if (first !== undefined) this.reveal(first);
  }

  private focus(item: number): void {
    const drawn = this.drawn.peek();
    const size = drawn?.scene.items[item];
    if (!drawn || !size) return;
    this.focused.value = item;
    this.reveal(item);
    const { scale, left, top } = this.camera();
    const x = ((drawn.layout.x[item] ?? 0) + size.w) * scale + left;
    const y = ((drawn.layout.y[item] ?? 0) + size.h) * scale + top;
    this.showTip(item, x, y);
    const reads = drawn.scene.edges.filter(({ to }) => to === item).length;
    const readers = drawn.scene.edges.filter(({ from }) => from === item).length;
    this.parts.announcement.value = `${size.title} ${size.sub}, ${size.node.category}, reads ${reads}, read by ${readers}`;
  }

  private showTip(index: number | null, x: number, y: number): void {
    const item = index === null ? undefined : this.drawn.peek()?.scene.items[index];
    if (item && index !== null)
      this.tip.show(tipText(item, this.times.peek()[index] ?? 0), { x, y }, this.box.peek());
    else this.tip.hide();
  }

  // ---- Painting -----------------------------------------------------------------------

  private watch(): void {
    const { store, host, session } = this.parts;
    const size = new ResizeObserver(() => {
      this.box.value = { w: host.clientWidth, h: host.clientHeight };
    });
    size.observe(host);
    this.stops.push(
      () => {
        size.disconnect();
      },
      opsOf(session).use(),
      this.revealSelection(),
      this.refitInFullScreen(),
      this.dropFocus(),
      effect(() => {
        void store.theme.value;
        this.palette = null;
      }),
      effect(() => {
        void [this.box.value, this.drawn.value, this.focused.value];
        void [this.times.value, this.selected.value, this.hits.value];
        void [this.heat.value, this.running.value, this.hidden.value];
        void this.breakpoints.value;
        void [store.navigation.view.value, store.theme.value];
        cancelAnimationFrame(this.frame);
        this.frame = requestAnimationFrame(() => {
          this.paint();
        });
      }),
      effect(() => {
        void [this.box.value, this.drawn.value, this.hovered.value, this.hidden.value];
        void [store.navigation.view.value, store.theme.value];
        cancelAnimationFrame(this.hoverFrame);
        this.hoverFrame = requestAnimationFrame(() => {
          this.paintHovered();
        });
      }),
    );
  }

  // Shows what is selected elsewhere, also while the graph was not shown. A link may have a window
  // without it.
  private revealSelection(): () => void {
    const { store, session, panel } = this.parts;
    const { windows, selection, layer } = store.navigation.view.peek();
    if (!seenIn.has(session) && windows[panel] !== undefined)
      seenIn.set(session, { selection, layer });
    return effect(() => {
      const [first] = this.selected.value;
      const { w } = this.box.value;
      const now = store.navigation.view.value.selection;
      const shown = this.drawn.value?.scene.graph.layer;
      if (first === undefined || shown === undefined || w === 0) return;
      const seen = seenIn.get(session);
      if (now === seen?.selection && shown === seen.layer && !store.playback.playing.value) return;
      seenIn.set(session, { selection: now, layer: shown });
      untracked(() => {
        this.reveal(first);
      });
    });
  }

  // The frame of the focus does not stay on what was selected before.
  private dropFocus(): () => void {
    return effect(() => {
      if (this.selection.value === null) return;
      const [focused, selected] = untracked(() => [this.focused.value, this.selected.value]);
      if (focused !== null && !selected.has(focused)) this.focused.value = null;
    });
  }

  // Pans to an item that is out of view.
  private reveal(item: number | undefined): void {
    const drawn = this.drawn.peek();
    const size = item === undefined ? undefined : drawn?.scene.items[item];
    const box = this.box.peek();
    if (!drawn || !size || item === undefined || box.w === 0) return;
    const camera = this.camera();
    const edge = isCutBelow(camera, box, drawn.layout) ? 'fades' : 'plain';
    const seen = cameraRevealing(camera, box, rectOf(drawn.layout, size, item), edge);
    if (seen !== camera) this.setCamera(seen);
  }

  // A window of the small panel would only be magnified in full screen, and the other way round.
  private refitInFullScreen(): () => void {
    const { store, panel } = this.parts;
    let was = store.navigation.view.peek().full === panel;
    return effect(() => {
      const isFull = store.navigation.view.value.full === panel;
      if (isFull !== was)
        untracked(() => {
          this.reset();
        });
      was = isFull;
    });
  }

  private paint(): void {
    const { canvas, host } = this.parts;
    const box = this.box.peek();
    if (box.w === 0 || box.h === 0) return;
    const drawn = this.drawn.peek();
    const camera = this.camera();
    host.dataset.more = drawn && isCutBelow(camera, box, drawn.layout) ? 'below' : '';
    host.dataset.aside = drawn && isCutRight(camera, box, drawn.layout) ? 'right' : '';
    paintInto(canvas, { x: 0, y: 0, ...box }, (ctx) => {
      if (drawn) paintGraph(ctx, box, drawn, camera, this.marks(), this.colours());
    });
  }

  private colours(): GraphPalette {
    this.palette ??= graphPalette(this.parts.canvas);
    return this.palette;
  }

  private paintHovered(): void {
    const { over } = this.parts;
    const [drawn, item, hidden] = [this.drawn.peek(), this.hovered.peek(), this.hidden.peek()];
    const { w, h } = this.box.peek();
    const camera = this.camera();
    const area =
      drawn && item !== null
        ? within(hoveredArea(drawn, camera, item, hidden), { x: 0, y: 0, w, h })
        : null;
    paintInto(over, area, (ctx) => {
      if (drawn && item !== null) paintHovered(ctx, drawn, camera, item, hidden, this.colours());
    });
  }
}

const NONE: ReadonlySet<number> = new Set();

// The selection that the graph of a session showed last, and in which layer.
const seenIn = new WeakMap<OpenSession, Pick<View, 'selection' | 'layer'>>();

// The items of this graph that a selection refers to.
// `graph`: of the step, for the names of tensors.
export function itemsOf(
  { scene }: LaidOutScene,
  selection: Selection | null,
  graph: Pick<TemplateGraph, 'tensorOf'> | null,
): readonly number[] {
  switch (selection?.kind) {
    case 'tensor':
      return scene.itemsOf.get(graph?.tensorOf.get(selection.name) ?? -1) ?? [];
    case 'node':
      return scene.items.flatMap(({ node }, i) => (node.node === selection.node ? [i] : []));
    case 'op':
    case 'access':
      return scene.items.flatMap(({ node, group }, i) =>
        node.executed_op === selection.op || group?.ops.includes(selection.op) === true ? [i] : [],
      );
    case 'layer':
      return scene.items.flatMap(({ group }, i) => (group?.layer === selection.layer ? [i] : []));
    default:
      return [];
  }
}

// The name of the output of a node that a run can stop at; null: it computes nothing.
const itemsWith = ({ scene }: LaidOutScene, output: string): readonly number[] =>
  scene.items.flatMap((item, i) => (placedOf(item)?.output === output ? [i] : []));

const firstComputed = ({ scene }: LaidOutScene): number =>
  Math.max(
    0,
    scene.items.findIndex(({ origin }) => origin === 'computed'),
  );
