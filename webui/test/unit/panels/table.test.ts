import { describe, expect, it, vi } from 'vitest';
import { rowsText } from '../../../src/grid/copy';
import { PagedRows } from '../../../src/grid/rows';
import type { Sort } from '../../../src/grid/column';
import { accessPlan, accessSql, countSql, loadAccesses, opRows, startsOf, stepsOfRows } from '../../../src/panels/table/access_rows'; // prettier-ignore
import { groupColumns, stepColumns } from '../../../src/panels/table/columns';
import type { BreakdownRow } from '../../../src/net/types';
import { sortedByText } from '../../../src/state/view/total_titles';
import { tokenSql, tokenTotals } from '../../../src/panels/table/token_totals';
import {
  chosenColumns,
  decodeTable,
  defaultTable,
  encodeTable,
  movedColumn,
} from '../../../src/panels/table/table_options';
import { ok } from '../../../src/result';
import { parseFilter } from '../../../src/state/view/filter';
import { TraceData } from '../../../src/state/session/trace_data';
import { randomOf, step } from '../make';

const ALL = { phase: 'all', range: null } as const;

describe('the columns of totals', () => {
  const sums = { bytes_read: 40, bytes_written: 0, reads: 1, writes: 0, executions: 1, time_ns: 900, faults: 0, bytes_per_second: 44 }; // prettier-ignore
  const row: BreakdownRow = { name: 'MUL_MAT', all: sums, prompt: sums, generate: sums, step_ns: { p5: 1, median: 30, p95: 400, steps: 9, per_token: 30, share: 0.1234, bytes_per_second: 77 } }; // prettier-ignore
  const shown = (steps: boolean) => {
    const columns = groupColumns('op_kind', { ...sums, time_ns: 1000 }, steps);
    return Object.fromEntries(columns.map((one) => [one.title, one.text(row)]));
  };
  it('have the share and the rate of the time in a step, as the summary', () => {
    expect(shown(true)).toMatchObject({ 'step: median': '30 ns', 'of the step': '12.3 %', rate: '77 B/s', 'sum of time': '900 ns' }); // prettier-ignore
    expect(shown(false)).toMatchObject({ time: '900 ns', 'of time': '90.0 %', rate: '44 B/s' });
  });
  it('are named as the message says that they are sorted', () => {
    const titles = groupColumns('op_kind', sums, true).map(({ key, title }) => [key, title]);
    for (const [key = '', title] of titles.filter(
      ([key]) => !['name', 'p5', 'p95'].includes(key ?? ''),
    ))
      expect(sortedByText(`-${key}`)).toBe(`sorted by “${title ?? ''}”`);
    expect(sortedByText('-duration_ns')).toBe('');
  });
});

describe('the options of the table', () => {
  it.each([
    ['', defaultTable],
    ['rows:accesses,all', { rows: 'accesses', all: true, chosen: false, by: null, columns: null }],
    ['by:layer', { rows: 'ops', all: false, chosen: false, by: 'layer', columns: null }],
    ['rows:steps,cols:step.phase', { rows: 'steps', all: false, chosen: false, by: null, columns: ['step', 'phase'] }], // prettier-ignore
  ])('“%s” is read and written', (text, options) => {
    expect(decodeTable(text)).toEqual(options);
    expect(encodeTable(decodeTable(text))).toBe(text);
  });
  it('are never invalid', () => {
    expect(decodeTable('rows:x,by:nothing,cols:,,:')).toEqual(defaultTable);
  });
  it('choose and move columns', () => {
    const all = [{ key: 'a' }, { key: 'b', hidden: true as const }, { key: 'c' }];
    const keys = (chosen: readonly string[] | null) =>
      chosenColumns(all, chosen).map(({ key }) => key);
    expect(keys(null)).toEqual(['a', 'c']);
    expect(keys(['c', 'x', 'b', 'c'])).toEqual(['c', 'b']);
    expect(keys(['x'])).toEqual(['a', 'c']);
    expect(movedColumn(['a', 'b', 'c'], 'c', 'a')).toEqual(['c', 'a', 'b']);
    expect(movedColumn(['a', 'b', 'c'], 'a', null)).toEqual(['b', 'c', 'a']);
  });
});

describe('the columns of steps', () => {
  const columns = stepColumns(new TraceData());
  const column = (key: string) => columns.find((one) => one.key === key);

  it('say what the machine did, and mark disturbed steps', () => {
    const quiet = step(1, { verdict: 'clean', cpu_wait_ns: 0 });
    const busy = step(2, { verdict: 'contended', cpu_wait_ns: 1_500_000 });
    const rows = [quiet, busy, step(3)];
    expect(rows.map((row) => column('verdict')?.text(row))).toEqual(['clean', 'contended', '–']);
    expect(rows.map((row) => column('verdict')?.tone?.(row))).toEqual(['', 'disturbed', '']);
    expect(rows.map((row) => column('cpu_wait_ns')?.text(row))).toEqual(['0 ns', '1.50 ms', '–']);
    expect(rows.map((row) => column('cpu_wait_ns')?.exact?.(row))).toEqual([
      '0 ns',
      '1\u202f500\u202f000 ns',
      'not recorded',
    ]);
  });
});

describe('copied rows', () => {
  const rows = [
    ['a"b', 1, null],
    ['x,\ty\n', 2.5, true],
  ];
  it.each([
    ['TSV', 'n\tv\tw\na"b\t1\t\nx, y \t2.5\ttrue\n'],
    ['CSV', 'n,v,w\n"a""b",1,\n"x,\ty\n",2.5,true\n'],
  ] as const)('as %s', (format, text) => {
    expect(rowsText(format, ['n', 'v', 'w'], rows)).toBe(text);
  });
  it('as JSON', () => {
    expect(JSON.parse(rowsText('JSON', ['n', 'v', 'w'], rows))).toEqual([
      { n: 'a"b', v: 1, w: null },
      { n: 'x,\ty\n', v: 2.5, w: true },
    ]);
  });
});

function session(): TraceData {
  const data = new TraceData();
  data.addStep(step(0, { phase: 'prompt', accesses: 10, token_id: 0, token_count: 5 }));
  for (let i = 1; i < 6; i += 1) data.addStep(step(i, { accesses: 6 + i, token_id: 4 + i }));
  return data;
}

describe('the accesses of a session', () => {
  it('are counted from the steps', () => {
    const plan = accessPlan(session(), { phase: 'generate', range: null }, [], null);
    expect(plan).toMatchObject({ steps: [1, 2, 3, 4, 5], counts: [7, 8, 9, 10, 11], where: [] });
    expect(accessPlan(session(), ALL, [], 3)).toMatchObject({ steps: [3], counts: [9] });
  });
  it('of a filter are counted by the server', () => {
    const plan = accessPlan(session(), ALL, parseFilter('layer:3 step:2-4 -step:3'), null);
    expect(plan.counts).toBeNull();
    expect(countSql(plan)).toBe(
      'SELECT step, count(*) FROM access WHERE step BETWEEN 2 AND 4 AND (step = 2 OR step = 4) AND op_layer_id = 3 GROUP BY step',
    );
  });
  it('are those of the brushed range', () => {
    const range = {
      x: { axis: 'token', from: 6, to: 8 },
      y: { axis: 'layer', from: 1, to: 3 },
    };
    // The model has two layers: the last row is what is outside of them.
    const plan = accessPlan(session(), { phase: 'all', range }, [], null);
    expect(plan).toMatchObject({
      steps: [2, 3],
      where: ['(op_layer_id BETWEEN 1 AND 2 OR op_layer_id IS NULL)'],
    });
    const other = { x: null, y: { axis: 'op_kind', from: 1, to: 3 } };
    expect(accessPlan(session(), { phase: 'all', range: other }, [], null).missing).toEqual([
      'range of op kind',
    ]);
  });
  it('are sorted by SQL', () => {
    const sort: Sort = { key: 'size_bytes', descending: true };
    expect(accessSql({ steps: [4], where: [] }, ['op'], sort)).toBe(
      'SELECT op FROM access WHERE step = 4 ORDER BY size_bytes DESC, step, op, access',
    );
  });

  it('are found by row, as in a list of all', () => {
    const random = randomOf(7);
    const counts = Array.from({ length: 40 }, () => Math.floor(random() * 5));
    const list = counts.flatMap((count, s) => Array.from({ length: count }, (_, i) => [s, i]));
    const starts = startsOf(counts);
    expect(starts.at(-1)).toBe(list.length);
    for (let row = 0; row < list.length; row += 1) {
      const { first, last, offset } = stepsOfRows(starts, row, row + 1);
      expect([first, offset]).toEqual(list[row]);
      expect(last).toBe(first);
    }
  });

  it('are read by page from the steps that have them', async () => {
    const asked: string[] = [];
    const api = {
      query: (_id: string, sql: string) => {
        asked.push(sql);
        return Promise.resolve(ok({ columns: ['step', 'op'], rows: [[1, 5]], more: false }));
      },
    };
    const plan = accessPlan(session(), ALL, [], null);
    const range = { from: 16, limit: 4, signal: new AbortController().signal };
    const starts = startsOf(plan.counts ?? []);
    const rows = await loadAccesses(api, 'id', plan, starts, ['size_bytes'], range);
    expect(rows).toEqual(ok([{ step: 1, op: 5 }]));
    expect(asked).toEqual([
      'SELECT step, op, access, part, size_bytes FROM access WHERE step BETWEEN 1 AND 2 ORDER BY step, op, access LIMIT 4 OFFSET 6',
    ]);
  });
});

describe('paged rows', () => {
  it('are asked for only in view, and superseded requests are aborted', async () => {
    vi.useFakeTimers();
    const asked: number[] = [];
    const aborted: number[] = [];
    const rows = new PagedRows<number>(100_000_000, (from, limit, signal) => {
      asked.push(from);
      signal.addEventListener('abort', () => aborted.push(from));
      return new Promise((done) => {
        setTimeout(() => {
          done(ok(Array.from({ length: limit }, (_, i) => from + i)));
        }, 100);
      });
    });
    rows.need(0, 30);
    await vi.advanceTimersByTimeAsync(200);
    expect(rows.at(29)).toBe(29);
    rows.need(50_000_000, 50_000_030);
    await vi.advanceTimersByTimeAsync(50);
    expect(rows.at(50_000_000)).toBeUndefined();
    rows.need(99_999_970, 100_000_000);
    await vi.advanceTimersByTimeAsync(200);
    expect(rows.at(99_999_999)).toBe(99_999_999);
    expect(asked).toEqual([0, 50_000_000, 99_999_800]);
    expect(aborted).toEqual([50_000_000]);
    vi.useRealTimers();
  });
});

it('the first row of an op follows from the accesses of the ops before it', () => {
  expect([...opRows([[0, 2], [3, 1], [7, 4]])]).toEqual([[0, 0], [3, 2], [7, 3]]); // prettier-ignore
});

describe('totals by token', () => {
  const data = new TraceData();
  data.addStep(
    step(0, { token_id: 0, token_count: 3, phase: 'prompt', accesses: 9, bytes_read: 90 }),
  );
  data.addStep(step(1, { token_id: 3, token_count: 1, accesses: 4, bytes_read: 40 }));
  data.addStep(step(2, { token_id: 4, token_count: 1, accesses: 5, bytes_read: 50 }));
  const signal = new AbortController().signal;
  // `chosen`: step and token of the router's choices.
  const totals = async (
    filter: string,
    rows: readonly (readonly number[])[],
    chosen: readonly (readonly number[])[] = [],
  ) => {
    const query = vi.fn((_: string, sql: string) =>
      Promise.resolve(ok({ columns: [], rows: sql.includes(' FROM expert ') ? chosen : rows })),
    );
    const terms = parseFilter(filter);
    const plan = accessPlan(data, ALL, terms, null);
    const view = { terms, range: null };
    const found = await tokenTotals({ query } as never, 's', data, plan, view, signal);
    return { query, plan, rows: found.ok ? found.value : null };
  };
  it('of whole steps are known without a query', async () => {
    const { query, rows } = await totals('-phase:prompt', []);
    expect(query).not.toHaveBeenCalled();
    expect(rows?.map((row) => [row.step, row.token_id, row.accesses, row.bytes_read])).toEqual([
      [1, 3, 4, 40],
      [2, 4, 5, 50],
    ]);
  });
  it('apply the whole filter', async () => {
    const { query, plan, rows } = await totals('layer:2 expert:3', [
      [0, 6, 60, 0, 700],
      [2, 3, 30, 0, 500],
    ]);
    expect(query).toHaveBeenCalledWith('s', tokenSql(plan, true), expect.any(Number), signal);
    expect(tokenSql(plan, true)).toContain(
      'WHERE step BETWEEN 0 AND 2 AND op_layer_id = 2 AND expert_id = 3 GROUP BY step, op',
    );
    expect(rows?.map((row) => [row.token_id, row.token_count, row.accesses, row.time])).toEqual([
      [0, 3, 6, 700],
      [4, 1, 3, 500],
    ]);
    // Choices without tokens: the whole steps.
    expect(rows?.map(({ routed }) => routed)).toEqual([null, null]);
  });
  it('of an expert are those of the tokens that used it', async () => {
    const sums = [[0, 6, 60, 0, 700], [1, 3, 30, 0, 100], [2, 3, 30, 0, 500]]; // prettier-ignore
    const chosen = [[0, 0], [0, 2], [2, 4]]; // prettier-ignore
    const { query, rows } = await totals('layer:2 expert:3', sums, chosen);
    expect(rows?.map(({ step, routed }) => [step, routed])).toEqual([[0, [0, 2]], [2, [4]]]); // prettier-ignore
    const asked = query.mock.calls.map(([, sql]) => sql);
    expect(asked.some((sql) => sql.includes('sum(self_ns)'))).toBe(true);
    expect(asked.find((sql) => sql.includes('FROM expert'))).toContain(
      'token_id IS NOT NULL AND layer_id = 2 AND expert_id = 3',
    );
    // Of other parts, an op counts as a whole.
    const { query: all } = await totals('layer:2', sums, chosen);
    expect(all.mock.calls.map(([, sql]) => sql).join()).toMatch(/max\(duration_ns\)/);
    expect(all).toHaveBeenCalledTimes(1);
  });
});
