// The rows of a statement: what their columns mean, as a chart, and what a cell selects. Pure functions.
import type { ChartTable, KeyOf, Series, Unit } from '../../charts/table';
import type { Kind } from '../../charts/scene';
import type { QueryRows } from '../../net/types';

type Cells = QueryRows['rows'][number];

const KEYS: Readonly<Record<string, KeyOf>> = {
  step: 'step',
  token_id: 'token',
  layer_id: 'layer',
  op_layer_id: 'layer',
  expert_id: 'expert',
  tensor_name: 'tensor',
  operation_type: 'op_kind',
  component: 'component',
  memory_source: 'source',
  kernel: 'kernel',
  phase: 'phase',
};

// What a column's values are; `op` needs the step of its row.
export const meaningOf = (column: string): KeyOf | 'op_index' | null =>
  column === 'op' ? 'op_index' : (KEYS[column] ?? null);

export const unitOf = (column: string): Unit =>
  column.endsWith('_ns')
    ? 'ns'
    : column.endsWith('bytes_per_s')
      ? 'bytes/s'
      : /(^|_)bytes(_|$)/.test(column)
        ? 'bytes'
        : 'number';

const isNumeric = (rows: readonly Cells[], at: number): boolean =>
  rows.some((row) => typeof row[at] === 'number') &&
  rows.every((row) => row[at] === null || typeof row[at] === 'number');

const MAX_SERIES = 8;
export const MAX_DRAWN = 2000;

// The first column are the keys, numbers of one unit are drawn, all else is in the table.
export function chartOf({ columns, rows: all }: QueryRows): ChartTable {
  const rows = all.slice(0, MAX_DRAWN);
  const of = meaningOf(columns[0] ?? '');
  const ordered = isNumeric(rows, 0) && rows.length > 12;
  const numbers = columns.flatMap((name, at): readonly Series[] =>
    at > 0 && isNumeric(rows, at)
      ? [{ name, unit: unitOf(name), values: rows.map((row) => (typeof row[at] === 'number' ? row[at] : null)) }]
      : [],
  ); // prettier-ignore
  // Identifiers are no amounts.
  const amounts = numbers.filter(({ name }) => meaningOf(name) === null);
  const unit = amounts[0]?.unit;
  const drawn = amounts.filter((one) => one.unit === unit).slice(0, MAX_SERIES);
  return {
    key: {
      name: columns[0] ?? '',
      of: of === null || of === 'op_index' ? (ordered ? 'number' : 'name') : of,
    },
    keys: rows.map((row) => row[0] ?? ''),
    series: drawn,
    more: numbers.filter((one) => !drawn.includes(one)),
    words: columns.flatMap((name, at) =>
      at > 0 && !isNumeric(rows, at)
        ? [{ name, values: rows.map((row) => String(row[at] ?? '')) }]
        : [],
    ),
  };
}

export const KINDS: readonly Kind[] = ['bar', 'line', 'pie', 'stacked', 'heat'];
