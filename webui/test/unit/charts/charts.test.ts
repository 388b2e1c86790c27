// Charts as shapes: where a value is drawn, what a point hits, what a file has.
import { describe, expect, it } from 'vitest';
import { svgOf, withHeading, type ChartTheme } from '../../../src/charts/paint';
import { itemAt, rowsBetween, sceneOf, slicesOf, type Scene, type Shape } from '../../../src/charts/scene'; // prettier-ignore
import { csvOf, formatValue, type ChartTable } from '../../../src/charts/table';
import { luminance } from '../../../src/plane/colours';
import { logTicks, ticks } from '../../../src/charts/ticks';

const SIZE = { width: 400, height: 200 };
const measure = (text: string): number => 6 * text.length;

const table = (of: 'layer' | 'name', ...series: readonly (readonly (number | null)[])[]): ChartTable => ({
  key: { name: 'key', of },
  keys: series[0]?.map((_, i) => (of === 'layer' ? i : `name ${i}`)) ?? [],
  series: series.map((values, n) => ({ name: `series ${n}`, unit: 'bytes', values })),
}); // prettier-ignore

const theme: ChartTheme = {
  series: ['#111111', '#222222'], text: '#000000', dim: '#333333', line: '#444444', mark: '#555555', back: '#ffffff', isLight: true,
}; // prettier-ignore

const rects = ({ shapes }: Scene): readonly Extract<Shape, { is: 'rect' }>[] =>
  shapes.filter((shape) => shape.is === 'rect');

describe('the ticks of an axis', () => {
  it('are round numbers that enclose the largest value', () => {
    expect(ticks(7, 'number', 4)).toEqual([0, 2, 4, 6, 8]);
    expect(ticks(1, 'count', 5)).toEqual([0, 1]);
    expect(ticks(0, 'ns', 4)).toEqual([0]);
  });

  it('of bytes are powers of two', () => {
    const texts = (mib: number, unit: 'bytes' | 'bytes/s', wanted: number) =>
      ticks(mib * 1024 * 1024, unit, wanted).map((value) => formatValue(unit, value));
    expect(texts(3, 'bytes', 3)).toEqual(['0 B', '1 MiB', '2 MiB', '3 MiB']);
    expect(texts(1000, 'bytes', 5)).toEqual(['0 B', '256 MiB', '512 MiB', '768 MiB', '1 GiB']);
    expect(texts(1800, 'bytes/s', 4)).toEqual(['0 B/s', '512 MiB/s', '1 GiB/s', '1.50 GiB/s', '2 GiB/s']); // prettier-ignore
    expect(ticks(2, 'bytes', 8)).toEqual([0, 1, 2]);
  });

  it('of minutes are round in minutes', () => {
    const texts = (max: number) =>
      ticks(max * 1e9, 'ns', 4).map((value) => formatValue('ns', value));
    expect(texts(320)).toEqual(['0 ns', '2 min', '4 min', '6 min']);
    expect(texts(90)).toEqual(['0 ns', '30 s', '1 min', '1 min 30 s']);
    expect(texts(40)).toEqual(['0 ns', '10 s', '20 s', '30 s', '40 s']);
  });

  it('of a logarithmic axis enclose the values', () => {
    expect(logTicks(2.5, 8)).toEqual([2, 5, 10]);
    expect(logTicks(0.5, 90000).at(0)).toBe(0.1);
    expect(logTicks(0.5, 90000).at(-1)).toBe(100000);
  });
});

describe('bars', () => {
  it('are as long as their values, from the same origin', () => {
    const scene = sceneOf(table('name', [1024, 512, null]), 'bar', SIZE, measure);
    const [first, second, ...rest] = rects(scene);
    expect(rest).toEqual([]);
    expect((first?.w ?? 0) / (second?.w ?? 1)).toBeCloseTo(2);
    expect(first?.x).toBe(second?.x);
  });

  it('of a row that has one of two values are in its middle, with their value', () => {
    const scene = sceneOf(table('name', [1024, null], [null, 512]), 'bar', SIZE, measure);
    const middles = rects(scene).map(({ y, h }) => y + h / 2);
    const of = (align: 'start' | 'end') =>
      scene.shapes.flatMap((shape) =>
        shape.is === 'text' && shape.align === align ? [shape] : [],
      );
    const names = of('end').filter(({ text }) => text.startsWith('name'));
    const values = of('start');
    expect(values.map(({ text }) => text)).toEqual(['1 KiB', '512 B']);
    names.forEach(({ y }, row) => {
      expect(Math.abs(y - (middles[row] ?? 0))).toBeLessThan(1);
      expect(Math.abs(y - (values[row]?.y ?? 0))).toBeLessThan(1);
    });
  });

  it('that are stacked follow each other, and 100 % fills the row', () => {
    const both = table('name', [300, 10], [100, 30]);
    const [a, b] = rects(sceneOf(both, 'stacked', SIZE, measure));
    expect(b?.x).toBeCloseTo((a?.x ?? 0) + (a?.w ?? 0));
    const share = sceneOf(both, 'share', SIZE, measure);
    const widths = rects(share).map(({ w }) => w);
    expect((widths[0] ?? 0) + (widths[1] ?? 0)).toBeCloseTo(share.plot.w);
    expect((widths[2] ?? 0) / share.plot.w).toBeCloseTo(0.25);
  });

  it('have values at the axis that are not over each other', () => {
    for (const width of [180, 260, 400, 700]) {
      const times = { ...table('name', [330e9, 90e9]) };
      const series = times.series.map((one) => ({ ...one, unit: 'ns' as const }));
      const { shapes, plot } = sceneOf(
        { ...times, series },
        'bar',
        { width, height: 200 },
        measure,
      );
      const values = shapes.flatMap((one) => (one.is === 'text' && one.y > plot.y + plot.h ? [one] : [])); // prettier-ignore
      expect(values.length).toBeGreaterThan(1);
      const ends = values.map(({ x, text, align }) => {
        const left = x - measure(text) * { start: 0, middle: 0.5, end: 1 }[align];
        return [left, left + measure(text)] as const;
      });
      for (const [i, [left]] of ends.entries()) expect(left).toBeGreaterThan(ends[i - 1]?.[1] ?? -100); // prettier-ignore
    }
  });

  it('over numbers have labels inside the chart, none over another one', () => {
    const keys = Array.from({ length: 64 }, (_, i) => i);
    const bins: ChartTable = {
      key: { name: 'from', of: 'number' },
      keys,
      labels: keys.map((i) => `0.0017${i} to 0.0018${i}`),
      series: [{ name: 'values', unit: 'count', values: keys }],
    };
    for (const width of [300, 400, 777, 1400]) {
      const { shapes } = sceneOf(bins, 'bar', { width, height: 200 }, measure);
      const labels = shapes.flatMap((one) => (one.is === 'text' && one.align === 'middle' ? [one] : [])); // prettier-ignore
      expect(labels.length).toBeGreaterThan(0);
      labels.forEach(({ x, text }, i) => {
        expect(x - measure(text) / 2).toBeGreaterThanOrEqual(0);
        expect(x + measure(text) / 2).toBeLessThanOrEqual(width);
        const before = labels[i - 1];
        if (before) expect(x - measure(text) / 2).toBeGreaterThan(before.x + measure(before.text) / 2); // prettier-ignore
      });
    }
  });

  it('over layers stand side by side, and each has a column that the pointer hits', () => {
    const scene = sceneOf(table('layer', [4, 8, 2]), 'bar', SIZE, measure);
    expect(scene.across).toBe(true);
    const { plot } = scene;
    const middle = plot.x + plot.w / 2;
    expect(scene.items[itemAt(scene, middle, plot.y + 3) ?? -1]?.row).toBe(1);
    expect(itemAt(scene, plot.x - 3, plot.y + 3)).toBeNull();
    expect(rowsBetween(scene, middle, plot.x + plot.w)).toEqual([1, 3]);
  });
});

describe('a pie', () => {
  it('has the largest parts and the rest', () => {
    const many = table(
      'name',
      Array.from({ length: 20 }, (_, i) => i),
    );
    const slices = slicesOf(many);
    expect(slices).toHaveLength(8);
    expect(slices.at(-1)).toEqual({ row: -1, value: (12 * 13) / 2 });
    expect(slices.reduce((sum, { value }) => sum + value, 0)).toBe(190);
  });

  it('is hit by its angle, not by its box', () => {
    const scene = sceneOf(table('name', [3, 1]), 'pie', SIZE, measure);
    const { x, y, w } = scene.plot;
    const [cx, cy] = [x + w / 2, y + w / 2];
    expect(scene.items[itemAt(scene, cx + 20, cy + 20) ?? -1]?.row).toBe(0);
    expect(scene.items[itemAt(scene, cx - 20, cy - 20) ?? -1]?.row).toBe(1);
    expect(itemAt(scene, x + 1, y + 1)).toBeNull();
  });
});

describe('a heat map', () => {
  it('colours by the largest value, and leaves out what is zero', () => {
    const scene = sceneOf(table('layer', [0, 5], [10, null]), 'heat', SIZE, measure);
    expect(rects(scene).map(({ tone }) => tone)).toEqual([
      { is: 'heat', at: 1 },
      { is: 'heat', at: 0.5 },
    ]);
    expect(scene.items).toHaveLength(3);
  });

  it('says at its rows what they are, of every n-th if there is no room', () => {
    const left = (key: ChartTable['key'], count: number): readonly string[] => {
      const keys = Array.from({ length: count }, (_, i) => i);
      const series = [{ name: 't', unit: 'count' as const, values: keys }];
      const { shapes } = sceneOf({ key, keys, series }, 'heat', SIZE, measure);
      return shapes.flatMap((shape) => shape.is === 'text' && shape.align === 'end' ? [shape.text] : []);
    };
    expect(left({ name: 'expert', of: 'expert' }, 3)).toEqual(['expert 0', 'expert 1', 'expert 2']);
    expect(left({ name: 'layer', of: 'layer' }, 1)).toEqual(['layer 0']);
    expect(left({ name: 'kernel', of: 'name' }, 1)).toEqual(['0']);
    const many = left({ name: 'expert', of: 'expert' }, 128);
    expect(many.length).toBeGreaterThan(3);
    expect(many.length).toBeLessThan(64);
    const every = Number(many[1]?.split(' ')[1]);
    expect(many).toEqual(many.map((_, i) => `expert ${i * every}`));
  }); // prettier-ignore

  it('writes the names of cells into those with room', () => {
    const named = (count: number): readonly string[] => {
      const { key, keys, series } = table('layer', ...Array.from({ length: count }, () => [1, 0, null]));
      const cells = series.map((one) => ({ ...one, names: ['the', 'sea', 'none'] }));
      const { shapes } = sceneOf({ key, keys, series: cells }, 'heat', SIZE, measure);
      return shapes.flatMap((shape) => shape.is === 'text' && shape.tone.is === 'on-heat' ? [shape.text] : []);
    };
    expect(named(2)).toEqual(['the', 'the', 'sea', 'sea']);
    expect(named(40)).toEqual([]);
  }); // prettier-ignore
});

describe('the values in the cells of a heat map', () => {
  const texts = (of: ChartTable): readonly string[] =>
    sceneOf(of, 'heat', SIZE, measure).shapes.flatMap((shape) =>
      shape.is === 'text' && (shape.tone.is === 'on-heat' || shape.tone.is === 'on-difference')
        ? [shape.text]
        : [],
    );

  it('are those of all cells, or of none', () => {
    expect(texts(table('layer', [1, 0, null], [2048, 3, 4]))).toEqual(['1 B', '2 KiB', '3 B', '4 B']);
    expect(texts(table('layer', ...Array.from({ length: 12 }, () => [1, 2])))).toEqual([]);
    // The text of one value is wider than its cell.
    const wide = Array.from({ length: 7 }, (_, i) => [i === 3 ? 1023 * 1024 : 1]);
    expect(texts(table('layer', ...wide))).toEqual([]);
  });

  it.each([true, false])('can be read on every colour, on a light page: %s', (isLight) => {
    const own: ChartTheme = { ...theme, isLight, back: isLight ? '#ffffff' : '#12161d', series: isLight ? ['#1f6fd0', '#d9700a'] : ['#58a6ff', '#f0943c'] };
    const values = Array.from({ length: 41 }, (_, i) => i - 20);
    const signed = { ...table('layer', values), signed: true as const };
    for (const of of [table('layer', values.map((value) => value + 21)), signed]) {
      const svg = svgOf(sceneOf(of, 'heat', { width: 400, height: 1200 }, measure), own);
      const cells = [...svg.matchAll(/<rect x[^>]* fill="rgb\((\d+),(\d+),(\d+)\)"\/>\n<text[^>]* fill="(#\w+)"/g)];
      expect(cells.length).toBeGreaterThan(39);
      for (const [, r, g, b, text] of cells) {
        const back = luminance([Number(r), Number(g), Number(b)]);
        const front = text === '#000000' ? 0 : 1;
        expect((Math.max(back, front) + 0.05) / (Math.min(back, front) + 0.05)).toBeGreaterThan(4.5);
      }
    }
  });
}); // prettier-ignore

describe('points', () => {
  it('lie on logarithmic axes, under the line that limits them', () => {
    const points: ChartTable = {
      key: { name: 'op', of: 'name' },
      keys: ['a', 'b', 'none'],
      series: [
        { name: 'x', unit: 'ops/byte', values: [1, 10, null] },
        { name: 'y', unit: 'ops/s', values: [1e9, 1e10, null] },
      ],
      guides: [{ name: 'bandwidth', at: (x) => x * 4e9 }],
    };
    const scene = sceneOf(points, 'points', SIZE, measure);
    expect(scene.items.map(({ row }) => row)).toEqual([0, 1]);
    const line = scene.shapes.find((shape) => shape.is === 'path' && shape.dashed);
    const dots = scene.shapes.filter((shape) => shape.is === 'dot');
    for (const dot of dots) {
      const above = line?.is === 'path' && line.points.findLast(([x]) => x <= dot.x + 1);
      expect(above && above[1]).toBeLessThan(dot.y);
      expect(dot.x).toBeGreaterThan(scene.plot.x + 10);
      expect(dot.x).toBeLessThan(scene.plot.x + scene.plot.w - 10);
    }
    const texts = scene.shapes.flatMap((shape) => (shape.is === 'text' ? [shape.text] : []));
    expect(texts).toEqual(expect.arrayContaining(['x', 'y', 'a', 'b', 'bandwidth']));
  });
});

describe('a file', () => {
  it('as CSV has the exact numbers with their units', () => {
    const of = { ...table('name', [1024, null]), words: [{ name: 'cause', values: ['a, b', ''] }] };
    expect(csvOf(of)).toBe('key,series 0 (bytes),cause\nname 0,1024,"a, b"\nname 1,,\n');
  });

  it('as SVG has its title and the names of its colours, escaped', () => {
    const scene = sceneOf(table('name', [3, 1]), 'bar', SIZE, measure);
    const svg = svgOf(withHeading(scene, 'A < B', 'bytes', [{ name: 'a & b', colour: 1 }], measure), theme); // prettier-ignore
    expect(svg).toContain('>A &lt; B</text>');
    expect(svg).toContain('>a &amp; b</text>');
    expect(svg).toContain('fill="#222222"');
    expect(svg).not.toMatch(/NaN|undefined/);
  });
});
