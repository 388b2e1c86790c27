// Where time and bytes go.
import {
  componentName,
  formatCount,
  formatNs,
  layerName,
  plural,
  tokenText,
} from '../../../format';
import * as wire from '../../../net/types';
import { conditions, column, route, statement, where, words, type ChartSpec, type Scope } from '../spec'; // prettier-ignore
import { diskAndBuffer, stackedBy, costsBy } from '../sums';

const STEPS = 'of the steps that the view selects';
// As /breakdown with step_times.
const MEDIAN =
  'median of one step, of generation unless the view selects a phase, without learned, first and disturbed steps';

// The server's words for what the machine did to a step (docs/conditions.md), as causes.
const CAUSE = `CASE WHEN timing = 'learned' THEN 'new graph: measured while it was learned'
 WHEN verdict = 'contended' THEN 'other programs: waited ' || CASE WHEN cpu_wait_ns < 1e9 THEN round(cpu_wait_ns / 1e6, 1) || ' ms' ELSE round(cpu_wait_ns / 1e9, 1) || ' s' END || ' for a processor'
 WHEN verdict = 'throttled' THEN 'a CPU limit, or slowed processors'
 WHEN verdict = 'disk' THEN 'waited for the disk: ' || major_faults || ' times'
 WHEN token_count > 1 THEN token_count || ' tokens at once'
 WHEN verdict IS NULL THEN 'not recorded' ELSE 'none found' END`;

const perStep = (scope: Scope, name: 'time' | 'bytes') =>
  statement(
    `SELECT step, phase, token_id, token_count, duration_ns, bytes_read + bytes_written AS bytes, verdict FROM step${where([...conditions('step', scope), 'dropped = 0'])} ORDER BY step`,
    (rows) => {
      const time = {
        name: 'time of a step',
        unit: 'ns',
        values: column(rows, 'duration_ns'),
      } as const;
      const bytes = {
        name: 'bytes of a step',
        unit: 'bytes',
        values: column(rows, 'bytes'),
      } as const;
      return {
        key: { name: 'step', of: 'step' },
        keys: column(rows, 'step').map((step) => step ?? 0),
        series: [name === 'time' ? time : bytes],
        more: [
          name === 'time' ? bytes : time,
          { name: 'first token', unit: 'count', values: column(rows, 'token_id') },
          { name: 'tokens', unit: 'count', values: column(rows, 'token_count') },
        ],
        words: [
          { name: 'phase', values: words(rows, 'phase') },
          { name: 'machine', values: words(rows, 'verdict') },
        ],
      }; // prettier-ignore
    },
  );

// Which steps the times are of, because other views leave the disturbed ones out: "all 79 steps, 68 of
// them disturbed".
function basisOf(phase: wire.Conditions['phases'][string] | undefined): string {
  if (!phase) return '';
  const { steps, normal_steps: normal, disturbed_steps: disturbed } = phase;
  const of = normal === steps ? `all ${plural(steps, 'step')}` : `${formatCount(normal)} of ${plural(steps, 'step')}`; // prettier-ignore
  return disturbed > 0 ? `${of}, ${formatCount(disturbed)} disturbed` : of;
}

const spread = () =>
  route('conditions', {}, wire.conditions, ({ phases }) => {
    const names = Object.keys(phases);
    const of = (value: (phase: (typeof phases)[string]) => number | null) =>
      names.map((name) => {
        const phase = phases[name];
        return phase ? value(phase) : null;
      });
    return {
      key: { name: 'phase', of: 'phase' },
      keys: names,
      labels: names.map((name) => `${name}, ${basisOf(phases[name])}`),
      series: [
        { name: 'median', unit: 'ns', values: of(({ step_ns }) => step_ns?.median ?? null) },
        { name: 'p95', unit: 'ns', values: of(({ step_ns }) => step_ns?.p95 ?? null) },
      ],
      more: [
        { name: 'steps', unit: 'count', values: of(({ steps }) => steps) },
        { name: 'normal steps', unit: 'count', values: of(({ normal_steps }) => normal_steps) },
        { name: 'learned', unit: 'count', values: of(({ learned_steps }) => learned_steps) },
        { name: 'disturbed', unit: 'count', values: of(({ disturbed_steps }) => disturbed_steps) },
        { name: 'tokens', unit: 'count', values: of(({ tokens }) => tokens) },
        { name: 'sum', unit: 'ns', values: of(({ duration_ns }) => duration_ns) },
      ],
    };
  });

const matrix = (value: 'time' | 'bytes', scope: Scope) =>
  route('heatmap', { x: 'layer', y: 'component', value, width: 256, height: 64, ...scope.query }, wire.raster, ({ x, y, cells }) => ({
    key: { name: 'component', of: 'component' },
    across: 'layer',
    keys: y.rows,
    labels: y.rows.map(componentName),
    series: Array.from({ length: x.pixels }, (_, i) => ({
      name: layerName(x.rows[i] ?? String(i)),
      unit: value === 'time' ? 'ns' : 'bytes',
      values: y.rows.map((_, row) => cells[row]?.[i] ?? null),
      pick: { of: 'layer', name: x.rows[i] ?? String(i) },
    })),
  })); // prettier-ignore

// Ops by their duration. Each bin ends at twice its begin, because durations differ by powers of ten; a
// bin without ops is drawn, too.
const opTimes = (scope: Scope) =>
  statement(
    `SELECT CAST(floor(log2(duration_ns)) AS INTEGER) AS bin, count(*) AS ops, sum(duration_ns) AS ns FROM op${where([...conditions('op', scope), 'duration_ns > 0'])} GROUP BY bin ORDER BY bin`,
    (rows) => {
      const known = column(rows, 'bin').map((bin) => bin ?? 0);
      const first = known[0] ?? 0;
      const bins = Array.from({ length: known.length > 0 ? (known.at(-1) ?? 0) - first + 1 : 0 }, (_, i) => first + i); // prettier-ignore
      const of = (name: string) => {
        const values = column(rows, name);
        return bins.map((bin) => values[known.indexOf(bin)] ?? 0);
      };
      return {
        key: { name: 'at least ns', of: 'number' },
        keys: bins.map((bin) => 2 ** bin),
        labels: bins.map((bin) => formatNs(2 ** bin)),
        series: [{ name: 'ops', unit: 'count', values: of('ops') }],
        more: [{ name: 'time', unit: 'ns', values: of('ns') }],
      };
    },
  );

export const OVERVIEW: readonly ChartSpec[] = [
  {
    id: 'time_parts',
    page: 'overview',
    title: 'Time of prompt and generation',
    counts:
      'Durations of the ops, added up by phase and by part of the model. A click on a part goes into it: component, op type, op.',
    kinds: ['share', 'stacked', 'bar'],
    request: (scope) => stackedBy('time', scope),
    honours: 'everything',
    drill: true,
    height: 130,
    empty: 'No op times were recorded.',
  },
  {
    id: 'bytes_parts',
    page: 'overview',
    title: 'Bytes of prompt and generation',
    counts:
      'Bytes read and written by the ops, added up by phase and by part of the model. A click on a part goes into it.',
    kinds: ['share', 'stacked', 'bar'],
    request: (scope) => stackedBy('bytes', scope),
    honours: 'everything',
    drill: true,
    height: 130,
    empty: 'Nothing was read or written.',
  },
  {
    id: 'disk_buffer',
    page: 'overview',
    title: 'DISK against BUFFER',
    counts:
      'Bytes that the ops read and wrote: DISK is the mapped model file, BUFFER is all other memory (repacked weights, KV cache, computation). Parts of the file that are in memory already are not read from the disk again: the summary says what was.',
    kinds: ['bar', 'pie'],
    request: diskAndBuffer,
    honours: 'everything',
    height: 130,
    empty: 'Nothing was read or written.',
  },
  {
    id: 'phase_steps',
    page: 'overview',
    title: 'Median and p95 of a step',
    counts:
      'Durations of the normal steps of each phase, disturbed ones included: without steps that were learned, lost or cancelled. The other times of a step (Layers, Table, Compare) leave disturbed steps out, if others are left.',
    kinds: ['bar'],
    request: spread,
    honours: 'nothing',
    height: 130,
    empty: 'The session has no normal step.',
  },
  {
    id: 'buffers',
    page: 'overview',
    title: 'Kinds of memory',
    counts: 'Sums over the accesses to one kind of memory.',
    kinds: ['bar', 'pie'],
    choose: true,
    request: (scope) => costsBy('source', 'bytes', scope),
    honours: 'everything',
    empty: 'Nothing matches.',
  },
  {
    id: 'order',
    page: 'overview',
    title: 'Sequential and random reads',
    counts:
      'Bytes read from the model files: sequential if the read begins at most 128 KiB after the end of the read before.',
    kinds: ['bar', 'pie'],
    request: ({ query }) =>
      route('sequentiality', query, wire.sequentiality, ({ sums }) => ({
        key: { name: 'order', of: 'name' },
        keys: ['sequential', 'random'],
        series: [{ name: 'bytes', unit: 'bytes', values: [sums.sequential_bytes, sums.bytes - sums.sequential_bytes] }],
        more: [{ name: 'reads', unit: 'count', values: [sums.sequential, sums.reads - sums.sequential] }],
      })), // prettier-ignore
    honours: 'everything',
    height: 130,
    empty: 'Nothing was read from the model files.',
  },
  {
    id: 'step_time',
    page: 'overview',
    title: 'Time of each token',
    counts: `Duration of each step, from its begin to its end, ${STEPS}. A step of the prompt evaluates many tokens, each other one a single token.`,
    kinds: ['line', 'bar'],
    request: (scope) => perStep(scope, 'time'),
    honours: 'step',
    wide: true,
    empty: 'No step matches.',
  },
  {
    id: 'step_bytes',
    page: 'overview',
    title: 'Bytes of each token',
    counts: `Bytes that each step reads and writes, ${STEPS}.`,
    kinds: ['line', 'bar'],
    request: (scope) => perStep(scope, 'bytes'),
    honours: 'step',
    wide: true,
    empty: 'No step matches.',
  },
  {
    id: 'layers',
    page: 'overview',
    title: 'Layers',
    counts: `Time: ${MEDIAN}. Bytes: added up over the selected steps. emb+out: ops without a layer (embedding, output).`,
    kinds: ['bar', 'line', 'pie'],
    choose: true,
    request: (scope) => costsBy('layer', 'time', scope),
    honours: 'everything',
    wide: true,
    empty: 'Nothing matches.',
  },
  {
    id: 'layer_parts',
    page: 'overview',
    title: 'Layer × component',
    counts: 'Durations of the ops, added up by layer (left to right) and component.',
    kinds: ['heat'],
    request: (scope) => matrix('time', scope),
    honours: 'everything',
    wide: true,
    empty: 'No op times were recorded.',
  },
  {
    id: 'slowest',
    page: 'overview',
    title: 'Slowest tokens',
    counts: `The 12 longest steps ${STEPS}, with the cause that the recording has.`,
    kinds: ['bar'],
    request: (scope) =>
      statement(
        `SELECT step, token_id, duration_ns, ${CAUSE} AS cause, phase, coalesce((SELECT text FROM token WHERE token.token_id = step.token_id), '') AS text FROM step${where([...conditions('step', scope), 'dropped = 0'])} ORDER BY duration_ns DESC LIMIT 12`,
        (rows) => {
          const steps = column(rows, 'step');
          return {
            key: { name: 'step', of: 'name' },
            keys: steps.map((step) => String(step)),
            labels: steps.map((step, i) => `${step}: ${words(rows, 'cause')[i] ?? ''}`),
            picks: steps.map((step) => ({ of: 'step', name: String(step) })),
            series: [{ name: 'time', unit: 'ns', values: column(rows, 'duration_ns') }],
            more: [{ name: 'token', unit: 'count', values: column(rows, 'token_id') }],
            words: [
              {
                name: 'text',
                values: words(rows, 'text').map((text) => tokenText({ text })),
              },
              { name: 'phase', values: words(rows, 'phase') },
              { name: 'cause', values: words(rows, 'cause') },
            ],
          };
        },
      ),
    honours: 'step',
    height: 240,
    wide: true,
    empty: 'No step matches.',
  },
  {
    id: 'op_types',
    page: 'overview',
    title: 'Op types',
    counts: `Time of all ops of one type: ${MEDIAN}. Bytes: added up over the selected steps.`,
    kinds: ['bar', 'pie'],
    choose: true,
    request: (scope) => costsBy('op_kind', 'time', scope),
    honours: 'everything',
    empty: 'Nothing matches.',
  },
  {
    id: 'op_times',
    page: 'overview',
    title: 'Durations of ops',
    counts:
      'How many ops took how long: each column is of ops from its duration up to twice as long. The table has the time that they took together.',
    kinds: ['bar'],
    request: opTimes,
    honours: 'op',
    empty: 'No op times were recorded.',
  },
  {
    id: 'tensor_types',
    page: 'overview',
    title: 'Tensor types',
    counts: 'Sums over the accesses to tensors of one data type.',
    kinds: ['bar', 'pie'],
    choose: true,
    request: (scope) => costsBy('type', 'bytes', scope),
    honours: 'everything',
    empty: 'Nothing matches.',
  },
  {
    id: 'kernels',
    page: 'overview',
    title: 'Kernels',
    counts: `Time of the ops that the same implementation ran: ${MEDIAN}. Bytes: added up over the selected steps. unknown: it was not recorded.`,
    kinds: ['bar', 'pie'],
    choose: true,
    request: (scope) => costsBy('kernel', 'time', scope),
    honours: 'everything',
    empty: 'Nothing matches.',
  },
];
