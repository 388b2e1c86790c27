// The columns of the table by kind of row. Their keys are the column names of SQL and REST.
import {
  exactBytes,
  exactNs,
  formatBytes,
  formatCount,
  formatNs,
  formatShape,
  componentName,
  kindName,
  layerName,
  partName,
  sourceName,
  sourceText,
  timingName,
  visibleText,
  kernelText,
  plural,
  tokenText,
} from '../../format';
import type { Cell } from '../../grid/copy';
import type { Column } from '../../grid/column';
import { durationOf, shapeOf, type BreakdownRow, type Op, type StepSummary } from '../../net/types';
import type { TraceData } from '../../state/session/trace_data';
import { TOTAL_TITLES } from '../../state/view/total_titles';
import type { AccessRow } from './access_rows';
import { GROUP_NAMES, type Group } from './table_options';
import type { TokenTotal } from './token_totals';

export interface TableColumn<Row> extends Column<Row> {
  readonly name: string; // in the list of columns
  readonly hidden?: true; // not shown by default
  readonly value: (row: Row) => Cell; // for sorting and copying
  readonly greatestFirst?: true; // the first click sorts in descending order
  readonly sql?: string | null; // its SQL, by default the key; null: none
}

type Options<Row> = Partial<Omit<TableColumn<Row>, 'key' | 'title' | 'value'>>;

// The three usual kinds of columns.
const text = <Row>(
  key: string,
  title: string,
  width: number,
  value: (row: Row) => Cell,
  rest: Options<Row> = {},
): TableColumn<Row> => ({
  key,
  title,
  name: title,
  width,
  value,
  text: (row) => String(value(row) ?? '–'),
  ...rest,
});

const number = <Row>(
  key: string,
  title: string,
  width: number,
  value: (row: Row) => number | null,
  format: (n: number) => string,
  rest: Options<Row> = {},
): TableColumn<Row> =>
  text<Row>(key, title, width, value, {
    align: 'right',
    text: (row) => {
      const n = value(row);
      return n === null ? '–' : format(n);
    },
    ...rest,
  });

const bytes = <Row>(
  key: string,
  title: string,
  value: (row: Row) => number | null,
  rest: Options<Row> = {},
): TableColumn<Row> =>
  number(key, title, 84, value, formatBytes, {
    exact: (row) => exactBytes(value(row) ?? 0),
    greatestFirst: true,
    ...rest,
  });

const time = <Row>(
  key: string,
  title: string,
  value: (row: Row) => number | null,
  rest: Options<Row> = {},
): TableColumn<Row> =>
  number(key, title, 86, value, formatNs, {
    exact: (row) => exactNs(value(row) ?? 0),
    greatestFirst: true,
    ...rest,
  });

const KERNEL_HINT = 'The implementation of ggml that ran the op';

// ---- Ops ------------------------------------------------------------------------------

const sourceNames = (op: Op): string => op.sources.map((source) => source.tensor_name).join(', ');

const sourceLines = (op: Op): string =>
  op.sources
    .map(
      (s) =>
        `${s.tensor_name}  ${s.tensor_type} ${formatShape(shapeOf(s))}  ${kindName(s.tensor_kind)}, ${sourceName(s.memory_source)}`,
    )
    .join('\n');

const totalBytes = (op: Op): number => op.bytes_read + op.bytes_written;

// `ops`: all ops of the step. The bars are shares of their time, as in the totals.
export function opColumns(ops: readonly Op[]): readonly TableColumn<Op>[] {
  const whole = ops.reduce((sum, op) => sum + durationOf(op), 0);
  const start = ops.reduce((min, op) => Math.min(min, op.timestamp_ns), ops[0]?.timestamp_ns ?? 0);
  const share = (op: Op): number => (whole === 0 ? 0 : durationOf(op) / whole);
  const rate = (op: Op): number | null =>
    durationOf(op) > 0 ? (totalBytes(op) / durationOf(op)) * 1e9 : null;
  const layer = (op: Op): string =>
    op.op_layer_id === null ? 'no layer (embedding or output)' : `layer ${op.op_layer_id}`;
  const part = (op: Op): string => partName(op.component, op.role, ' · ');
  // prettier-ignore
  return [
    number('op', '#', 46, (op) => op.op, String, { name: 'index', hint: 'Index in execution order' }),
    text('operation_type', 'op', 120, (op) => op.operation_type, { mono: true, exact: (op) => (op.nodes > 1 ? `${op.operation_type}, ${op.nodes} nodes fused` : op.operation_type) }),
    text('tensor_name', 'output', 112, (op) => op.tensor_name, { mono: true }),
    number('op_layer_id', 'layer', 48, (op) => op.op_layer_id, String, { exact: layer }),
    text('component', 'component · role', 112, (op) => op.component, { text: part, tone: (op) => op.component }),
    time('duration_ns', 'duration', (op) => op.duration_ns, { bar: share }),
    number('share', 'share', 56, share, (s) => `${(100 * s).toFixed(1)} %`, { hidden: true, hint: 'Of the time of all ops of the step', greatestFirst: true, sql: null }),
    bytes('bytes', 'bytes', totalBytes, { hint: 'Read and written', exact: (op) => `${exactBytes(op.bytes_read)} read, ${exactBytes(op.bytes_written)} written`, sql: 'bytes_read + bytes_written AS bytes' }),
    bytes('bytes_read', 'read', (op) => op.bytes_read, { hidden: true }),
    bytes('bytes_written', 'written', (op) => op.bytes_written, { hidden: true }),
    number('rate', 'rate', 84, rate, (r) => `${formatBytes(Math.round(r))}/s`, { hidden: true, hint: 'Bytes read and written per second', greatestFirst: true, sql: null }),
    text('shape', 'shape', 96, (op) => formatShape(shapeOf(op)), { align: 'right', exact: (op) => shapeOf(op).join(' × '), sql: 'ne0, ne1, ne2, ne3' }),
    text('tensor_type', 'type', 48, (op) => op.tensor_type),
    number('timestamp_ns', 'begin', 74, (op) => op.timestamp_ns, (ns) => formatNs(ns - start), { hint: 'Start, relative to the step', exact: (op) => `${exactNs(op.timestamp_ns)} after the start of the session` }),
    text('kernel', 'kernel', 72, (op) => op.kernel, { hint: KERNEL_HINT, exact: (op) => kernelText(op.kernel) }),
    number('threads', 'threads', 58, (op) => op.threads, String, { hint: 'Threads that shared the op', greatestFirst: true }),
    text('device', 'device', 54, (op) => op.device, { hidden: true }),
    text('sources', 'sources', 108, sourceNames, { grow: 2, mono: true, exact: sourceLines, sql: null }),
  ];
}

// ---- Steps ----------------------------------------------------------------------------

// The text of the tokens that a step evaluates.
function wordsOf(data: TraceData, step: StepSummary | undefined): string {
  if (!step) return '';
  const tokens = data.tokens.slice(step.token_id, step.token_id + step.token_count);
  const [first] = tokens;
  return tokens.length === 1
    ? tokenText(first)
    : visibleText(tokens.map((token) => token?.text ?? '').join(''));
}

export function stepColumns(data: TraceData): readonly TableColumn<StepSummary>[] {
  const words = (step: StepSummary): string => wordsOf(data, step);
  const flags = (step: StepSummary, timing: string = step.timing): string =>
    [timing, step.dropped ? 'times lost' : '', step.aborted ? 'aborted' : '']
      .filter(Boolean)
      .join(', ');
  const disturbed = (step: StepSummary): string =>
    step.verdict === null || step.verdict === 'clean' ? '' : 'disturbed';
  const waited = (step: StepSummary): string =>
    step.cpu_wait_ns === null ? 'not recorded' : exactNs(step.cpu_wait_ns);
  // prettier-ignore
  return [
    number('step', 'step', 56, (s) => s.step, String),
    text('phase', 'phase', 80, (s) => s.phase),
    text('timing', 'op times', 92, flags, { text: (s) => flags(s, timingName(s.timing)), tone: (s) => s.timing, hint: 'How they were measured' }),
    text('verdict', 'machine', 94, (s) => s.verdict, { hint: 'What the machine did to the step: clean, or contended by other programs, throttled by a CPU limit, waiting for the disk', tone: disturbed }),
    number('token_count', 'tokens', 62, (s) => s.token_count, formatCount, { greatestFirst: true }),
    text('text', 'text', 120, words, { grow: 1, mono: true, unsortable: true, sql: null }),
    number('token_id', 'first token', 78, (s) => s.token_id, String, { hidden: true }),
    time('duration_ns', 'duration', (s) => s.duration_ns),
    time('cpu_wait_ns', 'waited for CPU', (s) => s.cpu_wait_ns, { hint: 'Time for which the threads waited for a processor since the step before, summed over the threads', exact: waited, width: 112 }),
    bytes('bytes_read', 'read', (s) => s.bytes_read),
    bytes('bytes_written', 'written', (s) => s.bytes_written),
    number('accesses', 'accesses', 78, (s) => s.accesses, formatCount, { greatestFirst: true }),
    number('ops_timed', 'ops', 62, (s) => s.ops_timed, formatCount, { greatestFirst: true }),
    number('template', 'graph', 58, (s) => s.template, String),
    number('threads', 'threads', 62, (s) => s.threads, String, { hidden: true }),
    number('begin_ns', 'begin', 84, (s) => s.begin_ns, formatNs, { exact: (s) => exactNs(s.begin_ns) }),
  ];
}

// ---- Accesses -------------------------------------------------------------------------

const field =
  (key: string) =>
  (row: AccessRow): string | number | null =>
    row[key] ?? null;
const count =
  (key: string) =>
  (row: AccessRow): number | null => {
    const value = row[key] ?? null;
    return value === null ? null : Number(value);
  };
const named =
  (key: string, name: (value: string) => string) =>
  (row: AccessRow): string =>
    name(String(row[key] ?? '–'));
const way = (row: AccessRow): string => (row.write === 1 ? 'write' : 'read');

export function accessColumns(data: TraceData): readonly TableColumn<AccessRow>[] {
  const words = (row: AccessRow): string => wordsOf(data, data.steps[Number(row.step)]);
  // prettier-ignore
  return [
    number('step', 'step', 56, count('step'), String),
    text('text', 'token', 84, words, { mono: true, unsortable: true, sql: null, name: 'text of the token', hint: 'The tokens that the step evaluates' }),
    number('op', 'op', 52, count('op'), String, { name: 'index of the op', hint: 'Index of the op in its step' }),
    text('operation_type', 'op type', 110, field('operation_type'), { mono: true }),
    text('write', 'access', 56, way, { tone: way }),
    text('tensor_name', 'tensor', 150, field('tensor_name'), { mono: true }),
    bytes('size_bytes', 'bytes', count('size_bytes')),
    number('layer_id', 'layer', 48, count('layer_id'), String, { hint: 'Layer of the tensor' }),
    text('component', 'component', 84, field('component'), { text: named('component', componentName), tone: (row) => String(row.component ?? '') }),
    text('role', 'role', 60, field('role'), { hidden: true }),
    text('tensor_kind', 'kind', 86, field('tensor_kind'), { text: named('tensor_kind', kindName) }),
    text('tensor_type', 'type', 52, field('tensor_type'), { hidden: true }),
    text('memory_source', 'source', 108, field('memory_source'), { text: named('memory_source', sourceName) }),
    number('file_offset', 'file offset', 106, count('file_offset'), formatCount),
    text('extent', 'extent', 62, field('extent'), { hidden: true, hint: 'Part of the tensor that is touched' }),
    number('expert_id', 'expert', 54, count('expert_id'), String),
    number('expert_rank', 'rank', 48, count('expert_rank'), String, { hidden: true, name: 'rank of the expert' }),
    number('routing_score', 'score', 58, count('routing_score'), (n) => n.toFixed(4), { hidden: true, name: 'routing score', greatestFirst: true }),
    time('duration_ns', 'op duration', count('duration_ns'), { hint: 'Of the op, not of one access', name: 'duration of the op' }),
    number('timestamp_ns', 'op begin', 90, count('timestamp_ns'), formatNs, { hidden: true, name: 'begin of the op', exact: (row) => exactNs(Number(row.timestamp_ns)) }),
    number('token_id', 'first token', 78, count('token_id'), String, { hidden: true }),
    text('phase', 'phase', 76, field('phase'), { hidden: true }),
    text('device', 'device', 56, field('device'), { hidden: true }),
  ];
}

export const accessOf = (
  row: AccessRow,
): { readonly step: number; readonly op: number; readonly access: number; readonly part: number } => ({
  step: Number(row.step),
  op: Number(row.op),
  access: Number(row.access),
  part: Number(row.part),
}); // prettier-ignore

// ---- Totals ---------------------------------------------------------------------------

// `ofExperts`: the totals are of experts, which some tokens of a prompt used.
export function tokenColumns(
  data: TraceData,
  ofExperts: boolean,
): readonly TableColumn<TokenTotal>[] {
  const words = ({ step, routed }: TokenTotal): string =>
    routed === null
      ? wordsOf(data, data.steps[step])
      : routed.map((one) => tokenText(data.tokens[one])).join(' ');
  // prettier-ignore
  return [
    ofExperts
      ? text('tokens', 'tokens', 104, tokensText, { grow: 1, unsortable: true, sql: null, hint: 'Those that the router sent to these experts' })
      : number('token_id', 'token', 74, (row) => row.token_id, String, { text: tokensText }),
    text('text', 'text', 104, words, { grow: 1, mono: true, unsortable: true, sql: null }),
    number('step', 'step', 56, (row) => row.step, String),
    text('phase', 'phase', 72, (row) => row.phase),
    number('accesses', 'accesses', 74, (row) => row.accesses, formatCount, { greatestFirst: true }),
    bytes('bytes_read', 'read', (row) => row.bytes_read),
    bytes('bytes_written', 'written', (row) => row.bytes_written),
    time('time', 'op time', (row) => row.time, { hint: ofExperts ? 'The part of these experts in the time of their ops' : 'Of the ops that make these accesses' }),
  ];
}

// The tokens of a prompt are evaluated together: they are one row.
const tokensText = ({ token_id: first, token_count: count, routed }: TokenTotal): string =>
  routed !== null ? routed.join(', ') : count > 1 ? `${first}–${first + count - 1}` : String(first);

// As on the axes of the map.
const groupName = (by: Group, name: string): string =>
  by === 'source'
    ? sourceName(name)
    : by === 'component'
      ? componentName(name)
      : by === 'layer'
        ? layerName(name)
        : name;

// `whole`: the sums of all rows, for shares. `steps`: the rows have the time in one step, by which the
// server sorts them, and their shares and rates are of this time, as in the summary; bytes and counts
// are sums. The keys are those that it sorts by.
export function groupColumns(
  by: Group,
  whole: Pick<BreakdownRow['all'], 'time_ns' | 'bytes_read' | 'bytes_written'>,
  steps: boolean,
): readonly TableColumn<BreakdownRow>[] {
  const T = TOTAL_TITLES;
  const touched = (row: BreakdownRow): number => row.all.bytes_read + row.all.bytes_written;
  const share = (part: number, all: number): number => (all > 0 ? part / all : 0);
  const allBytes = whole.bytes_read + whole.bytes_written;
  const ofTime = (row: BreakdownRow): number => share(row.all.time_ns, whole.time_ns);
  const perSecond = (r: number): string => `${formatBytes(Math.round(r))}/s`;
  // prettier-ignore
  const times = steps
    ? [
        ...(['median', 'p5', 'p95'] as const).map(inAStep),
        number<BreakdownRow>('time_share', T.time_share, 74, (row) => row.step_ns?.share ?? null, exactPercent, { unsortable: true, hint: 'The median as a part of the median of a whole step. Medians do not add up to 100 %' }),
        time<BreakdownRow>('time_sum', T.time_sum, (row) => row.all.time_ns, { hidden: true, unsortable: true, hint: 'Over all steps, also those that the medians leave out' }),
      ]
    : [
        time<BreakdownRow>('time', 'time', (row) => row.all.time_ns, { bar: ofTime }),
        number<BreakdownRow>('time_share', 'of time', 64, ofTime, percent, { unsortable: true }),
      ];
  // prettier-ignore
  return [
    text('name', GROUP_NAMES[by], by === 'tensor' ? 210 : 130, (row) => groupName(by, row.name), { grow: 1, mono: by === 'tensor', unsortable: true, ...(by === 'source' ? { exact: (row: BreakdownRow) => `${sourceName(row.name)}: ${sourceText(row.name)}` } : {}) }),
    ...times,
    bytes('bytes', T.bytes, touched, { bar: (row) => share(touched(row), allBytes) }),
    number('bytes_share', T.bytes_share, 66, (row) => share(touched(row), allBytes), percent, { unsortable: true }),
    bytes('bytes_read', T.bytes_read, (row) => row.all.bytes_read),
    bytes('bytes_written', T.bytes_written, (row) => row.all.bytes_written),
    number('reads', T.reads, 74, (row) => row.all.reads, formatCount, { greatestFirst: true }),
    number('writes', T.writes, 74, (row) => row.all.writes, formatCount, { greatestFirst: true }),
    number('executions', T.executions, 74, (row) => row.all.executions, formatCount, { greatestFirst: true, hint: 'Executed ops' }),
    number('faults', T.faults, 78, (row) => row.all.faults, formatCount, { greatestFirst: true, hint: 'Major page faults' }),
    steps
      ? number('rate', T.rate, 92, (row) => row.step_ns?.bytes_per_second ?? null, perSecond, { unsortable: true, hint: 'Bytes of the mean step per second of the median time' })
      : number('rate', T.rate, 92, (row) => row.all.bytes_per_second, perSecond, { unsortable: true, hint: 'Bytes per second' }),
  ];
}

const inAStep = (key: 'median' | 'p5' | 'p95'): TableColumn<BreakdownRow> =>
  time(
    key === 'median' ? 'time' : key,
    key === 'median' ? TOTAL_TITLES.time : key,
    (row) => row.step_ns?.[key] ?? null,
    {
      ...(key === 'median'
        ? { bar: (row: BreakdownRow) => row.step_ns?.share ?? 0 }
        : { unsortable: true }),
      exact: (row) =>
        row.step_ns ? `${exactNs(row.step_ns[key])}, of ${plural(row.step_ns.steps, 'step')}` : '',
      hint: 'Time in one step; which steps count is said above the table',
    },
  );

const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
// As many digits as the sentences of the server.
const exactPercent = (share: number): string => `${Number((100 * share).toPrecision(3))} %`;
