// From a table to shapes: where everything of a chart is, in pixels. Painting has no decisions left.
// Pure functions; `measure` is the width of a text.
import { everyNth, logTicks, ticks } from './ticks';
import {
  formatValue,
  isDiverging,
  isOrdered,
  labelOf,
  type ChartTable,
  type Series,
  type Unit,
} from './table';

export type Kind = 'bar' | 'stacked' | 'share' | 'line' | 'pie' | 'heat' | 'points';

// 0..: a colour of the series. heat: 0..1 on the scale of the heat map. difference: -1..1, from the colour
// of the first series to that of the second.
export type Tone =
  | { readonly is: 'series'; readonly n: number }
  | { readonly is: 'heat' | 'difference'; readonly at: number }
  | { readonly is: 'on-heat' | 'on-difference'; readonly at: number } // a text on it
  | { readonly is: 'text' | 'dim' | 'line' | 'mark' };

export type Shape =
  | { readonly is: 'rect'; readonly x: number; readonly y: number; readonly w: number; readonly h: number; readonly tone: Tone }
  | { readonly is: 'path'; readonly points: readonly (readonly [number, number])[]; readonly tone: Tone; readonly dashed?: true }
  | { readonly is: 'arc'; readonly x: number; readonly y: number; readonly r: number; readonly from: number; readonly to: number; readonly tone: Tone }
  | { readonly is: 'dot'; readonly x: number; readonly y: number; readonly r: number; readonly tone: Tone }
  | { readonly is: 'text'; readonly x: number; readonly y: number; readonly text: string; readonly align: 'start' | 'middle' | 'end'; readonly tone: Tone }; // prettier-ignore

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

// A part that the pointer and the keyboard can reach.
export interface Item {
  readonly row: number;
  readonly series: number | null; // null: all of the row
  readonly box: Box;
  readonly angles?: readonly [number, number]; // of a pie
}

export interface Scene {
  readonly width: number;
  readonly height: number;
  readonly plot: Box;
  readonly shapes: readonly Shape[];
  readonly items: readonly Item[];
  readonly across: boolean; // rows follow each other from left to right: a range can be brushed
}

export interface Size {
  readonly width: number;
  readonly height: number;
}

type Measure = (text: string) => number;

const LINE = { is: 'line' } as const;
const DIM = { is: 'dim' } as const;
const MARK = { is: 'mark' } as const;
const TEXT = { is: 'text' } as const;
const LABEL_H = 16; // pixels that a name needs
const MIN_NAME_W = 18; // pixels of a cell with a name
const NAMED_W = 46; // of a cell whose name can be read
const BOTTOM = 20;
const TOP = 8;
const RIGHT = 14;
const MAX_GUTTER = 0.42; // of the width
export const SERIES_COLOURS = 8; // that follow each other; a series may have a further one as its own
const series = (n: number): Tone => ({ is: 'series', n: n % SERIES_COLOURS });
export const colourOfSeries = ({ series: all }: ChartTable, n: number): number =>
  all[n]?.colour ?? n % SERIES_COLOURS;
const toneOf = (table: ChartTable, n: number): Tone => ({ is: 'series', n: colourOfSeries(table, n) }); // prettier-ignore

// A sum that can be divided by.
const positive = (sum: number | undefined): number => (sum !== undefined && sum > 0 ? sum : 1);

const largest = (lists: readonly Series[]): number =>
  lists.reduce((max, { values }) => values.reduce<number>((m, v) => Math.max(m, v ?? 0), max), 0);

export function sceneOf(table: ChartTable, kind: Kind, size: Size, measure: Measure): Scene {
  switch (kind) {
    case 'pie':
      return pie(table, size);
    case 'heat':
      return heat(table, size, measure);
    case 'points':
      return points(table, size, measure);
    case 'line':
      return columns(table, 'line', size, measure);
    case 'bar':
    case 'stacked':
    case 'share':
      return isOrdered(table)
        ? columns(table, kind, size, measure)
        : bars(table, kind, size, measure);
  }
}

// ---- Names at an axis -----------------------------------------------------------------

// The longest beginning of a text that fits, with an ellipsis.
function fitted(text: string, width: number, measure: Measure): string {
  if (measure(text) <= width) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (measure(`${text.slice(0, middle)}…`) <= width) low = middle;
    else high = middle - 1;
  }
  return `${text.slice(0, low)}…`;
}

const gutterOf = (names: readonly string[], size: Size, measure: Measure): number =>
  Math.min(
    MAX_GUTTER * size.width,
    10 + names.reduce((max, name) => Math.max(max, measure(name)), 0),
  );

const unitOf = (table: ChartTable): Unit => table.series[0]?.unit ?? 'number';

// ---- Bars with names at the left ------------------------------------------------------

const MIN_BAR_H = 12; // of one of several bars of a row
const MAX_BARS_H = 720;
const MAX_NOTE = 0.4; // of the width beside the names

// The height at which each row of bars has a name, if they are not too many.
export function readableHeight(table: ChartTable, kind: Kind, height: number): number {
  if ((kind !== 'bar' && kind !== 'stacked' && kind !== 'share') || isOrdered(table)) return height;
  const row = Math.max(LABEL_H, kind === 'bar' ? table.series.length * MIN_BAR_H : 0);
  return Math.max(height, Math.min(MAX_BARS_H, TOP + BOTTOM + table.keys.length * row));
}

function bars(
  table: ChartTable,
  kind: 'bar' | 'stacked' | 'share',
  size: Size,
  measure: Measure,
): Scene {
  const { keys, series: all } = table;
  const labels = keys.map((_, row) => labelOf(table, row));
  const gutter = gutterOf(labels, size, measure);
  const unit = kind === 'share' ? 'share' : unitOf(table);
  const sumOf = (row: number): number => all.reduce((sum, one) => sum + (one.values[row] ?? 0), 0);
  // What is written at the end of a bar; '': nothing.
  const noteOf = (row: number, n: number): string => {
    const value = kind === 'bar' ? all[n]?.values[row] : sumOf(row);
    if (kind === 'share' || value === null || value === undefined) return '';
    const own = kind === 'stacked' || all.length === 1 ? table.notes?.[row] : undefined;
    return own ?? formatValue(unit, value);
  };
  const noted = all.slice(0, kind === 'bar' ? all.length : 1);
  const notes = keys.map((_, row) => noted.map((_one, n) => noteOf(row, n)));
  const widest = notes.flat().reduce((max, text) => Math.max(max, measure(text)), 0);
  const room = widest > 0 ? Math.min(widest + 6, MAX_NOTE * (size.width - gutter)) : 0;
  const right = Math.max(RIGHT, room);
  const plot = { x: gutter, y: TOP, w: size.width - gutter - right, h: size.height - TOP - BOTTOM };
  const most = Math.max(
    kind === 'bar' ? largest(all) : Math.max(...keys.map((_, row) => sumOf(row)), 0),
    ...(table.marks ?? []).map(({ value }) => value),
  );
  const at = kind === 'share' ? [0, 0.25, 0.5, 0.75, 1] : ticks(most, unit, Math.max(2, plot.w / 90)); // prettier-ignore
  const end = at.at(-1) ?? 1;
  const shapes: Shape[] = grid(at, unit, plot, measure, (value) => [
    plot.x + (value / end) * plot.w,
    'across',
  ]);
  const items: Item[] = [];
  const slot = plot.h / Math.max(1, keys.length);
  const nth = everyNth(keys.length, plot.h, LABEL_H);
  const gap = Math.min(6, slot * 0.25);
  keys.forEach((_, row) => {
    const y = plot.y + row * slot;
    if (row % nth === 0)
      shapes.push({ is: 'text', x: gutter - 6, y: y + slot / 2, text: fitted(labels[row] ?? '', gutter - 10, measure), align: 'end', tone: DIM }); // prettier-ignore
    let from = plot.x;
    const total = sumOf(row);
    const each = (slot - gap) / (kind === 'bar' ? Math.max(1, all.length) : 1);
    // The bars of a row that has not all of them are in its middle.
    const known = all.flatMap(({ values }, n) => (typeof values[row] === 'number' ? [n] : []));
    const topOf = (n: number): number =>
      y + (slot - known.length * each) / 2 + known.indexOf(n) * each;
    all.forEach((one, n) => {
      const value = one.values[row];
      if (value === null || value === undefined) return;
      const part = kind === 'share' ? (total > 0 ? value / total : 0) : value / end;
      const w = part * plot.w;
      const box =
        kind === 'bar'
          ? { x: plot.x, y: topOf(n), w, h: Math.max(1, each - 1) }
          : { x: from, y: y + gap / 2, w, h: each };
      if (kind !== 'bar') from += w;
      shapes.push({ is: 'rect', ...box, tone: toneOf(table, n) });
      items.push({ row, series: n, box: { ...box, w: Math.max(box.w, kind === 'bar' ? plot.w : 2) } }); // prettier-ignore
    });
    notes[row]?.forEach((note, n) => {
      const h = kind === 'bar' ? each : slot;
      if (note === '' || (known.length > 1 ? h : slot) < MIN_BAR_H - 2) return;
      const length = ((kind === 'bar' ? (all[n]?.values[row] ?? 0) : total) / end) * plot.w;
      const middle = kind === 'bar' ? topOf(n) + h / 2 : y + h / 2;
      shapes.push({ is: 'text', x: plot.x + length + 5, y: middle, text: fitted(note, size.width - plot.x - length - 6, measure), align: 'start', tone: TEXT }); // prettier-ignore
    });
  });
  for (const { name, value } of table.marks ?? []) {
    const x = plot.x + (value / end) * plot.w;
    shapes.push({ is: 'path', points: [[x, plot.y], [x, plot.y + plot.h]], tone: MARK, dashed: true }); // prettier-ignore
    shapes.push({ is: 'text', x: x - 4, y: plot.y + 7, text: name, align: 'end', tone: TEXT });
  }
  return { ...size, plot, shapes, items, across: false };
}

// The lines of an axis of numbers with their values. A value that would be over the one before is left
// out; `measure` is of an axis across.
function grid(
  at: readonly number[],
  unit: Unit,
  plot: Box,
  measure: Measure,
  place: (value: number) => readonly [number, 'across' | 'up'],
): Shape[] {
  let taken = -Infinity;
  return at.flatMap((value): Shape[] => {
    const [position, way] = place(value);
    const text = formatValue(unit, value);
    const align = way === 'across' && position > plot.x + plot.w - 24 ? 'end' : 'middle';
    const left = position - measure(text) / (align === 'end' ? 1 : 2);
    const hasRoom = left >= taken;
    if (way === 'across' && hasRoom) taken = left + measure(text) + 6;
    return way === 'across'
      ? [
          { is: 'path', points: [[position, plot.y], [position, plot.y + plot.h]], tone: LINE },
          ...(hasRoom ? [{ is: 'text', x: position, y: plot.y + plot.h + 11, text, align, tone: DIM } as const] : []),
        ]
      : [
          { is: 'path', points: [[plot.x, position], [plot.x + plot.w, position]], tone: LINE },
          { is: 'text', x: plot.x - 6, y: position, text, align: 'end', tone: DIM },
        ]; // prettier-ignore
  });
}

// ---- Columns and lines over ordered keys ----------------------------------------------

function columns(
  table: ChartTable,
  kind: 'bar' | 'stacked' | 'share' | 'line',
  size: Size,
  measure: Measure,
): Scene {
  const { keys, series: all } = table;
  const unit = kind === 'share' ? 'share' : unitOf(table);
  const isPiled = kind === 'stacked' || kind === 'share';
  const sumOf = (row: number): number => all.reduce((sum, one) => sum + (one.values[row] ?? 0), 0);
  const sums = isPiled ? keys.map((_, row) => sumOf(row)) : [];
  const most = Math.max(
    isPiled ? sums.reduce((max, one) => Math.max(max, one), 0) : largest(all),
    ...(table.marks ?? []).map(({ value }) => value),
  );
  const h = size.height - TOP - BOTTOM;
  const at = kind === 'share' ? [0, 0.25, 0.5, 0.75, 1] : ticks(most, unit, Math.max(2, h / 40));
  const end = Math.max(at.at(-1) ?? 0, Number.MIN_VALUE);
  const gutter = gutterOf(at.map((value) => formatValue(unit, value)), size, measure); // prettier-ignore
  const plot = { x: gutter, y: TOP, w: size.width - gutter - RIGHT, h };
  const y = (value: number): number => plot.y + plot.h * (1 - value / end);
  const shapes: Shape[] = grid(at, unit, plot, measure, (value) => [y(value), 'up']);
  // A line over an amount has its points at their amounts, else each key has a slot.
  const isMeasured = kind === 'line' && (table.key.of === 'bytes' || table.key.of === 'number');
  const last = Number(keys.at(-1) ?? 1) || 1;
  const slot = plot.w / Math.max(1, keys.length);
  const x = (row: number): number =>
    isMeasured ? plot.x + (Number(keys[row]) / last) * plot.w : plot.x + (row + 0.5) * slot;
  const labels = keys.map((_, row) => table.ticks?.[row] ?? labelOf(table, row));
  const widest = labels.reduce((max, text) => Math.max(max, measure(text)), 0);
  const nth = everyNth(keys.length, plot.w, widest + 14);
  // The first and the last one stay inside, and none is over the one before.
  let taken = -Infinity;
  labels.forEach((text, row) => {
    const half = measure(text) / 2;
    const middle = Math.max(half, Math.min(x(row), size.width - half));
    if (row % nth !== 0 || middle - half < taken) return;
    taken = middle + half + 4;
    shapes.push({ is: 'text', x: middle, y: plot.y + plot.h + 11, text, align: 'middle', tone: DIM }); // prettier-ignore
  });
  if (kind === 'line') {
    all.forEach(({ values }, n) => {
      for (const run of runsOf(values)) {
        const points = run.map((row): [number, number] => [x(row), y(values[row] ?? 0)]);
        shapes.push({ is: 'path', points, tone: toneOf(table, n) });
        if (points.length === 1 || keys.length <= 24)
          for (const [px, py] of points) shapes.push({ is: 'dot', x: px, y: py, r: 2.5, tone: toneOf(table, n) }); // prettier-ignore
      }
    });
  } else {
    const gap = Math.min(3, slot * 0.2);
    keys.forEach((_, row) => {
      let top = plot.y + plot.h;
      const each = (slot - gap) / (kind === 'bar' ? Math.max(1, all.length) : 1);
      all.forEach(({ values }, n) => {
        const value = values[row];
        if (value === null || value === undefined) return;
        const part = kind === 'share' ? value / positive(sums[row]) : value / end;
        const height = part * plot.h;
        const left = plot.x + row * slot + gap / 2 + (kind === 'bar' ? n * each : 0);
        if (kind === 'bar') top = plot.y + plot.h;
        shapes.push({ is: 'rect', x: left, y: top - height, w: Math.max(0.5, each), h: height, tone: toneOf(table, n) }); // prettier-ignore
        top -= height;
      });
    });
  }
  for (const { name, value } of table.marks ?? []) {
    shapes.push({ is: 'path', points: [[plot.x, y(value)], [plot.x + plot.w, y(value)]], tone: MARK, dashed: true }); // prettier-ignore
    shapes.push({ is: 'text', x: plot.x + plot.w - 2, y: y(value) + (y(value) < plot.y + 14 ? 8 : -7), text: name, align: 'end', tone: TEXT }); // prettier-ignore
  }
  const items = keys.map((_, row): Item => {
    const left = isMeasured && row > 0 ? (x(row - 1) + x(row)) / 2 : isMeasured ? plot.x : x(row) - slot / 2; // prettier-ignore
    const right = isMeasured
      ? row + 1 < keys.length
        ? (x(row) + x(row + 1)) / 2
        : plot.x + plot.w
      : left + slot;
    return { row, series: null, box: { x: left, y: plot.y, w: right - left, h: plot.h } };
  });
  const parts = isPiled ? pilesOf(table, kind, sums, end, plot, slot) : [];
  return { ...size, plot, shapes, items: parts.length > 0 ? parts : items, across: true };
}

// The parts of piled columns, each of which can be picked.
function pilesOf(
  table: ChartTable,
  kind: 'stacked' | 'share' | 'bar' | 'line',
  sums: readonly number[],
  end: number,
  plot: Box,
  slot: number,
): readonly Item[] {
  if (!table.series.some(({ pick }) => pick)) return [];
  return table.keys.flatMap((_, row) => {
    let top = plot.y + plot.h;
    return table.series.flatMap(({ values }, n): Item[] => {
      const part = (values[row] ?? 0) / (kind === 'share' ? positive(sums[row]) : end);
      const h = part * plot.h;
      top -= h;
      return h > 0 ? [{ row, series: n, box: { x: plot.x + row * slot, y: top, w: slot, h } }] : [];
    });
  });
}

// Consecutive rows that have values.
function runsOf(values: readonly (number | null)[]): readonly (readonly number[])[] {
  const runs: number[][] = [];
  values.forEach((value, row) => {
    if (value === null) return;
    if (row > 0 && values[row - 1] !== null && runs.length > 0) runs.at(-1)?.push(row);
    else runs.push([row]);
  });
  return runs;
}

// ---- Pie ------------------------------------------------------------------------------

const MAX_SLICES = SERIES_COLOURS - 1;

// The rows of a pie: the largest ones, and the rest as one slice (row -1).
export function slicesOf(table: ChartTable): readonly { row: number; value: number }[] {
  const values = table.series[0]?.values ?? [];
  const all = values
    .map((value, row) => ({ row, value: value ?? 0 }))
    .filter(({ value }) => value > 0)
    .sort((a, b) => b.value - a.value);
  if (all.length <= MAX_SLICES + 1) return all;
  const rest = all.slice(MAX_SLICES).reduce((sum, { value }) => sum + value, 0);
  return [...all.slice(0, MAX_SLICES), { row: -1, value: rest }];
}

function pie(table: ChartTable, size: Size): Scene {
  const slices = slicesOf(table);
  const total = slices.reduce((sum, { value }) => sum + value, 0);
  const r = Math.max(10, Math.min(size.width, size.height) / 2 - 10);
  const [x, y] = [size.width / 2, size.height / 2];
  const shapes: Shape[] = [];
  const items: Item[] = [];
  let from = -Math.PI / 2;
  slices.forEach(({ row, value }, n) => {
    const to = from + (2 * Math.PI * value) / total;
    shapes.push({ is: 'arc', x, y, r, from, to, tone: series(n) });
    const middle = (from + to) / 2;
    if (to - from > 0.35)
      shapes.push({ is: 'text', x: x + 0.65 * r * Math.cos(middle), y: y + 0.65 * r * Math.sin(middle), text: formatValue('share', value / total), align: 'middle', tone: { is: 'heat', at: -1 } }); // prettier-ignore
    items.push({ row, series: 0, angles: [from, to], box: { x: x - r, y: y - r, w: 2 * r, h: 2 * r } }); // prettier-ignore
    from = to;
  });
  return { ...size, plot: { x: x - r, y: y - r, w: 2 * r, h: 2 * r }, shapes, items, across: false }; // prettier-ignore
}

// ---- Heat map -------------------------------------------------------------------------

// The width at which the names of the cells can be read; 0: any.
export const readableWidth = ({ series: all }: ChartTable): number =>
  all.some(({ names }) => names !== undefined) ? NAMED_W * (all.length + 2) : 0;

// A name without the mark of its leading space, if it does not fit with it.
const bare = (name: string, width: number, measure: Measure): string =>
  name.length > 1 && name.startsWith('␣') && measure(name) > width ? name.slice(1) : name;

// Both axes of a heat map may have numbers: those of layers and experts at the left say what they are.
const rowName = (table: ChartTable, row: number): string => {
  const label = labelOf(table, row);
  const isNumber = /^\d+$/.test(label);
  return isNumber && (table.key.of === 'layer' || table.key.of === 'expert')
    ? `${table.key.name} ${label}`
    : label;
};

// The values as texts, by series and row, of a map without names; null: some value has no room.
function figuresOf(
  { series: all }: ChartTable,
  w: number,
  h: number,
  measure: Measure,
): readonly (readonly string[])[] | null {
  if (h < LABEL_H + 2 || w < NAMED_W || all.some(({ names }) => names !== undefined)) return null;
  const figures = all.map(({ unit, values }) =>
    values.map((value) => (value === null || value === 0 ? '' : formatValue(unit, value))),
  );
  return figures.flat().every((text) => measure(text) <= w - 6) ? figures : null;
}

function heat(table: ChartTable, size: Size, measure: Measure): Scene {
  const { keys, series: all } = table;
  const labels = keys.map((_, row) => rowName(table, row));
  const gutter = gutterOf(labels, size, measure);
  const plot = { x: gutter, y: TOP, w: size.width - gutter - RIGHT, h: size.height - TOP - BOTTOM };
  const [w, h] = [plot.w / Math.max(1, all.length), plot.h / Math.max(1, keys.length)];
  const most = strongest(table) || 1;
  const signed = isDiverging(table);
  const is = signed ? 'difference' : 'heat';
  const figures = figuresOf(table, w, h, measure);
  const shapes: Shape[] = [];
  const items: Item[] = [];
  const nth = everyNth(keys.length, plot.h, LABEL_H - 2);
  keys.forEach((_, row) => {
    const y = plot.y + row * h;
    if (row % nth === 0)
      shapes.push({ is: 'text', x: gutter - 6, y: y + h / 2, text: fitted(labels[row] ?? '', gutter - 10, measure), align: 'end', tone: DIM }); // prettier-ignore
    all.forEach(({ values, names }, n) => {
      const value = values[row];
      if (value === null || value === undefined) return;
      const box = { x: plot.x + n * w, y, w, h };
      if (value > 0 || (signed && value < 0))
        shapes.push({ is: 'rect', x: box.x, y, w: w > 4 ? w - 1 : w, h: h > 4 ? h - 1 : h, tone: { is, at: value / most } }); // prettier-ignore
      const name = names?.[row] ?? '';
      const hasName = name !== '' && h >= LABEL_H - 4 && w >= MIN_NAME_W;
      const text = hasName ? fitted(bare(name, w - 4, measure), w - 4, measure) : (figures?.[n]?.[row] ?? ''); // prettier-ignore
      if (text !== '')
        shapes.push({ is: 'text', x: box.x + w / 2, y: y + h / 2, text, align: 'middle', tone: { is: `on-${is}`, at: value / most } }); // prettier-ignore
      items.push({ row, series: n, box });
    });
  });
  const widest = all.reduce((max, { name }) => Math.max(max, measure(name)), 0);
  const each = everyNth(all.length, plot.w, Math.min(widest, 90) + 8);
  all.forEach(({ name }, n) => {
    if (n % each === 0)
      shapes.push({ is: 'text', x: plot.x + (n + 0.5) * w, y: plot.y + plot.h + 11, text: fitted(name, Math.max(each * w - 4, 20), measure), align: 'middle', tone: DIM }); // prettier-ignore
  });
  return { ...size, plot, shapes, items, across: false };
}

// ---- Points on logarithmic axes -------------------------------------------------------

const NAME_GAP = 8; // between two names in a row

function points(table: ChartTable, size: Size, measure: Measure): Scene {
  const [xs, ys] = table.series;
  const rows = table.keys.flatMap((_, row) => {
    const [x, y] = [xs?.values[row] ?? 0, ys?.values[row] ?? 0];
    return x > 0 && y > 0 ? [{ row, x, y }] : [];
  });
  const range = (values: readonly number[]): readonly number[] =>
    values.length === 0 ? [1, 10] : logTicks(Math.min(...values), Math.max(...values));
  const guides = table.guides ?? [];
  const guided = guides.flatMap(({ at }) => rows.map(({ x }) => at(x)).filter(Number.isFinite));
  // With room beside the outermost points, so that points of one value are not a line at the edge.
  const tx = range(rows.flatMap(({ x }) => [x / 2, x * 2]));
  const ty = range([...rows.map(({ y }) => y), ...guided]);
  const text = (unit: Unit, value: number): string => formatValue(unit, value);
  const gutter = gutterOf(ty.map((value) => text(ys?.unit ?? 'number', value)), size, measure); // prettier-ignore
  const plot = { x: gutter, y: TOP, w: size.width - gutter - RIGHT, h: size.height - TOP - BOTTOM };
  const place = (value: number, at: readonly number[]): number =>
    Math.log(value / (at[0] ?? 1)) / Math.log((at.at(-1) ?? 10) / (at[0] ?? 1));
  const x = (value: number): number => plot.x + place(value, tx) * plot.w;
  const y = (value: number): number => plot.y + (1 - place(value, ty)) * plot.h;
  const shapes: Shape[] = [
    ...grid(tx, xs?.unit ?? 'number', plot, measure, (value) => [x(value), 'across']),
    ...grid(ty, ys?.unit ?? 'number', plot, measure, (value) => [y(value), 'up']),
  ];
  const dots = rows.map(({ x: vx, y: vy }): Box => ({ x: x(vx) - 8, y: y(vy) - 8, w: 16, h: 16 }));
  const named: Box[] = [];
  const title = (name: string, left: number, top: number): void => {
    shapes.push({ is: 'text', x: left, y: top + 7, text: name, align: 'start', tone: DIM });
    named.push({ x: left, y: top, w: measure(name), h: 14 });
  };
  const [across, up] = [xs?.name ?? '', ys?.name ?? ''];
  title(up, plot.x + 4, plot.y + 2);
  title(across, plot.x + plot.w - measure(across) - 4, plot.y + plot.h - 16);
  for (const { name, at: valueAt } of guides) {
    // Only where it is inside the plot.
    const line = Array.from({ length: 101 }, (_, i): [number, number] => {
      const at = (tx[0] ?? 1) * ((tx.at(-1) ?? 10) / (tx[0] ?? 1)) ** (i / 100);
      return [x(at), y(valueAt(at))];
    }).filter(([, top]) => top >= plot.y && top <= plot.y + plot.h);
    shapes.push({ is: 'path', points: line, tone: MARK, dashed: true });
    // Its name is where it covers no point and no other name: at the right end, else further to the left.
    const places = line.map(([end, top]): Box => {
      const w = measure(name);
      const left = Math.max(plot.x + 4, end - 8 - w);
      return { x: left, y: top < plot.y + 16 ? top + 21 : top - 17, w, h: 14 };
    });
    const taken = [...dots, ...named];
    const free = places.findLast((box) => !taken.some((one) => overlap(one, box))) ?? places.at(-1); // prettier-ignore
    if (!free) continue;
    named.push({ ...free, x: free.x - NAME_GAP, w: free.w + 2 * NAME_GAP });
    shapes.push({ is: 'text', x: free.x, y: free.y + 7, text: name, align: 'start', tone: TEXT });
  }
  const items = rows.map(({ row, x: vx, y: vy }, n): Item => {
    shapes.push({ is: 'dot', x: x(vx), y: y(vy), r: 4.5, tone: series(0) });
    const text = labelOf(table, row);
    const w = measure(text);
    // At the right of its point, else at the left. Names that would cover another name or point are
    // left to the tooltip and the table.
    const others = [...named, ...dots.filter((_, other) => other !== n)];
    const label = [x(vx) + 8, x(vx) - 8 - w]
      .map((left): Box => ({ x: left, y: y(vy) - 7, w, h: 14 }))
      .find((box) => box.x >= plot.x && box.x + w < size.width && !others.some((one) => overlap(one, box))); // prettier-ignore
    if (label) {
      named.push(label);
      shapes.push({ is: 'text', x: label.x, y: y(vy), text, align: 'start', tone: DIM });
    }
    return { row, series: null, box: { x: x(vx) - 7, y: y(vy) - 7, w: 14, h: 14 } };
  });
  return { ...size, plot, shapes, items, across: false };
}

const overlap = (a: Box, b: Box): boolean =>
  a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;

// The value which has the strongest colour of a heat map.
export const strongest = (table: ChartTable): number =>
  table.most ?? largest(isDiverging(table) ? table.series.map((one) => ({ ...one, values: one.values.map((v) => v && Math.abs(v)) })) : table.series); // prettier-ignore

// ---- Hit test -------------------------------------------------------------------------

export function itemAt(scene: Scene, x: number, y: number): number | null {
  for (let i = scene.items.length - 1; i >= 0; i -= 1) {
    const { box, angles } = scene.items[i] ?? { box: null };
    if (!box || x < box.x || x >= box.x + box.w || y < box.y || y >= box.y + box.h) continue;
    if (!angles) return i;
    const [dx, dy] = [x - (box.x + box.w / 2), y - (box.y + box.h / 2)];
    if (Math.hypot(dx, dy) > box.w / 2) continue;
    let angle = Math.atan2(dy, dx);
    if (angle < -Math.PI / 2) angle += 2 * Math.PI;
    if (angle >= angles[0] && angle < angles[1]) return i;
  }
  return null;
}

// The rows that a range of pixels covers: [from, to).
export function rowsBetween(scene: Scene, a: number, b: number): readonly [number, number] | null {
  const [left, right] = [Math.min(a, b), Math.max(a, b)];
  const rows = scene.items
    .filter(({ box }) => box.x + box.w > left && box.x < right)
    .map(({ row }) => row);
  return rows.length === 0 ? null : [Math.min(...rows), Math.max(...rows) + 1];
}
