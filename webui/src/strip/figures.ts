// The figures beside the strip. Pure functions.
import { formatBytes, formatNs, formatSpeed } from '../format';
import type { Run, Session } from '../net/types';
import type { RunLimit } from '../state/request/run_limit';
import { generationSpeed, speedHint, speedName } from '../state/session/speed';
import type { TraceData } from '../state/session/trace_data';

export interface Figure {
  readonly name: string;
  readonly value: string;
  readonly hint: string;
  readonly live?: boolean; // of this moment, while the model runs
}

// `limit`: of the run; null: none. `waits`: major page faults of the session; null: unknown.
export function figuresOf(
  data: TraceData,
  info: Session | null,
  run: Run | null,
  limit: RunLimit | null,
  active: boolean,
  waits: number | null,
): readonly Figure[] {
  const { tokens, bytesRead, bytes, ns } = data.stepTotals.generated;
  const figures: Figure[] = [];
  if (tokens > 0) {
    figures.push({
      name: 'read per token',
      value: formatBytes(Math.round(bytesRead / tokens)),
      hint: 'Bytes read per generated token: weights, KV cache or recurrent state, and intermediate results',
    });
  }
  if (ns > 0) {
    figures.push({
      name: 'bandwidth',
      value: `${formatBytes(Math.round((bytes / ns) * 1e9))}/s`,
      hint: 'Bytes read and written per second of computing',
    });
  }
  const speed = generationSpeed(data, info, active);
  if (speed !== null) {
    figures.push({
      name: speedName(active),
      value: formatSpeed(speed),
      hint: speedHint(active),
      live: active,
    });
  }
  if (waits !== null) {
    figures.push({
      name: 'disk waits',
      value: String(Math.round(waits)),
      hint: 'Major page faults: evaluation waited for the disk',
    });
  }
  const left = run && limit && active ? limit.tokens - run.generated : 0;
  if (speed !== null && speed > 0 && left > 0) {
    figures.push({
      name: 'time left',
      value: formatNs((left / speed) * 1e9),
      live: true,
      hint: `Time until the ${limit?.isContext ? 'context is full' : 'token limit'}, at this speed`,
    });
  }
  return figures;
}
