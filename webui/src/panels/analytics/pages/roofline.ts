// How near the ops come to the read bandwidth of the machine.
import { column, statement, words, type ChartSpec, type Scope } from '../spec';

// An op of all layers is one row: its output without the number of the layer.
// One without a name of its own has its type.
const NAME =
  "CASE WHEN tensor_name GLOB 'node_*' THEN lower(o.operation_type) WHEN tensor_name GLOB 'cache_*' THEN substr(tensor_name, 1, 7) ELSE substr(tensor_name, 1, instr(tensor_name || '-', '-') - 1) END";
const BANDWIDTH = "(SELECT CAST(value AS REAL) FROM metadata WHERE name = 'host.read_bandwidth')";

// The operations of a matrix multiplication: 2 for each element of the output and of the inner
// dimension. Both sources have the inner dimension as their first one.
// `byKind`: all ops of a type in one row.
const sql = ({ phase }: Scope, byKind: boolean): string => `WITH first AS (
  SELECT min(step) AS step FROM step WHERE template IS NOT NULL GROUP BY template),
read AS (
  SELECT a.template, a.op, max(t.ne0) AS inner FROM access a JOIN tensor t
    ON t.template = a.template AND t.tensor = a.tensor
  WHERE a.step IN (SELECT step FROM first) AND a.write = 0
    AND a.operation_type IN ('MUL_MAT', 'MUL_MAT_ID') GROUP BY a.template, a.op),
shape AS (
  SELECT o.template, o.op, 2.0 * o.ne0 * o.ne1 * o.ne2 * o.ne3 * r.inner AS operations
  FROM op o JOIN read r ON r.template = o.template AND r.op = o.op
  WHERE o.step IN (SELECT step FROM first)),
total AS (
  SELECT ${byKind ? 'o.operation_type' : NAME} AS name, o.operation_type, ${byKind ? "''" : 'o.component'} AS component, sum(o.executions) AS executions,
    sum(o.duration_ns) AS time_ns, sum(o.bytes_read + o.bytes_written) AS bytes,
    sum(s.operations * o.executions) AS operations
  FROM op_total o LEFT JOIN shape s ON s.template = o.template AND s.op = o.op
  WHERE o.duration_ns > 0${phase === null ? '' : ` AND o.phase = '${phase}'`}
  GROUP BY 1, 2, 3)
SELECT name, operation_type, component, executions, time_ns, bytes, operations,
  bytes * 1e9 / time_ns AS bytes_per_s,
  operations / bytes AS operations_per_byte,
  operations * 1e9 / time_ns AS operations_per_s,
  ${BANDWIDTH} AS bandwidth,
  bytes * 1e9 / time_ns / ${BANDWIDTH} AS share_of_bandwidth,
  max(0, time_ns - bytes * 1e9 / ${BANDWIDTH}) AS above_ns
FROM total ORDER BY coalesce(above_ns, time_ns) DESC`;

const COUNTED = 'Each op of all layers is one row; phase: that of the page.';

type Shown = 'points' | 'above' | 'rate';
const asked = (scope: Scope, what: Shown, byKind = false) =>
  statement(sql(scope, byKind), (all) => {
    // Each picture has the ops that it can show.
    const intensity = column(all, 'operations_per_byte');
    const kept = all.rows.filter((_, row) => what !== 'points' || intensity[row] !== null);
    const rows = { ...all, rows: what === 'points' ? kept : kept.slice(0, 24) };
    const names = words(rows, 'name');
    const of = (name: string) => column(rows, name);
    const bandwidth = of('bandwidth').find((value) => value !== null) ?? null;
    const main = {
      points: [
        { name: 'operations per byte', unit: 'ops/byte', values: of('operations_per_byte') },
        { name: 'operations per second', unit: 'ops/s', values: of('operations_per_s') },
      ],
      above: [{ name: 'time above the bound', unit: 'ns', values: of('above_ns') }],
      rate: [{ name: 'bytes per second', unit: 'bytes/s', values: of('bytes_per_s') }],
    } as const;
    return {
      key: { name: 'op', of: 'name' },
      part: [
        ...(scope.phase === null ? ['prompt and generation together'] : []),
        ...(bandwidth === null ? ['read bandwidth not measured: no line'] : []),
      ].join(', '),
      keys: names,
      labels: words(rows, 'operation_type').map((type, row) =>
        what === 'points' || names[row]?.toLowerCase() === type.toLowerCase() ? (names[row] ?? '') : `${names[row] ?? ''} ${type}`,
      ),
      picks: words(rows, 'operation_type').map((name) => ({ of: 'op_kind', name })),
      series: main[what],
      more: [
        { name: 'time', unit: 'ns', values: of('time_ns') },
        { name: 'bytes', unit: 'bytes', values: of('bytes') },
        ...(what === 'rate' ? [] : [{ name: 'rate', unit: 'bytes/s', values: of('bytes_per_s') } as const]),
        { name: 'of the read bandwidth', unit: 'share', values: of('share_of_bandwidth') },
        ...(what === 'above' ? [] : [{ name: 'above the bound', unit: 'ns', values: of('above_ns') } as const]),
        { name: 'executions', unit: 'count', values: of('executions') },
      ],
      words: [
        { name: 'op type', values: words(rows, 'operation_type') },
        { name: 'component', values: words(rows, 'component') },
      ],
      ...(bandwidth !== null && what === 'points'
        ? { guide: { name: 'read bandwidth of this machine', at: (x: number) => x * bandwidth } }
        : {}),
      ...(bandwidth !== null && what === 'rate'
        ? { marks: [{ name: 'read bandwidth', value: bandwidth }] }
        : {}),
    }; // prettier-ignore
  });

// Where there is no bound.
const NOT_KNOWN =
  'The read bandwidth of the machine is not known for this session. It is measured by `tt record` and `tt-server` for a model that is larger than the last cache of the processor, while no other program runs. Until then, the question “Which op takes the most time?” at the top lists the ops by their time.';

export const ROOFLINE: readonly ChartSpec[] = [
  {
    id: 'roofline',
    page: 'roofline',
    title: 'Roofline',
    counts: `Operations per second over operations per byte, both logarithmic. Only matrix multiplications: 2 operations for each element of the output and of the inner dimension. Below the line: as fast as the memory allows at most. The compute peak of the machine is not measured, so it has no line. ${COUNTED}`,
    kinds: ['points'],
    request: (scope) => asked(scope, 'points'),
    honours: 'phase',
    wide: true,
    height: 340,
    empty: 'No matrix multiplication has a time.',
  },
  {
    id: 'above_bound_kind',
    wide: true,
    page: 'roofline',
    title: 'Which op type to optimise first',
    counts:
      'Time of all ops of a type above their bound: their time less the time in which the machine reads as many bytes. The read bandwidth was measured with the threads of the run. Phase: that of the page.',
    kinds: ['bar'],
    request: (scope) => asked(scope, 'above', true),
    honours: 'phase',
    height: 240,
    empty: NOT_KNOWN,
  },
  {
    id: 'above_bound',
    half: true,
    page: 'roofline',
    title: 'Which op of all layers to optimise first',
    counts: `The same, of each op. ${COUNTED}`,
    kinds: ['bar'],
    request: (scope) => asked(scope, 'above'),
    honours: 'phase',
    height: 420,
    empty: NOT_KNOWN,
  },
  {
    id: 'op_rate',
    half: true,
    page: 'roofline',
    title: 'Bytes per second',
    counts: `Bytes read and written by the time of the op; a rate above the line comes from the caches of the processor. ${COUNTED}`,
    kinds: ['bar'],
    request: (scope) => asked(scope, 'rate'),
    honours: 'phase',
    height: 420,
    empty: 'No op has a time.',
  },
];
