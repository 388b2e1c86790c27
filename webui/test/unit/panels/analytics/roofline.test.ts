// The roofline draws what the server says: the lines of both rates, the bars up to the bound and above
// it, the order and the words. What the server decides is tested in tests/analysis and in the browser.
import { describe, expect, it } from 'vitest';
import { sceneOf } from '../../../../src/charts/scene';
import type { Roofline, RooflineRow } from '../../../../src/net/types';
import { chartOf } from '../../../../src/panels/analytics/pages/roofline';

const SIZE = { width: 600, height: 300 };
const measure = (text: string): number => 6 * text.length;

const row = (of: Partial<RooflineRow>): RooflineRow => ({
  name: 'ffn_up',
  op_kind: 'MUL_MAT',
  component: 'ffn',
  limit: 'overhead',
  text: 'overhead: the bound is 50.0 % of its time',
  above_bound_ns: 1000,
  step_ns: { p5: 1900, median: 2000, p95: 2100 },
  steps: 3,
  share: 0.8,
  bound_ns: 1000,
  read_bound_ns: 1000,
  compute_bound_ns: 100,
  executions: 2,
  bytes: 4000,
  memory_bytes: 4000,
  operations: 8000,
  operations_per_byte: 2,
  operations_per_second: 4e9,
  bytes_per_second: 2e9,
  ...of,
});
const body = (of: Partial<Roofline>): Roofline =>
  ({
    by: 'op',
    text: 'Bounds with 1 thread: …',
    read_bandwidth: 4e9,
    compute_peak: 6e9,
    threads: 1,
    near: 0.7,
    times: { text: 'Times: median of 3 generate steps.' },
    total: 2,
    rows: [
      row({}),
      row({ name: 'norm', op_kind: 'RMS_NORM', component: 'norm', above_bound_ns: null, bound_ns: null, memory_bytes: 0, operations_per_byte: null }),
    ],
    ...of,
  }) as Roofline; // prettier-ignore

describe('the roofline', () => {
  it('has a line for each known rate, the one of reading up to the other one', () => {
    const table = chartOf(body({}), 'points');
    expect(table.keys).toEqual(['ffn_up']); // the norm has no place
    const [read, compute] = table.guides ?? [];
    expect([read?.at(1), read?.at(1.5), read?.at(2)]).toEqual([4e9, 6e9, NaN]);
    expect([compute?.at(1), compute?.at(9)]).toEqual([6e9, 6e9]);
    const rows = [row({}), row({ name: 'kqv', operations_per_byte: 0.5 })];
    const { shapes } = sceneOf(chartOf(body({ rows }), 'points'), 'points', SIZE, measure);
    expect(shapes.filter((shape) => shape.is === 'path' && shape.dashed)).toHaveLength(2);
    for (const text of ['read bandwidth of this machine', 'compute peak of this machine'])
      expect(shapes).toContainEqual(expect.objectContaining({ is: 'text', text }));
    expect(chartOf(body({ read_bandwidth: null }), 'points').guides).toHaveLength(1);
    expect(chartOf(body({ compute_peak: null }), 'points').guides?.map(({ at }) => at(9))).toEqual([36e9]); // prettier-ignore
  });

  it('writes the name of a line where it covers neither an op nor another name', () => {
    const near = [0.3, 0.5, 0.7, 1, 1.4, 2].flatMap((part) => [0.7, 0.9, 1, 1.2, 1.4].map((x) => [x, part * x * 4e9] as const)); // prettier-ignore
    const rows = [[0.02, 1e8] as const, ...near].map(([x, y], n) => row({ name: `op ${n}`, operations_per_byte: x, operations_per_second: y })); // prettier-ignore
    const table = chartOf(body({ rows }), 'points');
    const { shapes } = sceneOf(table, 'points', { width: 900, height: 300 }, measure);
    const dots = shapes.filter((shape) => shape.is === 'dot');
    expect(dots).toHaveLength(rows.length);
    const boxes = (table.guides ?? []).map(({ name }) => {
      const text = shapes.find((shape) => shape.is === 'text' && shape.text === name);
      const [x, y] = text?.is === 'text' ? [text.x, text.y] : [NaN, NaN];
      return { left: x, right: x + measure(name), top: y - 7, bottom: y + 7 };
    });
    const [read, compute] = boxes;
    if (!read || !compute) throw new Error('no names');
    for (const { left, right, top, bottom } of boxes)
      for (const { x, y } of dots)
        expect(x + 4 < left || x - 4 > right || y + 4 < top || y - 4 > bottom).toBe(true);
    expect(read.right < compute.left || compute.right < read.left || read.bottom < compute.top || compute.bottom < read.top).toBe(true); // prettier-ignore
  });

  it('divides the time at the bound, and says what the server says of each op', () => {
    const table = chartOf(body({}), 'time');
    expect(table.series.map(({ name, values }) => [name, values])).toEqual([
      ['time of the bound', [1000, null]],
      ['above the bound', [1000, null]],
      ['no bound is known', [null, 2000]],
    ]);
    expect(table.notes?.[0]).toBe('2 µs, overhead: the bound is 50.0 % of its time');
    expect(table.basis).toBe('Times: median of 3 generate steps. Bounds with 1 thread: …');
    const unknown = body({ rows: [row({ above_bound_ns: null })] });
    expect(chartOf(unknown, 'time').series.map(({ name }) => name)).toEqual(['time of a step']);
  });

  it('marks the read bandwidth among the rates, if it is known', () => {
    expect(chartOf(body({}), 'rate').marks).toEqual([{ name: 'read bandwidth', value: 4e9 }]);
    expect(chartOf(body({ read_bandwidth: null }), 'rate').marks).toBeUndefined();
  });
});
