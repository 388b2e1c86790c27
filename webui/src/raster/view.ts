// Which columns the heat map shows and where its parts lie. Pure: sizes in CSS
// pixels, columns as fractions, so that zooming keeps what is under the pointer.

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
  readonly sums: Rect; // per column, above the plot
  readonly marks: Rect; // timing of each step, between both
  readonly means: Rect; // per row, right of the plot
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
const TOKEN_TEXT = 65; // below the plot, where each token's text has room
const TOKEN_NUMBERS = 32;
export const TEXT_CELL = 13; // narrower columns are only numbered
const WIDEST_CELL = 26;
const TALLEST_CELL = 46;
const FEWEST_COLUMNS = 4;

export interface Box {
  readonly w: number;
  readonly h: number;
}

const plotWidth = (box: Box): number => Math.max(40, box.w - LEFT - RIGHT);

// Everything, in cells that are not absurdly wide while there is little.
export function fitted(box: Box, columns: number): View {
  return { from: 0, to: Math.max(columns, plotWidth(box) / WIDEST_CELL, 1) };
}

export function heatLayout(box: Box, rows: number, view: View): HeatLayout {
  const w = plotWidth(box);
  const cellW = w / (view.to - view.from);
  const top = SUMS + GAP + MARKS + 2;
  const bottom = cellW < TEXT_CELL ? TOKEN_NUMBERS : TOKEN_TEXT;
  const cellH = Math.min(TALLEST_CELL, Math.max(40, box.h - top - bottom) / Math.max(1, rows));
  const h = cellH * rows;
  return {
    plot: { x: LEFT, y: top, w, h },
    sums: { x: LEFT, y: 4, w, h: SUMS - 4 },
    marks: { x: LEFT, y: SUMS + GAP, w, h: MARKS },
    means: { x: LEFT + w + 8, y: top, w: RIGHT - 16, h },
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
  readonly row: number | null; // null: in the column, but not in the plot's rows
}

export function hit(layout: HeatLayout, columns: number, x: number, y: number): Hit | null {
  const { plot } = layout;
  if (x < plot.x || x >= plot.x + plot.w || y < 0) return null;
  const column = Math.floor(layout.view.from + (x - plot.x) / layout.cellW);
  if (column < 0 || column >= columns) return null;
  const row = Math.floor((y - plot.y) / layout.cellH);
  return { column, row: row >= 0 && row < layout.rows ? row : null };
}

// `at` is the column that stays where it is; factor below 1 looks closer.
export function zoomed(view: View, at: number, factor: number, whole: View): View {
  const wide = whole.to - whole.from;
  const span = Math.min(wide, Math.max(FEWEST_COLUMNS, (view.to - view.from) * factor));
  const share = (at - view.from) / (view.to - view.from);
  return inside({ from: at - share * span, to: at + (1 - share) * span }, whole);
}

export function panned(view: View, columns: number, whole: View): View {
  return inside({ from: view.from + columns, to: view.to + columns }, whole);
}

function inside(view: View, whole: View): View {
  const span = view.to - view.from;
  const from = Math.max(whole.from, Math.min(view.from, whole.to - span));
  return { from, to: from + span };
}

// Distance between labelled columns: 1, 2 or 5 times a power of ten, at least
// `room` pixels.
export function tickStep(cellW: number, room: number): number {
  const least = room / cellW;
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return [1, 2, 5, 10].map((m) => m * power).find((step) => step >= least) ?? 10 * power;
}
