// The data of a chart: one row per key, one column of numbers per series. A heat map has its y axis in
// the keys and its x axis in the series; a chart of points has x in the first series and y in the
// second. The same table is what the page shows as a table and what it saves as CSV.
import { formatBytes, formatCount, formatNs, exactBytes, exactNs } from '../format';
import { rowsText, type Cell } from '../grid/copy';

export type Unit =
  | 'ns'
  | 'bytes'
  | 'bytes/s'
  | 'bits'
  | 'count'
  | 'share'
  | 'ops/byte'
  | 'ops/s'
  | 'tokens/s'
  | 'number';

// What the keys are: it decides whether they are ordered numbers, and what a click on one selects.
export type KeyOf =
  | 'step'
  | 'token'
  | 'layer'
  | 'expert'
  | 'bytes'
  | 'number'
  | 'tensor'
  | 'op'
  | 'op_kind'
  | 'component'
  | 'kernel'
  | 'source'
  | 'phase'
  | 'head'
  | 'name';

export interface Pick {
  readonly of: KeyOf;
  readonly name: string;
  readonly step?: number; // that it is of
}

export interface Series {
  readonly name: string;
  readonly unit: Unit;
  readonly values: readonly (number | null)[];
  readonly pick?: Pick; // what a click on a part of this series selects, instead of the key
  readonly picks?: readonly Pick[]; // the same, by row
  readonly colour?: number; // of those of the series; absent: its place among them
  readonly names?: readonly string[]; // of a heat map, by row: written into the cells if there is room, and into the table
}

// A further column of the table, of words.
export interface Words {
  readonly name: string;
  readonly values: readonly string[];
}

export interface ChartTable {
  readonly missing?: string; // why the question does not apply to the session, as the server says
  readonly key: { readonly name: string; readonly of: KeyOf };
  readonly answer?: { readonly text: string; readonly pick: Pick }; // in words, with what it is about
  readonly named?: string; // what the names of the cells are, such as "most likely"
  readonly across?: string; // of a heat map: what its columns are, such as "expert"
  readonly part?: string; // what it is of, if the title does not say it: "layer 2"
  readonly basis?: string; // the steps that its figures are of, as a sentence
  readonly keys: readonly (string | number)[];
  readonly labels?: readonly string[]; // shown instead of the keys
  readonly ticks?: readonly string[]; // shown at an axis instead of longer labels
  readonly picks?: readonly Pick[]; // what a click on a row selects; absent: its key
  readonly series: readonly Series[]; // drawn
  readonly notes?: readonly string[]; // of bars, by row: at the end of the bar; absent: its value
  readonly more?: readonly Series[]; // only in the table
  readonly words?: readonly Words[]; // only in the table
  // Of a heat map: the value with the strongest colour, if maps share a scale; absent: the largest one.
  readonly most?: number;
  // Of a heat map of differences: the names of both sides, the one that values are subtracted from last.
  readonly sides?: readonly [string, string];
  // Of a heat map: values of both signs, with the colours of `sides`.
  readonly signed?: true;
  // Horizontal lines: a median, a limit.
  readonly marks?: readonly { readonly name: string; readonly value: number }[];
  // Of a chart of points: lines, each y by x, from the left end to the right one; not where y is NaN.
  readonly guides?: readonly { readonly name: string; readonly at: (x: number) => number }[];
}

const ORDERED: readonly KeyOf[] = ['step', 'token', 'layer', 'expert', 'bytes', 'number'];
export const isOrdered = ({ key }: ChartTable): boolean => ORDERED.includes(key.of);

// Whether the colours of a heat map go from those of negative values to those of positive ones.
export const isDiverging = ({ sides, signed }: ChartTable): boolean =>
  sides !== undefined || signed === true;

export const labelOf = (table: ChartTable, row: number): string =>
  table.labels?.[row] ??
  (table.key.of === 'bytes' ? formatBytes(Number(table.keys[row])) : String(table.keys[row] ?? ''));

export const pickOf = (table: ChartTable, row: number, series: number | null): Pick =>
  (series === null
    ? undefined
    : (table.series[series]?.picks?.[row] ?? table.series[series]?.pick)) ??
  table.picks?.[row] ?? { of: table.key.of, name: String(table.keys[row] ?? '') };

export const isEmpty = ({ keys, series }: ChartTable): boolean =>
  keys.length === 0 || !series.some(({ values }) => values.some((value) => value !== null));

export function formatValue(unit: Unit, value: number): string {
  switch (unit) {
    case 'ns':
      return formatNs(value);
    case 'bytes':
      return formatBytes(Math.round(value));
    case 'bytes/s':
      return `${formatBytes(Math.round(value))}/s`;
    case 'bits':
      return `${short(value)} bits`;
    case 'count':
      return formatCount(value);
    case 'share':
      return `${short(Number((100 * value).toPrecision(12)))} %`;
    case 'ops/byte':
      return short(value);
    case 'ops/s':
      return value < 1e8 ? `${short(value / 1e6)} M/s` : `${short(value / 1e9)} G/s`;
    case 'tokens/s':
      return `${short(value)} tokens/s`;
    case 'number':
      return value !== 0 && Math.abs(value) < 0.1
        ? String(Number(value.toPrecision(3)))
        : short(value);
  }
}

export function exactValue(unit: Unit, value: number): string {
  if (unit === 'ns') return exactNs(value);
  if (unit === 'bytes') return exactBytes(value);
  return unit === 'count' ? formatCount(value) : `${value}`;
}

const short = (value: number): string => {
  const size = Math.abs(value);
  if (Number.isInteger(value) || size >= 1000) return formatCount(value);
  return size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : value.toFixed(2);
};

export const UNIT_NAMES: Readonly<Record<Unit, string>> = {
  ns: 'time',
  bytes: 'bytes',
  'bytes/s': 'bytes per second',
  bits: 'bits',
  count: 'number',
  share: 'share, %',
  'ops/byte': 'operations per byte',
  'ops/s': 'billion operations per second',
  'tokens/s': 'tokens per second',
  number: 'number',
};

// The name of a column in files: with the unit that its numbers have.
const columnName = ({ name, unit }: Series): string =>
  unit === 'count' || unit === 'number' ? name : `${name} (${unit})`;

// The names of the cells have a column of their own before that of the values.
export function namesOf({ key, series, more = [], words = [], named = 'name' }: ChartTable): readonly string[] {
  return [
    key.name,
    ...[...series, ...more].flatMap((one) => [...(one.names ? [`${one.name}: ${named}`] : []), columnName(one)]),
    ...words.map(({ name }) => name),
  ];
} // prettier-ignore

export function rowsOf({ keys, series, more = [], words = [] }: ChartTable): Cell[][] {
  return keys.map((key, row): Cell[] => [
    key,
    ...[...series, ...more].flatMap(({ values, names }) => [
      ...(names ? [names[row] ?? ''] : []),
      values[row] ?? null,
    ]),
    ...words.map(({ values }) => values[row] ?? ''),
  ]);
}

export const csvOf = (table: ChartTable): string => rowsText('CSV', namesOf(table), rowsOf(table));
