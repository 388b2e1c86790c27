// The x axis of the heat map: one column per token that a step processed, in step order. A step of
// n tokens (a prompt) has n adjacent columns. Tokens that no step processed (taken from the cache,
// or sampled last and never evaluated) have a column without a value.
import type { TraceData } from '../state/trace_data';
import type { PhaseFilter } from '../state/view';

export const NO_STEP = -1;
export const IN_FLIGHT = -2;

export interface Columns {
  readonly count: number;
  readonly step: Int32Array; // by column: index, NO_STEP or IN_FLIGHT
  readonly token: Int32Array; // by column
  readonly firstOfStep: Int32Array; // first column by step; -1: not arrived
  readonly ofToken: Int32Array; // last column by token; -1: none
}

// With a phase filter, only steps of the phase have columns, and tokens without a step have none.
export function columnsOf(data: TraceData, phase: PhaseFilter = 'all'): Columns {
  const step: number[] = [];
  const token: number[] = [];
  const firstOfStep = new Int32Array(data.steps.length).fill(-1);
  let next = 0; // first token without a column
  const gapUntil = (end: number): void => {
    if (phase !== 'all') next = Math.max(next, end);
    for (; next < end; next += 1) {
      step.push(NO_STEP);
      token.push(next);
    }
  };
  for (const one of data.steps) {
    if (!one) continue;
    if (phase !== 'all' && one.phase !== phase) continue;
    gapUntil(one.first_token);
    firstOfStep[one.step] = step.length;
    for (let i = 0; i < one.n_tokens; i += 1) {
      step.push(one.step);
      token.push(one.first_token + i);
    }
    next = Math.max(next, one.first_token + one.n_tokens);
  }
  const { flight } = data;
  // Assumes that the step in flight processes one token, as nearly all generated steps do.
  if (flight?.layersNs && flight.step === data.steps.length && phase !== 'prompt') {
    step.push(IN_FLIGHT);
    token.push(next);
    next += 1;
  }
  gapUntil(data.tokens.length);
  const ofToken = new Int32Array(next).fill(-1);
  token.forEach((index, column) => {
    ofToken[index] = column;
  });
  return {
    count: step.length,
    step: Int32Array.from(step),
    token: Int32Array.from(token),
    firstOfStep,
    ofToken,
  };
}
