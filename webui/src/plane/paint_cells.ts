// Paints the cells of a plane. Layout, values and colours are computed before.
import { sectionsIn, type Axis } from './axis';
import { coloursOf, type Colours } from './colours';
import { clipped, type Ctx } from './canvas';
import { xOf, yOf, type PlaneLayout, type TrackLayout } from './layout';
import { levelsOf, type Raster, type ValueRange } from './raster';
import { spanOf } from './range';
import { sameScale, type Scale } from './scale';
import type { PlaneTheme } from './theme';

export interface Colouring {
  readonly palette: Colours;
  readonly scale: Scale;
  readonly shown: ValueRange;
}

interface Painted extends Colouring {
  readonly isLight: boolean;
  readonly image: OffscreenCanvas;
}
const painted = new WeakMap<Raster, Painted>();

// The coloured cells, one pixel each. Kept until the colours change.
function imageOf(raster: Raster, colouring: Colouring, { isLight }: PlaneTheme): OffscreenCanvas {
  const { palette, scale, shown } = colouring;
  const known = painted.get(raster);
  const isSame = known?.palette === palette && known.shown === shown && known.isLight === isLight;
  if (isSame && sameScale(known.scale, scale)) return known.image;
  const data = new ImageData(raster.width, raster.height);
  const pixels = new Uint32Array(data.data.buffer);
  const colours = coloursOf(palette, isLight);
  levelsOf(raster, scale, shown).forEach((level, i) => {
    pixels[i] = colours[level] ?? 0;
  });
  const image = new OffscreenCanvas(raster.width, raster.height);
  image.getContext('2d')?.putImageData(data, 0, 0);
  painted.set(raster, { ...colouring, isLight, image });
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
      ctx.drawImage(imageOf(raster, colouring, theme), x0, y0, x1 - x0, y1 - y0);
    }
  });
}

export const MIN_LINE_COLUMN = 4; // minimum column width for lines between columns
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
