// The order in which playback shows a session: the steps of a phase in a range, one after the other,
// without the pauses between them. Pure functions.
import type { Op } from '../../net/types';
import { adjacentStep, isInPhase } from '../session/open_session';
import type { TraceData } from '../session/trace_data';
import type { PhaseFilter, RangeFilter } from './view';

// What is played.
export interface Passage {
  readonly first: number; // steps
  readonly last: number;
  readonly fromNs: number; // in the first step
  readonly toNs: number; // in the last step
}

// The part of the session that the phase and the range select; null: no step.
export function passageOf(
  data: TraceData,
  phase: PhaseFilter,
  range: RangeFilter | null,
): Passage | null {
  let [from, to] = [0, data.steps.length - 1];
  let [fromNs, toNs] = [-Infinity, Infinity];
  for (const part of [range?.x, range?.y]) {
    if (!part) continue;
    if (part.axis === 'step') [from, to] = [part.from, Math.min(to, part.to - 1)];
    else if (part.axis === 'token') {
      from = data.stepOfToken(part.from) ?? from;
      to = data.stepOfToken(part.to - 1) ?? to;
    } else if (part.axis === 'time') {
      [fromNs, toNs] = [part.from, part.to];
      from = firstEndingAfter(data, fromNs);
      to = Math.max(from, firstEndingAfter(data, toNs - 1));
      to = Math.min(to, data.steps.length - 1);
    }
  }
  const first = adjacentStep(data, phase, from - 1, 1);
  const last = adjacentStep(data, phase, to + 1, -1);
  if (first === null || last === null || first > last) return null;
  const [begin, end] = [data.steps[first], data.steps[last]];
  return {
    first,
    last,
    fromNs: Math.max(fromNs, begin?.begin_ns ?? 0),
    toNs: Math.min(toNs, end?.end_ns ?? 0),
  };
}

function firstEndingAfter({ steps }: TraceData, ns: number): number {
  let [low, high] = [0, steps.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((steps[middle]?.end_ns ?? 0) <= ns) low = middle + 1;
    else high = middle;
  }
  return low;
}

export interface Moment {
  readonly step: number;
  readonly ns: number; // since the start of the session
}

// The moment `by` ns later. At the end of the passage: its start if it is a loop, else null.
export function advance(
  data: TraceData,
  phase: PhaseFilter,
  { step, ns }: Moment,
  by: number,
  passage: Passage,
  loop: boolean,
): Moment | null {
  let at = step;
  let time = ns + by;
  // A frame can pass many short steps. Steps without times last no time.
  for (let passed = 0; passed < 10_000; passed += 1) {
    const end = at === passage.last ? passage.toNs : (data.steps[at]?.end_ns ?? 0);
    if (time < end) return { step: at, ns: time };
    const next = at >= passage.last ? null : adjacentStep(data, phase, at, 1);
    if (next === null) return loop ? { step: passage.first, ns: passage.fromNs } : null;
    const begin = data.steps[next]?.begin_ns ?? 0;
    time = begin + (time - end);
    at = next;
  }
  return { step: at, ns: data.steps[at]?.begin_ns ?? 0 };
}

// The op that runs at a time: the last one that has begun. Null: no op has a time.
export function opAt(ops: readonly Op[], ns: number): Op | null {
  let [low, high] = [0, ops.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ops[middle]?.timestamp_ns ?? 0) <= ns) low = middle + 1;
    else high = middle;
  }
  const op = ops[Math.max(0, low - 1)];
  return op && op.duration_ns !== null ? op : null;
}

export const isPlayed = (
  data: TraceData,
  phase: PhaseFilter,
  step: number,
  { first, last }: Passage,
): boolean => {
  const summary = data.steps[step];
  return summary !== undefined && step >= first && step <= last && isInPhase(summary, phase);
};
