// What a cell of the heat map means, in words: for the tip beside the pointer
// and for those who cannot see it.
import { exactBytes, exactNs, formatBytes, formatNs, plural, visibleText } from '../../format';
import { cellValue } from '../../raster/heat';
import { IN_FLIGHT, type Columns } from '../../raster/columns';
import type { Hit } from '../../raster/view';
import type { Metric } from '../../state/settings';
import type { TraceData } from '../../state/trace_data';

export interface CellText {
  readonly token: string; // its text, invisible characters shown
  readonly head: string;
  readonly lines: readonly (readonly [name: string, value: string])[];
}

export function describeCell(
  data: TraceData,
  columns: Columns,
  metric: Metric,
  { column, row }: Hit,
): CellText {
  const index = columns.token[column] ?? 0;
  const token = data.tokens[index];
  const stepIndex = columns.step[column] ?? -1;
  const step = stepIndex >= 0 ? data.steps[stepIndex] : undefined;
  const outside = row === data.rows() - 1;
  const lines: [string, string][] = [];
  if (row !== null) lines.push(['layer', outside ? 'outside of layers' : String(row)]);
  const value = row === null ? NaN : cellValue(data, columns, metric, column, row);
  if (value >= 0) {
    const share = step && step.n_tokens > 1;
    lines.push([metric === 'ns' ? 'time' : 'bytes', both(value, metric)]);
    if (share) lines.push([`all ${step.n_tokens} tokens`, both(value * step.n_tokens, metric)]);
  }
  if (step) {
    lines.push(['step', `${step.step}, ${step.phase}, ${plural(step.ops, 'op')}`]);
    lines.push([
      'whole step',
      step.dropped ? 'times lost' : both(step.end_ns - step.begin_ns, 'ns'),
    ]);
    lines.push(['timing', step.aborted ? `${step.timing}, aborted` : step.timing]);
  } else {
    const why = token?.reused
      ? 'taken from the cache, not computed'
      : stepIndex === IN_FLIGHT
        ? `in flight, ${plural(data.flight?.ops ?? 0, 'op')} so far`
        : 'not computed';
    lines.push(['step', why]);
  }
  return {
    token: token ? visibleText(token.text) || `#${token.id}` : '',
    head: `token ${index}${token ? `, id ${token.id}` : ''}`,
    lines,
  };
}

function both(value: number, metric: Metric): string {
  const whole = Math.round(value);
  return metric === 'ns'
    ? `${formatNs(value)} (${exactNs(whole)})`
    : `${formatBytes(whole)} (${exactBytes(whole)})`;
}
