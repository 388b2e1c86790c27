// The visible columns and the layout of the heat map. Sizes are CSS pixels. Columns may be
// fractional, so that zooming keeps the point under the pointer. Pure functions.

export interface View {
  readonly from: number; // columns
  readonly to: number;
}

export interface Rect {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

export interface HeatLayout {
  readonly plot: Rect;
  readonly sums: Rect; // bars by column, above the plot
  readonly marks: Rect; // timing of each step, between `sums` and the plot
  readonly medians: Rect; // bars by row, right of the plot
  readonly cellW: number;
  readonly cellH: number;
  readonly view: View;
  readonly rows: number;
}

const LEFT = 62;
const RIGHT = 96;
const SUMS = 30;
const MARKS = 7;
const GAP = 4;
const TOKEN_TEXT = 65; // height below the plot for token text
const TOKEN_NUMBERS = 32;
export const MIN_TEXT_CELL_W = 13; // minimum column width for token text
const MAX_CELL_W = 26;
const MAX_CELL_H = 46;
const MIN_COLUMNS = 4;

export interface Box {
  readonly w: number;
  readonly h: number;
}

const plotWidth = (box: Box): number => Math.max(40, box.w - LEFT - RIGHT);

// Shows all columns, with cells at most MAX_CELL_W wide.
export function fitView(box: Box, columns: number): View {
  return { from: 0, to: Math.max(columns, plotWidth(box) / MAX_CELL_W, 1) };
}

export function heatLayout(box: Box, rows: number, view: View): HeatLayout {
  const w = plotWidth(box);
  const cellW = w / (view.to - view.from);
  const top = SUMS + GAP + MARKS + 2;
  const bottom = cellW < MIN_TEXT_CELL_W ? TOKEN_NUMBERS : TOKEN_TEXT;
  const cellH = Math.min(MAX_CELL_H, Math.max(40, box.h - top - bottom) / Math.max(1, rows));
  const h = cellH * rows;
  return {
    plot: { x: LEFT, y: top, w, h },
    sums: { x: LEFT, y: 4, w, h: SUMS - 4 },
    marks: { x: LEFT, y: SUMS + GAP, w, h: MARKS },
    medians: { x: LEFT + w + 8, y: top, w: RIGHT - 16, h },
    cellW,
    cellH,
    view,
    rows,
  };
}

export const columnX = (layout: HeatLayout, column: number): number =>
  layout.plot.x + (column - layout.view.from) * layout.cellW;

export interface Hit {
  readonly column: number;
  readonly row: number | null; // null: above or below the rows
}

export function hit(layout: HeatLayout, columns: number, x: number, y: number): Hit | null {
  const { plot } = layout;
  if (x < plot.x || x >= plot.x + plot.w || y < 0) return null;
  const column = Math.floor(layout.view.from + (x - plot.x) / layout.cellW);
  if (column < 0 || column >= columns) return null;
  const row = Math.floor((y - plot.y) / layout.cellH);
  return { column, row: row >= 0 && row < layout.rows ? row : null };
}

// `at`: the column that stays fixed. A factor below 1 zooms in.
export function zoomView(view: View, at: number, factor: number, whole: View): View {
  const wide = whole.to - whole.from;
  const span = Math.min(wide, Math.max(MIN_COLUMNS, (view.to - view.from) * factor));
  const share = (at - view.from) / (view.to - view.from);
  return clampView({ from: at - share * span, to: at + (1 - share) * span }, whole);
}

export function panView(view: View, columns: number, whole: View): View {
  return clampView({ from: view.from + columns, to: view.to + columns }, whole);
}

function clampView(view: View, whole: View): View {
  const span = view.to - view.from;
  const from = Math.max(whole.from, Math.min(view.from, whole.to - span));
  return { from, to: from + span };
}

// The interval of labelled columns: 1, 2 or 5 times a power of ten, at least `room` pixels.
export function tickStep(cellW: number, room: number): number {
  const minStep = room / cellW;
  const power = 10 ** Math.floor(Math.log10(Math.max(1, minStep)));
  return [1, 2, 5, 10].map((m) => m * power).find((step) => step >= minStep) ?? 10 * power;
}
