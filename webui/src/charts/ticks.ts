// The marks of an axis of numbers. Pure functions.
import type { Unit } from './table';

// The size of the unit that the ticks are round numbers of.
function unitOf(unit: Unit, max: number): number {
  if (unit !== 'bytes' && unit !== 'bytes/s') return 1;
  return 1024 ** Math.max(0, Math.floor(Math.log2(Math.max(1, max)) / 10));
}

// From 0 to at least `max`: about `wanted` steps of 1, 2 or 5 times a power of ten.
export function ticks(max: number, unit: Unit, wanted: number): readonly number[] {
  if (!(max > 0)) return [0];
  const size = unitOf(unit, max);
  const rough = max / size / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((one) => one * power >= rough * 0.999) ?? 10;
  const by = (unit === 'count' ? Math.max(1, step * power) : step * power) * size;
  return Array.from({ length: Math.ceil(max / by - 1e-9) + 1 }, (_, i) => i * by);
}

// Powers of ten that enclose the values.
export function logTicks(min: number, max: number): readonly number[] {
  const from = Math.floor(Math.log10(min));
  const to = Math.max(from + 1, Math.ceil(Math.log10(max)));
  return Array.from({ length: to - from + 1 }, (_, i) => 10 ** (from + i));
}

// Every n-th of `count` names, so that each has `room` of the `length` pixels.
export const everyNth = (count: number, length: number, room: number): number =>
  Math.max(1, Math.ceil((count * room) / Math.max(1, length)));
