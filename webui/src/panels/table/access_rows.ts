// The accesses of one step, or of all steps of the session: up to hundreds of millions. They are not
// stored anywhere; the server derives the rows that are in view (SQL table `access`). The steps have
// known numbers of accesses, so row N of the session is row N - M of a step.
import type { Api, ApiResult } from '../../net/api';
import type { QueryRows } from '../../net/types';
import { ok } from '../../result';
import { isStepTerm, sqlFilter, stepMatches, type Term } from '../../state/view/filter';
import { isInPhase } from '../../state/session/open_session';
import { isInRange } from '../../state/view/step_range';
import type { TraceData } from '../../state/session/trace_data';
import type { RangeFilter, View } from '../../state/view/view';
import type { Sort } from '../../grid/column';

// A row of the SQL table access: the chosen columns, and those that identify it.
export type AccessRow = Readonly<Record<string, string | number | null>>;

// A sorted list of a session is computed from the start for each page, so it is read at once.
export const MAX_SORTED = 10_000;
const KEYS = ['step', 'op', 'access', 'part'];

export interface AccessPlan {
  readonly steps: readonly number[]; // ascending
  readonly counts: readonly number[] | null; // accesses by step; null: the server has to count
  readonly where: readonly string[]; // besides the steps
  readonly missing: readonly string[]; // what this table cannot honour
}

// Which accesses the view selects. `step`: only of this step. `of`: a further condition.
export function accessPlan(
  data: TraceData,
  view: Pick<View, 'phase' | 'range'>,
  terms: readonly Term[],
  step: number | null,
  of: readonly string[] = [],
): AccessPlan {
  const ofStep = terms.filter(isStepTerm);
  const { where, missing } = sqlFilter(
    'access',
    terms.filter((term) => !isStepTerm(term)),
  );
  const range = rangeSql(view.range, data.rows() - 1);
  const steps: number[] = [];
  const counts: number[] = [];
  for (const one of step === null ? data.steps : [data.steps[step]]) {
    if (!one) continue;
    if (step === null && !isInPhase(one, view.phase)) continue;
    if (!isInRange(one, view.range)) continue;
    if (!ofStep.every((term) => stepMatches(one, term))) continue;
    steps.push(one.step);
    counts.push(one.accesses);
  }
  const all = [...of, ...where, ...range.where];
  return {
    steps,
    counts: all.length === 0 ? counts : null,
    where: all,
    missing: [...missing.map(({ text }) => text), ...range.missing],
  };
}

// The parts of a brushed range that are conditions on single accesses. The axis of layers has a last
// row for the ops without one.
export function rangeSql(
  range: RangeFilter | null,
  layers: number,
): { where: string[]; missing: string[] } {
  const where: string[] = [];
  const missing: string[] = [];
  for (const part of [range?.x, range?.y]) {
    if (!part || part.axis === 'step' || part.axis === 'token') continue;
    const { axis, from, to } = part;
    const last = Math.ceil(to) - 1;
    if (axis === 'layer') {
      const ofLayers = `op_layer_id BETWEEN ${from} AND ${last}`;
      where.push(layers >= 0 && to > layers ? `(${ofLayers} OR op_layer_id IS NULL)` : ofLayers);
    } else if (axis === 'file')
      where.push(`file_offset < ${to} AND file_offset + file_bytes > ${from}`);
    else if (axis === 'time')
      where.push(`timestamp_ns < ${to} AND timestamp_ns + coalesce(duration_ns, 0) >= ${from}`);
    else missing.push(`range of ${axis.replace('_', ' ')}`);
  }
  return { where, missing };
}

// ---- Statements -----------------------------------------------------------------------

// The whole range is a condition of its own, because the server skips the steps outside it.
export const conditions = (steps: readonly number[], where: readonly string[]): string => {
  const between = (from: number, to: number): string =>
    from === to ? `step = ${from}` : `step BETWEEN ${from} AND ${to}`;
  const ranges: { from: number; to: number }[] = [];
  for (const step of steps) {
    const last = ranges.at(-1);
    if (last?.to === step - 1) last.to = step;
    else ranges.push({ from: step, to: step });
  }
  const whole = between(steps[0] ?? 0, steps.at(-1) ?? 0);
  const parts = ranges.map(({ from, to }) => between(from, to));
  return [whole, ...(parts.length > 1 ? [`(${parts.join(' OR ')})`] : []), ...where].join(' AND ');
};

const order = (sort: Sort | null): string =>
  sort ? `${sort.key}${sort.descending ? ' DESC' : ''}, step, op, access` : 'step, op, access';

export const countSql = ({ steps, where }: AccessPlan): string =>
  `SELECT step, count(*) FROM access WHERE ${conditions(steps, where)} GROUP BY step`;

// The accesses of each op of one step, in execution order.
export const opCountSql = ({ steps, where }: AccessPlan): string =>
  `SELECT op, count(*) FROM access WHERE ${conditions(steps, where)} GROUP BY op ORDER BY op`;

// The first row of each op in the list of the accesses of a step.
export function opRows(counts: QueryRows['rows']): ReadonlyMap<number, number> {
  const rows = new Map<number, number>();
  let at = 0;
  for (const [op, count] of counts) {
    rows.set(Number(op), at);
    at += Number(count);
  }
  return rows;
}

export const accessSql = (
  { steps, where }: Pick<AccessPlan, 'steps' | 'where'>,
  columns: readonly string[],
  sort: Sort | null,
  page = '',
): string =>
  `SELECT ${columns.join(', ')} FROM access WHERE ${conditions(steps, where)} ORDER BY ${order(sort)}${page}`;

// ---- Rows -----------------------------------------------------------------------------

// Where each step starts in the list of all accesses; the last entry is their number.
export function startsOf(counts: readonly number[]): Float64Array {
  const starts = new Float64Array(counts.length + 1);
  counts.forEach((count, i) => {
    starts[i + 1] = (starts[i] ?? 0) + count;
  });
  return starts;
}

// The steps of the rows [from, to), and the row of their first step.
export function stepsOfRows(
  starts: Float64Array,
  from: number,
  to: number,
): { readonly first: number; readonly last: number; readonly offset: number } {
  const at = (row: number): number => {
    let [low, high] = [0, starts.length - 1];
    while (low < high - 1) {
      const middle = (low + high) >>> 1;
      if ((starts[middle] ?? 0) <= row) low = middle;
      else high = middle;
    }
    return low;
  };
  const first = at(from);
  return { first, last: at(Math.max(from, to - 1)), offset: from - (starts[first] ?? 0) };
}

const columnsWithKeys = (columns: readonly string[]): readonly string[] => [
  ...new Set([...KEYS, ...columns]),
];

export function rowsOf({ columns, rows }: QueryRows): readonly AccessRow[] {
  return rows.map((row) => Object.fromEntries(columns.map((name, i) => [name, row[i] ?? null])));
}

type Query = Pick<Api, 'query'>;

export async function loadAccesses(
  api: Query,
  session: string,
  plan: AccessPlan,
  starts: Float64Array,
  columns: readonly string[],
  range: { readonly from: number; readonly limit: number; readonly signal: AbortSignal },
): ApiResult<readonly AccessRow[]> {
  const { from, limit, signal } = range;
  const { first, last, offset } = stepsOfRows(starts, from, from + limit);
  const some = { steps: plan.steps.slice(first, last + 1), where: plan.where };
  const page = ` LIMIT ${limit} OFFSET ${offset}`;
  const sql = accessSql(some, columnsWithKeys(columns), null, page);
  const answer = await api.query(session, sql, limit, signal);
  return answer.ok ? ok(rowsOf(answer.value)) : answer;
}

export async function loadSorted(
  api: Query,
  session: string,
  plan: AccessPlan,
  columns: readonly string[],
  sort: Sort,
  signal: AbortSignal,
): ApiResult<readonly AccessRow[]> {
  const sql = accessSql(plan, columnsWithKeys(columns), sort, ` LIMIT ${MAX_SORTED}`);
  const answer = await api.query(session, sql, MAX_SORTED, signal);
  return answer.ok ? ok(rowsOf(answer.value)) : answer;
}
