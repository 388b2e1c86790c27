// The tokens and step summaries of the open session. They arrive live in order, or over HTTP in
// any order and possibly repeatedly. The arrays may have tens of thousands of entries and are
// changed in place; SessionFeed increments a version for the views. Views read only what is new:
// `stepArrivals` lists the steps in the order in which they arrived, tokens normally arrive at the
// end. `stepRewrites` and `rewrites` of the tokens count the others.
import type { OpsFrame } from '../../net/frames';
import type { NewGraphOp } from '../../net/live_events';
import type { Op, StepSummary, Token } from '../../net/types';
import { growingInts } from './growing';
import { StepTotals, TokenTotals } from './step_totals';

// The step in flight, i.e. the step that the model is computing now.
export interface StepInFlight {
  readonly step: number;
  readonly ops: number; // done so far
  readonly endNs: number; // end of the last finished op
  readonly ns: number; // since the begin of its first op
  readonly op: number; // the last finished op
  // Time per layer so far; the last entry is for ops without a layer. Null until the layer of each
  // op is known from an earlier step of the same graph.
  readonly layersNs: readonly number[] | null;
}

// Which tokens of the prompt or of the answer have arrived.
class TokenArrivals {
  newest = -1; // the highest index
  rewrites = 0; // tokens that were replaced or arrived before the end of their part

  add(index: number): void {
    if (index <= this.newest) this.rewrites += 1;
    this.newest = Math.max(this.newest, index);
  }
}

export class TraceData {
  readonly tokens: (Token | undefined)[] = [];
  readonly steps: (StepSummary | undefined)[] = [];
  readonly stepTotals = new StepTotals();
  readonly tokenTotals = new TokenTotals();
  readonly stepArrivals = growingInts();
  stepRewrites = 0; // steps that were replaced
  // By part, because the prompt is read page by page while its answer arrives.
  readonly prompt = new TokenArrivals();
  readonly answer = new TokenArrivals();
  flight: StepInFlight | null = null;
  newOp: NewGraphOp | null = null; // that runs, of a graph that is seen for the first time
  private readonly firstStepOfToken = growingInts(); // -1: none
  private completeTokens = 0; // all tokens before this index have arrived
  private completeSteps = 0;
  // Row of each op by template: its layer, or the row after the last layer for ops without one.
  private readonly rowOfOp = new Map<number, Int32Array>();
  private expected: { readonly rows: number; readonly rowOf: Int32Array } | null = null;

  addToken(token: Token): void {
    const known = this.tokens[token.index];
    // The text of a streamed token is that of the answer: empty for a part of a character, with the
    // replacement of an invalid part before it. The recorded text is of the token alone.
    if (known?.id === token.id && known.generated && known.draft === token.draft) {
      if (known.text === '' || (token.text !== '' && known.text.endsWith(token.text))) return;
    }
    if (known && sameToken(known, token)) return;
    if (known) {
      this.tokenTotals.count(known, -1);
      this.partOf(known).rewrites += 1;
    }
    this.partOf(token).add(token.index);
    this.tokens[token.index] = token;
    this.tokenTotals.count(token, 1);
  }

  private partOf({ generated }: Token): TokenArrivals {
    return generated ? this.answer : this.prompt;
  }

  // Notes that a prompt token exists. Its live event has no text; the token is read over HTTP.
  announceToken(index: number): void {
    if (index >= this.tokens.length) this.tokens.length = index + 1;
  }

  addStep(step: StepSummary): void {
    const known = this.steps[step.step];
    if (known) {
      this.stepTotals.remove(known);
      this.stepRewrites += 1;
    } else {
      this.stepArrivals.push(step.step);
    }
    this.steps[step.step] = step;
    this.stepTotals.add(step);
    this.noteTokens(step);
    if (this.flight && step.step >= this.flight.step) this.flight = null;
    if (this.newOp && step.step >= this.newOp.step) this.newOp = null;
  }

  // The first step that processed a token as input; null if none did.
  stepOfToken(token: number): number | null {
    const step = this.firstStepOfToken.at(token) ?? -1;
    return step < 0 ? null : step;
  }

  private noteTokens({ step, token_id, token_count }: StepSummary): void {
    const list = this.firstStepOfToken;
    list.resize(Math.max(list.length, token_id + token_count), -1);
    for (let token = token_id; token < token_id + token_count; token += 1) {
      const known = list.at(token) ?? -1;
      if (known < 0 || step < known) list.set(token, step);
    }
  }

  // The first index at or after `from` that has not arrived.
  missingToken(from: number): number {
    return firstGap(this.tokens, from);
  }

  // The graph template of the last step that has one, that of a cancelled step only if there is no
  // other: it may lack layers. 0: none. A step whose data was lost has none.
  latestTemplate(): number {
    const has = (step: StepSummary | undefined): boolean => (step?.template ?? 0) !== 0;
    const latest = this.steps.findLast((step) => has(step) && step?.aborted === false);
    return (latest ?? this.steps.findLast(has))?.template ?? 0;
  }

  // The first steps that have not arrived, apart from `coming`, consecutive steps that will be added.
  // `to` is Infinity if no later step is known.
  missingSteps(coming: readonly StepSummary[] = []): {
    readonly from: number;
    readonly to: number;
  } {
    this.completeSteps = firstGap(this.steps, this.completeSteps);
    const begin = coming[0]?.step ?? Infinity;
    const end = begin + coming.length;
    let from = this.completeSteps;
    if (from >= begin && from < end) from = firstGap(this.steps, end);
    let to = from;
    while (to < this.steps.length && this.steps[to] === undefined) to += 1;
    if (to >= this.steps.length) to = Infinity;
    return { from, to: begin > from ? Math.min(to, begin) : to };
  }

  // The steps that arrived after the first `count` ones, in the order of their arrival.
  *arrivedAfter(count: number): Generator<StepSummary> {
    for (let i = count; i < this.stepArrivals.length; i += 1) {
      const step = this.steps[this.stepArrivals.at(i) ?? -1];
      if (step) yield step;
    }
  }

  hasGaps(): boolean {
    this.completeTokens = firstGap(this.tokens, this.completeTokens);
    this.completeSteps = firstGap(this.steps, this.completeSteps);
    return this.completeTokens < this.tokens.length || this.completeSteps < this.steps.length;
  }

  lastStep(): StepSummary | undefined {
    return this.steps[this.steps.length - 1];
  }

  // Also before the first step has ended, if its ops are expected to be those of an earlier session.
  rows(): number {
    return this.lastStep()?.layers.ns.length ?? this.expected?.rows ?? 0;
  }

  // The layers of the ops that the first step probably has. Its summary corrects what they are used for.
  expectOps(layers: readonly (number | null)[]): void {
    const outside = layers.reduce<number>((most, layer) => Math.max(most, layer ?? -1), -1) + 1;
    const rowOf = Int32Array.from(layers, (layer) => layer ?? outside);
    this.expected = { rows: outside + 1, rowOf };
  }

  // Stores the layer of each op of a template, from the ops of a finished step.
  learnTemplate(template: number, ops: readonly Op[]): void {
    if (this.rowOfOp.has(template)) return;
    const outside = this.rows() - 1;
    const rows = new Int32Array(ops.length).fill(outside);
    for (const op of ops) if (op.op_layer_id !== null) rows[op.op] = op.op_layer_id;
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
    const endNs = rows > 0 ? (frame.endNs[rows - 1] ?? 0) : (begun?.endNs ?? 0);
    this.flight = {
      step: frame.step,
      ops: Math.max(begun?.ops ?? 0, frame.firstOp + rows),
      endNs,
      ns: endNs - (begun ? begun.endNs - begun.ns : (frame.beginNs[0] ?? endNs)),
      op: rows > 0 ? (frame.op[rows - 1] ?? 0) : (begun?.op ?? 0),
      layersNs: this.flightLayers(begun, frame),
    };
  }

  private flightLayers(begun: StepInFlight | null, frame: OpsFrame): readonly number[] | null {
    // Assumes that the step in flight has the same graph as the step before it, which is nearly
    // always true. Its summary corrects the column.
    const last = this.lastStep();
    const known = last?.phase === 'generate' ? this.rowOfOp.get(last.template ?? 0) : undefined;
    const rowOf = last ? known : this.expected?.rowOf;
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

const sameToken = (a: Token, b: Token): boolean =>
  a.id === b.id &&
  a.text === b.text &&
  a.generated === b.generated &&
  a.reused === b.reused &&
  a.sequence === b.sequence &&
  a.draft === b.draft;

function firstGap(list: readonly unknown[], from: number): number {
  let at = from;
  while (at < list.length && list[at] !== undefined) at += 1;
  return at;
}
