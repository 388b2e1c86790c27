// From values to colour levels.
import { quantile } from '../quantile';

export interface Scale {
  readonly min: number; // the first colour; lower values are clamped. Negative: values have signs
  readonly max: number; // the last colour; higher values are clamped
  readonly clips: boolean; // some values exceed max
  readonly log: boolean;
}

export const emptyScale: Scale = { min: 0, max: 0, clips: false, log: false };

export const sameScale = (a: Scale, b: Scale): boolean =>
  a.min === b.min && a.max === b.max && a.clips === b.clips && a.log === b.log;

const SAMPLES = 8192;

// The scale of positive values. `max` is the maximum, or the 99.5th percentile if the maximum is
// more than twice as large: a single slow step (first read from disk) must not compress the colour
// scale. Percentiles are estimated from some thousand values at fixed positions. Of signed values the
// scale is that of their absolute values, in both directions.
export function scaleOf(
  lists: readonly Float32Array[],
  log: boolean,
  signs: 'positive' | 'both' = 'positive',
): Scale {
  const count = lists.reduce((sum, list) => sum + list.length, 0);
  let stride = Math.max(1, Math.floor(count / SAMPLES));
  if (stride % 2 === 0) stride += 1; // not a divisor of usual widths
  const samples: number[] = [];
  let largest = 0;
  for (const list of lists) {
    for (let i = 0; i < list.length; i += 1) {
      const value = signs === 'both' ? Math.abs(list[i] ?? 0) : (list[i] ?? 0);
      if (value > largest) largest = value;
      if (i % stride === 0 && value > 0) samples.push(value);
    }
  }
  samples.sort((a, b) => a - b);
  const high = quantile(samples, 0.995) ?? largest;
  const max = largest > 2 * high ? high : largest;
  if (signs === 'both') return { min: -max, max, clips: max < largest, log: false };
  // If all values are equal, the scale begins at 0 as a linear one does.
  const low = Math.min(quantile(samples, 0.005) ?? largest, max);
  const min = log && low < max ? low : 0;
  return { min, max, clips: max < largest, log };
}

// The position of a value on the scale, 0..1.
export function fractionOf(value: number, { min, max, log }: Scale): number {
  if (!(max > min)) return value >= max ? 1 : 0;
  const part =
    log && min > 0 ? Math.log(value / min) / Math.log(max / min) : (value - min) / (max - min);
  return Math.min(1, Math.max(0, part));
}

// The value at a position of the scale.
export function valueAt(fraction: number, { min, max, log }: Scale): number {
  return log && min > 0 ? min * (max / min) ** fraction : min + fraction * (max - min);
}

// 1..255; 0: no value, or one that is not finite.
export function levelOf(value: number, scale: Scale): number {
  if (scale.min < 0 ? !Number.isFinite(value) : !(value > 0)) return 0;
  return 1 + Math.round(254 * fractionOf(value, scale));
}
