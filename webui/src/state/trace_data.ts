// The tokens and step summaries of the open session. They arrive live in order, or over HTTP in
// any order and possibly repeatedly. The arrays may have tens of thousands of entries and are
// changed in place; SessionFeed increments a version for the views.
import type { OpsFrame } from '../net/frames';
import type { Op, StepSummary, Token } from '../net/types';

// The step in flight, i.e. the step that the model is computing now.
export interface StepInFlight {
  readonly step: number;
  readonly ops: number; // done so far
  readonly endNs: number; // end of the last finished op
  // Time per layer so far; the last entry is for ops without a layer. Null until the layer of each
  // op is known from an earlier step of the same graph.
  readonly layersNs: readonly number[] | null;
}

export class TraceData {
  readonly tokens: (Token | undefined)[] = [];
  readonly steps: (StepSummary | undefined)[] = [];
  flight: StepInFlight | null = null;
  // Row of each op by template: its layer, or the row after the last layer for ops without one.
  private readonly rowOfOp = new Map<number, Int32Array>();

  addToken(token: Token): void {
    const known = this.tokens[token.index];
    // A token streamed with empty text (an incomplete character) is not replaced by the placeholder
    // of the recorded token.
    if (known?.id === token.id && known.generated && known.text === '') return;
    this.tokens[token.index] = token;
  }

  // Notes that a prompt token exists. Its live event has no text; the token is read over HTTP.
  announceToken(index: number): void {
    if (index >= this.tokens.length) this.tokens.length = index + 1;
  }

  addStep(step: StepSummary): void {
    this.steps[step.step] = step;
    if (this.flight && step.step >= this.flight.step) this.flight = null;
  }

  // The first index at or after `from` that has not arrived.
  missingToken(from: number): number {
    return firstGap(this.tokens, from);
  }

  missingStep(from: number): number {
    return firstGap(this.steps, from);
  }

  hasGaps(): boolean {
    return this.missingToken(0) < this.tokens.length || this.missingStep(0) < this.steps.length;
  }

  lastStep(): StepSummary | undefined {
    return this.steps[this.steps.length - 1];
  }

  rows(): number {
    return this.lastStep()?.layers.ns.length ?? 0;
  }

  // Stores the layer of each op of a template, from the ops of a finished step.
  learnTemplate(template: number, ops: readonly Op[]): void {
    if (this.rowOfOp.has(template)) return;
    const outside = this.rows() - 1;
    const rows = new Int32Array(ops.length).fill(outside);
    for (const op of ops) if (op.layer !== null) rows[op.op] = op.layer;
    this.rowOfOp.set(template, rows);
  }

  addOps(frame: OpsFrame): void {
    if (this.steps[frame.step]) return; // the summary arrived first
    if (frame.withdrawn) {
      this.flight = null;
      return;
    }
    const rows = frame.op.length;
    const begun = this.flight?.step === frame.step ? this.flight : null;
    this.flight = {
      step: frame.step,
      ops: Math.max(begun?.ops ?? 0, frame.firstOp + rows),
      endNs: rows > 0 ? (frame.endNs[rows - 1] ?? 0) : (begun?.endNs ?? 0),
      layersNs: this.flightLayers(begun, frame),
    };
  }

  private flightLayers(begun: StepInFlight | null, frame: OpsFrame): readonly number[] | null {
    // Assumes that the step in flight has the same graph as the step before it, which is nearly
    // always true. Its summary corrects the column.
    const last = this.lastStep();
    const rowOf = last?.phase === 'generate' ? this.rowOfOp.get(last.template) : undefined;
    if (!rowOf || (frame.firstOp > 0 && !begun?.layersNs)) return null;
    const layers = begun?.layersNs ? [...begun.layersNs] : new Array<number>(this.rows()).fill(0);
    for (let i = 0; i < frame.op.length; i += 1) {
      const row = rowOf[frame.op[i] ?? -1];
      if (row === undefined) return null; // another graph
      layers[row] = (layers[row] ?? 0) + (frame.endNs[i] ?? 0) - (frame.beginNs[i] ?? 0);
    }
    return layers;
  }
}

function firstGap(list: readonly unknown[], from: number): number {
  let at = from;
  while (at < list.length && list[at] !== undefined) at += 1;
  return at;
}
