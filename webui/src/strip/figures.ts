// The figures beside the strip. Pure functions.
import { formatBytes, formatNs } from '../format';
import type { Run } from '../net/types';
import { speedOf } from '../state/speed';
import type { TraceData } from '../state/trace_data';

export interface Figure {
  readonly name: string;
  readonly value: string;
  readonly hint: string;
}

// `waits`: major page faults of the session; null: unknown.
export function figuresOf(
  data: TraceData,
  run: Run | null,
  active: boolean,
  waits: number | null,
): readonly Figure[] {
  const { tokens, bytes, ns } = data.stepTotals.generated;
  const figures: Figure[] = [];
  if (tokens > 0) {
    figures.push({
      name: 'per token',
      value: formatBytes(Math.round(bytes / tokens)),
      hint: 'Bytes read and written per generated token',
    });
  }
  if (ns > 0) {
    const gigabytes = bytes / ns;
    figures.push({
      name: 'bandwidth',
      value: `${Number(gigabytes.toPrecision(3))} GB/s`,
      hint: 'Bytes read and written per second of computing',
    });
  }
  const speed = active ? speedOf(data) : ns > 0 ? (tokens * 1e9) / ns : null;
  if (speed !== null) {
    figures.push({
      name: 'speed',
      value: `${speed >= 100 ? speed.toFixed(0) : speed.toFixed(1)} tokens/s`,
      hint: active
        ? 'Generated tokens per second, of the last steps'
        : 'Generated tokens per second of computing',
    });
  }
  if (waits !== null) {
    figures.push({
      name: 'disk waits',
      value: String(Math.round(waits)),
      hint: 'Major page faults: evaluation waited for the disk',
    });
  }
  const left = run && active ? run.max_tokens - run.generated : 0;
  if (speed !== null && speed > 0 && left > 0) {
    figures.push({
      name: 'time left',
      value: formatNs((left / speed) * 1e9),
      hint: 'Time until the token limit, at this speed',
    });
  }
  return figures;
}
