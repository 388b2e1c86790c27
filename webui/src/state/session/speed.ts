// The speed of generation, the only rule for it on the page (webui/README.md).
import type { Session } from '../../net/types';
import type { TraceData } from './trace_data';

const SECOND = 1e9;
const MOST_STEPS = 512; // a faster model is measured over less than a second

// Generated tokens per second; null: too few of them. Of a finished run: the server's figure, as
// everywhere. While it runs: of the latest second.
export function generationSpeed(
  data: TraceData,
  info: Session | null,
  running: boolean,
): number | null {
  return running ? latestSpeed(data) : (info?.speed?.tokens_per_second ?? null);
}

// What the figure is of, beside it: a visitor must not compare the two.
export const speedBasis = (running: boolean): string =>
  running ? 'in the last second' : 'without the prompt';
export const speedName = (running: boolean): string =>
  running ? 'speed, last second' : 'speed, no prompt';

export const speedHint = (running: boolean): string =>
  running
    ? 'Generated tokens per second, in the last second'
    : 'Generated tokens after the first one, divided by the time from the first to the last one';

// Every step of phase generate ends with another token.
function latestSpeed({ steps }: TraceData): number | null {
  let tokens = 0;
  let [begin, end] = [0, 0];
  for (let i = steps.length - 1; i >= Math.max(0, steps.length - MOST_STEPS); i -= 1) {
    const step = steps[i];
    if (step?.phase !== 'generate') break;
    if (step.dropped || step.aborted) continue;
    if (tokens === 0) end = step.end_ns;
    tokens += step.token_count;
    begin = step.begin_ns;
    if (end - begin >= SECOND) break;
  }
  return end > begin ? (tokens * SECOND) / (end - begin) : null;
}
