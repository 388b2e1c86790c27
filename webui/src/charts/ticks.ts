// The marks of an axis of numbers. Pure functions.
import type { Unit } from './table';

// Steps of an axis of minutes, in seconds: powers of ten of a second are odd numbers of minutes.
const MINUTE_STEPS = [15, 30, 60, 120, 300, 600, 900, 1800, 3600];

// From 0 to at least `max`: about `wanted` steps of 1, 2 or 5 times a power of ten, of bytes a power of two,
// as on the axes of the map.
export function ticks(max: number, unit: Unit, wanted: number): readonly number[] {
  if (!(max > 0)) return [0];
  const rough = max / Math.max(1, wanted);
  if (unit === 'bytes' || unit === 'bytes/s')
    return stepsTo(max, 2 ** Math.max(0, Math.ceil(Math.log2(rough * 0.999))));
  const round = unit === 'ns' && max >= 60e9 ? MINUTE_STEPS.find((s) => s * 1e9 >= rough * 0.999) : undefined; // prettier-ignore
  if (round !== undefined) return stepsTo(max, round * 1e9);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((one) => one * power >= rough * 0.999) ?? 10;
  return stepsTo(max, unit === 'count' ? Math.max(1, step * power) : step * power);
}

const stepsTo = (max: number, by: number): readonly number[] =>
  Array.from({ length: Math.ceil(max / by - 1e-9) + 1 }, (_, i) => i * by);

// 1, 2 and 5 times powers of ten that enclose the values; only the powers over more than three of them.
export function logTicks(min: number, max: number): readonly number[] {
  const from = Math.floor(Math.log10(min));
  const to = Math.max(from + 1, Math.ceil(Math.log10(max)));
  const by = to - from > 3 ? [1] : [1, 2, 5];
  const all = Array.from({ length: to - from + 1 }, (_, i) => i).flatMap((i) => by.map((one) => one * 10 ** (from + i))); // prettier-ignore
  const first = all.findLastIndex((one) => one <= min);
  const last = all.findIndex((one) => one >= max);
  return all.slice(Math.max(0, first), Math.max(last, first + 1) + 1);
}

// Every n-th of `count` names, so that each has `room` of the `length` pixels.
export const everyNth = (count: number, length: number, room: number): number =>
  Math.max(1, Math.ceil((count * room) / Math.max(1, length)));
