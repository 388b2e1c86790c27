// Tables of an axis (/breakdown): the bars, pies and stacks of the overview.
import { componentName, formatCount, layerName, sourceName } from '../../format';
import {
  formatValue,
  type ChartTable,
  type KeyOf,
  type Series,
  type Unit,
} from '../../charts/table';
import * as wire from '../../net/types';
import type { Breakdown, BreakdownRow, TraceSums } from '../../net/types';
import type { ApiResult } from '../../net/api';
import { ok } from '../../result';
import { askRoute, type RouteQuery } from './ask';
import { route, routes, type ChartRequest, type Scope } from './spec';
import type { OpenSession } from '../../state/session/open_session';

type By = 'layer' | 'component' | 'op_kind' | 'op' | 'kernel' | 'type' | 'source' | 'phase';

const TITLES: Readonly<Record<By, string>> = {
  layer: 'layer',
  component: 'component',
  op_kind: 'op type',
  op: 'op',
  kernel: 'kernel',
  type: 'tensor type',
  source: 'memory',
  phase: 'phase',
};

export const nameOf = (by: By, name: string): string =>
  by === 'layer'
    ? layerName(name)
    : by === 'component'
      ? componentName(name)
      : by === 'source'
        ? sourceName(name)
        : name;

const keyOf = (by: By): KeyOf => (by === 'type' ? 'name' : by);

// Null: there is no time.
const timeOf = ({ time_ns }: TraceSums): number | null => (time_ns > 0 ? time_ns : null);
const bytesOf = ({ bytes_read, bytes_written }: TraceSums): number => bytes_read + bytes_written;

const of = (
  name: string,
  unit: Unit,
  rows: readonly BreakdownRow[],
  value: (sums: TraceSums) => number | null,
): Series => ({ name, unit, values: rows.map(({ all }) => value(all)) });

const MAX_GROUPS = 200;

// A component has one colour in every chart, phase and session (docs/names.md has them all).
const COMPONENT_COLOURS: Readonly<Record<string, number>> = {
  attention: 0,
  ffn: 1,
  embedding: 2,
  moe: 3,
  'kv-cache': 4,
  norm: 5,
  output: 6,
  other: 7,
  ssm: 8,
  input: 9,
};

export const colourOf = (by: By, name: string): { readonly colour?: number } => {
  const colour = by === 'component' ? COMPONENT_COLOURS[name] : undefined;
  return colour === undefined ? {} : { colour };
};

// The steps that the times of an answer are of, in the words of the server.
const timesOf = ({ times }: Pick<Breakdown, 'times'>): { readonly basis?: string } =>
  times ? { basis: times.text } : {};

// Rows by what they cost, the most costly first; layers in their order. Time is that of one step: a
// sum over steps depends on the length of the run and on its few slow steps.
export function costsBy(by: By, first: 'time' | 'bytes', scope: Scope): ChartRequest {
  const query = {
    by,
    ...(by === 'layer' ? {} : { sort: first === 'time' ? '-time' : '-bytes' }),
    ...(first === 'time' ? { step_times: true } : {}),
    limit: MAX_GROUPS,
    ...scope.query,
  };
  return route('breakdown', query, wire.breakdown, (body: Breakdown): ChartTable => {
    const { rows } = body;
    const bytes = of('bytes', 'bytes', rows, bytesOf);
    const step = (name: string, q: 'median' | 'p95'): Series => ({
      name,
      unit: 'ns',
      values: rows.map(({ step_ns }) => step_ns?.[q] ?? null),
    });
    return {
      key: { name: TITLES[by], of: keyOf(by) },
      keys: rows.map(({ name }) => name),
      labels: rows.map(({ name }) => nameOf(by, name)),
      ...timesOf(body),
      series: [...(first === 'time' ? [step('time of a step', 'median')] : []), bytes],
      more: [
        ...(first === 'time' ? [step('p95 of a step', 'p95')] : []),
        of('sum of time', 'ns', rows, timeOf),
        of('read', 'bytes', rows, (all) => all.bytes_read),
        of('written', 'bytes', rows, (all) => all.bytes_written),
        of('accesses', 'count', rows, (all) => all.reads + all.writes),
        of('executions', 'count', rows, (all) => all.executions),
        of('disk waits', 'count', rows, (all) => all.faults),
        first === 'time'
          ? {
              name: 'rate',
              unit: 'bytes/s',
              values: rows.map(({ step_ns }) => step_ns?.bytes_per_second ?? null),
            }
          : of('rate', 'bytes/s', rows, (all) => all.bytes_per_second),
      ],
    };
  });
}

// What weights of each data type a step reads: intermediate results, the KV cache and what is written
// have types of their own.
export function weightTypes(scope: Scope): ChartRequest {
  const all = { by: 'type', sort: '-bytes_read', limit: MAX_GROUPS, kind: 'weight' } as const;
  const query = { ...all, phase: 'generate', ...scope.query } as const;
  const ask = (session: OpenSession, way: RouteQuery): ApiResult<Breakdown> =>
    askRoute(session, 'breakdown', way, wire.breakdown);
  const ways = [query, { ...all, ...scope.query }] as const;
  const load = async (session: OpenSession): ApiResult<ChartTable> => {
    const generated = await ask(session, ways[0]);
    const isEmpty = generated.ok && generated.value.rows.length === 0 && scope.phase === null;
    const body = isEmpty ? await ask(session, ways[1]) : generated;
    if (!body.ok) return body;
    const { rows, summed_steps: summed } = body.value;
    const whole = rows.reduce((sum, row) => sum + row.all.bytes_read, 0);
    const { steps } = summed;
    const phase = isEmpty ? '' : `${query.phase} `;
    return ok({
      key: { name: TITLES.type, of: 'name' },
      basis: `Mean of ${formatCount(steps)} ${phase}step${steps === 1 ? '' : 's'}.`,
      keys: rows.map(({ name }) => name),
      series: [
        {
          name: 'read in a step',
          unit: 'bytes',
          values: rows.map((row) => (steps > 0 ? row.all.bytes_read / steps : null)),
        },
      ],
      more: [
        {
          name: 'share',
          unit: 'share',
          values: rows.map((row) => (whole > 0 ? row.all.bytes_read / whole : null)),
        },
        of('read in all steps', 'bytes', rows, (sums) => sums.bytes_read),
        of('reads', 'count', rows, (sums) => sums.reads),
      ],
    });
  };
  return routes('breakdown', query, load, (session) => ways.map((way) => ask(session, way)));
}

const PHASES = ['prompt', 'generate'] as const;
type PhaseName = (typeof PHASES)[number];

// Prompt beside generation, each divided into parts: into components, inside one into op types, and
// inside an op type into ops. Time and bytes have their parts in the same order, the most time first: a
// part has one colour in both charts. Time is that of one step of the phase, bytes are sums.
export function stackedBy(value: 'time' | 'bytes', scope: Scope): ChartRequest {
  const by = scope.grouped;
  const phases = PHASES.filter((phase) => scope.phase === null || scope.phase === phase);
  const queryOf = (phase: PhaseName) =>
    ({ by, sort: '-time', step_times: true, limit: 24, ...scope.query, phase }) as const;
  const ask = (session: OpenSession, phase: PhaseName): ApiResult<Breakdown> =>
    askRoute(session, 'breakdown', queryOf(phase), wire.breakdown);
  const load = async (session: OpenSession): ApiResult<ChartTable> => {
    const known: (readonly [PhaseName, Breakdown])[] = [];
    for (const phase of phases) {
      const one = await ask(session, phase);
      if (!one.ok) return one;
      if (one.value.rows.length > 0) known.push([phase, one.value]);
    }
    return ok(stacked(by, value, known));
  };
  return routes('breakdown', queryOf(scope.phase ?? 'generate'), load, (session) =>
    phases.map((phase) => ask(session, phase)),
  );
}

function stacked(
  by: By,
  value: 'time' | 'bytes',
  known: readonly (readonly [PhaseName, Breakdown])[],
): ChartTable {
  const unit = value === 'time' ? 'ns' : 'bytes';
  const rowsOf = known.map(([, { rows }]) => new Map(rows.map((row) => [row.name, row])));
  // As the phase with the most steps has them: generation.
  const names = [...new Set(rowsOf.toReversed().flatMap((rows) => [...rows.keys()]))];
  const valueOf = (row: BreakdownRow | undefined): number | null =>
    !row ? null : value === 'bytes' ? bytesOf(row.all) : (row.step_ns?.median ?? null);
  const phases = known.map(([phase, { sums }], n) => {
    const whole = value === 'bytes' ? bytesOf(sums.all) : (sums.step_ns?.median ?? 0);
    const hasValue = names.some((name) => (valueOf(rowsOf[n]?.get(name)) ?? 0) > 0);
    return { phase, n, whole, hasValue };
  });
  const drawn = phases.filter(({ hasValue }) => hasValue);
  const texts = known.flatMap(([, { times }]) => (times ? [times.text] : []));
  return {
    key: { name: 'phase', of: 'phase' },
    ...(value === 'time' && texts.length > 0 ? { basis: texts.join(' ') } : {}),
    keys: drawn.map(({ phase }) => phase),
    labels: drawn.map(({ phase, whole }) => `${phase}, ${formatValue(unit, whole)}`),
    series: names.flatMap((name) => {
      const values = drawn.map(({ n }) => valueOf(rowsOf[n]?.get(name)));
      if (values.every((one) => one === null)) return [];
      return [{ name: nameOf(by, name), unit, values, pick: { of: keyOf(by), name }, ...colourOf(by, name) } as const]; // prettier-ignore
    }),
  };
}

// What was read and written in the mapped model file, and in all other memory.
export function diskAndBuffer(scope: Scope): ChartRequest {
  const query = { by: 'source', sort: '-bytes', ...scope.query };
  return route('breakdown', query, wire.breakdown, ({ disk, buffer }: Breakdown): ChartTable => {
    const both = [disk, buffer];
    const all = bytesOf(disk) + bytesOf(buffer);
    return {
      key: { name: 'memory', of: 'name' },
      keys: [sourceName('disk'), 'other memory'],
      series: [{ name: 'bytes', unit: 'bytes', values: both.map(bytesOf) }],
      more: [
        { name: 'share', unit: 'share', values: both.map((one) => (all > 0 ? bytesOf(one) / all : null)) },
        { name: 'read', unit: 'bytes', values: both.map((one) => one.bytes_read) },
        { name: 'written', unit: 'bytes', values: both.map((one) => one.bytes_written) },
        { name: 'accesses', unit: 'count', values: both.map((one) => one.reads + one.writes) },
      ],
    }; // prettier-ignore
  });
}
