// A picture of values: what every source delivers and every plane draws. Pure functions.
//
// Pixel p of n over the range from..to covers the units from + floor(p * (to - from) / n) up to the
// start of pixel p + 1 (docs/heat.md). A cell is the sum over the pixel divided by the units of
// both axes that it covers, for example bytes per token and byte of the file. So the colours do not
// depend on the zoom.
import { sectionsIn, type Section } from './axis';
import { spanOf, type Range } from './range';
import { levelOf, type Scale } from './scale';

export interface Raster {
  readonly x: Range;
  readonly y: Range;
  readonly width: number;
  readonly height: number;
  readonly cells: Float32Array; // row by row, y ascending
}

export const emptyRaster: Raster = {
  x: { from: 0, to: 1 },
  y: { from: 0, to: 1 },
  width: 0,
  height: 0,
  cells: new Float32Array(),
};

// The first unit of a pixel.
export const pixelStart = (range: Range, pixels: number, pixel: number): number =>
  range.from + Math.floor((pixel * spanOf(range)) / pixels);

// The pixel of a position; -1: outside.
export function pixelOf(range: Range, pixels: number, at: number): number {
  if (at < range.from || at >= range.to) return -1;
  const guess = Math.floor(((at - range.from) * pixels) / spanOf(range));
  // A pixel may begin one unit before its equal share.
  return guess + 1 < pixels && pixelStart(range, pixels, guess + 1) <= at ? guess + 1 : guess;
}

// Divides sums per pixel by the units of the pixel.
export function normalized(
  x: Range,
  y: Range,
  width: number,
  height: number,
  sums: Float32Array,
): Raster {
  const cells = new Float32Array(sums.length);
  const columns = Float64Array.from({ length: width }, (_, p) =>
    Math.max(1, pixelStart(x, width, p + 1) - pixelStart(x, width, p)),
  );
  for (let row = 0; row < height; row += 1) {
    const units = Math.max(1, pixelStart(y, height, row + 1) - pixelStart(y, height, row));
    for (let column = 0; column < width; column += 1) {
      const i = row * width + column;
      cells[i] = (sums[i] ?? 0) / (units * (columns[column] ?? 1));
    }
  }
  return { x, y, width, height, cells };
}

// The value at a position; NaN outside.
export function cellAt({ x, y, width, height, cells }: Raster, atX: number, atY: number): number {
  const [column, row] = [pixelOf(x, width, atX), pixelOf(y, height, atY)];
  return column < 0 || row < 0 ? NaN : (cells[row * width + column] ?? NaN);
}

// The values between which cells are drawn; others are hidden. Null: all.
export type ValueRange = readonly [low: number, high: number] | null;

// Colour levels of all cells.
export function levelsOf({ cells }: Raster, scale: Scale, shown: ValueRange): Uint8Array {
  const levels = new Uint8Array(cells.length);
  for (let i = 0; i < cells.length; i += 1) {
    const value = cells[i] ?? 0;
    if (shown && (value < shown[0] || value > shown[1])) continue;
    levels[i] = levelOf(value, scale);
  }
  return levels;
}

// By pixel column: the sum over the rows inside `view`, per unit of x.
export function columnSums({ y, width, height, cells }: Raster, view: Range): Float32Array {
  const sums = new Float32Array(width);
  for (let row = 0; row < height; row += 1) {
    const [from, to] = [pixelStart(y, height, row), pixelStart(y, height, row + 1)];
    const units = Math.min(to, view.to) - Math.max(from, view.from);
    if (units <= 0) continue;
    const at = row * width;
    for (let column = 0; column < width; column += 1)
      sums[column] = (sums[column] ?? 0) + (cells[at + column] ?? 0) * units;
  }
  return sums;
}

// The pixel columns that overlap `view`.
function columnsIn({ x, width }: Raster, view: Range): readonly [first: number, end: number] {
  const first = Math.max(0, pixelOf(x, width, Math.max(x.from, Math.floor(view.from))));
  const last = Math.max(first, pixelOf(x, width, Math.min(x.to, Math.ceil(view.to)) - 1));
  return [first, Math.min(width, last + 1)];
}

// By pixel row: the mean over the columns inside `view`, per unit of y.
export function rowMeans(raster: Raster, view: Range): Float32Array {
  const { x, width, height, cells } = raster;
  const [first, end] = columnsIn(raster, view);
  // Pixels begin at whole units, so their widths differ.
  const units = Float64Array.from({ length: end - first }, (_, i) => {
    const [from, to] = [pixelStart(x, width, first + i), pixelStart(x, width, first + i + 1)];
    return Math.max(0, Math.min(to, view.to) - Math.max(from, view.from));
  });
  const whole = units.reduce((sum, one) => sum + one, 0);
  const means = new Float32Array(height);
  if (whole === 0) return means;
  for (let row = 0; row < height; row += 1) {
    const at = row * width + first;
    let sum = 0;
    for (let i = 0; i < units.length; i += 1) sum += (cells[at + i] ?? 0) * (units[i] ?? 0);
    means[row] = sum / whole;
  }
  return means;
}

export interface Area {
  readonly x: Range;
  readonly y: Range;
}

// The total of each section over the whole width, largest first.
export function sectionTotals(
  { y, height }: Raster,
  means: Float32Array,
  sections: readonly Section[],
): readonly { readonly section: Section; readonly value: number }[] {
  return sectionsIn(sections, y)
    .map((section) => {
      let value = 0;
      const first = Math.max(0, pixelOf(y, height, Math.max(y.from, section.from)));
      for (let row = first; row < height; row += 1) {
        const [from, to] = [pixelStart(y, height, row), pixelStart(y, height, row + 1)];
        if (from >= section.to) break;
        value += (means[row] ?? 0) * (Math.min(to, section.to) - Math.max(from, section.from));
      }
      return { section, value };
    })
    .sort((a, b) => b.value - a.value);
}
