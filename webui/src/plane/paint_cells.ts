// Paints the parts of a plane into its canvases. Layout, values and colours are computed before.
import {
  partLabels,
  rowLabels,
  sectionLabels,
  sectionsIn,
  ticks,
  type Axis,
  type Label,
} from './axis';
import { coloursOf, type Palette } from './colours';
import {
  MIN_TEXT_COLUMN,
  xOf,
  yOf,
  type Hit,
  type LensLayout,
  type PlaneLayout,
  type Rect,
  type TrackLayout,
} from './layout';
import {
  columnSums,
  levelsOf,
  pixelStart,
  rowFigures,
  type Raster,
  type ValueRange,
} from './raster';
import { spanOf, type Range } from './range';
import { sameScale, type Scale } from './scale';
import { Mark, type MarkedPixels } from './sources/token_marks';
import type { PlaneTheme } from './theme';

export type Ctx = CanvasRenderingContext2D;

export interface Colouring {
  readonly palette: Palette;
  readonly scale: Scale;
  readonly shown: ValueRange;
}

export function clipped(ctx: Ctx, { x, y, w, h }: Rect, paint: () => void): void {
  ctx.save();
  ctx.beginPath();
  ctx.rect(x, y, w, h);
  ctx.clip();
  paint();
  ctx.restore();
}

// ---- Cells ----------------------------------------------------------------------------

interface Painted extends Colouring {
  readonly image: OffscreenCanvas;
}
const painted = new WeakMap<Raster, Painted>();

// The coloured cells, one pixel each. Kept until the colours change.
function imageOf(raster: Raster, colouring: Colouring): OffscreenCanvas {
  const { palette, scale, shown } = colouring;
  const known = painted.get(raster);
  if (known?.palette === palette && sameScale(known.scale, scale) && known.shown === shown)
    return known.image;
  const data = new ImageData(raster.width, raster.height);
  const pixels = new Uint32Array(data.data.buffer);
  const colours = coloursOf(palette);
  levelsOf(raster, scale, shown).forEach((level, i) => {
    pixels[i] = colours[level] ?? 0;
  });
  const image = new OffscreenCanvas(raster.width, raster.height);
  image.getContext('2d')?.putImageData(data, 0, 0);
  painted.set(raster, { ...colouring, image });
  return image;
}

export function paintCells(
  ctx: Ctx,
  layout: PlaneLayout,
  track: TrackLayout,
  pictures: readonly Raster[],
  colouring: Colouring,
  theme: PlaneTheme,
): void {
  clipped(ctx, track.plot, () => {
    for (const raster of pictures) {
      if (raster.width === 0 || raster.height === 0) continue;
      const [x0, x1] = [xOf(layout, raster.x.from), xOf(layout, raster.x.to)];
      const [y0, y1] = [yOf(track, raster.y.from), yOf(track, raster.y.to)];
      // A finer picture replaces a coarser one also where it is empty.
      ctx.fillStyle = theme.back;
      ctx.fillRect(x0, y0, x1 - x0, y1 - y0);
      ctx.imageSmoothingEnabled = false;
      ctx.drawImage(imageOf(raster, colouring), x0, y0, x1 - x0, y1 - y0);
    }
  });
}

const MIN_LINE_COLUMN = 4; // minimum column width for lines between columns
const MIN_LINE_ROW = 5;

// Lines between rows, groups and columns. `columnEnds` tells whether a line follows a unit of x.
export function paintGrid(
  ctx: Ctx,
  layout: PlaneLayout,
  track: TrackLayout,
  xAxis: Axis,
  columnEnds: (unit: number) => boolean,
  theme: PlaneTheme,
): void {
  const { plot, y, axis } = track;
  ctx.fillStyle = theme.back;
  const pitch = plot.h / spanOf(y);
  if (axis.kind === 'rows' && pitch >= MIN_LINE_ROW && axis.groups.length < 2) {
    for (let row = Math.ceil(y.from); row <= y.to; row += 1) {
      // A wider gap before the last row: ops without a layer.
      const thick = row === axis.whole.to - 1 && axis.name === 'layer' ? 3 : 1;
      ctx.fillRect(plot.x, Math.round(yOf(track, row)) - (thick >> 1), plot.w, thick);
    }
  }
  for (const { from } of axis.groups.length > 1 ? sectionsIn(axis.groups, y) : []) {
    if (from > y.from) ctx.fillRect(plot.x, Math.round(yOf(track, from)), plot.w, 1);
  }
  const column = plot.w / spanOf(layout.x);
  if (column < MIN_LINE_COLUMN || (xAxis.kind !== 'count' && xAxis.kind !== 'rows')) return;
  for (let unit = Math.ceil(layout.x.from); unit < layout.x.to; unit += 1) {
    if (columnEnds(unit - 1)) ctx.fillRect(Math.round(xOf(layout, unit)) - 1, plot.y, 1, plot.h);
  }
}

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

export interface Figures {
  readonly title: string; // 'median / token'
  readonly values: Float32Array; // by pixel row
  readonly raster: Raster;
  readonly text: (value: number) => string;
}

export function figuresOf(raster: Raster, view: Range, kind: 'median' | 'mean'): Float32Array {
  const { means, medians } = rowFigures(raster, view);
  return kind === 'median' ? medians : means;
}

// Bars right of the plot: a figure of each row.
export function paintFigures(
  ctx: Ctx,
  layout: PlaneLayout,
  track: TrackLayout,
  { title, values, raster, text }: Figures,
  theme: PlaneTheme,
): void {
  if (layout.margin === 0) return;
  const { plot, y } = track;
  const box = { x: plot.x + plot.w + 8, w: layout.margin - 16 };
  const { height } = raster;
  let max = 0;
  for (let row = 0; row < height; row += 1) {
    const [from, to] = [pixelStart(raster.y, height, row), pixelStart(raster.y, height, row + 1)];
    if (to > y.from && from < y.to) max = Math.max(max, values[row] ?? 0);
  }
  ctx.font = `11px ${theme.sans}`;
  ctx.textAlign = 'left';
  ctx.textBaseline = 'alphabetic';
  ctx.fillStyle = theme.dim;
  ctx.fillText(title, box.x, plot.y - 4);
  if (!(max > 0)) return;
  clipped(ctx, { x: box.x, y: plot.y, w: layout.margin - 8, h: plot.h }, () => {
    for (let row = 0; row < height; row += 1) {
      const [from, to] = [pixelStart(raster.y, height, row), pixelStart(raster.y, height, row + 1)];
      if (to <= y.from || from >= y.to) continue;
      const [y0, y1] = [yOf(track, from), yOf(track, to)];
      const gap = y1 - y0 >= 5 ? 1 : 0;
      const h = Math.max(0.5, Math.min(14, y1 - y0 - gap));
      ctx.fillStyle = theme.bar;
      ctx.fillRect(box.x, y0 + (y1 - y0 - h) / 2, ((values[row] ?? 0) / max) * box.w, h);
      if ((values[row] ?? 0) > 0 && y1 - y0 >= 13) {
        ctx.fillStyle = theme.text;
        ctx.textBaseline = 'middle';
        ctx.fillText(text(values[row] ?? 0), box.x + 4, (y0 + y1) / 2);
      }
    }
  });
}

// ---- Axes ------------------------------------------------------------------------------

const ROOM = 13; // height of a label

const fittedTexts = new Map<string, string>();

// The text, shortened to a width. Measuring is slow, and the same names are painted again and
// again.
function fitted(ctx: Ctx, text: string, width: number): string {
  const key = `${ctx.font} ${Math.floor(width)} ${text}`;
  const known = fittedTexts.get(key);
  if (known !== undefined) return known;
  if (fittedTexts.size > 5000) fittedTexts.clear();
  const made = shortened(ctx, text, width);
  fittedTexts.set(key, made);
  return made;
}

function shortened(ctx: Ctx, text: string, width: number): string {
  if (ctx.measureText(text).width <= width) return text;
  let length = Math.max(1, Math.floor((text.length * width) / ctx.measureText(text).width) - 1);
  while (length > 1 && ctx.measureText(`${text.slice(0, length)}…`).width > width) length -= 1;
  return `${text.slice(0, length)}…`;
}

// The names of the rows, left of the plot: of groups in a first column if there are parts or
// rows with names of their own.
export function paintNames(
  ctx: Ctx,
  layout: PlaneLayout,
  track: TrackLayout,
  title: string,
  theme: PlaneTheme,
): void {
  const { plot, y, axis } = track;
  ctx.font = `11px ${theme.sans}`;
  ctx.textBaseline = 'alphabetic';
  ctx.textAlign = 'left';
  ctx.fillStyle = theme.dim;
  ctx.fillText(fitted(ctx, title, layout.gutter - 8), 6, plot.y - 4);
  const isGrouped = axis.groups.length > 1;
  const groups = isGrouped ? sectionLabels(axis.groups, y, plot.h, ROOM) : [];
  const fine =
    axis.kind === 'rows'
      ? plot.h / spanOf(y) >= ROOM || !isGrouped
        ? rowLabels(axis, y, plot.h, ROOM)
        : []
      : axis.kind === 'bytes'
        ? partLabels(axis.parts, y, plot.h, ROOM)
        : axis.kind === 'one'
          ? []
          : ticks(axis, y, plot.h, 26);
  const left = isGrouped ? 46 : 6;
  const line = (label: Label): number => yOf(track, (label.from + label.to) / 2);
  ctx.textBaseline = 'middle';
  if (isGrouped) {
    ctx.fillStyle = theme.line;
    for (const { from, to } of sectionsIn(axis.groups, y)) {
      const [y0, y1] = [
        Math.max(plot.y, yOf(track, from)),
        Math.min(plot.y + plot.h, yOf(track, to)),
      ];
      if (y1 - y0 >= 3) ctx.fillRect(left - 4, y0 + 1, 2, y1 - y0 - 2);
    }
    ctx.fillStyle = theme.dim;
    for (const label of groups) ctx.fillText(fitted(ctx, label.text, left - 12), 6, line(label));
  }
  ctx.textAlign = 'right';
  for (const label of fine) {
    ctx.fillStyle = theme.dim;
    ctx.fillText(fitted(ctx, label.text, layout.gutter - left - 10), plot.x - 8, line(label));
  }
  // Where nothing has room, offsets.
  if (axis.kind !== 'bytes' || fine.length + groups.length > 0) return;
  for (const label of ticks(axis, y, plot.h, 26))
    ctx.fillText(label.text, plot.x - 8, Math.max(plot.y + 6, line(label)));
}

export function paintLabels(ctx: Ctx, layout: PlaneLayout, axis: Axis, theme: PlaneTheme): void {
  const { labels: box, x } = layout;
  const column = box.w / spanOf(x);
  if (axis.kind === 'one') return;
  ctx.font = `11px ${theme.sans}`;
  ctx.fillStyle = theme.dim;
  const isText = axis.kind === 'count' && axis.textOf && column >= MIN_TEXT_COLUMN;
  if (isText || (axis.kind === 'rows' && column < 60)) {
    if (isText) ctx.font = `11px ${theme.mono}`;
    const every = Math.max(1, Math.ceil(MIN_TEXT_COLUMN / column));
    const first = Math.max(axis.whole.from, Math.floor(x.from));
    for (
      let unit = Math.ceil(first / every) * every;
      unit < Math.min(axis.whole.to, x.to);
      unit += every
    ) {
      const text = axis.textOf?.(unit) ?? axis.names[unit - axis.whole.from] ?? '';
      rotated(
        ctx,
        text.length > 9 ? `${text.slice(0, 8)}…` : text,
        xOf(layout, unit + 0.5),
        box.y + 9,
      );
    }
    return;
  }
  ctx.textBaseline = 'top';
  if (axis.kind === 'rows') {
    ctx.textAlign = 'center';
    for (const label of rowLabels(axis, x, box.w, 60))
      ctx.fillText(fitted(ctx, label.text, column - 4), xOf(layout, label.from + 0.5), box.y + 9);
    return;
  }
  for (const label of ticks(axis, x, box.w, axis.kind === 'count' ? 56 : 80)) {
    const at = xOf(layout, (label.from + label.to) / 2);
    ctx.fillRect(Math.round(at), box.y + 2, 1, 4);
    // The first and the last label stay inside the plot.
    const half = ctx.measureText(label.text).width / 2;
    ctx.textAlign = 'left';
    const left = Math.max(box.x - 4, Math.min(at - half, box.x + box.w + layout.margin - 2 * half));
    ctx.fillText(label.text, left, box.y + 9);
  }
}

function rotated(ctx: Ctx, text: string, x: number, y: number): void {
  ctx.save();
  ctx.translate(x, y);
  ctx.rotate(-Math.PI / 2);
  ctx.textAlign = 'right';
  ctx.textBaseline = 'middle';
  ctx.fillText(text, 0, 0);
  ctx.restore();
}

// ---- Overlay ---------------------------------------------------------------------------

export interface Marked {
  readonly x: Range | null; // selected units of x
  readonly ys: readonly (Range | null)[]; // by track: selected units of y
  readonly compared: Pick<Marked, 'x' | 'ys'>; // what the selection is compared with
}

// The selection: brackets above and below the plot, so that narrow columns stay visible, and a
// pointer at the rows.
export function paintSelection(
  ctx: Ctx,
  layout: PlaneLayout,
  { x, ys }: Pick<Marked, 'x' | 'ys'>,
  theme: PlaneTheme,
  colour = theme.accent,
): void {
  const { plot } = layout;
  if (x && x.to > layout.x.from && x.from < layout.x.to) {
    clipped(ctx, { x: plot.x - 3, y: 0, w: plot.w + 6, h: 10_000 }, () => {
      const x0 = Math.round(xOf(layout, x.from));
      const w = Math.max(1, Math.round(xOf(layout, x.to)) - x0);
      if (w >= 8) {
        for (const [width, colour] of [
          [4, '#000'],
          [2, '#fff'],
        ] as const) {
          // prettier-ignore
          ctx.lineWidth = width;
          ctx.strokeStyle = colour;
          ctx.strokeRect(x0 - 1, plot.y - 1, w + 1, plot.h + 2);
        }
      }
      ctx.fillStyle = theme.text;
      ctx.fillRect(x0 - 1, plot.y - 3, w + 2, 2);
      ctx.fillRect(x0 - 1, plot.y + plot.h + 1, w + 2, 2);
      triangle(ctx, x0 + w / 2, plot.y + plot.h + 3, 'up', colour);
    });
  }
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

// A magnified part with the names of its rows.
export function paintLens(
  ctx: Ctx,
  { box, layout, track }: LensLayout,
  pictures: readonly Raster[],
  colouring: Colouring,
  theme: PlaneTheme,
): void {
  ctx.fillStyle = theme.back;
  ctx.fillRect(box.x, box.y, box.w, box.h);
  paintCells(ctx, layout, track, pictures, colouring, theme);
  clipped(ctx, box, () => {
    const { axis, y, plot } = track;
    ctx.font = `11px ${theme.sans}`;
    ctx.textAlign = 'right';
    ctx.textBaseline = 'middle';
    ctx.fillStyle = theme.text;
    const labels =
      axis.kind === 'rows'
        ? rowLabels(axis, y, plot.h, ROOM)
        : partLabels(axis.parts, y, plot.h, ROOM);
    for (const label of labels) {
      const at = Math.min(
        box.y + box.h - 7,
        Math.max(box.y + 7, yOf(track, (label.from + label.to) / 2)),
      );
      ctx.fillText(fitted(ctx, label.text, layout.gutter - 10), plot.x - 5, at);
    }
  });
  ctx.strokeStyle = theme.accent;
  ctx.lineWidth = 1.5;
  ctx.strokeRect(box.x, box.y, box.w, box.h);
}

export interface Hovered {
  readonly hit: Hit;
  readonly x: Range; // the cell
  readonly y: Range | null;
  readonly name: string; // of the row
  readonly figure: string; // of the row
}

// The column and the cell under the pointer, with the name and the figure of its row.
export function paintHover(
  ctx: Ctx,
  layout: PlaneLayout,
  { hit, name, figure, ...cell }: Hovered,
  theme: PlaneTheme,
): void {
  const { plot } = layout;
  const track = layout.tracks[hit.track];
  clipped(ctx, { x: plot.x - 1, y: 0, w: plot.w + 2, h: 10_000 }, () => {
    const [x0, x1] = [xOf(layout, cell.x.from), xOf(layout, cell.x.to)];
    ctx.strokeStyle = theme.text;
    ctx.lineWidth = 1;
    ctx.globalAlpha = 0.35;
    ctx.strokeRect(x0 - 0.5, plot.y - 0.5, Math.max(1, x1 - x0), plot.h + 1);
    ctx.globalAlpha = 1;
    if (!track || !cell.y) return;
    const [y0, y1] = [yOf(track, cell.y.from), yOf(track, cell.y.to)];
    ctx.globalAlpha = 0.25;
    ctx.strokeRect(plot.x, y0, plot.w, Math.max(1, y1 - y0));
    ctx.globalAlpha = 1;
    for (const [width, colour] of [
      [3, '#000'],
      [1.5, '#fff'],
    ] as const) {
      // prettier-ignore
      ctx.lineWidth = width;
      ctx.strokeStyle = colour;
      ctx.strokeRect(x0, y0, Math.max(2, x1 - x0 - 1), Math.max(2, y1 - y0 - 1));
    }
  });
  if (!track || !cell.y) return;
  const middle = yOf(
    track,
    (Math.max(cell.y.from, track.y.from) + Math.min(cell.y.to, track.y.to)) / 2,
  );
  badge(ctx, fitted(ctx, name, layout.gutter - 14), plot.x - 6, middle, 'right', theme);
  if (layout.margin > 0 && figure !== '')
    badge(ctx, figure, plot.x + plot.w + 8, middle, 'left', theme);
}

function badge(
  ctx: Ctx,
  text: string,
  x: number,
  y: number,
  align: 'left' | 'right',
  theme: PlaneTheme,
): void {
  ctx.font = `11px ${theme.sans}`;
  ctx.textAlign = align;
  ctx.textBaseline = 'middle';
  const w = ctx.measureText(text).width + 8;
  ctx.fillStyle = theme.strong;
  ctx.fillRect(align === 'right' ? x - w + 4 : x - 2, y - 8, w, 16);
  ctx.fillStyle = theme.text;
  ctx.fillText(text, align === 'right' ? x : x + 2, y + 0.5);
}
