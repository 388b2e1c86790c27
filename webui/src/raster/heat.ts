// Computes the colour levels of the heat map from the values of its cells.
import { EVALUATED, MARK, TOTAL, type LayerValues } from './layer_values';

export interface Scale {
  readonly min: number; // the darkest colour; lower values are clamped
  readonly max: number; // the brightest colour; higher values are clamped
  readonly clips: boolean; // some values exceed max
  readonly log: boolean;
}

// `max` is the maximum, or the 99.5th percentile if the maximum is more than twice as large: a
// single slow step (first read from disk) must not compress the colour scale.
export function scaleOf({ distribution }: LayerValues, log: boolean): Scale {
  const { largest } = distribution;
  const high = distribution.quantile(0.995);
  const max = largest > 2 * high ? high : largest;
  const min = log ? Math.min(distribution.quantile(0.005), max) : 0;
  return { min, max, clips: max < largest, log };
}

export const sameScale = (a: Scale, b: Scale): boolean =>
  a.min === b.min && a.max === b.max && a.clips === b.clips && a.log === b.log;

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
  // By pixel:
  readonly totals: Float32Array; // the maximum column total
  readonly marks: Uint8Array; // the Mark of the slowest timing; 0: no step
  readonly evaluated: Uint8Array; // 1: some column has a step with times
}

interface Range {
  readonly first: number;
  readonly last: number; // one past the last column
}

// The columns of a range in at most maxWidth pixels. A pixel of several columns shows their
// maximum, so that peaks stay visible.
export function rasterOf(
  values: LayerValues,
  scale: Scale,
  { first, last, maxWidth }: Range & { readonly maxWidth: number },
): Raster {
  const count = Math.max(0, last - first);
  const width = Math.min(count, Math.max(1, maxWidth));
  const { rows } = values;
  const levels = new Uint8Array(width * rows);
  const totals = new Float32Array(width);
  const marks = new Uint8Array(width);
  const evaluated = new Uint8Array(width);
  const maxima = new Float32Array(values.stride);
  for (let x = 0; x < width; x += 1) {
    const from = first + Math.ceil((x * count) / width);
    const to = first + Math.ceil(((x + 1) * count) / width);
    values.maxima(from, to, maxima);
    for (let row = 0; row < rows; row += 1)
      levels[row * width + x] = levelOf(maxima[row] ?? 0, scale);
    totals[x] = Math.max(0, maxima[rows + TOTAL] ?? 0);
    marks[x] = Math.max(0, maxima[rows + MARK] ?? 0);
    evaluated[x] = Math.max(0, maxima[rows + EVALUATED] ?? 0);
  }
  return { width, rows, levels, totals, marks, evaluated };
}

const SAMPLES = 512;

// By row: the median over the columns of a range with a value. Of more than SAMPLES columns, every
// 2nd, 4th... is read.
export function mediansOf(values: LayerValues, { first, last }: Range): readonly number[] {
  let stride = 1;
  while ((last - first) / stride > SAMPLES) stride *= 2;
  const begin = Math.ceil(first / stride) * stride;
  return Array.from({ length: values.rows }, (_, row) => {
    const sample: number[] = [];
    for (let column = begin; column < last; column += stride) {
      const value = values.value(column, row);
      if (value >= 0) sample.push(value);
    }
    sample.sort((a, b) => a - b);
    return sample[sample.length >> 1] ?? 0;
  });
}
