// The roofline of a session whose machine's read bandwidth was measured: the line, the bound of each op
// and its verdict. The statement itself is tested in the browser.
import { describe, expect, it } from 'vitest';
import { sceneOf } from '../../../../src/charts/scene';
import type { ChartTable } from '../../../../src/charts/table';
import type { QueryRows } from '../../../../src/net/types';
import { ROOFLINE, verdictOf } from '../../../../src/panels/analytics/pages/roofline';
import { scopeOf } from '../../../../src/panels/analytics/spec';
import { ok } from '../../../../src/result';
import type { OpenSession } from '../../../../src/state/session/open_session';
import { emptyView } from '../../../../src/state/view/view';

const COLUMNS = ['tensor_name', 'name', 'operation_type', 'component', 'operations_per_byte'];

// 2000 bytes of each layer in 1000 ns, and 100 bytes in 500 ns: 2 GB/s and 0.2 GB/s.
const OPS: QueryRows = {
  columns: COLUMNS,
  rows: [
    ['ffn_up-0', 'ffn_up', 'MUL_MAT', 'ffn', 2],
    ['ffn_up-1', 'ffn_up', 'MUL_MAT', 'ffn', 2],
    ['norm-0', 'norm', 'RMS_NORM', 'norm', null],
  ],
  more: false,
};
const step = (median: number, rate: number) => ({ median, p5: median, p95: median, steps: 3, per_token: median, share: 0.1, bytes_per_second: rate }); // prettier-ignore
const TIMES = { phase: 'generate', text: 'Times: median of 3 generate steps. Verdict: clean.' };
const BY: Readonly<Record<string, readonly object[]>> = {
  op: [
    { name: 'ffn_up-0', step_ns: step(1000, 2e9) },
    { name: 'ffn_up-1', step_ns: step(1000, 2e9) },
    { name: 'norm-0', step_ns: step(500, 2e8) },
    { name: 'only-learned' },
  ],
  op_kind: [
    { name: 'MUL_MAT', step_ns: step(2000, 2e9) },
    { name: 'RMS_NORM', step_ns: step(500, 2e8) },
  ],
};

async function tables(bandwidth: number | null): Promise<Readonly<Record<string, ChartTable>>> {
  const figures = bandwidth === null ? [] : [{ name: 'read_bandwidth', value: bandwidth, unit: 'bytes/s' }, { name: 'near_bandwidth', value: 0.7, unit: 'share' }]; // prettier-ignore
  const asked: string[] = [];
  const session = {
    id: 's',
    data: { stepTotals: { steps: 3 } },
    active: { peek: () => false },
    context: {
      api: {
        query: (_id: string, sql: string) => {
          asked.push(sql);
          return Promise.resolve(ok(OPS));
        },
        analysis: (_id: string, _path: string, _check: unknown, { by, step_times }: { by: string; step_times: boolean }) =>
          Promise.resolve(ok({ rows: step_times ? BY[by] : [], times: TIMES })),
        findings: () => Promise.resolve(ok({ findings: [{ figures }] })),
      },
    },
  } as unknown as OpenSession; // prettier-ignore
  const scope = scopeOf(emptyView, 6, 0);
  const entries = ROOFLINE.map(async ({ id, request }): Promise<[string, ChartTable]> => {
    const table = await request(scope).load(session);
    if (!table.ok) throw new Error(id);
    return [id, table.value];
  });
  const all = Object.fromEntries(await Promise.all(entries));
  // The phase of the times, although the view shows all.
  expect(asked.every((sql) => sql.includes("phase = 'generate'"))).toBe(true);
  return all;
}

describe('the roofline', () => {
  it('has the line of the measured bandwidth, and only ops with counted operations', async () => {
    const { roofline } = await tables(4e9);
    expect(roofline?.keys).toEqual(['ffn_up']);
    expect(roofline?.guide?.at(2)).toBe(8e9);
    const scene = roofline && sceneOf(roofline, 'points', { width: 600, height: 300 }, (text) => 6 * text.length); // prettier-ignore
    expect(scene?.shapes.some((shape) => shape.is === 'path' && shape.dashed)).toBe(true);
    expect(scene?.shapes).toContainEqual(expect.objectContaining({ is: 'text', text: 'read bandwidth of this machine' })); // prettier-ignore
    // Its name covers no op where the plot has room: here ops are around the right end of the line.
    if (!roofline) throw new Error('no roofline');
    const near = [0.3, 0.5, 0.7, 1, 1.4, 2].flatMap((part) => [1, 1.2, 1.4, 1.6, 1.8].map((x) => [x, part * x * 4e9] as const)); // prettier-ignore
    const ops = [[0.02, 1e8] as const, ...near];
    const series = roofline.series.map((one, n) => ({ ...one, values: ops.map((op) => op[n] ?? 0) })); // prettier-ignore
    const table = { ...roofline, keys: ops.map((_, n) => `op ${n}`), series };
    const { shapes } = sceneOf(table, 'points', { width: 900, height: 300 }, (text) => 6 * text.length); // prettier-ignore
    const name = shapes.find((shape) => shape.is === 'text' && shape.text === roofline.guide?.name);
    const dots = shapes.filter((shape) => shape.is === 'dot');
    expect(dots).toHaveLength(ops.length);
    for (const { x, y } of dots) {
      const w = 6 * (roofline.guide?.name.length ?? 0);
      const [left, top] = name?.is === 'text' ? [name.align === 'end' ? name.x - w : name.x, name.y] : [NaN, NaN]; // prettier-ignore
      expect(x + 4 < left || x - 4 > left + w || y + 4 < top - 7 || y - 4 > top + 7).toBe(true);
    }
  });

  it('has the medians of a step with their bound, the most time first, and a verdict of each', async () => {
    const { above_bound: ops, above_bound_kind: kinds, op_rate: rate } = await tables(4e9);
    for (const table of [ops, kinds, rate]) expect(table?.basis).toBe(TIMES.text);
    expect(kinds?.keys).toEqual(['MUL_MAT', 'RMS_NORM']);
    expect(ops?.keys).toEqual(['ffn_up', 'norm']);
    // 4000 and 100 bytes at 4 bytes per ns.
    for (const table of [ops, kinds]) {
      expect(table?.series.map(({ values }) => values)).toEqual([[1000, 25], [1000, 475]]);
      expect(table?.notes?.[0]).toBe('2 µs, not memory-bound, 50 % of the bound');
    }
    expect(rate?.series[0]?.values).toEqual([2e9, 2e8]);
    expect(rate?.marks).toEqual([{ name: 'read bandwidth', value: 4e9 }]);
  }); // prettier-ignore

  it('calls memory-bound what the threshold of the server says', () => {
    const bound = { bandwidth: 1e9, near: 0.7, fromCache: false };
    expect(verdictOf(0.7e9, bound)).toBe('memory-bound, 70 % of the bound');
    expect(verdictOf(0.69e9, bound)).toBe('not memory-bound, 69 % of the bound');
    expect(verdictOf(1.2e9, bound)).toBe('120 % of the bound, from caches');
    expect(verdictOf(0.7e9, { ...bound, bandwidth: null })).toBe('');
  });

  it('without a measurement has neither line nor bound', async () => {
    const { roofline, above_bound: above, op_rate: rate } = await tables(null);
    expect(roofline?.guide).toBeUndefined();
    expect(above?.series.map(({ values }) => values)).toEqual([[2000, 500]]);
    expect(rate?.marks).toBeUndefined();
    expect(roofline?.part).toContain('no bound');
  });
});
