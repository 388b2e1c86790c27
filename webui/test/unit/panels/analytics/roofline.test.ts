// The roofline of a session whose machine's read bandwidth was measured: the line, and which op is
// farthest above its bound. The statement itself is tested in the browser.
import { describe, expect, it } from 'vitest';
import { sceneOf } from '../../../../src/charts/scene';
import type { ChartTable } from '../../../../src/charts/table';
import type { QueryRows } from '../../../../src/net/types';
import { ROOFLINE } from '../../../../src/panels/analytics/pages/roofline';
import { scopeOf } from '../../../../src/panels/analytics/spec';
import { ok } from '../../../../src/result';
import type { OpenSession } from '../../../../src/state/session/open_session';
import { emptyView } from '../../../../src/state/view/view';

const COLUMNS = [
  'name', 'operation_type', 'component', 'executions', 'time_ns', 'bytes', 'operations', 'bytes_per_s',
  'operations_per_byte', 'operations_per_s', 'bandwidth', 'share_of_bandwidth', 'above_ns',
]; // prettier-ignore

const rowsWith = (bandwidth: number | null): QueryRows => ({
  columns: COLUMNS,
  rows: [
    ['ffn_up', 'MUL_MAT', 'ffn', 10, 2000, 4000, 8000, 2e9, 2, 4e9, bandwidth, bandwidth && 0.5, bandwidth && 1000],
    ['norm', 'RMS_NORM', 'norm', 10, 500, 100, null, 2e8, null, null, bandwidth, bandwidth && 0.05, bandwidth && 475],
  ],
  more: false,
}); // prettier-ignore

async function tables(bandwidth: number | null): Promise<Readonly<Record<string, ChartTable>>> {
  const session = {
    id: 's',
    data: { stepTotals: { steps: 3 } },
    context: { api: { query: () => Promise.resolve(ok(rowsWith(bandwidth))) } },
  } as unknown as OpenSession;
  const scope = scopeOf(emptyView, 6, 0);
  const entries = ROOFLINE.map(async ({ id, request }): Promise<[string, ChartTable]> => {
    const table = await request(scope).load(session);
    if (!table.ok) throw new Error(id);
    return [id, table.value];
  });
  return Object.fromEntries(await Promise.all(entries));
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

  it('ranks the ops by their time above the bound, in the order of the statement', async () => {
    const { above_bound: above, op_rate: rate } = await tables(4e9);
    expect(above?.keys).toEqual(['ffn_up', 'norm']);
    expect(above?.series[0]?.values).toEqual([1000, 475]);
    expect(rate?.marks).toEqual([{ name: 'read bandwidth', value: 4e9 }]);
  });

  it('without a measurement has neither line nor bound', async () => {
    const { roofline, above_bound: above, op_rate: rate } = await tables(null);
    expect(roofline?.guide).toBeUndefined();
    expect(above?.series[0]?.values).toEqual([null, null]);
    expect(rate?.marks).toBeUndefined();
    expect(roofline?.part).toContain('no line');
  });
});
