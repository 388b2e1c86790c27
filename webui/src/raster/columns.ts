// The x axis of the heat map: one column per token that a step processed, in step order. A step of
// n tokens (a prompt) has n adjacent columns. Tokens that no step processed (taken from the cache,
// or sampled last and never evaluated) have a column without a value.
//
// Columns of steps are appended when the steps arrive. The last columns, of tokens without a step
// and of the step in flight, are provisional and replaced by each update.
import { growingInts, type Growing } from '../state/growing';
import type { TraceData } from '../state/trace_data';
import type { PhaseFilter } from '../state/view';

export const NO_STEP = -1;
export const IN_FLIGHT = -2;

export class Columns {
  readonly step: Growing<Int32Array> = growingInts(); // by column: index, NO_STEP or IN_FLIGHT
  readonly token: Growing<Int32Array> = growingInts(); // by column
  readonly firstOfStep: Growing<Int32Array> = growingInts(); // first column by step; -1: none
  readonly ofToken: Growing<Int32Array> = growingInts(); // last column by token; -1: none
  settled = 0; // number of columns that do not change any more
  generation = 0; // counts how often the columns were built again from the start
  readonly phase: PhaseFilter;
  private nextStep = 0;
  private nextToken = 0; // first token without a column
  private rewrites = 0;

  // With a phase filter, only steps of the phase have columns, and tokens without a step have none.
  constructor(phase: PhaseFilter = 'all') {
    this.phase = phase;
  }

  get count(): number {
    return this.step.length;
  }

  update(data: TraceData): void {
    if (data.stepRewrites !== this.rewrites) this.clear();
    this.rewrites = data.stepRewrites;
    this.step.length = this.token.length = this.settled;
    for (; this.nextStep < data.steps.length; this.nextStep += 1) this.addStep(data);
    this.settled = this.count;
    this.addProvisional(data);
  }

  private clear(): void {
    this.settled = this.nextStep = this.nextToken = 0;
    this.firstOfStep.length = this.ofToken.length = 0;
    this.generation += 1;
  }

  private addStep(data: TraceData): void {
    const one = data.steps[this.nextStep];
    this.firstOfStep.push(-1);
    if (!one || (this.phase !== 'all' && one.phase !== this.phase)) return;
    this.gapUntil(one.token_id);
    this.firstOfStep.set(one.step, this.count);
    for (let i = 0; i < one.token_count; i += 1) this.push(one.step, one.token_id + i);
    this.nextToken = Math.max(this.nextToken, one.token_id + one.token_count);
  }

  private addProvisional(data: TraceData): void {
    const settledToken = this.nextToken;
    const { flight } = data;
    // Assumes that the step in flight processes one token, as nearly all generated steps do.
    if (flight?.layersNs && flight.step === data.steps.length && this.phase !== 'prompt') {
      this.push(IN_FLIGHT, this.nextToken);
      this.nextToken += 1;
    }
    this.gapUntil(data.tokens.length);
    this.nextToken = settledToken;
  }

  private gapUntil(end: number): void {
    if (this.phase !== 'all') this.nextToken = Math.max(this.nextToken, end);
    for (; this.nextToken < end; this.nextToken += 1) this.push(NO_STEP, this.nextToken);
  }

  private push(step: number, token: number): void {
    this.ofToken.resize(Math.max(this.ofToken.length, token + 1), -1);
    this.ofToken.set(token, this.count);
    this.step.push(step);
    this.token.push(token);
  }
}

export function columnsOf(data: TraceData, phase: PhaseFilter = 'all'): Columns {
  const columns = new Columns(phase);
  columns.update(data);
  return columns;
}
