// Paints what is beside the cells of a plane: how each column was timed, the sums of the columns and
// the figures of the rows.
import { formatCount } from '../format';
import { sectionsIn } from './axis';
import { clipped, type Ctx } from './canvas';
import { xOf, yOf, type PlaneLayout, type Rect, type TrackLayout } from './layout';
import { MIN_LINE_COLUMN } from './paint_cells';
import { columnSums, pixelStart, rowMeans, type Raster } from './raster';
import { spanOf, type Range } from './range';
import type { Together } from './scene';
import { Mark, type MarkedPixels } from './sources/column_marks';
import type { RowFigures } from './sources/row_figures';
import type { PlaneTheme } from './theme';

// ---- Marks of the columns ----------------------------------------------------------------

interface Run {
  readonly x0: number;
  readonly x1: number;
  readonly code: number;
}

// Adjacent pixels with the same code; wide columns also end where their step ends.
function* runs(
  layout: PlaneLayout,
  { x, marks }: MarkedPixels,
  codes: Uint8Array,
  columnEnds: (unit: number) => boolean,
): Generator<Run> {
  const width = marks.length;
  const isWide = layout.plot.w / spanOf(layout.x) >= MIN_LINE_COLUMN;
  let from = 0;
  for (let at = 1; at <= width; at += 1) {
    const unit = pixelStart(x, width, at) - 1;
    if (at < width && codes[at] === codes[from] && !(isWide && columnEnds(unit))) continue;
    const x0 = xOf(layout, pixelStart(x, width, from));
    yield { x0, x1: xOf(layout, unit + 1), code: codes[from] ?? 0 };
    from = at;
  }
}

// How each step was timed, by shape and colour: fast (the default) is a thin line, learned a low
// bar, exact a full bar. And hatches columns without a step or whose times were lost, to
// distinguish "no value" from a low value.
export function paintMarks(
  ctx: Ctx,
  layout: PlaneLayout,
  pixels: MarkedPixels,
  columnEnds: (unit: number) => boolean,
  theme: PlaneTheme,
): void {
  const { marks: box, tracks } = layout;
  clipped(ctx, { ...box, y: 0, h: 10_000 }, () => {
    for (const { x0, x1, code } of runs(layout, pixels, pixels.marks, columnEnds)) {
      if (code === 0) continue;
      const h = code === Mark.exact ? box.h : code === Mark.learned ? 4 : 1.5;
      ctx.fillStyle =
        code === Mark.exact ? theme.exact : code === Mark.learned ? theme.learned : theme.line;
      ctx.fillRect(x0, box.y + box.h - h, Math.max(1, x1 - x0 - 1), h);
    }
    for (const { x0, x1, code } of runs(layout, pixels, pixels.evaluated, () => false)) {
      if (code === 1) continue;
      for (const { plot } of tracks)
        hatch(ctx, { x: x0, y: plot.y, w: x1 - x0, h: plot.h }, theme.line);
    }
  });
}

// A bracket over the units that one step evaluated together, with a tick for each token and its name
// if they have room.
export function paintTogether(
  ctx: Ctx,
  layout: PlaneLayout,
  sections: readonly Together[],
  theme: PlaneTheme,
): void {
  const { sums, marks } = layout;
  clipped(ctx, { x: sums.x, y: 0, w: sums.w, h: marks.y + marks.h }, () => {
    for (const { name, from, to, tokens } of sectionsIn(sections, layout.x)) {
      const [x0, x1] = [xOf(layout, from), xOf(layout, to)];
      if (x1 - x0 < 6) continue;
      const y = sums.y + sums.h + 1;
      ctx.strokeStyle = theme.dim;
      ctx.lineWidth = 1;
      ctx.strokeRect(x0 + 0.5, y + 0.5, x1 - x0 - 2, 0);
      ctx.strokeRect(x0 + 0.5, y + 0.5, 0, 3);
      ctx.strokeRect(x1 - 1.5, y + 0.5, 0, 3);
      if (to - from === 1)
        paintTicks(ctx, { x: x0 + 1, y: y + 1, w: x1 - x0 - 3, h: 3 }, tokens, theme);
      const [left, right] = [Math.max(x0, sums.x), Math.min(x1, sums.x + sums.w)];
      ctx.font = `11px ${theme.sans}`;
      ctx.textAlign = 'left';
      ctx.textBaseline = 'alphabetic';
      ctx.fillStyle = theme.dim;
      if (ctx.measureText(name).width <= right - left - 4) ctx.fillText(name, left + 2, sums.y + 9);
    }
  });
}

const MIN_TICK = 3; // pixels from tick to tick

// A tick for each token of one column; where they have no room, as many as there is room for.
function paintTicks(ctx: Ctx, { x, y, w, h }: Rect, tokens: number, theme: PlaneTheme): void {
  const ticks = Math.min(tokens, Math.floor(w / MIN_TICK));
  ctx.fillStyle = theme.dim;
  for (let i = 1; i < ticks; i += 1) ctx.fillRect(Math.round(x + (i * w) / ticks), y, 1, h);
}

function hatch(ctx: Ctx, rect: Rect, colour: string): void {
  clipped(ctx, rect, () => {
    ctx.strokeStyle = colour;
    ctx.lineWidth = 1;
    ctx.beginPath();
    for (let x = rect.x - rect.h; x < rect.x + rect.w; x += 6) {
      ctx.moveTo(x, rect.y + rect.h);
      ctx.lineTo(x + rect.h, rect.y);
    }
    ctx.stroke();
  });
}

// ---- Margins ---------------------------------------------------------------------------

// Bars above the plot: the sums of the columns over the rows in view.
export function paintSums(
  ctx: Ctx,
  layout: PlaneLayout,
  pictures: readonly { readonly track: TrackLayout; readonly raster: Raster }[],
  theme: PlaneTheme,
): void {
  const first = pictures[0];
  if (!first || first.raster.width === 0) return;
  // Tracks share the x axis, but may differ in their pixels.
  const sums = Float32Array.from(columnSums(first.raster, first.track.y));
  for (const { track, raster } of pictures.slice(1)) {
    if (raster.width !== first.raster.width) continue;
    columnSums(raster, track.y).forEach((sum, i) => {
      sums[i] = (sums[i] ?? 0) + sum;
    });
  }
  const { x, width } = first.raster;
  let max = 0;
  for (let i = 0; i < width; i += 1) {
    const inView =
      pixelStart(x, width, i + 1) > layout.x.from && pixelStart(x, width, i) < layout.x.to;
    if (inView && (sums[i] ?? 0) > max) max = sums[i] ?? 0;
  }
  if (!(max > 0)) return;
  ctx.fillStyle = theme.bar;
  clipped(ctx, layout.sums, () => {
    for (let i = 0; i < width; i += 1) {
      const h = ((sums[i] ?? 0) / max) * layout.sums.h;
      const [x0, x1] = [
        xOf(layout, pixelStart(x, width, i)),
        xOf(layout, pixelStart(x, width, i + 1)),
      ];
      ctx.fillRect(x0, layout.sums.y + layout.sums.h - h, x1 - x0 - (x1 - x0 >= 4 ? 1 : 0), h);
    }
  });
}

// Figures of the rows: pixels of y, with values per unit of y.
export interface Figures {
  readonly title: readonly string[]; // lines
  readonly y: Range;
  readonly values: readonly number[] | Float32Array;
}

// Means over an x axis of which no unit is a step or token.
export function meansOf(raster: Raster, view: Range, isPart: boolean, xName: string): Figures {
  const of = xName === 'time' ? xName : `${xName}s`;
  const title = [`mean over ${of}`, ...(isPart ? [PART] : [])];
  return { title, y: raster.y, values: rowMeans(raster, view) };
}

// Medians of times, means of bytes and counts, as in the tables.
export function figuresOf({ of, x, y }: RowFigures, xName: string): Figures {
  const shown = of.times ? of.median : of.mean;
  const basis = basisOf(of, xName);
  return {
    title: [
      `${of.times ? 'median' : 'mean'}, ${phaseOf(of)}`,
      ...(basis === '' ? [] : [basis]),
      ...(x ? [PART] : []),
    ],
    y,
    values: shown.map((value, row) => (value ?? 0) / unitsOf(y, shown.length, row)),
  };
}

const PART = 'of the visible part';

export const unitsOf = (y: Range, rows: number, row: number): number =>
  Math.max(1, pixelStart(y, rows, row + 1) - pixelStart(y, rows, row));

export const phaseOf = ({ phase }: RowFigures['of']): string =>
  phase === 'generate' ? 'generated' : phase;

// "of 12 clean steps", "of disturbed steps"; '': of all.
export function basisOf(
  { phase, units, left_out, times }: RowFigures['of'],
  xName: string,
): string {
  const unit = phase === 'generate' ? xName : 'step'; // the tokens of a prompt share a step
  if (units === 0) return `no clean ${unit}`;
  const isDisturbed = times !== null && times.verdict !== null && times.verdict !== 'clean';
  if (isDisturbed) return `of disturbed ${unit}s`;
  if (left_out === 0) return '';
  return `of ${formatCount(units)} ${times ? 'clean ' : ''}${units === 1 ? unit : `${unit}s`}`;
}

// Bars right of the plot: a figure of each row.
export function paintFigures(
  ctx: Ctx,
  layout: PlaneLayout,
  track: TrackLayout,
  { title, y: range, values }: Figures,
  text: (value: number) => string,
  theme: PlaneTheme,
): void {
  if (layout.margin === 0) return;
  const { plot, y } = track;
  const box = { x: plot.x + plot.w + layout.lanes + 8, w: layout.margin - 16 };
  const height = values.length;
  const inView: number[] = [];
  for (let row = 0; row < height; row += 1) {
    const [from, to] = [pixelStart(range, height, row), pixelStart(range, height, row + 1)];
    if (to > y.from && from < y.to) inView.push(values[row] ?? 0);
  }
  const max = inView.reduce((most, value) => Math.max(most, value), 0);
  ctx.font = `11px ${theme.sans}`;
  ctx.textAlign = 'left';
  ctx.textBaseline = 'alphabetic';
  ctx.fillStyle = theme.dim;
  title.toReversed().forEach((line, i) => {
    ctx.fillText(line, box.x, plot.y - 4 - 13 * i);
  });
  if (!(max > 0)) return;
  clipped(ctx, { x: box.x, y: plot.y, w: layout.margin - 8, h: plot.h }, () => {
    for (let row = 0; row < height; row += 1) {
      const [from, to] = [pixelStart(range, height, row), pixelStart(range, height, row + 1)];
      if (to <= y.from || from >= y.to) continue;
      const [y0, y1] = [yOf(track, from), yOf(track, to)];
      const gap = y1 - y0 >= 5 ? 1 : 0;
      const h = Math.max(0.5, Math.min(14, y1 - y0 - gap));
      ctx.fillStyle = theme.bar;
      const share = (values[row] ?? 0) / max;
      ctx.fillRect(box.x, y0 + (y1 - y0 - h) / 2, share * box.w, h);
      if ((values[row] ?? 0) > 0 && y1 - y0 >= 13) {
        ctx.fillStyle = theme.text;
        ctx.textBaseline = 'middle';
        ctx.fillText(text(values[row] ?? 0), box.x + 4, (y0 + y1) / 2);
      }
    }
  });
}
