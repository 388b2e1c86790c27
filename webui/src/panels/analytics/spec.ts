// What a chart is, declared: the pages are lists of these. A chart asks one thing, a route or an SQL
// statement, and says what it counts and over what. It computes no figure that the server has.
import type { Kind } from '../../charts/scene';
import type { ChartTable } from '../../charts/table';
import type { ApiResult } from '../../net/api';
import type { Check } from '../../net/check';
import type { QueryRows } from '../../net/types';
import { ok } from '../../result';
import { askRoute, askRows, requestText, type RouteQuery } from './ask';
import { parseFilter, sqlFilter } from '../../state/view/filter';
import type { OpenSession } from '../../state/session/open_session';
import type { Capture } from '../../state/request/request';
import { filteredSums } from '../../state/view/range_query';
import type { SumQuery } from '../../state/view/sum_query';
import type { AxisRange, View } from '../../state/view/view';
import type { PageId } from './page_list';

// What the view selects, in the forms that routes and statements take.
export interface Scope {
  readonly query: SumQuery; // phase, range and filter
  readonly phase: 'prompt' | 'generate' | null; // null: all
  readonly layer: number; // the shown layer
  readonly step: number | null; // the shown step
  readonly head: number; // the selected head of the shown layer
  readonly view: Pick<View, 'phase' | 'range' | 'filter'>;
  readonly layers: number;
  readonly grouped: 'component' | 'op_kind' | 'op'; // what is inside the filtered part
}

// What of the view a chart honours.
// own: it says itself what it is of, as a statement that the visitor wrote.
export type Honours = 'everything' | 'phase' | 'nothing' | 'own' | SqlTable;
type SqlTable = 'op' | 'step';

export interface ChartRequest {
  readonly text: string; // what is asked, as one would write it
  readonly sql: string | null;
  readonly load: (session: OpenSession) => ApiResult<ChartTable>;
  readonly asks?: (session: OpenSession) => readonly Promise<unknown>[]; // all that load() may ask
}

export interface ChartSpec {
  readonly id: string; // in links: a-z, 0-9, _
  readonly page: PageId;
  readonly title: string;
  readonly counts: string; // what is counted, and over what
  readonly kinds: readonly Kind[]; // the first one is the default
  readonly request: (scope: Scope) => ChartRequest;
  readonly honours: Honours;
  readonly table?: true; // is first shown as a table
  readonly wide?: true; // takes a whole row
  readonly half?: true; // takes half a row
  readonly choose?: true; // one series at a time is drawn
  readonly height?: number;
  readonly drill?: true; // a click goes into the part: component, op type, op
  readonly only?: Capture; // only in sessions that captured this
  readonly fact?: string; // only in sessions that have this fact
  readonly captures?: Capture; // what a run has to capture for it
  readonly empty: string; // what it says without data
}

// ---- Requests -------------------------------------------------------------------------

// A chart of several answers, one of which is named where the request can be copied. `asks`: all that
// it may ask, for a file, which has to hold them before an answer says which ones are needed.
export const routes = (
  path: string,
  query: RouteQuery,
  load: (session: OpenSession) => ApiResult<ChartTable>,
  asks: (session: OpenSession) => readonly Promise<unknown>[],
): ChartRequest => ({ text: requestText(path, query), sql: null, load, asks });

export function route<T>(
  path: string,
  query: RouteQuery,
  check: Check<T>,
  table: (body: T, session: OpenSession) => ChartTable,
): ChartRequest {
  return {
    text: requestText(path, query),
    sql: null,
    load: async (session) => {
      const body = await askRoute(session, path, query, check);
      if (!body.ok) return body;
      const missing = missingOf(body.value);
      return ok(missing === null ? table(body.value, session) : { ...NOTHING, missing });
    },
  };
}

const NOTHING: ChartTable = { key: { name: '', of: 'name' }, keys: [], series: [] };

// Why the question does not apply to the session; null: it does.
const missingOf = (answer: unknown): string | null => {
  const text = (answer as { readonly missing?: unknown }).missing;
  return typeof text === 'string' ? text : null;
};

export const statement = (sql: string, table: (rows: QueryRows) => ChartTable): ChartRequest => ({
  text: sql,
  sql,
  load: async (session) => {
    const rows = await askRows(session, sql);
    return rows.ok ? ok(table(rows.value)) : rows;
  },
});

// ---- Scope ----------------------------------------------------------------------------

export function scopeOf(
  view: Pick<View, 'phase' | 'range' | 'filter' | 'layer'> & Partial<Pick<View, 'selection'>>,
  layers: number,
  step: number | null,
): Scope {
  const keys = new Set(parseFilter(view.filter).flatMap(({ key, not }) => (key && !not ? [key] : []))); // prettier-ignore
  return {
    query: filteredSums(view, layers).query,
    phase: view.phase === 'all' ? null : view.phase,
    layer: view.layer,
    step,
    head:
      view.selection?.kind === 'head' && view.selection.layer === view.layer
        ? view.selection.head
        : 0,
    view,
    layers,
    grouped: keys.has('op') ? 'op' : keys.has('component') ? 'op_kind' : 'component',
  };
}

// The conditions of a statement over a table, of phase, range and filter.
export function conditions(table: SqlTable, { view }: Scope): readonly string[] {
  return [
    ...(view.phase === 'all' ? [] : [`phase = '${view.phase}'`]),
    ...sqlFilter(table, parseFilter(view.filter)).where,
    ...[view.range?.x, view.range?.y].flatMap((part) => (part ? (rangeSql(table, part) ?? []) : [])), // prettier-ignore
  ];
}

export const where = (parts: readonly string[]): string =>
  parts.length > 0 ? ` WHERE ${parts.join(' AND ')}` : '';

function rangeSql(table: SqlTable, { axis, from, to }: AxisRange): readonly string[] | null {
  switch (axis) {
    case 'step':
      return [`step >= ${from}`, `step < ${to}`];
    case 'token':
      return table === 'step' ? [`token_id < ${to}`, `token_id + token_count > ${from}`] : null;
    case 'time':
      return table === 'step' ? [`begin_ns < ${to}`, `end_ns > ${from}`] : null;
    case 'layer':
      return table === 'op' ? [`op_layer_id >= ${from}`, `op_layer_id < ${to}`] : null;
    default:
      return null;
  }
}

// The words of the view that a chart does not honour.
export function unused(honours: Honours, scope: Scope): readonly string[] {
  const { view, layers } = scope;
  const words = parseFilter(view.filter).map(({ text }) => text);
  const ranges = [view.range?.x, view.range?.y].flatMap((part) => (part ? [part] : []));
  const named = (parts: readonly AxisRange[]): readonly string[] =>
    parts.map(({ axis }) => `range of ${axis.replace('_', ' ')}`);
  switch (honours) {
    case 'everything':
      return filteredSums(view, layers).missing;
    case 'own':
      return [];
    case 'phase':
      return [...words, ...named(ranges)];
    case 'nothing':
      return [...(view.phase === 'all' ? [] : [`phase ${view.phase}`]), ...words, ...named(ranges)];
    case 'op':
    case 'step':
      return [
        ...sqlFilter(honours, parseFilter(view.filter)).missing.map(({ text }) => text),
        ...named(ranges.filter((part) => rangeSql(honours, part) === null)),
      ];
  }
}

// The words of the filter that a chart honours.
export function applied(honours: Honours, scope: Scope): readonly string[] {
  if (honours === 'own') return [];
  const lost = unused(honours, scope);
  return parseFilter(scope.view.filter).flatMap(({ text }) => (lost.includes(text) ? [] : [text]));
}

// ---- Columns of statements ------------------------------------------------------------

export const column = ({ columns, rows }: QueryRows, name: string): readonly (number | null)[] => {
  const at = columns.indexOf(name);
  return rows.map((row) => (typeof row[at] === 'number' ? row[at] : null));
};
export const words = ({ columns, rows }: QueryRows, name: string): readonly string[] => {
  const at = columns.indexOf(name);
  return rows.map((row) => String(row[at] ?? ''));
};
