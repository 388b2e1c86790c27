// The heat map on its canvas: observes state, size and pointer, and paints at most once per frame.
import { computed, effect, signal, type Signal } from '@preact/signals';
import { formatBytes, formatNs } from '../../format';
import { Columns } from '../../raster/columns';
import { mediansOf, rasterOf, sameScale, scaleOf, type Scale } from '../../raster/heat';
import { LayerValues } from '../../raster/layer_values';
import { paintHeat, paletteOf, type HeatScene, type Palette } from '../../raster/paint';
import {
  columnX,
  fitView,
  heatLayout,
  hit,
  panView,
  zoomView,
  type Box,
  type HeatLayout,
  type Hit,
  type View,
} from '../../raster/view';
import type { OpenSession } from '../../state/open_session';
import type { Viewport } from '../../state/shell';
import type { Store } from '../../state/store';
import { describeCell, type CellText } from './cell_text';

export interface Tip {
  readonly text: CellText;
  readonly x: number; // position of the pointer or the cell in the host
  readonly y: number;
  readonly width: number; // size of the host, which the tip must not leave
  readonly height: number;
}

export interface HeatParts {
  readonly store: Store;
  readonly session: OpenSession;
  readonly panel: string;
  readonly host: HTMLElement;
  readonly canvas: HTMLCanvasElement;
  readonly tip: { value: Tip | null };
  readonly scale: Signal<Scale>; // set by the chart
}

export class HeatChart implements Viewport {
  private readonly parts: HeatParts;
  private readonly box = signal<Box>({ w: 0, h: 0 });
  private readonly hover = signal<Hit | null>(null);
  private readonly stops: (() => void)[] = [];
  private frame = 0;
  private columns: Columns;
  private values: LayerValues;
  private palette: Palette | null = null;

  constructor(parts: HeatParts) {
    this.parts = parts;
    this.columns = new Columns(parts.store.navigation.view.peek().phase);
    this.values = new LayerValues(parts.store.settings.current.peek().metric);
    this.watch();
  }

  destroy(): void {
    cancelAnimationFrame(this.frame);
    for (const stop of this.stops) stop();
  }

  // ---- Visible range ---------------------------------------------------------------

  layout(): HeatLayout {
    return heatLayout(this.box.peek(), this.parts.session.data.rows(), this.view());
  }

  get isWhole(): boolean {
    return this.window() === null;
  }

  zoom(factor: number, at?: number): void {
    const { view } = this.layout();
    const middle = (view.from + view.to) / 2;
    this.setView(
      zoomView(view, at ?? this.hover.peek()?.column ?? middle, factor, this.fullView()),
    );
  }

  pan(share: number): void {
    const { view } = this.layout();
    this.panFrom(view, share * (view.to - view.from));
  }

  panFrom(view: View, columns: number): void {
    if (!this.isWhole) this.setView(panView(view, columns, this.fullView()));
  }

  fit(): void {
    this.parts.store.navigation.setWindow(this.parts.panel, null);
  }

  private setView(view: View): void {
    const all = this.fullView();
    if (view.to - view.from >= (all.to - all.from) * 0.999) this.fit();
    else this.parts.store.navigation.setWindow(this.parts.panel, [view.from, view.to]);
  }

  private fullView(): View {
    return fitView(this.box.peek(), this.columns.count);
  }

  private window(): View | null {
    const { store, panel } = this.parts;
    const [from, to] = store.navigation.view.peek().windows[panel] ?? [];
    return from === undefined || to === undefined ? null : { from, to };
  }

  // A stored window may exceed the current columns; it is clamped.
  private view(): View {
    const window = this.window();
    return window
      ? panView(zoomView(window, window.from, 1, this.fullView()), 0, this.fullView())
      : this.fullView();
  }

  // ---- Hover and selection ---------------------------------------------------------

  hitAt(x: number, y: number): Hit | null {
    return hit(this.layout(), this.columns.count, x, y);
  }

  setHover(at: Hit | null, x: number, y: number): void {
    const { store, tip } = this.parts;
    this.hover.value = at;
    store.hoverToken.value = at ? (this.columns.token.at(at.column) ?? null) : null;
    const { w, h } = this.box.peek();
    tip.value = at && { text: this.describe(at), x, y, width: w, height: h };
  }

  select(at: Hit | null): void {
    const { store, session } = this.parts;
    const token = at ? this.columns.token.at(at.column) : undefined;
    if (!at || token === undefined) return;
    const outside = at.row === session.data.rows() - 1;
    store.selectToken(session, token, at.row === null || outside ? null : at.row);
  }

  // The cell of the keyboard cursor.
  cursor(): { readonly column: number; readonly row: number } {
    const at = this.hover.peek();
    return { column: at?.column ?? Math.max(0, this.columns.count - 1), row: at?.row ?? 0 };
  }

  // Moves the cursor and scrolls it into view.
  moveCursor(column: number, row: number): void {
    const at = {
      column: Math.min(this.columns.count - 1, Math.max(0, column)),
      row: Math.min(this.parts.session.data.rows() - 1, Math.max(0, row)),
    };
    const { view } = this.layout();
    if (at.column < view.from) this.panFrom(view, at.column - view.from);
    if (at.column + 1 > view.to) this.panFrom(view, at.column + 1 - view.to);
    const layout = this.layout();
    this.setHover(at, columnX(layout, at.column + 1), layout.plot.y + (at.row + 1) * layout.cellH);
  }

  get columnCount(): number {
    return this.columns.count;
  }

  private describe(at: Hit): CellText {
    const { store, session } = this.parts;
    const { metric } = store.settings.current.peek();
    return describeCell(session.data, this.columns, metric, at);
  }

  // ---- Painting -------------------------------------------------------------------

  private watch(): void {
    const { store, session, host, scale } = this.parts;
    const { view } = store.navigation;
    const phase = computed(() => view.value.phase);
    const metric = computed(() => store.settings.current.value.metric);
    const size = new ResizeObserver(() => {
      this.box.value = { w: host.clientWidth, h: host.clientHeight };
    });
    size.observe(host);
    this.stops.push(
      () => {
        size.disconnect();
      },
      effect(() => {
        void session.feed.version.value;
        if (phase.value !== this.columns.phase || metric.value !== this.values.metric) {
          this.columns = new Columns(phase.value);
          this.values = new LayerValues(metric.value);
        }
        this.columns.update(session.data);
        this.values.update(session.data, this.columns);
        const next = scaleOf(this.values, store.settings.current.value.log);
        if (!sameScale(next, scale.peek())) scale.value = next;
        this.requestPaint();
      }),
      effect(() => {
        void store.theme.value;
        this.palette = null;
      }),
      effect(() => {
        void [session.step.value, this.box.value, view.value];
        void [this.hover.value, scale.value, store.theme.value, store.hoverToken.value];
        this.requestPaint();
      }),
    );
  }

  private requestPaint(): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => {
      this.paint();
    });
  }

  private paint(): void {
    const { canvas } = this.parts;
    const { w, h } = this.box.peek();
    const ctx = canvas.getContext('2d');
    if (!ctx || w === 0 || h === 0) return;
    const ratio = devicePixelRatio;
    const [pixelsW, pixelsH] = [Math.round(w * ratio), Math.round(h * ratio)];
    if (canvas.width !== pixelsW || canvas.height !== pixelsH) {
      canvas.width = pixelsW;
      canvas.height = pixelsH;
    }
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    const scene = this.scene(ratio);
    this.palette ??= paletteOf(canvas);
    if (scene) paintHeat(ctx, scene, this.palette);
  }

  private scene(ratio: number): HeatScene | null {
    const { columns, values } = this;
    const { store, session } = this.parts;
    const { metric } = store.settings.current.peek();
    const layout = this.layout();
    const first = Math.max(0, Math.floor(layout.view.from));
    const last = Math.min(columns.count, Math.ceil(layout.view.to));
    const maxWidth = Math.round(layout.plot.w * ratio);
    return {
      layout,
      columns,
      data: session.data,
      raster: rasterOf(values, this.parts.scale.peek(), { first, last, maxWidth }),
      first,
      last,
      medians: mediansOf(values, { first, last }),
      valueText: metric === 'ns' ? formatNs : (value) => formatBytes(Math.round(value)),
      selectedStep: session.step.peek(),
      selectedRow: store.navigation.view.peek().layer,
      hover: this.hover.peek() ?? this.hoverFromText(),
    };
  }

  // The token under the pointer in the answer.
  private hoverFromText(): Hit | null {
    const token = this.parts.store.hoverToken.peek();
    const column = token === null ? undefined : this.columns.ofToken.at(token);
    return column === undefined || column < 0 ? null : { column, row: null };
  }
}
