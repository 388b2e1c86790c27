// Pictures of values with signs.
import { describe, expect, it } from 'vitest';
import { colourOf, coloursOf, NOT_FINITE } from '../../../src/plane/colours';
import { axisOf, leastSpan, positionText, rangeText, ticks } from '../../../src/plane/axis';
import { fullX, planeLayout } from '../../../src/plane/layout';
import { wholeCamera } from '../../../src/plane/camera';
import { levelOf, scaleOf } from '../../../src/plane/scale';

describe('a signed scale', () => {
  const scale = scaleOf([new Float32Array([0.5, -2, NaN, 1])], false, 'both');

  it('is symmetric around 0', () => {
    expect(scale).toEqual({ min: -2, max: 2, clips: false, log: false });
    expect(levelOf(0, scale)).toBe(128);
    expect(levelOf(-2, scale)).toBe(1);
    expect(levelOf(2, scale)).toBe(255);
    expect([levelOf(-1, scale), levelOf(1, scale)]).toEqual([65, 192]);
  });

  it('shows values that are not finite in a colour of their own', () => {
    for (const value of [NaN, Infinity, -Infinity]) expect(levelOf(value, scale)).toBe(0);
    const [r, g, b] = NOT_FINITE;
    expect(coloursOf('diverging')[0]).toBe(((255 << 24) | (b << 16) | (g << 8) | r) >>> 0);
    expect(coloursOf('viridis')[0]).toBe(0);
  });

  it('is blue for negative values, red for positive ones, and neutral at 0', () => {
    for (const isLight of [false, true]) {
      const [low, middle, high] = [0, 0.5, 1].map((t) => colourOf('diverging', t, isLight));
      expect(low?.[2]).toBeGreaterThan(low?.[0] ?? 255);
      expect(high?.[0]).toBeGreaterThan(high?.[2] ?? 255);
      expect(Math.max(...(middle ?? [])) - Math.min(...(middle ?? []))).toBeLessThan(16);
    }
  });
});

describe('an axis of indices', () => {
  const axis = axisOf('index', 'row', 1000);

  it('has whole numbers, and is zoomed to one unit', () => {
    expect(leastSpan(axis)).toBe(1);
    expect(positionText(axis, 12.7)).toBe('row 12');
    expect(rangeText(axis, { from: 12, to: 20 })).toBe('rows 12 – 19');
    const near = ticks(axis, { from: 3, to: 6 }, 600, 26);
    expect(near.map(({ text }) => text)).toEqual(['3', '4', '5']);
    expect(fullX(axis, 100_000)).toEqual({ from: 0, to: 1000 });
  });

  it('has the whole box without sums and figures', () => {
    const axes = { x: axis, tracks: [{ y: axis, share: 1 }] };
    const box = { w: 1000, h: 500 };
    const [with_, bare] = [axes, { ...axes, bare: true as const }].map((one) =>
      planeLayout(box, one, wholeCamera),
    );
    expect(bare?.margin).toBe(0);
    expect(bare?.plot.h).toBeGreaterThan(with_?.plot.h ?? Infinity);
    expect(bare?.plot.w).toBeGreaterThan(with_?.plot.w ?? Infinity);
  });
});
