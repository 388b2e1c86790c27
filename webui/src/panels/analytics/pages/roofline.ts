// How near the ops come to the read bandwidth of the machine. Times and rates are those of the table of
// totals and of the finding above the charts: medians of one step, over the steps that the server chose.
import type { ApiResult } from '../../../net/api';
import { MAX_PAGE_ROWS } from '../../../net/api';
import * as wire from '../../../net/types';
import type { Breakdown, Findings } from '../../../net/types';
import { formatValue, type ChartTable, type Series } from '../../../charts/table';
import { ok } from '../../../result';
import type { OpenSession } from '../../../state/session/open_session';
import { askFindings, askRoute, askRows, column, routes, words, type ChartSpec, type Scope } from '../spec'; // prettier-ignore
import { timesOf } from '../sums';

// ---- The bound ------------------------------------------------------------------------

// What the server found of the reading of memory; its threshold decides what is memory-bound.
export interface Bound {
  readonly bandwidth: number | null; // bytes per second, with the threads of the session; null: not known
  readonly near: number | null; // the share of it from which on an op is memory-bound
  readonly fromCache: boolean; // the weights fit into the last cache of the processor
}

export function boundOf({ findings }: Pick<Findings, 'findings'>): Bound {
  const figures = findings.flatMap((one) => one.figures);
  const number = (name: string): number | null => {
    const value = figures.find((one) => one.name === name)?.value;
    return typeof value === 'number' && value > 0 ? value : null;
  };
  return {
    bandwidth: number('read_bandwidth'),
    near: number('near_bandwidth'),
    fromCache: figures.some(({ name, value }) => name === 'bandwidth_use' && value === 'from_cache'),
  };
} // prettier-ignore

// "memory-bound, 82 % of the bound"; '': the bound is not known.
export function verdictOf(rate: number, { bandwidth, near }: Bound): string {
  if (bandwidth === null) return '';
  const share = rate / bandwidth;
  const text = `${Number((100 * share).toPrecision(3))} % of the bound`;
  if (share > 1) return `${text}, from caches`;
  return near === null ? text : `${share >= near ? 'memory-bound' : 'not memory-bound'}, ${text}`;
}

// ---- Rows -----------------------------------------------------------------------------

interface Cost {
  readonly name: string;
  readonly type: string;
  readonly component: string;
  readonly median: number; // ns of a step
  readonly bytes: number; // of a step
  readonly operations: number | null; // of a step; null: not a matrix multiplication
}

const rateOf = ({ median, bytes }: Cost): number => (median > 0 ? (bytes * 1e9) / median : 0);

// Rows with a time in a normal step, the most time first.
const costsOf = ({ rows }: Breakdown): readonly Pick<Cost, 'name' | 'median' | 'bytes'>[] =>
  rows.flatMap(({ name, step_ns: times }) =>
    times ? [{ name, median: times.median, bytes: (times.bytes_per_second * times.median) / 1e9 }] : [],
  ); // prettier-ignore

// An op of all layers is one row: its output without the number of the layer.
// One without a name of its own has its type.
const NAME =
  "CASE WHEN tensor_name GLOB 'node_*' THEN lower(o.operation_type) WHEN tensor_name GLOB 'cache_*' THEN substr(tensor_name, 1, 7) ELSE substr(tensor_name, 1, instr(tensor_name || '-', '-') - 1) END";

// The operations of a matrix multiplication: 2 for each element of the output and of the inner
// dimension. Both sources have the inner dimension as their first one. No times: they are those of
// the breakdown.
const sql = (phase: string): string => `WITH first AS (
  SELECT min(step) AS step FROM step WHERE template IS NOT NULL GROUP BY template),
read AS (
  SELECT a.template, a.op, max(t.ne0) AS inner FROM access a JOIN tensor t
    ON t.template = a.template AND t.tensor = a.tensor
  WHERE a.step IN (SELECT step FROM first) AND a.write = 0
    AND a.operation_type IN ('MUL_MAT', 'MUL_MAT_ID') GROUP BY a.template, a.op),
shape AS (
  SELECT o.template, o.op, 2.0 * o.ne0 * o.ne1 * o.ne2 * o.ne3 * r.inner AS operations
  FROM op o JOIN read r ON r.template = o.template AND r.op = o.op
  WHERE o.step IN (SELECT step FROM first))
SELECT tensor_name, ${NAME} AS name, max(o.operation_type) AS operation_type,
  max(o.component) AS component,
  sum(s.operations * o.executions) / sum(o.bytes_read + o.bytes_written) AS operations_per_byte
FROM op_total o LEFT JOIN shape s ON s.template = o.template AND s.op = o.op
WHERE o.phase = '${phase}' GROUP BY tensor_name`;

// One row per op of all layers: the sum of the medians of its layers.
async function opsOfLayers(session: OpenSession, body: Breakdown): ApiResult<readonly Cost[]> {
  const found = await askRows(session, sql(body.times?.phase ?? 'generate'));
  if (!found.ok) return found;
  const names = words(found.value, 'name');
  const types = words(found.value, 'operation_type');
  const components = words(found.value, 'component');
  const intensities = column(found.value, 'operations_per_byte');
  const at = new Map(words(found.value, 'tensor_name').map((name, row) => [name, row]));
  const groups = new Map<string, Cost>();
  for (const { name: output, median, bytes } of costsOf(body)) {
    const row = at.get(output);
    if (row === undefined) continue;
    const [name = '', type = '', component = ''] = [names[row], types[row], components[row]];
    const key = JSON.stringify([name, type, component]);
    const before = groups.get(key);
    const each = intensities[row];
    const operations = each === null || each === undefined ? null : each * bytes;
    groups.set(key, {
      name,
      type,
      component,
      median: median + (before?.median ?? 0),
      bytes: bytes + (before?.bytes ?? 0),
      operations: operations === null ? (before?.operations ?? null) : operations + (before?.operations ?? 0),
    }); // prettier-ignore
  }
  return ok([...groups.values()].sort((a, b) => b.median - a.median));
}

// ---- Charts ---------------------------------------------------------------------------

type Shown = 'points' | 'time' | 'rate';
const MAX_ROWS = 24;
const PHASES = ['prompt', 'generate'];

const asked = (scope: Scope, what: Shown, by: 'op' | 'op_kind') => {
  const query = { by, sort: '-time', step_times: true, limit: MAX_PAGE_ROWS, ...scope.query };
  const ask = (session: OpenSession) => askRoute(session, 'breakdown', query, wire.breakdown);
  const load = async (session: OpenSession): ApiResult<ChartTable> => {
    const body = await ask(session);
    if (!body.ok) return body;
    const ops =
      by === 'op'
        ? await opsOfLayers(session, body.value)
        : ok(costsOf(body.value).map((cost): Cost => ({ ...cost, type: cost.name, component: '', operations: null }))); // prettier-ignore
    if (!ops.ok) return ops;
    const findings = await askFindings(session);
    if (!findings.ok) return findings;
    const known = what === 'points' ? ops.value.filter(({ operations }) => operations !== null) : ops.value.slice(0, MAX_ROWS); // prettier-ignore
    return ok({ ...chartOf(known, what, boundOf(findings.value)), ...timesOf(body.value) });
  };
  return routes('breakdown', query, load, (session) => [
    ask(session),
    askFindings(session),
    ...(by === 'op' ? PHASES.map((phase) => askRows(session, sql(phase))) : []),
  ]);
};

export function chartOf(costs: readonly Cost[], what: Shown, bound: Bound): ChartTable {
  const { bandwidth, fromCache } = bound;
  const rates = costs.map(rateOf);
  const verdicts = rates.map((rate) => verdictOf(rate, bound));
  const bounds = costs.map(({ bytes }) => (bandwidth === null ? null : (bytes * 1e9) / bandwidth));
  const above = costs.map(({ median }, row) => {
    const least = bounds[row];
    return least === null || least === undefined ? null : Math.max(0, median - least);
  });
  const time = { name: 'time of a step', unit: 'ns', values: costs.map(({ median }) => median) } as const; // prettier-ignore
  const rate = { name: 'bytes per second', unit: 'bytes/s', values: rates } as const;
  const main: Readonly<Record<Shown, readonly Series[]>> = {
    points: [
      { name: 'operations per byte', unit: 'ops/byte', values: costs.map(({ operations, bytes }) => operations && operations / bytes) },
      { name: 'operations per second', unit: 'ops/s', values: costs.map(({ operations, median }) => operations && (operations * 1e9) / median) },
    ],
    time:
      bandwidth === null
        ? [time]
        : [
            { name: 'time of the bound', unit: 'ns', values: costs.map(({ median }, row) => Math.min(median, bounds[row] ?? 0)) },
            { name: 'above the bound', unit: 'ns', values: above },
          ],
    rate: [rate],
  }; // prettier-ignore
  const withVerdict = (text: string, row: number): string =>
    [text, verdicts[row] ?? ''].filter(Boolean).join(', ');
  return {
    key: { name: 'op', of: 'name' },
    part:
      bandwidth !== null
        ? ''
        : fromCache
          ? 'no bound: the weights fit into the cache of the processor'
          : 'no bound: the read bandwidth was not measured',
    keys: costs.map(({ name }) => name),
    labels: costs.map(({ name, type }) =>
      what === 'points' || name.toLowerCase() === type.toLowerCase() ? name : `${name} ${type}`,
    ),
    picks: costs.map(({ type }) => ({ of: 'op_kind', name: type })),
    series: main[what],
    ...(what === 'time'
      ? { notes: costs.map(({ median }, row) => withVerdict(formatValue('ns', median), row)) }
      : {}),
    ...(what === 'rate'
      ? { notes: rates.map((one, row) => withVerdict(formatValue('bytes/s', one), row)) }
      : {}),
    more: [
      ...(what === 'time' && bandwidth === null ? [] : [time]),
      { name: 'bytes of a step', unit: 'bytes', values: costs.map(({ bytes }) => bytes) },
      ...(what === 'rate' ? [] : [rate]),
      ...(bandwidth === null ? [] : [{ name: 'of the read bandwidth', unit: 'share', values: rates.map((one) => one / bandwidth) } as const]),
      ...(what === 'time' || bandwidth === null ? [] : [{ name: 'above the bound', unit: 'ns', values: above } as const]),
    ],
    words: [
      ...(bandwidth === null ? [] : [{ name: 'verdict', values: verdicts }]),
      { name: 'op type', values: costs.map(({ type }) => type) },
      ...(costs.some(({ component }) => component !== '') ? [{ name: 'component', values: costs.map(({ component }) => component) }] : []),
    ],
    ...(bandwidth !== null && what === 'points'
      ? { guide: { name: 'read bandwidth of this machine', at: (x: number) => x * bandwidth } }
      : {}),
    ...(bandwidth !== null && what === 'rate'
      ? { marks: [{ name: 'read bandwidth', value: bandwidth }] }
      : {}),
  }; // prettier-ignore
}

const ONE_ROW =
  'Each op of all layers is one row, with the sum of the medians of its layers. Times and rates are those of the table and the finding.';
const NO_TIME = 'No op has a time in a step that counts.';
const BOUND =
  'The bound is the time in which the machine reads as many bytes. Without it, the read bandwidth is not known for this session: a recording measures it for a model that is larger than the last cache of the processor, while no other program runs.';

export const ROOFLINE: readonly ChartSpec[] = [
  {
    id: 'roofline',
    page: 'roofline',
    title: 'Roofline',
    counts: `Operations per second over operations per byte, both logarithmic. Only matrix multiplications: 2 operations for each element of the output and of the inner dimension. Below the line: as fast as the memory allows at most. The compute peak of the machine is not measured, so it has no line. ${ONE_ROW}`,
    kinds: ['points'],
    request: (scope) => asked(scope, 'points', 'op'),
    honours: 'everything',
    wide: true,
    height: 340,
    empty: 'No matrix multiplication has a time in a step that counts.',
  },
  {
    id: 'above_bound_kind',
    wide: true,
    page: 'roofline',
    title: 'Which op type to optimise first',
    counts: `Time of all ops of a type in a step, the most time first, as in the table and the finding. Only what is above the bound can be saved. ${BOUND}`,
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
