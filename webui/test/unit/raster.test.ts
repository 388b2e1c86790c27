import { describe, expect, it } from 'vitest';
import { Columns, columnsOf, IN_FLIGHT, NO_STEP } from '../../src/raster/columns';
import { Distribution } from '../../src/raster/distribution';
import { fractionOf, levelOf, mediansOf, rasterOf, scaleOf } from '../../src/raster/heat';
import { LayerValues, Mark, cellValue } from '../../src/raster/layer_values';
import { LUT, viridis } from '../../src/raster/lut';
import { fitView, heatLayout, hit, panView, tickStep, zoomView } from '../../src/raster/view';
import { TraceData } from '../../src/state/trace_data';
import { op, randomOf, step, token } from './make';

function dataOf(tokens: number, steps: readonly ReturnType<typeof step>[]): TraceData {
  const data = new TraceData();
  for (let i = 0; i < tokens; i += 1) data.addToken(token(i));
  for (const one of steps) data.addStep(one);
  return data;
}

function valuesOf(data: TraceData, metric: 'ns' | 'bytes' = 'ns'): LayerValues {
  const values = new LayerValues(metric);
  values.update(data, columnsOf(data));
  return values;
}

describe('columnsOf', () => {
  it('has one column per prompt token, and no step for the last sampled token', () => {
    const prompt = step(0, { phase: 'prompt', token_id: 0, token_count: 3 });
    const columns = columnsOf(dataOf(5, [prompt, step(1, { token_id: 3 })]));
    expect([...columns.step.copy()]).toEqual([0, 0, 0, 1, NO_STEP]);
    expect([...columns.token.copy()]).toEqual([0, 1, 2, 3, 4]);
    expect([...columns.firstOfStep.copy()]).toEqual([0, 3]);
  });

  it('has columns for tokens taken from the cache', () => {
    const columns = columnsOf(dataOf(4, [step(0, { token_id: 2, token_count: 2 })]));
    expect([...columns.step.copy()]).toEqual([NO_STEP, NO_STEP, 0, 0]);
  });

  it('has two columns for a token processed by encoder and decoder', () => {
    const encode = step(0, { phase: 'encode', token_id: 0, token_count: 2 });
    const decode = step(1, { phase: 'prompt', token_id: 0, token_count: 2 });
    const columns = columnsOf(dataOf(2, [encode, decode]));
    expect([...columns.token.copy()]).toEqual([0, 1, 0, 1]);
    expect([...columns.ofToken.copy()]).toEqual([2, 3]);
  });

  it('adds the step in flight when its layers are known', () => {
    const data = dataOf(2, [step(0)]);
    data.learnTemplate(1, [op(0), op(1, { op_layer_id: 0 }), op(2, { op_layer_id: 1 })]);
    data.addOps({
      subscription: 1,
      step: 1,
      firstOp: 0,
      complete: false,
      withdrawn: false,
      op: Uint32Array.of(0, 1),
      beginNs: Float64Array.of(0, 5),
      endNs: Float64Array.of(5, 12),
    });
    const columns = columnsOf(data);
    expect([...columns.step.copy()]).toEqual([0, IN_FLIGHT]);
    expect(cellValue(data, columns, 'ns', 1, 0)).toBe(7);
    expect(cellValue(data, columns, 'ns', 1, 2)).toBe(5);
    expect(cellValue(data, columns, 'bytes', 1, 0)).toBeNaN();
    data.addStep(step(1));
    expect([...columnsOf(data).step.copy()]).toEqual([0, 1]);
  });
});

describe('scaleOf and levelOf', () => {
  it('covers the values per token', () => {
    const data = dataOf(3, [step(0, { token_count: 2 }), step(1, { token_id: 2 })]);
    expect(scaleOf(valuesOf(data), true)).toEqual({ min: 5, max: 30, clips: false, log: true });
    expect(scaleOf(valuesOf(data), false).min).toBe(0);
  });

  it('clips the value of a single slow step', () => {
    const steps = Array.from({ length: 300 }, (_, i) => step(i));
    steps[0] = step(0, { layers: { ns: [9000, 10, 10], bytes: [1, 1, 1] } });
    expect(scaleOf(valuesOf(dataOf(300, steps)), true)).toMatchObject({ max: 30, clips: true });
  });

  it('has no time values for a step that lost its times', () => {
    const data = dataOf(1, [step(0, { dropped: true })]);
    expect(cellValue(data, columnsOf(data), 'ns', 0, 0)).toBeNaN();
    expect(cellValue(data, columnsOf(data), 'bytes', 0, 0)).toBe(1);
    expect(scaleOf(valuesOf(data), true)).toMatchObject({ min: 0, max: 0 });
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

  it('supports a linear scale', () => {
    expect(fractionOf(25, { min: 0, max: 100, clips: false, log: false })).toBe(0.25);
  });

  it('maps a single value to the brightest colour', () => {
    expect(levelOf(5, { min: 5, max: 5, clips: false, log: true })).toBe(255);
  });
});

describe('rasterOf', () => {
  const peak = step(5, { timing: 'learned', layers: { ns: [10, 20, 500], bytes: [1, 1, 1] } });
  const data = dataOf(
    13,
    Array.from({ length: 12 }, (_, i) => (i === 5 ? peak : step(i))),
  );
  const values = valuesOf(data);
  const scale = { min: 0, max: 500, clips: false, log: false };

  it('has one pixel per column if the width allows', () => {
    const raster = rasterOf(values, scale, { first: 2, last: 7, maxWidth: 100 });
    expect([raster.width, raster.rows]).toEqual([5, 3]);
    expect(raster.levels[2 * 5 + 3]).toBe(255); // column 5
    expect([...raster.totals]).toEqual([60, 60, 60, 530, 60]);
  });

  it('shows the maximum in a pixel of several columns', () => {
    const raster = rasterOf(values, scale, { first: 0, last: 12, maxWidth: 3 });
    expect([...raster.levels.slice(6, 9)]).toEqual([16, 255, 16]);
    expect([...raster.marks]).toEqual([Mark.fast, Mark.learned, Mark.fast]);
  });

  it('distinguishes columns without a step', () => {
    const raster = rasterOf(values, scale, { first: 11, last: 13, maxWidth: 100 });
    expect([...raster.evaluated]).toEqual([1, 0]);
    expect([...raster.marks]).toEqual([Mark.fast, 0]);
  });

  it('has the median of each row, not distorted by a slow step', () => {
    expect(mediansOf(values, { first: 0, last: 12 })).toEqual([10, 20, 30]);
  });
});

// The incremental structures against the plain definition, in random order of arrival.
describe('a growing session', () => {
  it.each([1, 2, 3, 4])('has the same picture as the finished one (seed %i)', (seed) => {
    const random = randomOf(seed);
    const count = 120;
    const steps = Array.from({ length: count }, (_, i) =>
      step(i, {
        phase: i === 0 ? 'prompt' : 'generate',
        token_id: i === 0 ? 0 : i + 6,
        token_count: i === 0 ? 7 : 1,
        dropped: random() < 0.05,
        layers: { ns: [1, 2, 3].map(() => 1 + Math.floor(1000 * random())), bytes: [1, 2, 3] },
      }),
    );
    const order = steps.map((_, i) => i);
    for (let i = 0; i < 10; i += 1) {
      const [a, b] = [Math.floor(random() * count), Math.floor(random() * count)];
      [order[a], order[b]] = [order[b] ?? 0, order[a] ?? 0];
    }
    const data = new TraceData();
    const columns = new Columns();
    const values = new LayerValues('ns');
    for (const index of order) {
      const one = steps[index];
      if (one) data.addStep(one);
      for (let i = 0; i < 3; i += 1) data.addToken(token(Math.floor(random() * (count + 8))));
      columns.update(data);
      values.update(data, columns);
      if (random() < 0.8) continue;
      const fresh = columnsOf(data);
      expect([...columns.step.copy()]).toEqual([...fresh.step.copy()]);
      expect([...columns.token.copy()]).toEqual([...fresh.token.copy()]);
      const scale = scaleOf(values, true);
      expect(scale).toEqual(scaleOf(valuesOf(data), true));
      const first = Math.floor(random() * columns.count);
      const last = first + 1 + Math.floor(random() * (columns.count - first));
      const maxWidth = 1 + Math.floor(random() * 40);
      const raster = rasterOf(values, scale, { first, last, maxWidth });
      const wanted = new Uint8Array(raster.width * 3);
      for (let column = first; column < last; column += 1) {
        const x = Math.floor(((column - first) * raster.width) / (last - first));
        for (let row = 0; row < 3; row += 1) {
          const level = levelOf(cellValue(data, columns, 'ns', column, row), scale);
          wanted[row * raster.width + x] = Math.max(wanted[row * raster.width + x] ?? 0, level);
        }
      }
      expect([...raster.levels]).toEqual([...wanted]);
    }
  });
});

describe('Distribution', () => {
  it('has quantiles within 1.1 %', () => {
    const random = randomOf(5);
    const numbers = Array.from({ length: 2000 }, () => Math.exp(20 * random()));
    const distribution = new Distribution();
    for (const number of numbers) distribution.add(number);
    const sorted = [...numbers].sort((a, b) => a - b);
    for (const share of [0, 0.005, 0.25, 0.5, 0.995, 1]) {
      const exact = sorted[Math.floor(share * (numbers.length - 1))] ?? 0;
      expect(distribution.quantile(share)).toBeGreaterThanOrEqual(exact);
      expect(distribution.quantile(share)).toBeLessThanOrEqual(exact * 1.011);
    }
    expect(distribution.quantile(1)).toBe(distribution.largest);
  });
});

describe('view', () => {
  const box = { w: 1000, h: 400 };

  it('limits the width of a column', () => {
    const layout = heatLayout(box, 23, fitView(box, 4));
    expect(layout.cellW).toBeCloseTo(26);
  });

  it('finds the cell at a point', () => {
    const layout = heatLayout(box, 23, fitView(box, 200));
    const x = layout.plot.x + 3.5 * layout.cellW;
    expect(hit(layout, 200, x, layout.plot.y + 2.5 * layout.cellH)).toEqual({ column: 3, row: 2 });
    expect(hit(layout, 200, x, 2)).toEqual({ column: 3, row: null });
    expect(hit(layout, 3, x, layout.plot.y)).toBeNull();
    expect(hit(layout, 200, layout.plot.x - 1, layout.plot.y)).toBeNull();
  });

  it('keeps the point under the pointer when zooming, and stays in range', () => {
    const whole = { from: 0, to: 100 };
    expect(zoomView({ from: 0, to: 100 }, 40, 0.5, whole)).toEqual({ from: 20, to: 70 });
    expect(zoomView({ from: 0, to: 10 }, 0, 10, whole)).toEqual({ from: 0, to: 100 });
    expect(zoomView({ from: 50, to: 54 }, 52, 0.1, whole)).toEqual({ from: 50, to: 54 });
    expect(panView({ from: 90, to: 100 }, 30, whole)).toEqual({ from: 90, to: 100 });
  });

  it.each([
    [26, 56, 5],
    [8, 56, 10],
    [1, 56, 100],
    [0.1, 56, 1000],
  ])('labels columns of %d px with %d px per label every %d columns', (cell, room, each) => {
    expect(tickStep(cell, room)).toBe(each);
  });
});

describe('viridis', () => {
  it.each([
    [0, [68, 1, 84]],
    [0.5, [33, 145, 140]],
    [1, [253, 231, 37]],
  ])('matches the published colour at %d', (t, rgb) => {
    viridis(t).forEach((value, i) => {
      expect(Math.abs(value - (rgb[i] ?? 0))).toBeLessThanOrEqual(4);
    });
  });

  it('has monotonically increasing brightness', () => {
    const light = Array.from({ length: 64 }, (_, i) => {
      const [r, g, b] = viridis(i / 63);
      return 0.2126 * r ** 2.2 + 0.7152 * g ** 2.2 + 0.0722 * b ** 2.2;
    });
    light.slice(1).forEach((value, i) => {
      expect(value).toBeGreaterThan(light[i] ?? 0);
    });
  });

  it('is transparent at level 0', () => {
    expect(LUT[0]).toBe(0);
    expect((LUT[1] ?? 0) >>> 24).toBe(255);
  });
});
