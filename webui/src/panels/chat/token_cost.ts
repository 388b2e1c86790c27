// The time of each token as one of a few levels, to tint the text. Pure functions.
import { fractionOf, scaleOf, type Scale } from '../../plane/scale';
import type { TraceData } from '../../state/session/trace_data';
import type { Mark } from './highlights';

export const COST_MARKS = [
  'token-cost-1',
  'token-cost-2',
  'token-cost-3',
  'token-cost-4',
  'token-cost-5',
] as const satisfies readonly Mark[];
const COST_LEVELS = COST_MARKS.length;

// By token, in ns; 0: not known. The time of a step is divided equally among its tokens, as in the
// map.
function timesOf(data: TraceData): Float32Array {
  const times = new Float32Array(data.tokens.length);
  for (const step of data.steps) {
    if (!step || step.dropped) continue;
    const each = (step.end_ns - step.begin_ns) / step.token_count;
    for (let i = 0; i < step.token_count; i += 1) {
      const token = step.token_id + i;
      times[token] = (times[token] ?? 0) + each;
    }
  }
  return times;
}

// What the first and the last level mean.
export const costScale = (data: TraceData): Scale => scaleOf([timesOf(data)], true);

// By token: 1..5, on a logarithmic scale; 0: no time is known.
export function costLevels(data: TraceData): Uint8Array {
  const times = timesOf(data);
  const scale = scaleOf([times], true);
  return Uint8Array.from(times, (time) =>
    time > 0 ? 1 + Math.min(COST_LEVELS - 1, Math.floor(fractionOf(time, scale) * COST_LEVELS)) : 0,
  );
}
