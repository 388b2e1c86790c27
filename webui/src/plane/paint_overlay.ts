// Paints what is drawn over the cells of a plane: the selection, the brush and the lens.
import { partLabels, rowLabels } from './axis';
import { clipped, type Ctx } from './canvas';
import { ROOM, xOf, yOf, type LensLayout, type PlaneLayout, type Rect } from './layout';
import { paintCells, type Colouring } from './paint_cells';
import { fitted } from './paint_text';
import type { Raster } from './raster';
import { clip, spanOf, type Range } from './range';
import type { PlaneTheme } from './theme';

export interface Marked {
  readonly x: Range | null; // selected units of x
  readonly ys: readonly (Range | null)[]; // by track: selected units of y
  readonly compared: Pick<Marked, 'x' | 'ys'>; // what the selection is compared with
  // Of the first track: cells that are framed, instead of the whole columns.
  readonly frame?: { readonly x: Range; readonly y: Range } | null;
}

const MOST_FRAMED = 0.8; // of the plot; a frame of more would only frame the plot

// The selected columns: brackets above and below the plot, so that narrow columns stay visible, and a
// frame. What they are compared with has only brackets, which are dim.
export function paintColumns(
  ctx: Ctx,
  layout: PlaneLayout,
  x: Range | null,
  theme: PlaneTheme,
  mark: 'selected' | 'compared' = 'selected',
  isFramed = true,
): void {
  const { plot } = layout;
  if (!x || !isInView(layout, x)) return;
  const isCompared = mark === 'compared';
  clipped(ctx, { x: plot.x - 3, y: 0, w: plot.w + 6, h: 10_000 }, () => {
    const x0 = Math.round(xOf(layout, x.from));
    const w = Math.max(1, Math.round(xOf(layout, x.to)) - x0);
    if (isFramed && w >= 8 && !isCompared && visibleShare(layout, x) < MOST_FRAMED)
      strokeFrame(ctx, { x: x0 - 1, y: plot.y - 1, w: w + 1, h: plot.h + 2 });
    ctx.fillStyle = isCompared ? theme.dim : theme.text;
    ctx.fillRect(x0 - 1, plot.y - 3, w + 2, 2);
    ctx.fillRect(x0 - 1, plot.y + plot.h + 1, w + 2, 2);
    triangle(ctx, x0 + w / 2, plot.y + plot.h + 3, 'up', isCompared ? theme.dim : theme.accent);
  });
}

function strokeFrame(ctx: Ctx, { x, y, w, h }: Rect): void {
  for (const [width, colour] of [
    [4, '#000'],
    [2, '#fff'],
  ] as const) {
    // prettier-ignore
    ctx.lineWidth = width;
    ctx.strokeStyle = colour;
    ctx.strokeRect(x, y, w, h);
  }
}

// Some cells of the first track.
export function paintFrame(ctx: Ctx, layout: PlaneLayout, { x, y }: { x: Range; y: Range }): void {
  const track = layout.tracks[0];
  if (!track || !isInView(layout, x) || y.to <= track.y.from || y.from >= track.y.to) return;
  clipped(ctx, track.plot, () => {
    const [x0, y0] = [Math.round(xOf(layout, x.from)), Math.round(yOf(track, y.from))];
    const [w, h] = [Math.round(xOf(layout, x.to)) - x0, Math.round(yOf(track, y.to)) - y0];
    strokeFrame(ctx, { x: x0, y: y0, w: Math.max(3, w), h: Math.max(3, h) });
  });
}

const isInView = (layout: PlaneLayout, x: Range): boolean =>
  x.to > layout.x.from && x.from < layout.x.to;

const visibleShare = ({ x: view }: PlaneLayout, x: Range): number =>
  spanOf(clip(x, view)) / spanOf(view);

// What paintColumns paints over; null: nothing.
export function columnsBox(layout: PlaneLayout, xs: readonly (Range | null)[]): Rect | null {
  const { plot } = layout;
  const shown = xs.filter((x) => x !== null).filter((x) => isInView(layout, x));
  if (shown.length === 0) return null;
  const from = Math.max(plot.x, xOf(layout, Math.min(...shown.map((x) => x.from)))) - 8;
  const to = Math.min(plot.x + plot.w, xOf(layout, Math.max(...shown.map((x) => x.to)))) + 8;
  return { x: from, y: plot.y - 4, w: to - from, h: plot.h + 16 };
}

// Pointers at the selected rows, left of the plot. `ys`: by track.
export function paintRows(
  ctx: Ctx,
  layout: PlaneLayout,
  ys: readonly (Range | null)[],
  colour: string,
): void {
  const { plot } = layout;
  layout.tracks.forEach((track, i) => {
    const range = ys[i];
    if (!range || range.to <= track.y.from || range.from >= track.y.to) return;
    const [y0, y1] = [yOf(track, range.from), yOf(track, range.to)];
    ctx.fillStyle = colour;
    ctx.fillRect(
      plot.x - 3,
      Math.max(track.plot.y, y0),
      2,
      Math.max(2, Math.min(track.plot.y + track.plot.h, y1) - Math.max(track.plot.y, y0)),
    );
    triangle(ctx, plot.x - 2, (y0 + y1) / 2, 'right', colour);
  });
}

// What paintRows paints over; null: nothing.
export function rowsBox(
  { plot }: PlaneLayout,
  yss: readonly (readonly (Range | null)[])[],
): Rect | null {
  if (yss.every((ys) => ys.every((y) => y === null))) return null;
  return { x: plot.x - 8, y: plot.y - 5, w: 8, h: plot.h + 10 };
}

function triangle(ctx: Ctx, x: number, y: number, towards: 'up' | 'right', colour: string): void {
  ctx.fillStyle = colour;
  ctx.beginPath();
  ctx.moveTo(x, y);
  if (towards === 'up') {
    ctx.lineTo(x - 5, y + 6);
    ctx.lineTo(x + 5, y + 6);
  } else {
    ctx.lineTo(x - 5, y - 4);
    ctx.lineTo(x - 5, y + 4);
  }
  ctx.fill();
}

export interface Brush {
  readonly x: Range;
  readonly track: number;
  readonly y: Range | null; // null: all rows of all tracks
}

export function paintBrush(ctx: Ctx, layout: PlaneLayout, brush: Brush, theme: PlaneTheme): void {
  const { plot } = layout;
  const track = layout.tracks[brush.track];
  if (!track) return;
  const [x0, x1] = [xOf(layout, brush.x.from), xOf(layout, brush.x.to)];
  const [y0, y1] = brush.y
    ? [
        Math.max(track.plot.y, yOf(track, brush.y.from)),
        Math.min(track.plot.y + track.plot.h, yOf(track, brush.y.to)),
      ]
    : [plot.y, plot.y + plot.h];
  clipped(ctx, { ...plot, x: plot.x - 2, w: plot.w + 4 }, () => {
    // What is outside is dimmed.
    ctx.fillStyle = theme.back;
    ctx.globalAlpha = 0.55;
    ctx.beginPath();
    ctx.rect(plot.x, plot.y, plot.w, plot.h);
    ctx.rect(x0, y0, x1 - x0, y1 - y0);
    ctx.fill('evenodd');
    ctx.globalAlpha = 1;
    ctx.strokeStyle = theme.accent;
    ctx.lineWidth = 1.5;
    ctx.strokeRect(x0, y0, x1 - x0, y1 - y0);
  });
}

const LENS_NAMES = 110; // pixels, at most

// A magnified part. Names that have no room beside the plane are over its cells.
export function paintLens(
  ctx: Ctx,
  { box, isNamed, layout, track }: LensLayout,
  pictures: readonly Raster[],
  colouring: Colouring,
  theme: PlaneTheme,
): void {
  ctx.fillStyle = theme.back;
  ctx.fillRect(box.x, box.y, box.w, box.h);
  paintCells(ctx, layout, track, pictures, colouring, theme);
  clipped(ctx, box, () => {
    if (!isNamed) return;
    const { axis, y, plot } = track;
    ctx.font = `11px ${theme.sans}`;
    ctx.textAlign = 'left';
    ctx.textBaseline = 'middle';
    const labels =
      axis.kind === 'rows'
        ? rowLabels(axis, y, plot.h, ROOM)
        : partLabels(axis.parts, y, plot.h, ROOM);
    for (const label of labels) {
      const at = Math.min(
        box.y + box.h - 7,
        Math.max(box.y + 7, yOf(track, (label.from + label.to) / 2)),
      );
      const text = fitted(ctx, label.text, LENS_NAMES);
      ctx.fillStyle = theme.back;
      ctx.fillRect(plot.x, at - 7, ctx.measureText(text).width + 9, 14);
      ctx.fillStyle = theme.text;
      ctx.fillText(text, plot.x + 5, at);
    }
  });
  ctx.strokeStyle = theme.accent;
  ctx.lineWidth = 1.5;
  ctx.strokeRect(box.x, box.y, box.w, box.h);
}
