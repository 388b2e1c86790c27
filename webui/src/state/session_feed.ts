// Fills a session's TraceData from both sides: live, as things happen, and over
// HTTP what lacks: after opening, after a loss, at the end. Live events come by
// the thousand; views hear of them once per frame.
import { signal, type ReadonlySignal } from '@preact/signals';
import type { Api, ApiError } from '../net/api';
import type { OpsFrame } from '../net/frames';
import type { StepSummary, Token } from '../net/types';
import { TraceData } from './trace_data';

const FRAME_MS = 33;
const FILL_MS = 500; // at most that often what lacks is asked for
const TOKENS_PAGE = 1000;
const STEPS_PAGE = 200;

export class SessionFeed {
  readonly data = new TraceData();
  readonly version: ReadonlySignal<number>; // counts the changes of `data`
  readonly lost: ReadonlySignal<number>; // live messages that did not reach this page
  // Steps that the file has, as far as it can be read; null: not all were asked for.
  readonly readable: ReadonlySignal<number | null>;
  // Why the last reading of them ended early; null: it did not.
  readonly tokensError: ReadonlySignal<ApiError | null>;
  readonly stepsError: ReadonlySignal<ApiError | null>;
  private readonly counted = signal(0);
  private readonly missed = signal(0);
  private readonly stepsRead = signal<number | null>(null);
  private readonly tokensFailed = signal<ApiError | null>(null);
  private readonly stepsFailed = signal<ApiError | null>(null);
  private readonly api: Pick<Api, 'tokens' | 'steps'>;
  private readonly id: string;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private pulling: Promise<void> | null = null;
  private pullAgain = false;
  private fillAt = 0;
  private closed = false;

  constructor(api: Pick<Api, 'tokens' | 'steps'>, id: string) {
    this.api = api;
    this.id = id;
    this.version = this.counted;
    this.lost = this.missed;
    this.readable = this.stepsRead;
    this.tokensError = this.tokensFailed;
    this.stepsError = this.stepsFailed;
  }

  close(): void {
    this.closed = true;
    if (this.timer !== null) clearTimeout(this.timer);
  }

  addToken(token: Token): void {
    // A live event says what the answer grows by, which is nothing for a token
    // of the prompt: its text is read later.
    if (token.generated) this.data.addToken(token);
    else this.data.announceToken(token.index);
    this.touch();
  }

  addStep(step: StepSummary): void {
    this.data.addStep(step);
    this.touch();
  }

  addOps(frame: OpsFrame): void {
    this.data.addOps(frame);
    this.touch();
  }

  addLoss(total: number): void {
    this.missed.value = total;
    void this.pull();
  }

  // Reads what the session has and `data` lacks. One at a time; a wish that
  // comes meanwhile is kept.
  pull(): Promise<void> {
    this.pullAgain = true;
    this.pulling ??= this.pullAll().finally(() => {
      this.pulling = null;
    });
    return this.pulling;
  }

  // As a call: it may have changed while an answer was awaited.
  private isClosed(): boolean {
    return this.closed;
  }

  private async pullAll(): Promise<void> {
    while (this.pullAgain && !this.closed) {
      this.pullAgain = false;
      await Promise.all([this.pullTokens(), this.pullSteps()]);
    }
  }

  private async pullTokens(): Promise<void> {
    const { data } = this;
    for (let from = data.missingToken(0); !this.closed;) {
      const page = await this.api.tokens(this.id, from, TOKENS_PAGE);
      if (this.isClosed()) return;
      this.tokensFailed.value = page.ok ? null : page.error;
      if (!page.ok) return;
      for (const token of page.value.tokens) data.addToken(token);
      this.touch();
      const last = page.value.tokens.at(-1);
      if (!last || last.index + 1 >= page.value.total) return;
      from = data.missingToken(last.index + 1);
    }
  }

  private async pullSteps(): Promise<void> {
    const { data } = this;
    for (let from = data.missingStep(0); !this.closed;) {
      const page = await this.api.steps(this.id, from, STEPS_PAGE);
      if (this.isClosed()) return;
      this.stepsFailed.value = page.ok ? null : page.error;
      if (!page.ok) return;
      for (const step of page.value.steps) data.addStep(step);
      this.touch();
      const last = page.value.steps.at(-1);
      if (!last || last.step + 1 >= page.value.total) {
        this.stepsRead.value = page.value.total;
        return;
      }
      from = data.missingStep(last.step + 1);
    }
  }

  // A timer, not an animation frame: a hidden tab has none of those.
  private touch(): void {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      if (this.closed) return;
      this.counted.value += 1;
      // What was sent before this page subscribed may not have been on disk when
      // it asked then.
      if (!this.data.hasHoles() || Date.now() < this.fillAt) return;
      this.fillAt = Date.now() + FILL_MS;
      void this.pull();
    }, FRAME_MS);
  }
}
