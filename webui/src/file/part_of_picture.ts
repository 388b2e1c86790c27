// Parts and sizes of a held picture, as the server would make them. Pure functions.
//
// A held pixel that covers one unit of its axis gives exact sums. One that covers several (a span of
// time, of bytes) is divided among the pixels that it becomes in proportion to their units, as if its
// sum were spread evenly: sums stay what they are, details finer than the held pixel are not shown.
import type { Picture } from '../net/frames';
import { pixelStart } from '../plane/raster';
import type { Range } from '../plane/range';

export interface Part {
  readonly x: Range | null; // null: the whole axis
  readonly y: Range | null;
  readonly width: number;
  readonly height: number;
}

// The shares of held pixels that make a pixel.
type Shares = readonly (readonly [pixel: number, share: number])[];

interface PartOfAxis {
  readonly range: Range;
  readonly pixels: number;
  readonly shares: readonly Shares[]; // by pixel
}

function partOfAxis(whole: Range, held: number, asked: Range | null, room: number): PartOfAxis {
  const from = Math.min(Math.max(asked?.from ?? whole.from, whole.from), whole.to);
  const range = { from, to: Math.max(from, Math.min(asked?.to ?? whole.to, whole.to)) };
  const pixels = Math.min(room, range.to - range.from);
  const shares: Shares[] = [];
  let first = 0;
  for (let pixel = 0; pixel < pixels; pixel += 1) {
    const begin = pixelStart(range, pixels, pixel);
    const end = pixelStart(range, pixels, pixel + 1);
    while (first < held && pixelStart(whole, held, first + 1) <= begin) first += 1;
    const own: [number, number][] = [];
    for (let at = first; at < held && pixelStart(whole, held, at) < end; at += 1) {
      const start = pixelStart(whole, held, at);
      const stop = pixelStart(whole, held, at + 1);
      const common = Math.min(end, stop) - Math.max(begin, start);
      if (common > 0) own.push([at, common / (stop - start)]);
    }
    shares.push(own);
  }
  return { range, pixels, shares };
}

export function partOfPicture(picture: Picture, part: Part): Picture {
  const x = partOfAxis(picture.x, picture.width, part.x, part.width);
  const y = partOfAxis(picture.y, picture.height, part.y, part.height);
  const cells = new Float32Array(x.pixels * y.pixels);
  const row = new Float64Array(picture.width);
  let [largest, shown] = [0, 0];
  y.shares.forEach((rows, at) => {
    row.fill(0);
    for (const [held, share] of rows)
      for (let i = 0; i < picture.width; i += 1)
        row[i] = (row[i] ?? 0) + share * (picture.cells[held * picture.width + i] ?? 0);
    x.shares.forEach((columns, i) => {
      let sum = 0;
      for (const [held, share] of columns) sum += share * (row[held] ?? 0);
      cells[at * x.pixels + i] = sum;
      largest = Math.max(largest, sum);
      shown += sum;
    });
  });
  return {
    ...picture,
    x: axisOf(picture.x, x),
    y: axisOf(picture.y, y),
    width: x.pixels,
    height: y.pixels,
    largest,
    // Cells are rounded to 32 bits; the sum of all of them is not.
    shown: part.x === null && part.y === null ? picture.shown : shown,
    cells,
  };
}

// `rows` and `keys` are of the units in range.
function axisOf(held: Picture['x'], { range, pixels }: PartOfAxis): Picture['x'] {
  const of = <T>(list: readonly T[]): readonly T[] =>
    list.slice(range.from - held.from, range.to - held.from);
  return { ...held, from: range.from, to: range.to, pixels, rows: of(held.rows) };
}
