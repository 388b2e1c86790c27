import { figuresOf, meansOf } from '../../../src/plane/paint_margins';
import { describe, expect, it } from 'vitest';
import { PALETTES, colourOf, coloursOf, gradientOf, viridis } from '../../../src/plane/colours';
import {
  cellAt,
  columnSums,
  levelsOf,
  normalized,
  pixelOf,
  pixelStart,
  rowMeans,
  sectionTotals,
  type Raster,
} from '../../../src/plane/raster';
import type { Range } from '../../../src/plane/range';
import { fractionOf, levelOf, scaleOf, valueAt } from '../../../src/plane/scale';
import { randomOf } from '../make';

describe('pixels', () => {
  it('contain each unit exactly once', () => {
    const random = randomOf(3);
    for (let round = 0; round < 200; round += 1) {
      const from = Math.floor(20 * random());
      const range = { from, to: from + 1 + Math.floor(200 * random()) };
      const pixels = 1 + Math.floor((range.to - range.from) * random());
      for (let unit = range.from; unit < range.to; unit += 1) {
        const pixel = pixelOf(range, pixels, unit);
        expect(unit).toBeGreaterThanOrEqual(pixelStart(range, pixels, pixel));
        expect(unit).toBeLessThan(pixelStart(range, pixels, pixel + 1));
      }
      expect(pixelOf(range, pixels, range.to)).toBe(-1);
    }
  });
});

describe('a raster', () => {
  const x = { from: 0, to: 10 };
  const y = { from: 0, to: 3 };
  const ones: Raster = normalized(x, y, 4, 2, Float32Array.of(2, 3, 2, 3, 4, 6, 4, 6));

  it('has the same values at every resolution', () => {
    // 10 units in 4 pixels (2, 3, 2, 3) and 3 in 2 (1, 2), each unit with the value 1.
    expect([...ones.cells]).toEqual([1, 1, 1, 1, 1, 1, 1, 1]);
  });

  it('has values at positions, and none outside', () => {
    expect(cellAt(ones, 9.9, 2.9)).toBe(1);
    expect(cellAt(ones, 10, 0)).toBeNaN();
    expect(cellAt(ones, 0, -1)).toBeNaN();
  });

  it('has sums of columns over the rows in view', () => {
    expect([...columnSums(ones, y)]).toEqual([3, 3, 3, 3]);
    expect([...columnSums(ones, { from: 1, to: 3 })]).toEqual([2, 2, 2, 2]);
  });

  const raster = {
    x: { from: 0, to: 4 },
    y: { from: 0, to: 2 },
    width: 4,
    height: 2,
    cells: Float32Array.of(1, 1, 1, 97, 0, 2, 2, 2),
  };

  it('has means of rows, over the columns in view', () => {
    expect([...rowMeans(raster, raster.x)]).toEqual([25, 1.5]);
    expect(meansOf(raster, raster.x, true, 'layer').title).toEqual([
      'mean over layers',
      'of the visible part',
    ]);
  });

  it('has totals of sections, the largest first', () => {
    const raster = {
      x: { from: 0, to: 1 },
      y: { from: 0, to: 8 },
      width: 1,
      height: 4,
      cells: Float32Array.of(1, 1, 5, 0),
    };
    const totals = sectionTotals(raster, rowMeans(raster, raster.x), [
      { name: 'a', from: 0, to: 4 },
      { name: 'b', from: 4, to: 5 },
    ]);
    expect(totals.map(({ section, value }) => [section.name, value])).toEqual([
      ['b', 5],
      ['a', 4],
    ]);
  });

  it('hides the values that the legend excludes', () => {
    const raster = { ...ones, cells: Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8) };
    const levels = levelsOf(raster, { min: 0, max: 8, clips: false, log: false }, [3, 5]);
    expect([...levels].map((level) => level > 0)).toEqual([
      false,
      false,
      true,
      true,
      true,
      false,
      false,
      false,
    ]);
  });
});

describe('the figures of rows', () => {
  const times = {
    phase: 'generate',
    steps: 4,
    tokens: 4,
    same_tokens: true,
    learned: 0,
    interrupted: 0,
    first: 0,
    disturbed: 0,
    verdict: 'clean',
    text: '',
  } as const;
  const of = {
    phase: 'generate',
    units: 4,
    left_out: 0,
    times,
    mean: [25, null],
    median: [4, null],
    p5: [1, null],
    p95: [97, null],
  } as const;
  const figures = (change: Partial<typeof of> | Record<string, unknown>, x: Range | null = null) =>
    figuresOf({ of: { ...of, ...change }, sums: Float32Array.of(100, 0), x, y: { from: 0, to: 4 } }, 'token'); // prettier-ignore

  it('are medians of times and means of counts, per unit of y', () => {
    expect([...figures({}).values]).toEqual([2, 0]);
    expect([...figures({ times: null }).values]).toEqual([12.5, 0]);
  });

  it.each([
    [{}, ['median, generated']],
    [{ left_out: 2 }, ['median, generated', 'of 4 clean tokens']],
    [{ left_out: 2, units: 1, times: null }, ['mean, generated', 'of 1 token']],
    [{ times: { ...times, verdict: 'contended' } }, ['median, generated', 'of disturbed tokens']],
    [
      { times: { ...times, verdict: null }, left_out: 1 },
      ['median, generated', 'of 4 clean tokens'],
    ],
    [{ phase: 'prompt', units: 0 }, ['median, prompt', 'no clean step']],
  ])('say what they are of: %j', (change, title) => {
    expect(figures(change).title).toEqual(title);
    expect(figures(change, { from: 1, to: 3 }).title).toEqual([...title, 'of the visible part']);
  });
});

describe('a scale', () => {
  it('covers the values', () => {
    const lists = [Float32Array.of(5, 10, 0, 30)];
    expect(scaleOf(lists, true)).toEqual({ min: 5, max: 30, clips: false, log: true });
    expect(scaleOf(lists, false).min).toBe(0);
    expect(scaleOf([new Float32Array(4)], true)).toMatchObject({ min: 0, max: 0 });
  });

  it('clips the value of a single slow step', () => {
    const values = new Float32Array(900).fill(30);
    values[0] = 9000;
    expect(scaleOf([values], true)).toMatchObject({ max: 30, clips: true });
  });

  it.each([
    [0, 0],
    [NaN, 0],
    [1, 1],
    [10, 128],
    [100, 255],
    [1000, 255],
  ])('level of %d on a log scale from 1 to 100 is %d', (value, level) => {
    expect(levelOf(value, { min: 1, max: 100, clips: true, log: true })).toBe(level);
  });

  it('maps a single value to the last colour', () => {
    expect(levelOf(5, { min: 5, max: 5, clips: false, log: true })).toBe(255);
  });

  it('is inverted by valueAt', () => {
    for (const log of [false, true]) {
      const scale = { min: 2, max: 50, clips: false, log };
      for (const value of [2, 3, 17, 50])
        expect(valueAt(fractionOf(value, scale), scale)).toBeCloseTo(value);
    }
  });
});

describe('colours', () => {
  it.each([
    [0, [68, 1, 84]],
    [0.5, [33, 145, 140]],
    [1, [253, 231, 37]],
  ])('of viridis match the published ones at %d', (t, rgb) => {
    viridis(t).forEach((value, i) => {
      expect(Math.abs(value - (rgb[i] ?? 0))).toBeLessThanOrEqual(4);
    });
  });

  it.each(PALETTES.filter((palette) => palette !== 'heat'))(
    'of %s have increasing brightness',
    (palette) => {
      const light = Array.from({ length: 64 }, (_, i) => {
        const [r, g, b] = colourOf(palette, i / 63);
        return 0.2126 * r ** 2.2 + 0.7152 * g ** 2.2 + 0.0722 * b ** 2.2;
      });
      light.slice(1).forEach((value, i) => {
        expect(value).toBeGreaterThan(light[i] ?? 0);
      });
    },
  );

  it('are a gradient from the least to the largest value', () => {
    const gradient = gradientOf('grey');
    expect(gradient).toMatch(/^linear-gradient\(90deg, rgb\(45 45 48\), .*, rgb\(245 245 245\)\)$/);
    // The given colours of heat are among them.
    expect(gradientOf('heat')).toContain(', rgb(225 225 195), ');
  });
  it('are transparent at level 0', () => {
    expect(coloursOf('viridis')[0]).toBe(0);
    expect((coloursOf('viridis')[1] ?? 0) >>> 24).toBe(255);
  });
});
