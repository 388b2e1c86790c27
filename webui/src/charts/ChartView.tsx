// A chart: painted into a canvas, with a tooltip, a mark that the pointer and the arrow keys move, a
// click or Enter that selects, and a drag that selects a range.
import { useSignal, type Signal } from '@preact/signals';
import { useEffect, useId, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { FONT, paintScene, themeOf } from './paint';
import {
  itemAt,
  readableWidth,
  rowsBetween,
  sceneOf,
  slicesOf,
  type Item,
  type Kind,
  type Scene,
} from './scene';
import { exactValue, formatValue, labelOf, type ChartTable } from './table';

export const measureText = (() => {
  let ctx: CanvasRenderingContext2D | null = null;
  return (text: string): number => {
    ctx ??= document.createElement('canvas').getContext('2d');
    if (!ctx) return 6 * text.length;
    ctx.font = FONT;
    return ctx.measureText(text).width;
  };
})();

// The part under the pointer or the keyboard's mark.
export interface Pointed {
  readonly row: number;
  readonly series: number | null;
  readonly chart: string; // in which it is pointed at
}

export interface ChartViewProps {
  readonly label: string;
  readonly table: ChartTable;
  readonly kind: Kind;
  readonly height: number;
  readonly theme: string; // changes the colours
  readonly selected: { readonly row: number; readonly series: number | null } | null; // null: all of the row
  readonly range: readonly [number, number] | null; // of rows
  readonly scene: { current: Scene | null }; // what is painted, for files
  readonly cursor?: Signal<Pointed | null>; // of charts with the same rows and series: all mark the same part
  readonly pick: (row: number, series: number | null) => void;
  readonly brush?: (from: number, to: number) => void; // rows
}

const DRAG_PX = 4;

export function ChartView(props: ChartViewProps) {
  const { table, kind, height, theme } = props;
  const host = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useSignal(0);
  const ownCursor = useSignal<Pointed | null>(null);
  const cursor = props.cursor ?? ownCursor;
  const chart = useId();
  const drag = useSignal<readonly [number, number] | null>(null); // pixels
  const start = useRef<number | null>(null);

  useLayoutEffect(() => {
    const element = host.current;
    if (!element) return;
    const look = (): void => {
      width.value = element.clientWidth;
    };
    look();
    const observer = new ResizeObserver(look);
    observer.observe(element);
    return () => {
      observer.disconnect();
    };
  }, []);

  const scene = useMemo(
    () => (width.value > 0 ? sceneOf(table, kind, { width: width.value, height }, measureText) : null), // prettier-ignore
    [table, kind, width.value, height],
  );
  props.scene.current = scene;
  const point = (index: number | null): void => {
    const to = index === null ? undefined : scene?.items[index];
    const isSame = to?.row === cursor.value?.row && to?.series === cursor.value?.series;
    if (!isSame || cursor.value?.chart !== chart)
      cursor.value = to ? { row: to.row, series: to.series, chart } : null;
  };
  const pointed = cursor.value;
  const found = pointed && scene ? scene.items.findIndex(({ row, series }) => row === pointed.row && series === pointed.series) : -1; // prettier-ignore
  const at = found < 0 ? null : found; // an item
  useEffect(() => {
    point(null);
  }, [scene]);
  useLayoutEffect(() => {
    const element = canvas.current;
    const ctx = element?.getContext('2d');
    if (!element || !ctx || !scene) return;
    const ratio = devicePixelRatio;
    element.width = Math.round(scene.width * ratio);
    element.height = Math.round(scene.height * ratio);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, scene.width, scene.height);
    paintScene(ctx, scene, themeOf(element));
  }, [scene, theme]);

  const place = (event: PointerEvent): readonly [number, number] => {
    const box = host.current?.getBoundingClientRect();
    return [event.clientX - (box?.left ?? 0), event.clientY - (box?.top ?? 0)];
  };
  const pick = (index: number | null): void => {
    const item = index === null ? undefined : scene?.items[index];
    if (item && item.row >= 0) props.pick(item.row, item.series);
  };
  const canBrush = props.brush !== undefined && scene?.across === true;
  const item = at === null ? undefined : scene?.items[at];
  return (
    <div
      ref={host}
      class="chart"
      role="application"
      aria-roledescription="chart"
      aria-label={`${props.label}. Arrow keys move over its parts, Enter selects one.`}
      tabIndex={0}
      style={{ height: `${height}px`, ...(kind === 'heat' ? { minWidth: `${readableWidth(table)}px` } : {}) }} // prettier-ignore
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        start.current = place(event)[0];
        if (canBrush) event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => {
        if (!scene) return;
        const [x, y] = place(event);
        const from = start.current;
        if (canBrush && from !== null && (drag.value || Math.abs(x - from) > DRAG_PX)) {
          drag.value = [from, x];
          point(null);
        } else point(itemAt(scene, x, y));
      }}
      onPointerUp={(event) => {
        if (!scene || start.current === null) return;
        const [x, y] = place(event);
        const rows = drag.value && rowsBetween(scene, drag.value[0], drag.value[1]);
        if (rows) props.brush?.(rows[0], rows[1]);
        else pick(itemAt(scene, x, y));
        start.current = null;
        drag.value = null;
      }}
      onPointerLeave={() => {
        if (start.current === null) point(null);
      }}
      onPointerCancel={() => {
        start.current = null;
        drag.value = null;
      }}
      onBlur={() => {
        point(null);
      }}
      onKeyDown={(event) => {
        if (!scene || scene.items.length === 0) return;
        const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        const last = scene.items.length - 1;
        if (move !== undefined) point(Math.min(last, Math.max(0, at === null ? 0 : at + move)));
        else if (event.key === 'Home') point(0);
        else if (event.key === 'End') point(last);
        else if (event.key === 'Enter') pick(at);
        else if (event.key === 'Escape' && at !== null) point(null);
        else return;
        event.preventDefault();
        event.stopPropagation();
      }}
    >
      <canvas ref={canvas} aria-hidden="true" />
      {scene && <Selected scene={scene} props={props} />}
      {drag.value && scene && (
        <div
          class="chart-drag"
          style={{
            left: `${Math.min(...drag.value)}px`,
            width: `${Math.abs(drag.value[1] - drag.value[0])}px`,
            top: `${scene.plot.y}px`,
            height: `${scene.plot.h}px`,
          }}
        />
      )}
      {scene && item && (
        <Marked
          {...{ scene, item, table, kind }}
          isPointed={pointed?.chart === chart} // only this one is read out
        />
      )}
    </div>
  );
}

// The selected row, or the selected cell of a heat map, and the brushed range.
function Selected({ scene, props }: { scene: Scene; props: ChartViewProps }) {
  const { selected, range } = props;
  const boxes = scene.items
    .filter(({ row, series }) => row === selected?.row && (selected.series ?? series) === series)
    .map(({ box }) => box);
  const box = boxes.length > 0 && props.kind !== 'pie' ? around(boxes) : null;
  const shaded = range
    ? scene.items.filter(({ row }) => row >= range[0] && row < range[1]).map((one) => one.box)
    : [];
  return (
    <>
      {shaded.length > 0 && <div class="chart-range" style={px(around(shaded))} />}
      {box && <div class="chart-selected" style={px(box)} />}
    </>
  );
}

function around(boxes: readonly Item['box'][]): Item['box'] {
  const x = Math.min(...boxes.map((one) => one.x));
  const y = Math.min(...boxes.map((one) => one.y));
  return {
    x,
    y,
    w: Math.max(...boxes.map((one) => one.x + one.w)) - x,
    h: Math.max(...boxes.map((one) => one.y + one.h)) - y,
  };
}

const px = ({ x, y, w, h }: Item['box']) => ({
  left: `${x}px`,
  top: `${y}px`,
  width: `${w}px`,
  height: `${h}px`,
});

const MAX_LINES = 10;

// The mark around the item, and its values.
function Marked(props: {
  scene: Scene;
  item: Item;
  table: ChartTable;
  kind: Kind;
  isPointed: boolean;
}) {
  const { scene, item, table, kind, isPointed } = props;
  const { box } = item;
  const lines = valuesOf(table, item, kind);
  const isRight = box.x + box.w / 2 > scene.width / 2;
  const top = Math.min(Math.max(0, box.y + box.h / 2 - 20), Math.max(0, scene.height - 60));
  return (
    <>
      {kind !== 'pie' && <div class="chart-mark" style={px(box)} />}
      <div
        class="chart-tip"
        role={isPointed ? 'status' : undefined}
        style={{
          top: `${kind === 'pie' ? 0 : top}px`,
          ...(isRight
            ? { right: `${Math.min(scene.width - 40, scene.width - box.x + 8)}px` }
            : { left: `${Math.min(scene.width - 40, box.x + box.w + 8)}px` }),
          ...(kind === 'pie' ? { left: '0', right: 'auto' } : {}),
        }}
      >
        <b>{item.row < 0 ? 'the rest' : `${table.key.name} ${labelOf(table, item.row)}`}</b>
        <dl>
          {lines.slice(0, MAX_LINES).map(([name, value, exact]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd title={exact}>{value}</dd>
            </div>
          ))}
        </dl>
      </div>
    </>
  );
}

function valuesOf(
  table: ChartTable,
  { row, series }: Item,
  kind: Kind,
): readonly (readonly [name: string, value: string, exact: string])[] {
  if (kind === 'pie') {
    const slices = slicesOf(table);
    const total = slices.reduce((sum, { value }) => sum + value, 0);
    const value = slices.find((one) => one.row === row)?.value ?? 0;
    const unit = table.series[0]?.unit ?? 'number';
    return [
      [table.series[0]?.name ?? '', formatValue(unit, value), exactValue(unit, value)],
      ['of all', formatValue('share', value / total), ''],
    ];
  }
  const own = series === null || kind === 'bar' ? table.series : table.series.slice(series, series + 1); // prettier-ignore
  const sum =
    kind === 'share' ? table.series.reduce((all, one) => all + (one.values[row] ?? 0), 0) : 0;
  const drawn = own.flatMap(
    ({ name, unit, values, names }): readonly [string, string, string][] => {
      const value = values[row];
      if (value === null || value === undefined) return [];
      const share = sum > 0 ? `, ${formatValue('share', value / sum)}` : '';
      const cell = names?.[row] ? `${names[row]} ` : '';
      const head = kind === 'heat' && table.across ? `${table.across} ${name}` : name;
      return [[head, `${cell}${formatValue(unit, value)}${share}`, exactValue(unit, value)]];
    },
  );
  const more = (table.more ?? []).flatMap(({ name, unit, values }): [string, string, string][] => {
    const value = values[row];
    return value === null || value === undefined || series !== null
      ? []
      : [[name, formatValue(unit, value), exactValue(unit, value)]];
  });
  const words = (table.words ?? []).flatMap(({ name, values }): [string, string, string][] =>
    values[row] ? [[name, values[row] ?? '', '']] : [],
  );
  return [...drawn, ...more, ...words];
}
