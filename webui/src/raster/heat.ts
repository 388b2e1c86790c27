// Computes the colour levels of the heat map. A cell is the time or bytes of one token in one
// layer. The total of a step with several tokens is divided equally among them, so that prompt and
// generated tokens are comparable.
import type { Metric } from '../state/settings';
import type { TraceData } from '../state/trace_data';
import { IN_FLIGHT, NO_STEP, type Columns } from './columns';

export interface Scale {
  readonly min: number; // the darkest colour; lower values are clamped
  readonly max: number; // the brightest colour; higher values are clamped
  readonly clips: boolean; // some values exceed max
  readonly log: boolean;
}

// The value of a cell; NaN if there is none.
export function cellValue(
  data: TraceData,
  columns: Columns,
  metric: Metric,
  column: number,
  row: number,
): number {
  const index = columns.step[column] ?? NO_STEP;
  if (index === NO_STEP) return NaN;
  if (index === IN_FLIGHT) {
    return metric === 'ns' ? (data.flight?.layersNs?.[row] ?? NaN) : NaN;
  }
  const step = data.steps[index];
  if (!step || (metric === 'ns' && step.dropped)) return NaN;
  return (step.layers[metric][row] ?? NaN) / step.n_tokens;
}

const SAMPLES = 4096;

// `max` is the maximum, or the 99.5th percentile if the maximum is more than twice as large: a
// single slow step (first read from disk) must not compress the colour scale. Percentiles are
// estimated from a few thousand samples.
export function scaleOf(data: TraceData, metric: Metric, log: boolean): Scale {
  const rows = data.rows();
  const stride = Math.max(1, Math.ceil((data.steps.length * rows) / SAMPLES));
  const samples: number[] = [];
  let largest = 0;
  let at = 0;
  for (const step of data.steps) {
    if (!step || (metric === 'ns' && step.dropped)) continue;
    for (const total of step.layers[metric]) {
      const value = total / step.n_tokens;
      if (value > largest) largest = value;
      if (at % stride === 0 && value > 0) samples.push(value);
      at += 1;
    }
  }
  samples.sort((a, b) => a - b);
  const quantile = (q: number): number => samples[Math.floor(q * (samples.length - 1))] ?? 0;
  const high = quantile(0.995);
  const max = largest > 2 * high ? high : largest;
  const min = log ? Math.min(quantile(0.005), max) : 0;
  return { min, max, clips: max < largest, log };
}

// 1..255; 0: no value.
export function levelOf(value: number, scale: Scale): number {
  if (!(value > 0)) return 0;
  return 1 + Math.round(254 * fractionOf(value, scale));
}

// The position of a value on the scale, 0..1.
export function fractionOf(value: number, { min, max, log }: Scale): number {
  if (!(max > min)) return value >= max ? 1 : 0;
  const part = log ? Math.log(value / min) / Math.log(max / min) : (value - min) / (max - min);
  return Math.min(1, Math.max(0, part));
}

export interface Raster {
  readonly width: number; // pixels; each covers one or more columns
  readonly rows: number;
  readonly levels: Uint8Array; // row-major
}

// Columns first..last-1 in at most maxWidth pixels. A pixel of several columns shows their
// maximum, so that peaks stay visible.
export function rasterOf(
  data: TraceData,
  columns: Columns,
  metric: Metric,
  scale: Scale,
  range: { readonly first: number; readonly last: number; readonly maxWidth: number },
): Raster {
  const count = Math.max(0, range.last - range.first);
  const width = Math.min(count, Math.max(1, range.maxWidth));
  const rows = data.rows();
  const levels = new Uint8Array(width * rows);
  for (let i = 0; i < count; i += 1) {
    const column = range.first + i;
    const x = Math.floor((i * width) / count);
    for (let row = 0; row < rows; row += 1) {
      const level = levelOf(cellValue(data, columns, metric, column, row), scale);
      const at = row * width + x;
      if (level > (levels[at] ?? 0)) levels[at] = level;
    }
  }
  return { width, rows, levels };
}

// sums: by raster pixel, the maximum column total. means: by row, the mean over the columns with a
// value.
export function totalsOf(
  data: TraceData,
  columns: Columns,
  metric: Metric,
  range: { readonly first: number; readonly last: number; readonly width: number },
): { readonly sums: readonly number[]; readonly means: readonly number[] } {
  const { first, last, width } = range;
  const rows = data.rows();
  const sums = new Array<number>(width).fill(0);
  const means = new Array<number>(rows).fill(0);
  let counted = 0;
  for (let column = first; column < last; column += 1) {
    let sum = 0;
    for (let row = 0; row < rows; row += 1) {
      const value = cellValue(data, columns, metric, column, row);
      if (!(value >= 0)) continue;
      sum += value;
      means[row] = (means[row] ?? 0) + value;
    }
    if (sum > 0) counted += 1;
    const x = Math.floor(((column - first) * width) / (last - first));
    sums[x] = Math.max(sums[x] ?? 0, sum);
  }
  return { sums, means: means.map((sum) => (counted > 0 ? sum / counted : 0)) };
}
