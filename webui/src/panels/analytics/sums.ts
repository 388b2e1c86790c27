// Tables of an axis (/breakdown): the bars, pies and stacks of the overview.
import { componentName, layerName, sourceName } from '../../format';
import {
  formatValue,
  type ChartTable,
  type KeyOf,
  type Series,
  type Unit,
} from '../../charts/table';
import * as wire from '../../net/types';
import type { Breakdown, BreakdownRow, TraceSums } from '../../net/types';
import { route, type ChartRequest, type Scope } from './spec';

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
  return route('breakdown', query, wire.breakdown, ({ rows }: Breakdown): ChartTable => {
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
      series: [...(first === 'time' ? [step('time of a step', 'median')] : []), bytes],
      more: [
        ...(first === 'time' ? [step('p95 of a step', 'p95')] : []),
        of('sum of time', 'ns', rows, timeOf),
        of('read', 'bytes', rows, (all) => all.bytes_read),
        of('written', 'bytes', rows, (all) => all.bytes_written),
        of('accesses', 'count', rows, (all) => all.reads + all.writes),
        of('executions', 'count', rows, (all) => all.executions),
        of('disk waits', 'count', rows, (all) => all.faults),
        of('rate', 'bytes/s', rows, (all) => all.bytes_per_second),
      ],
    };
  });
}

// Prompt beside generation, each divided into parts: into components, inside one into op types, and
// inside an op type into ops. Time and bytes have their parts in the same order, the most time first: a
// part has one colour in both charts.
export function stackedBy(value: 'time' | 'bytes', scope: Scope): ChartRequest {
  const by = scope.grouped;
  const query = { by, sort: '-time', limit: 24, ...scope.query };
  return route('breakdown', query, wire.breakdown, ({ rows }: Breakdown): ChartTable => {
    const valueOf = (sums: TraceSums): number | null =>
      value === 'time' ? timeOf(sums) : bytesOf(sums);
    const phases = (['prompt', 'generate'] as const).filter((phase) =>
      rows.some((row) => (valueOf(row[phase]) ?? 0) > 0),
    );
    return {
      key: { name: 'phase', of: 'phase' },
      keys: phases,
      labels: phases.map((phase) => `${phase}, ${totalOf(rows, phase, value)}`),
      series: rows.map((row) => ({
        name: nameOf(by, row.name),
        unit: value === 'time' ? 'ns' : 'bytes',
        values: phases.map((phase) => valueOf(row[phase])),
        pick: { of: by, name: row.name },
      })),
    };
  });
}

const totalOf = (rows: readonly BreakdownRow[], phase: 'prompt' | 'generate', value: 'time' | 'bytes') => {
  const sum = rows.reduce((all, row) => all + (value === 'time' ? row[phase].time_ns : bytesOf(row[phase])), 0);
  return formatValue(value === 'time' ? 'ns' : 'bytes', sum);
}; // prettier-ignore

// What was read and written in the mapped model file, and in all other memory.
export function diskAndBuffer(scope: Scope): ChartRequest {
  const query = { by: 'source', sort: '-bytes', ...scope.query };
  return route('breakdown', query, wire.breakdown, ({ disk, buffer }: Breakdown): ChartTable => {
    const both = [disk, buffer];
    const all = bytesOf(disk) + bytesOf(buffer);
    return {
      key: { name: 'memory', of: 'name' },
      keys: ['DISK', 'BUFFER'],
      labels: ['DISK: mapped model file', 'BUFFER: other memory'],
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
