// The tokens and step summaries of the open session, as they arrive: live, in
// order, or in pages over HTTP, in any order and more than once. Grows to some
// ten thousand entries, so it is changed in place; the store counts a version
// up for the views that read it.
import type { OpsFrame } from '../net/frames';
import type { Op, StepSummary, Token } from '../net/types';

// What is known of the step that the model is computing now.
export interface Flight {
  readonly step: number;
  readonly ops: number; // done so far
  readonly endNs: number; // of the last of them
  // Time per layer so far, the last entry outside of any layer; null while no
  // step of the same graph has said which op belongs to which layer.
  readonly layersNs: readonly number[] | null;
}

export class TraceData {
  readonly tokens: (Token | undefined)[] = [];
  readonly steps: (StepSummary | undefined)[] = [];
  flight: Flight | null = null;
  // Layer of each op by template; the row after the last layer for ops outside.
  private readonly rowOfOp = new Map<number, Int32Array>();

  addToken(token: Token): void {
    const known = this.tokens[token.index];
    // A piece that streamed empty (an incomplete character) is not replaced by
    // the placeholder that a page of recorded tokens has for it.
    if (known?.id === token.id && known.generated && known.text === '') return;
    this.tokens[token.index] = token;
  }

  // A token is known to be there, its text is not: a live event says only what
  // the answer grows by, which is nothing for a token of the prompt.
  announceToken(index: number): void {
    if (index >= this.tokens.length) this.tokens.length = index + 1;
  }

  addStep(step: StepSummary): void {
    this.steps[step.step] = step;
    if (this.flight && step.step >= this.flight.step) this.flight = null;
  }

  // First index at or after `from` that has not arrived.
  missingToken(from: number): number {
    return firstHole(this.tokens, from);
  }

  missingStep(from: number): number {
    return firstHole(this.steps, from);
  }

  hasHoles(): boolean {
    return this.missingToken(0) < this.tokens.length || this.missingStep(0) < this.steps.length;
  }

  lastStep(): StepSummary | undefined {
    return this.steps[this.steps.length - 1];
  }

  rows(): number {
    return this.lastStep()?.layers.ns.length ?? 0;
  }

  // The ops of a finished step tell the layers of every step of its template.
  learnTemplate(template: number, ops: readonly Op[]): void {
    if (this.rowOfOp.has(template)) return;
    const outside = this.rows() - 1;
    const rows = new Int32Array(ops.length).fill(outside);
    for (const op of ops) if (op.layer !== null) rows[op.op] = op.layer;
    this.rowOfOp.set(template, rows);
  }

  addOps(frame: OpsFrame): void {
    if (this.steps[frame.step]) return; // the summary came first
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

  private flightLayers(begun: Flight | null, frame: OpsFrame): readonly number[] | null {
    // The step in flight is taken to have the graph of the one before it, which
    // holds for nearly all; its summary corrects the column when it ends.
    const last = this.lastStep();
    const rowOf = last?.phase === 'generate' ? this.rowOfOp.get(last.template) : undefined;
    if (!rowOf || (frame.firstOp > 0 && !begun?.layersNs)) return null;
    const layers = begun?.layersNs ? [...begun.layersNs] : new Array<number>(this.rows()).fill(0);
    for (let i = 0; i < frame.op.length; i += 1) {
      const row = rowOf[frame.op[i] ?? -1];
      if (row === undefined) return null; // a longer graph: not the same one
      layers[row] = (layers[row] ?? 0) + (frame.endNs[i] ?? 0) - (frame.beginNs[i] ?? 0);
    }
    return layers;
  }
}

function firstHole(list: readonly unknown[], from: number): number {
  let at = from;
  while (at < list.length && list[at] !== undefined) at += 1;
  return at;
}
