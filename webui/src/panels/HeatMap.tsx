// The heat map on its canvas: watches state, size and pointer, and paints at
// most once per frame. With the keyboard: arrows move the cell, Enter selects
// its step, + and - zoom, 0 shows all.
import { effect, signal, type ReadonlySignal, type Signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { formatBytes, formatNs } from '../format';
import { columnsOf, type Columns } from '../raster/columns';
import { cellValue, rasterOf, type Scale } from '../raster/heat';
import { paintHeat, paletteOf, type HeatScene } from '../raster/paint';
import {
  columnX,
  fitted,
  heatLayout,
  hit,
  panned,
  zoomed,
  type Box,
  type HeatLayout,
  type Hit,
  type View,
} from '../raster/view';
import type { Metric } from '../state/state';
import type { Store } from '../state/store';
import type { Theme } from '../theme';
import { describeCell, type CellText } from './cell_text';
import { CellTip } from './CellTip';

interface Props {
  readonly store: Store;
  readonly theme: ReadonlySignal<Theme>;
  readonly scale: Scale;
}

export function HeatMap(props: Props) {
  const host = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const chart = useRef<Chart | null>(null);
  const tip = useRef(signal<Tip | null>(null)).current;
  const zoomedIn = useRef(signal(false)).current;

  useEffect(() => {
    if (!host.current || !canvas.current) return;
    const made = new Chart(host.current, canvas.current, props, tip, zoomedIn);
    chart.current = made;
    return () => {
      made.destroy();
    };
  }, [props.store]);

  useEffect(() => {
    chart.current?.setScale(props.scale);
  }, [props.scale]);

  return (
    <div class="heatmap" ref={host}>
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-roledescription="heat map"
        aria-label="Cost of every token in every layer. Arrow keys move, Enter selects the step."
      />
      <div class="zoom">
        <button
          type="button"
          title="Zoom in (+)"
          aria-label="Zoom in"
          onClick={() => chart.current?.zoom(0.5)}
        >
          +
        </button>
        <button
          type="button"
          title="Zoom out (−)"
          aria-label="Zoom out"
          onClick={() => chart.current?.zoom(2)}
        >
          −
        </button>
        {zoomedIn.value && (
          <button type="button" title="Show all tokens (0)" onClick={() => chart.current?.fit()}>
            All
          </button>
        )}
      </div>
      <CellTip tip={tip} />
    </div>
  );
}

export interface Tip {
  readonly text: CellText;
  readonly x: number; // of the pointer or the cell, in the host
  readonly y: number;
  readonly width: number; // of the host, so that the tip stays inside
  readonly height: number;
}

class Chart {
  private readonly box = signal<Box>({ w: 0, h: 0 });
  private readonly view = signal<View | null>(null); // null: all
  private readonly hover = signal<Hit | null>(null);
  private readonly scale: Signal<Scale>;
  private readonly stops: (() => void)[] = [];
  private frame = 0;
  private columns: Columns;
  private drag: { x: number; view: View; moved: boolean } | null = null;
  private readonly store: Store;
  private readonly theme: ReadonlySignal<Theme>;
  private readonly host: HTMLElement;
  private readonly canvas: HTMLCanvasElement;
  private readonly tip: { value: Tip | null };
  private readonly zoomedIn: { value: boolean };

  constructor(
    host: HTMLElement,
    canvas: HTMLCanvasElement,
    { store, theme, scale }: Props,
    tip: { value: Tip | null },
    zoomedIn: { value: boolean },
  ) {
    this.host = host;
    this.canvas = canvas;
    this.store = store;
    this.theme = theme;
    this.tip = tip;
    this.zoomedIn = zoomedIn;
    this.scale = signal(scale);
    this.columns = columnsOf(store.data);
    this.watch();
    this.listen();
  }

  destroy(): void {
    cancelAnimationFrame(this.frame);
    for (const stop of this.stops) stop();
  }

  setScale(scale: Scale): void {
    this.scale.value = scale;
  }

  zoom(factor: number, at?: number): void {
    const layout = this.layout();
    const all = this.whole();
    const middle = (layout.view.from + layout.view.to) / 2;
    this.look(zoomed(layout.view, at ?? this.hover.value?.column ?? middle, factor, all));
  }

  fit(): void {
    this.view.value = null;
    this.zoomedIn.value = false;
  }

  // ---- Painting ---------------------------------------------------------------

  private watch(): void {
    const { store } = this;
    const version = store.select(({ open }) => open?.version ?? 0);
    const step = store.select(({ open }) => open?.step ?? null);
    const size = new ResizeObserver(() => {
      this.box.value = { w: this.host.clientWidth, h: this.host.clientHeight };
    });
    size.observe(this.host);
    this.stops.push(
      () => {
        size.disconnect();
      },
      effect(() => {
        void version.value;
        this.columns = columnsOf(store.data);
        this.askFrame();
      }),
      effect(() => {
        void [step.value, store.settings.value, this.box.value, this.view.value, this.hover.value];
        void [this.scale.value, this.theme.value, store.hoverToken.value];
        this.askFrame();
      }),
    );
  }

  private askFrame(): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => {
      this.paint();
    });
  }

  private whole(): View {
    return fitted(this.box.peek(), this.columns.count);
  }

  private layout(): HeatLayout {
    const view = this.view.peek() ?? this.whole();
    return heatLayout(this.box.peek(), this.store.data.rows(), view);
  }

  private paint(): void {
    const { w, h } = this.box.peek();
    const ctx = this.canvas.getContext('2d');
    if (!ctx || w === 0) return;
    const ratio = devicePixelRatio;
    const [pixelsW, pixelsH] = [Math.round(w * ratio), Math.round(h * ratio)];
    if (this.canvas.width !== pixelsW || this.canvas.height !== pixelsH) {
      this.canvas.width = pixelsW;
      this.canvas.height = pixelsH;
    }
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    paintHeat(ctx, this.scene(ratio), paletteOf(this.canvas));
  }

  private scene(ratio: number): HeatScene {
    const { store, columns } = this;
    const { data } = store;
    const { metric } = store.settings.peek();
    const scale = this.scale.peek();
    const layout = this.layout();
    const first = Math.max(0, Math.floor(layout.view.from));
    const last = Math.min(columns.count, Math.ceil(layout.view.to));
    const maxWidth = Math.round(layout.plot.w * ratio);
    const raster = rasterOf(data, columns, metric, scale, { first, last, maxWidth });
    const { sums, means } = totals(store, columns, metric, first, last, raster.width);
    return {
      layout,
      columns,
      data,
      raster,
      first,
      last,
      sums,
      means,
      meanText: metric === 'ns' ? formatNs : (value) => formatBytes(Math.round(value)),
      selectedStep: store.state.peek().open?.step ?? null,
      hover: this.hover.peek() ?? this.hoverFromText(),
    };
  }

  // The token under the pointer in the answer.
  private hoverFromText(): Hit | null {
    const token = this.store.hoverToken.peek();
    const column = token === null ? undefined : this.columns.ofToken[token];
    return column === undefined || column < 0 ? null : { column, row: null };
  }

  // ---- Pointer and keys ---------------------------------------------------------

  private listen(): void {
    const on = <K extends keyof HTMLElementEventMap>(
      type: K,
      handle: (event: HTMLElementEventMap[K]) => void,
      options?: AddEventListenerOptions,
    ): void => {
      this.canvas.addEventListener(type, handle, options);
      this.stops.push(() => {
        this.canvas.removeEventListener(type, handle);
      });
    };
    on('pointermove', (event) => {
      if (this.drag) this.dragTo(event);
      else this.point(this.hitOf(event), event.offsetX, event.offsetY);
    });
    on('pointerleave', () => {
      this.point(null, 0, 0);
    });
    on('pointerdown', (event) => {
      if (event.button !== 0) return;
      this.drag = { x: event.offsetX, view: this.layout().view, moved: false };
      this.canvas.setPointerCapture(event.pointerId);
    });
    on('pointerup', (event) => {
      const clicked = this.drag?.moved === false;
      this.drag = null;
      if (clicked) this.choose(this.hitOf(event));
    });
    on('pointercancel', () => {
      this.drag = null;
    });
    on('dblclick', () => {
      this.fit();
    });
    on(
      'wheel',
      (event) => {
        this.wheel(event);
      },
      { passive: false },
    );
    on('keydown', (event) => {
      this.key(event);
    });
    on('blur', () => {
      this.point(null, 0, 0);
    });
  }

  private hitOf(event: MouseEvent): Hit | null {
    return hit(this.layout(), this.columns.count, event.offsetX, event.offsetY);
  }

  private point(at: Hit | null, x: number, y: number): void {
    this.hover.value = at;
    const token = at ? (this.columns.token[at.column] ?? null) : null;
    this.store.hoverToken.value = token;
    const { w, h } = this.box.peek();
    const text = at && this.describe(at);
    this.tip.value = text ? { text, x, y, width: w, height: h } : null;
  }

  private describe(at: Hit): CellText | null {
    const { metric } = this.store.settings.peek();
    return describeCell(this.store.data, this.columns, metric, at);
  }

  private choose(at: Hit | null): void {
    const step = at ? (this.columns.step[at.column] ?? -1) : -1;
    if (step >= 0) this.store.selectStep(step);
  }

  private dragTo(event: PointerEvent): void {
    const drag = this.drag;
    if (!drag) return;
    const moved = event.offsetX - drag.x;
    if (Math.abs(moved) > 4) drag.moved = true;
    if (!drag.moved || this.view.peek() === null) return;
    this.look(panned(drag.view, -moved / this.layout().cellW, this.whole()));
  }

  private wheel(event: WheelEvent): void {
    const sideways = event.shiftKey ? event.deltaY : event.deltaX;
    const layout = this.layout();
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const at = layout.view.from + (event.offsetX - layout.plot.x) / layout.cellW;
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, at);
    } else if (sideways !== 0 && this.view.peek()) {
      event.preventDefault();
      this.look(panned(layout.view, sideways / layout.cellW, this.whole()));
    }
  }

  private look(view: View): void {
    const all = this.whole();
    if (view.to - view.from >= (all.to - all.from) * 0.999) this.fit();
    else {
      this.view.value = view;
      this.zoomedIn.value = true;
    }
  }

  private key(event: KeyboardEvent): void {
    const at = this.hover.peek() ?? { column: Math.max(0, this.columns.count - 1), row: 0 };
    const rows = this.store.data.rows();
    const go = (column: number, row: number): void => {
      this.goTo({
        column: Math.min(this.columns.count - 1, Math.max(0, column)),
        row: Math.min(rows - 1, Math.max(0, row)),
      });
    };
    const row = at.row ?? 0;
    switch (event.key) {
      case 'ArrowLeft':
        go(at.column - 1, row);
        break;
      case 'ArrowRight':
        go(at.column + 1, row);
        break;
      case 'ArrowUp':
        go(at.column, row - 1);
        break;
      case 'ArrowDown':
        go(at.column, row + 1);
        break;
      case 'Home':
        go(0, row);
        break;
      case 'End':
        go(this.columns.count - 1, row);
        break;
      case 'Enter':
      case ' ':
        this.choose(at);
        break;
      case '+':
      case '=':
        this.zoom(0.5);
        break;
      case '-':
        this.zoom(2);
        break;
      case '0':
        this.fit();
        break;
      case 'Escape':
        this.point(null, 0, 0);
        break;
      default:
        return;
    }
    event.preventDefault();
  }

  // Moves the cell and, when it leaves the view, the view with it.
  private goTo(at: { column: number; row: number }): void {
    const { view } = this.layout();
    if (at.column < view.from) this.look(panned(view, at.column - view.from, this.whole()));
    if (at.column + 1 > view.to) this.look(panned(view, at.column + 1 - view.to, this.whole()));
    const layout = this.layout();
    this.point(at, columnX(layout, at.column + 1), layout.plot.y + (at.row + 1) * layout.cellH);
  }
}

// Per raster pixel the greatest column total, per row the mean over the columns
// in view that have a value.
function totals(
  store: Store,
  columns: Columns,
  metric: Metric,
  first: number,
  last: number,
  width: number,
): { sums: number[]; means: number[] } {
  const rows = store.data.rows();
  const sums = new Array<number>(width).fill(0);
  const means = new Array<number>(rows).fill(0);
  let counted = 0;
  for (let column = first; column < last; column += 1) {
    let sum = 0;
    for (let row = 0; row < rows; row += 1) {
      const value = cellValue(store.data, columns, metric, column, row);
      if (!(value >= 0)) continue;
      sum += value;
      means[row] = (means[row] ?? 0) + value;
    }
    if (sum > 0) counted += 1;
    const x = Math.floor(((column - first) * width) / (last - first));
    sums[x] = Math.max(sums[x] ?? 0, sum);
  }
  return { sums, means: means.map((sum) => (counted > 0 ? sum / counted : 0)) };
}
