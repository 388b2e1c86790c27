// Fills a session's TraceData from live events, and over HTTP with the missing data: after
// opening, after skipped messages and at the end. Views are notified at a limited rate.
import { signal, type ReadonlySignal } from '@preact/signals';
import type { Api, ApiError, StepPart } from '../../net/api';
import type { OpsFrame } from '../../net/frames';
import type { NewGraphOp } from '../../net/live_events';
import type { StepSummary, Token } from '../../net/types';
import { Pacer } from './pacer';
import { inAnswer } from './token_origin';
import { TraceData } from './trace_data';

const PULL_INTERVAL_MS = 500; // minimum interval between requests for missing data
export const TOKENS_PAGE = 1000;
export const LAST_STEPS = 4000; // all steps of most sessions, in one request
export const STEPS_PAGE = 10_000;

const partOf = ({ from, to }: { readonly from: number; readonly to: number }): StepPart => ({
  from,
  limit: Math.min(STEPS_PAGE, to - from),
});

export class SessionFeed {
  readonly data = new TraceData();
  readonly version: ReadonlySignal<number>; // counts the changes of `data`
  readonly skippedMessages: ReadonlySignal<number>; // live messages skipped by the server
  // Number of readable steps of the file; null: not all pages were requested yet.
  readonly readableSteps: ReadonlySignal<number | null>;
  // The error of the last request; null: it succeeded.
  readonly tokensError: ReadonlySignal<ApiError | null>;
  readonly stepsError: ReadonlySignal<ApiError | null>;
  private readonly versionCount = signal(0);
  private readonly skipped = signal(0);
  private readonly stepsRead = signal<number | null>(null);
  private readonly tokensFailed = signal<ApiError | null>(null);
  private readonly stepsFailed = signal<ApiError | null>(null);
  private readonly api: Pick<Api, 'tokens' | 'steps'>;
  private readonly id: string;
  private readonly pacer = new Pacer(() => {
    this.notify();
  });
  private pulling: Promise<void> | null = null;
  private pullAgain = false;
  private gapsSeen = false; // during a pull
  private nextPullMs = 0;
  private closed = false;

  constructor(api: Pick<Api, 'tokens' | 'steps'>, id: string) {
    this.api = api;
    this.id = id;
    this.version = this.versionCount;
    this.skippedMessages = this.skipped;
    this.readableSteps = this.stepsRead;
    this.tokensError = this.tokensFailed;
    this.stepsError = this.stepsFailed;
  }

  close(): void {
    this.closed = true;
    this.pacer.cancel();
  }

  addToken(token: Token): void {
    // The live event of a token that is not part of the answer has no text; it is read over HTTP.
    if (inAnswer(token)) this.data.addToken(token);
    else this.data.announceToken(token.index);
    this.pacer.request();
  }

  addStep(step: StepSummary): void {
    this.data.addStep(step);
    this.pacer.request();
  }

  addOps(frame: OpsFrame): void {
    this.data.addOps(frame);
    this.pacer.request();
  }

  setNewOp(op: NewGraphOp): void {
    if (this.data.steps[op.step]) return; // the summary arrived first
    this.data.newOp = op;
    this.pacer.request();
  }

  // The layers of the ops that the first step probably has.
  expectOps(layers: readonly (number | null)[]): void {
    this.data.expectOps(layers);
    this.pacer.request();
  }

  // The run has ended: no step is in flight.
  endFlight(): void {
    if (this.data.flight === null && this.data.newOp === null) return;
    this.data.flight = this.data.newOp = null;
    this.pacer.request();
  }

  addLoss(total: number): void {
    this.skipped.value = total;
    void this.pull();
  }

  // Reads the missing data over HTTP. One pull runs at a time; a call during a pull starts another
  // one after it.
  pull(): Promise<void> {
    this.pullAgain = true;
    this.pulling ??= this.pullAll().finally(() => {
      this.pulling = null;
    });
    return this.pulling;
  }

  // A method, because TypeScript would assume that the field cannot change during an await.
  private isClosed(): boolean {
    return this.closed;
  }

  private async pullAll(): Promise<void> {
    while (this.pullAgain && !this.closed) {
      this.pullAgain = false;
      await Promise.all([this.pullTokens(), this.pullSteps()]);
      if (this.gapsSeen && this.data.hasGaps()) this.pullAgain = true;
      this.gapsSeen = false;
    }
  }

  private async pullTokens(): Promise<void> {
    const { data } = this;
    for (let from = data.missingToken(0); !this.closed;) {
      const page = await this.api.tokens(this.id, from, TOKENS_PAGE);
      if (this.isClosed()) return;
      this.tokensFailed.value = page.ok ? null : page.error;
      if (!page.ok) return;
      // As in its live event, the text of a token is what it adds to the answer.
      for (const { answer, ...token } of page.value.tokens)
        data.addToken(answer === undefined ? token : { ...token, text: answer });
      this.pacer.request();
      const last = page.value.tokens.at(-1);
      if (!last || last.index + 1 >= page.value.total) return;
      from = data.missingToken(last.index + 1);
    }
  }

  // The last steps come first, because a session opens at its last step. The next page is requested
  // before a page is taken in.
  private async pullSteps(): Promise<void> {
    const { data } = this;
    let part: StepPart =
      data.steps.length === 0 ? { last: LAST_STEPS } : partOf(data.missingSteps());
    let request = this.api.steps(this.id, part);
    while (!this.closed) {
      const page = await request;
      if (this.isClosed()) return;
      this.stepsFailed.value = page.ok ? null : page.error;
      if (!page.ok) return;
      const { steps, total } = page.value;
      const missing = data.missingSteps(steps);
      const isStuck = 'from' in part && part.from === missing.from;
      const isEnd = steps.length === 0 || missing.from >= total || isStuck;
      part = partOf(missing);
      if (!isEnd) request = this.api.steps(this.id, part);
      for (const step of steps) data.addStep(step);
      this.pacer.request();
      if (!isEnd) continue;
      this.stepsRead.value = total;
      return;
    }
  }

  private notify(): void {
    this.versionCount.value += 1;
    // Data sent before the subscription may not have been on disk at the first request.
    if (!this.data.hasGaps() || Date.now() < this.nextPullMs) return;
    this.nextPullMs = Date.now() + PULL_INTERVAL_MS;
    // The running pull may fill them.
    if (this.pulling) this.gapsSeen = true;
    else void this.pull();
  }
}
