import { describe, expect, it } from 'vitest';
import { partOfPicture } from '../../../src/file/part_of_picture';
import { decodePicture, pictureFrame, type Picture } from '../../../src/net/frames';

const axis = (size: number): Picture['x'] => ({
  axis: 'step',
  unit: '',
  size,
  from: 0,
  to: size,
  pixels: size,
  rows: Array.from({ length: size }, (_, i) => `row ${i}`),
  sections: [],
});

// 7 x 5 cells with sums that say where they are.
const cells = Float32Array.from({ length: 35 }, (_, i) => 2 ** (i % 7) + 100 * Math.floor(i / 7));
const whole: Picture = {
  x: axis(7),
  y: axis(5),
  width: 7,
  height: 5,
  largest: Math.max(...cells),
  shown: cells.reduce((sum, value) => sum + value, 0),
  total: 5000,
  cells,
} as Picture;

// The server's rule (docs/heat.md): pixel p of n covers the units from + floor(p * span / n) on.
function expected(from: number, to: number, pixels: number): [number, number][] {
  const start = (p: number): number => from + Math.floor((p * (to - from)) / pixels);
  return Array.from({ length: pixels }, (_, p) => [start(p), start(p + 1)]);
}

describe('a part of a held picture', () => {
  it.each([
    [0, 7, 3, 0, 5, 2],
    [2, 6, 4, 1, 4, 3],
    [1, 7, 5, 0, 5, 4],
    [3, 4, 1, 2, 3, 1],
  ])('has exact sums of units: x %i to %i in %i, y %i to %i in %i', (x0, x1, w, y0, y1, h) => {
    const part = partOfPicture(whole, { x: { from: x0, to: x1 }, y: { from: y0, to: y1 }, width: w, height: h }); // prettier-ignore
    const sums = expected(y0, y1, h).flatMap(([top, bottom]) =>
      expected(x0, x1, w).map(([left, right]) => {
        let sum = 0;
        for (let y = top; y < bottom; y += 1)
          for (let x = left; x < right; x += 1) sum += cells[y * 7 + x] ?? 0;
        return sum;
      }),
    );
    expect([...part.cells]).toEqual(sums);
    expect([part.width, part.height]).toEqual([w, h]);
    expect(part.largest).toBe(Math.max(...sums));
    expect(part.shown).toBe(sums.reduce((sum, value) => sum + value, 0));
    expect(part.y.rows).toEqual(whole.y.rows.slice(y0, y1));
  });

  it('has no more pixels than units, and what was asked for nothing is whole', () => {
    const part = partOfPicture(whole, { x: null, y: null, width: 4096, height: 4096 });
    expect(part).toEqual({ ...whole, x: { ...whole.x, pixels: 7 }, y: { ...whole.y, pixels: 5 } });
  });

  it('divides a pixel of several units in proportion to them', () => {
    const coarse: Picture = { ...whole, x: { ...axis(14), rows: [] } }; // pixels of two units
    const part = partOfPicture(coarse, { x: { from: 1, to: 4 }, y: { from: 0, to: 1 }, width: 3, height: 1 }); // prettier-ignore
    expect([...part.cells]).toEqual([0.5, 1, 1]);
  });

  it('is a frame as the server sends it', () => {
    expect(decodePicture(pictureFrame(whole))).toEqual({ ok: true, value: whole });
  });
});
