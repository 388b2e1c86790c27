// The description of a heat map cell, for the tooltip and for screen readers.
import { exactBytes, exactNs, formatBytes, formatNs, plural, visibleText } from '../../format';
import { IN_FLIGHT, type Columns } from '../../raster/columns';
import { cellValue } from '../../raster/layer_values';
import type { Hit } from '../../raster/view';
import type { Metric } from '../../state/settings';
import type { TraceData } from '../../state/trace_data';

export interface CellText {
  readonly token: string; // its text, with visible whitespace
  readonly head: string;
  readonly lines: readonly (readonly [name: string, value: string])[];
}

export function describeCell(
  data: TraceData,
  columns: Columns,
  metric: Metric,
  { column, row }: Hit,
): CellText {
  const index = columns.token.at(column) ?? 0;
  const token = data.tokens[index];
  const stepIndex = columns.step.at(column) ?? -1;
  const step = stepIndex >= 0 ? data.steps[stepIndex] : undefined;
  const outside = row === data.rows() - 1;
  const lines: [string, string][] = [];
  if (row !== null) lines.push(['layer', outside ? 'none (embedding or output)' : String(row)]);
  const value = row === null ? NaN : cellValue(data, columns, metric, column, row);
  if (value >= 0) {
    const share = step && step.token_count > 1;
    const name = metric === 'ns' ? 'time' : 'bytes';
    lines.push([share ? `${name} (average)` : name, withExact(value, metric)]);
    if (share) {
      lines.push([
        `${step.token_count} tokens together`,
        withExact(value * step.token_count, metric),
      ]);
    }
  }
  if (step) {
    lines.push(['step', `${step.step}, ${step.phase}, ${plural(step.ops_timed, 'op')}`]);
    lines.push(['whole step', step.dropped ? 'times lost' : withExact(step.duration_ns, 'ns')]);
    lines.push(['timing', step.aborted ? `${step.timing}, aborted` : step.timing]);
  } else {
    const why = token?.reused
      ? 'taken from the cache, not computed'
      : stepIndex === IN_FLIGHT
        ? `running, ${plural(data.flight?.ops ?? 0, 'op')} so far`
        : 'not computed';
    lines.push(['step', why]);
  }
  return {
    token: token ? visibleText(token.text) || `#${token.id}` : '',
    head: `token ${index}${token ? `, id ${token.id}` : ''}`,
    lines,
  };
}

function withExact(value: number, metric: Metric): string {
  const whole = Math.round(value);
  return metric === 'ns'
    ? `${formatNs(value)} (${exactNs(whole)})`
    : `${formatBytes(whole)} (${exactBytes(whole)})`;
}
