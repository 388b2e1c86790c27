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
import type { ChartTable } from '../../../charts/table';
import type { ApiResult } from '../../../net/api';
import { ok } from '../../../result';
import { isDisturbed } from '../../../state/view/answer';
import type { OpenSession } from '../../../state/session/open_session';
import type { SumQuery } from '../../../state/view/sum_query';
import { askRoute } from '../ask';
import { conditions, column, route, routes, statement, where, words, type ChartSpec, type Scope } from '../spec'; // prettier-ignore
import { costsBy, diskAndBuffer, stackedBy, weightTypes } from '../sums';

const STEPS = 'of the steps that the view selects';
// As /breakdown with step_times; the answer says which steps.
const MEDIAN = 'median of one step, of generation unless the view selects a phase';
const SUMS = 'Bytes: added up over the selected steps.';

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

type PhaseSteps = wire.Conditions['phases'][string];

// Which steps the times are of: "12 of 79 steps, without 67 disturbed ones".
function basisOf({ steps, normal_steps: normal, disturbed_steps: disturbed, left_out_steps: left }: PhaseSteps): string {
  const of = normal === steps ? `all ${plural(steps, 'step')}` : `${formatCount(normal)} of ${plural(steps, 'step')}`;
  if (left > 0) return `${of}, without ${formatCount(left)} disturbed`;
  return disturbed > 0 ? `${of}, ${formatCount(disturbed)} disturbed` : of;
} // prettier-ignore

// Of the clean steps; of a phase without one, of the disturbed ones.
const askMachine = (session: OpenSession, query: { readonly clean?: true }) =>
  askRoute(session, 'conditions', query, wire.conditions);

const spread = () => {
  const load = async (session: OpenSession): ApiResult<ChartTable> => {
    const clean = await askMachine(session, { clean: true });
    const all = await askMachine(session, {});
    if (!clean.ok) return clean;
    if (!all.ok) return all;
    const phases = Object.entries(all.value.phases).map(([name, disturbed]) => {
      const own = clean.value.phases[name];
      return [name, own && own.normal_steps > 0 ? own : disturbed] as const;
    });
    const of = (value: (phase: PhaseSteps) => number | null) =>
      phases.map(([, phase]) => value(phase));
    return ok({
      key: { name: 'phase', of: 'phase' },
      keys: phases.map(([name]) => name),
      basis: `${phases.map(([name, phase]) => `${name}: ${basisOf(phase)}`).join('; ')}.`,
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
    });
  };
  return routes('conditions', { clean: true }, load, (session) => [
    askMachine(session, { clean: true }),
    askMachine(session, {}),
  ]);
};

// The mean time of a step of one phase, of the clean steps if there are some: as the medians of the
// layers, but a picture has only sums.
const matrix = (scope: Scope) => {
  const axes = { x: 'layer', y: 'component', value: 'time', width: 256, height: 64 } as const;
  const query = { phase: 'generate', ...scope.query } as const;
  const ways: readonly SumQuery[] = [{ ...query, clean: true }, query, scope.query];
  const askHead = (session: OpenSession, way: SumQuery) =>
    askRoute(session, 'breakdown', { by: 'phase', ...way }, wire.breakdown);
  const askPicture = (session: OpenSession, way: SumQuery) =>
    askRoute(session, 'heatmap', { ...axes, ...way }, wire.raster);
  const load = async (session: OpenSession): ApiResult<ChartTable> => {
    const machine = await askMachine(session, {});
    if (!machine.ok) return machine;
    // The first one that has steps with times.
    for (const way of isDisturbed(machine.value) ? ways : ways.slice(1)) {
      const head = await askHead(session, way);
      if (!head.ok) return head;
      const { summed_steps: summed } = head.value;
      if (summed.steps === 0 && way !== scope.query) continue;
      const body = await askPicture(session, way);
      return body.ok ? ok(matrixOf(body.value, summed, way.phase)) : body;
    }
    return ok({ key: { name: 'component', of: 'component' }, keys: [], series: [] });
  };
  return routes('heatmap', { ...axes, ...query }, load, (session) => [
    askMachine(session, {}),
    ...ways.flatMap((way) => [askHead(session, way), askPicture(session, way)]),
  ]);
};

const matrixOf = ({ x, y, cells }: wire.Raster, summed: Summed, phase: string | undefined): ChartTable => ({
  key: { name: 'component', of: 'component' },
  across: 'layer',
  basis: meanText(summed, phase),
  keys: y.rows,
  labels: y.rows.map(componentName),
  series: Array.from({ length: x.pixels }, (_, i) => ({
    name: layerName(x.rows[i] ?? String(i)),
    unit: 'ns',
    values: y.rows.map((_row, row) => {
      const cell = cells[row]?.[i];
      return cell === undefined || summed.steps === 0 ? null : cell / summed.steps;
    }),
    pick: { of: 'layer', name: x.rows[i] ?? String(i) },
  })),
}); // prettier-ignore

type Summed = wire.Breakdown['summed_steps'];

// "Mean of 12 generate steps, 1 of them learned. Verdict: clean."
function meanText({ steps, learned, disturbed, verdict }: Summed, phase: string | undefined): string {
  const of = phase === undefined ? '' : `${phase} `;
  const parts = [
    ...(learned > 0 ? [`${formatCount(learned)} of them learned`] : []),
    ...(disturbed > 0 ? [`${formatCount(disturbed)} of them disturbed`] : []),
  ];
  return `${[`Mean of ${formatCount(steps)} ${of}${steps === 1 ? 'step' : 'steps'}`, ...parts].join(', ')}. Verdict: ${verdict ?? 'not recorded'}.`;
} // prettier-ignore

// One row per phase and backend, and one per phase and pair of backends.
function backendTimes({ backends, transfers }: wire.SplitTimes): ChartTable {
  const rows = [
    ...backends.map(({ phase, backend, time_ns: ns, splits, not_waited: open }) => ({
      name: `${backend}, ${phase}`, ns, count: splits, bytes: null, open,
    })),
    ...transfers.map(({ phase, from, to, time_ns: ns, copies, bytes, not_waited: open }) => ({
      name: `${from === '' ? '?' : from} → ${to}, ${phase}`, ns, count: copies, bytes, open,
    })),
  ]; // prettier-ignore
  return {
    key: { name: 'backend', of: 'name' },
    keys: rows.map(({ name }) => name),
    series: [{ name: 'time', unit: 'ns', values: rows.map(({ ns }) => ns) }],
    more: [
      { name: 'parts or copies', unit: 'count', values: rows.map(({ count }) => count) },
      { name: 'bytes', unit: 'bytes', values: rows.map(({ bytes }) => bytes) },
      { name: 'without a wait', unit: 'count', values: rows.map(({ open }) => open) },
    ],
  };
}

export const OVERVIEW: readonly ChartSpec[] = [
  {
    id: 'time_parts',
    page: 'overview',
    title: 'Time of prompt and generation',
    counts:
      'Time of the ops in one step of each phase, by part of the model: medians, whose shares are of their sum. A click on a part goes into it: component, op type, op.',
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
      'Bytes read and written by the ops, added up over the steps of each phase, by part of the model. A click on a part goes into it.',
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
    title: 'Mapped file and other memory',
    counts:
      'Bytes that the ops read and wrote in the mapped model file, and in all other memory: repacked weights, KV cache, computation. Parts of the file that are in memory already are not read from the disk again: the summary says what was.',
    kinds: ['bar', 'pie'],
    request: diskAndBuffer,
    honours: 'everything',
    height: 130,
    empty: 'Nothing was read or written.',
  },
  {
    id: 'backends',
    page: 'overview',
    title: 'Backends',
    counts:
      'Time of the parts of the graphs that each backend computed, such as a GPU, from the begin of a part to the first wait for its backend that returned, and of the copies between backends, without their waits: added up over all steps.',
    kinds: ['bar', 'pie'],
    request: () => route('splits', {}, wire.splitTimes, backendTimes),
    honours: 'nothing',
    fact: 'attach.splits',
    height: 130,
    empty: 'The graphs ran on one backend.',
  },
  {
    id: 'phase_steps',
    page: 'overview',
    title: 'Median and p95 of a step',
    counts:
      'Durations of the steps of each phase, without those that were learned, lost or cancelled, and without disturbed ones if others are left.',
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
    counts: `Time: ${MEDIAN}. ${SUMS} emb+out: ops without a layer (embedding, output).`,
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
    counts: 'Time of the ops in one step, by layer (left to right) and component.',
    kinds: ['heat'],
    request: matrix,
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
        `SELECT step, token_id, duration_ns, slow_cause AS cause, phase, coalesce((SELECT text FROM token WHERE token.token_id = step.token_id), '') AS text FROM step${where([...conditions('step', scope), 'dropped = 0'])} ORDER BY duration_ns DESC LIMIT 12`,
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
    counts: `Time of all ops of one type: ${MEDIAN}. ${SUMS}`,
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
    request: ({ query }) =>
      route('op_durations', query, wire.opDurations, ({ bins }) => ({
        key: { name: 'duration (ns)', of: 'number' },
        keys: bins.map(({ from_ns: from }) => from),
        labels: bins.map(({ from_ns: from }) => formatNs(from)),
        series: [{ name: 'ops', unit: 'count', values: bins.map(({ executions }) => executions) }],
        more: [{ name: 'time', unit: 'ns', values: bins.map(({ time_ns: ns }) => ns) }],
      })),
    honours: 'everything',
    empty: 'No op times were recorded.',
  },
  {
    id: 'tensor_types',
    page: 'overview',
    title: 'Tensor types of the weights',
    counts:
      'Bytes that a step reads of the weights of one data type; a step of generation evaluates one token. Intermediate results and the KV cache are not counted, unless the filter selects them with kind.',
    kinds: ['bar', 'pie'],
    request: weightTypes,
    honours: 'everything',
    height: 130,
    empty: 'No weights are read.',
  },
  {
    id: 'kernels',
    page: 'overview',
    title: 'Kernels',
    counts: `Time of the ops that the same implementation ran: ${MEDIAN}. ${SUMS} unknown: it was not recorded.`,
    kinds: ['bar', 'pie'],
    choose: true,
    request: (scope) => costsBy('kernel', 'time', scope),
    honours: 'everything',
    empty: 'Nothing matches.',
  },
];
