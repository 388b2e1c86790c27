// How near the ops come to what the machine can do, reading and computing. The server decides the bounds,
// what limits each op and the order; this draws them.
import { MAX_PAGE_ROWS } from '../../../net/api';
import * as wire from '../../../net/types';
import type { Roofline, RooflineRow } from '../../../net/types';
import { componentName } from '../../../format';
import { formatValue, type ChartTable, type Series, type Unit } from '../../../charts/table';
import { route, type ChartSpec, type Scope } from '../spec';

type Shown = 'points' | 'time' | 'rate';
const MAX_ROWS = 24;

const asked = (scope: Scope, what: Shown, by: 'op' | 'op_kind') =>
  route('roofline', { by, limit: MAX_PAGE_ROWS, ...scope.query }, wire.roofline, (body) =>
    chartOf(body, what),
  );

const column = (name: string, unit: Unit, rows: readonly RooflineRow[], value: (row: RooflineRow) => number | null): Series =>
  ({ name, unit, values: rows.map(value) }); // prettier-ignore

// A chart of points has a place only for ops with both coordinates.
const hasPlace = ({ operations_per_byte: x, operations_per_second: y }: RooflineRow): boolean =>
  x !== null && y !== null && x > 0 && y > 0;

// Which part of the time the bound is. An op that no bound is known of has a bar of its own colour.
function timeSeries(rows: readonly RooflineRow[], median: Series): readonly Series[] {
  const above = ({ above_bound_ns: ns }: RooflineRow): number | null => ns;
  if (rows.every((row) => above(row) === null)) return [median];
  const parts = [
    column('time of the bound', 'ns', rows, (row) => {
      const ns = above(row);
      return ns === null ? null : row.step_ns.median - ns;
    }),
    column('above the bound', 'ns', rows, above),
  ];
  const without = column('no bound is known', 'ns', rows, (row) => (above(row) === null ? row.step_ns.median : null)); // prettier-ignore
  return rows.some((row) => above(row) === null) ? [...parts, without] : parts;
}

function guidesOf({ read_bandwidth: read, compute_peak: peak }: Roofline): NonNullable<ChartTable['guides']> {
  const under = (y: number): number => (peak === null || y <= peak ? y : NaN);
  return [
    ...(read === null ? [] : [{ name: 'read bandwidth of this machine', at: (x: number) => under(x * read) }]),
    ...(peak === null ? [] : [{ name: 'compute peak of this machine', at: () => peak }]),
  ];
} // prettier-ignore

export function chartOf(body: Roofline, what: Shown): ChartTable {
  const rows = what === 'points' ? body.rows.filter(hasPlace) : body.rows.slice(0, MAX_ROWS);
  const median = column('time of a step', 'ns', rows, ({ step_ns: times }) => times.median);
  const rate = column('bytes per second', 'bytes/s', rows, ({ bytes_per_second: one }) => one);
  const place = [
    column('operations per byte', 'ops/byte', rows, ({ operations_per_byte: one }) => one),
    column('operations per second', 'ops/s', rows, ({ operations_per_second: one }) => one),
  ];
  const drawn: Readonly<Record<Shown, readonly Series[]>> = {
    points: place,
    time: timeSeries(rows, median),
    rate: [rate],
  };
  const columns = [
    median,
    column('above the bound', 'ns', rows, ({ above_bound_ns: ns }) => ns),
    column('bound of reading', 'ns', rows, ({ read_bound_ns: ns }) => ns),
    column('bound of computing', 'ns', rows, ({ compute_bound_ns: ns }) => ns),
    column('share', 'share', rows, ({ share }) => share),
    column('bytes of a step', 'bytes', rows, ({ bytes }) => bytes),
    column('bytes from memory', 'bytes', rows, ({ memory_bytes: bytes }) => bytes),
    column('operations of a step', 'count', rows, ({ operations }) => operations),
    rate,
    ...place,
  ];
  const names = new Set(drawn[what].map(({ name }) => name));
  const note = ({ text, ...row }: RooflineRow): string =>
    `${what === 'time' ? formatValue('ns', row.step_ns.median) : formatValue('bytes/s', row.bytes_per_second ?? 0)}, ${text}`; // prettier-ignore
  return {
    key: { name: 'op', of: 'name' },
    basis: `${body.times.text} ${body.text}`,
    keys: rows.map(({ name }) => name),
    labels: rows.map(({ name, op_kind: kind }) =>
      what === 'points' || name.toLowerCase() === kind.toLowerCase() ? name : `${name} ${kind}`,
    ),
    picks: rows.map(({ op_kind: kind }) => ({ of: 'op_kind', name: kind })),
    series: drawn[what],
    ...(what === 'points' ? { guides: guidesOf(body) } : { notes: rows.map(note) }),
    more: columns.filter(({ name }) => !names.has(name)),
    words: [
      { name: 'limit', values: rows.map(({ text }) => text) },
      { name: 'op type', values: rows.map(({ op_kind: kind }) => kind) },
      ...(rows.some(({ component }) => component !== null) ? [{ name: 'component', values: rows.map(({ component }) => componentName(component ?? '')) }] : []),
    ],
    ...(what === 'rate' && body.read_bandwidth !== null ? { marks: [{ name: 'read bandwidth', value: body.read_bandwidth }] } : {}),
  }; // prettier-ignore
}

const ONE_ROW = 'Each op of all layers is one row, with the time of all its layers.';
const NO_TIME = 'No op has a time in a step that counts.';
const BOUND =
  'The bound is the larger one of two times: in which the machine reads the bytes that come from memory, and in which it computes the operations.';
const MEASURED =
  'A recording measures both rates once per machine, while no other program runs: the read bandwidth, for a model that is larger than the last cache of the processor, and the compute peak, of the fastest matrix multiplication.';

export const ROOFLINE: readonly ChartSpec[] = [
  {
    id: 'roofline',
    page: 'roofline',
    title: 'Roofline',
    counts: `Operations per second over operations per byte from memory, both logarithmic. The lines are what the machine can do: an op is below both. ${MEASURED} ${ONE_ROW} Ops whose operations are not counted, or that read neither weights nor the KV cache, are only in the other charts.`,
    kinds: ['points'],
    request: (scope) => asked(scope, 'points', 'op'),
    honours: 'everything',
    wide: true,
    height: 340,
    empty: 'No op with counted operations has a time in a step that counts.',
  },
  {
    id: 'above_bound_kind',
    wide: true,
    page: 'roofline',
    title: 'Which op type to optimise first',
    counts: `Time of all ops of a type in a step, the most time above its bound first: at most that can be saved. ${BOUND}`,
    kinds: ['stacked', 'bar'],
    request: (scope) => asked(scope, 'time', 'op_kind'),
    honours: 'everything',
    height: 160,
    empty: NO_TIME,
  },
  {
    id: 'above_bound',
    wide: true,
    page: 'roofline',
    title: 'Which op of all layers to optimise first',
    counts: `The same, of each op. ${ONE_ROW}`,
    kinds: ['stacked', 'bar'],
    request: (scope) => asked(scope, 'time', 'op'),
    honours: 'everything',
    height: 160,
    empty: NO_TIME,
  },
  {
    id: 'op_rate',
    wide: true,
    page: 'roofline',
    title: 'Bytes per second',
    counts: `Bytes of the mean step by the median of its time; a rate above the line comes from the caches of the processor. ${ONE_ROW}`,
    kinds: ['bar'],
    request: (scope) => asked(scope, 'rate', 'op'),
    honours: 'everything',
    height: 160,
    empty: NO_TIME,
  },
];
