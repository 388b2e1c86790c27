// Generated tokens per second over the last steps; null if there are too few.
import type { TraceData } from './trace_data';

const STEPS = 16;

export function speedOf(data: TraceData): number | null {
  const recent = data.steps
    .slice(-STEPS - 1)
    .filter((step) => step !== undefined)
    .filter((step) => step.phase === 'generate' && !step.dropped);
  const first = recent[0];
  const last = recent.at(-1);
  if (!first || !last || last.end_ns <= first.end_ns) return null;
  return (last.step - first.step) / ((last.end_ns - first.end_ns) / 1e9);
}
