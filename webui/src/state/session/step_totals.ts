// Counts over all steps and tokens that arrived, updated with each of them: no view has to read
// the whole session again when it grows.
import type { Phase, StepSummary, Token } from '../../net/types';
import type { PhaseFilter } from '../view/view';
import { inAnswer, isRejected } from './token_origin';

export class StepTotals {
  steps = 0;
  accesses = 0;
  ns = 0; // from begin to end of each
  dropped = 0; // evaluations whose times were lost
  // Of generated tokens whose step has times.
  readonly generated = { tokens: 0, bytesRead: 0, bytes: 0, ns: 0, sampleNs: 0 };
  withLayers = 0; // steps with times or bytes per layer
  readonly timing = new Map<string, number>(); // number of steps
  private readonly byPhase = new Map<Phase, { steps: number; first: number; last: number }>();

  add(step: StepSummary): void {
    this.addCounts(step, 1);
    const phase = this.byPhase.get(step.phase) ?? { steps: 0, first: Infinity, last: -1 };
    phase.steps += 1;
    phase.first = Math.min(phase.first, step.step);
    phase.last = Math.max(phase.last, step.step);
    this.byPhase.set(step.phase, phase);
  }

  // `step` is replaced by another summary of the same step.
  remove(step: StepSummary): void {
    this.addCounts(step, -1);
    const phase = this.byPhase.get(step.phase);
    if (phase) phase.steps -= 1;
  }

  count(phase: Phase): number {
    return this.byPhase.get(phase)?.steps ?? 0;
  }

  has(phase: Phase): boolean {
    return this.count(phase) > 0;
  }

  // The first step of a phase; null: none.
  first(phase: Phase): number | null {
    const of = this.byPhase.get(phase);
    return of && of.steps > 0 ? of.first : null;
  }

  // The newest step of a phase; -1: none.
  last(phase: PhaseFilter): number {
    if (phase !== 'all') return this.byPhase.get(phase)?.last ?? -1;
    return Math.max(-1, ...[...this.byPhase.values()].map(({ last }) => last));
  }

  private addCounts(step: StepSummary, by: 1 | -1): void {
    this.steps += by;
    this.accesses += by * step.accesses;
    this.ns += by * step.duration_ns;
    // A dropped step with several generated tokens joins that many evaluations.
    if (step.dropped) this.dropped += by * (step.phase === 'generate' ? step.token_count : 1);
    if (hasValues(step.layers)) this.withLayers += by;
    if (step.phase === 'generate' && !step.dropped) {
      this.generated.tokens += by * step.token_count;
      this.generated.bytesRead += by * step.bytes_read;
      this.generated.bytes += by * (step.bytes_read + step.bytes_written);
      this.generated.ns += by * (step.end_ns - step.begin_ns);
      this.generated.sampleNs += by * (step.sample_ns ?? 0);
    }
    this.timing.set(step.timing, (this.timing.get(step.timing) ?? 0) + by);
  }
}

const hasValues = ({ ns, bytes }: StepSummary['layers']): boolean =>
  ns.some((value) => value > 0) || bytes.some((value) => value > 0);

interface SequenceTotals {
  prompt: number;
  generated: number;
  rejected: number;
  reused: number;
  first: number; // position of the first token that was evaluated
}

export class TokenTotals {
  prompt = 0;
  generated = 0; // in the answer
  rejected = 0; // of drafts
  reused = 0;
  withText = 0;
  // By request, in their order, of a session that tells them apart.
  readonly sequences = new Map<number, SequenceTotals>();

  count(token: Token, by: 1 | -1): void {
    const part = !token.generated
      ? 'prompt'
      : inAnswer(token)
        ? 'generated'
        : isRejected(token)
          ? 'rejected'
          : null;
    if (part !== null) this[part] += by;
    if (token.sequence !== null) {
      const of = this.sequences.get(token.sequence) ?? { prompt: 0, generated: 0, rejected: 0, reused: 0, first: Infinity }; // prettier-ignore
      if (part !== null) of[part] += by;
      if (token.reused) of.reused += by;
      else of.first = Math.min(of.first, token.position);
      this.sequences.set(token.sequence, of);
    }
    if (token.reused) this.reused += by;
    if (token.text !== '') this.withText += by;
  }
}
