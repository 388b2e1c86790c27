// The session that the page shows: what it is, how its run goes on, what has
// arrived of it and which step is looked at. One object per session; it ends
// with `close`, and an answer that comes after that changes nothing.
import { computed, effect, signal, type ReadonlySignal } from '@preact/signals';
import { isMissing, type Api, type ApiError } from '../net/api';
import type { OpsFrame } from '../net/frames';
import type { LiveEvent } from '../net/live_events';
import type { Run, RunState, Session, StepSummary } from '../net/types';
import { loading, settled, type Loadable } from '../result';
import type { Navigation } from './navigation';
import { SessionFeed } from './session_feed';
import type { TraceData } from './trace_data';
import type { PhaseFilter } from './view';

export interface Surroundings {
  readonly api: Api;
  readonly navigation: Navigation;
  readonly back: ReadonlySignal<number>; // counts how often the server came back
  readonly ended: (run: Run | null) => void; // null: it could not be read
  readonly fault: (text: string) => void;
}

const FOLLOW_MS = 500; // at most that often the shown step follows the newest

export class OpenSession {
  readonly id: string;
  readonly around: Surroundings;
  readonly feed: SessionFeed;
  readonly info: ReadonlySignal<Loadable<Session, ApiError>>;
  // The request as this server process knows it; null for a recorded session.
  readonly run: ReadonlySignal<Run | null>;
  readonly active: ReadonlySignal<boolean>;
  readonly stopping: ReadonlySignal<boolean>;
  // A run that left no file: what was heard of it is all there is.
  readonly unrecorded: ReadonlySignal<boolean>;
  readonly step: ReadonlySignal<number | null>; // that is shown
  readonly following: ReadonlySignal<boolean>; // the shown step is the newest
  private readonly latestInfo = signal<Loadable<Session, ApiError>>(loading);
  private readonly latestRun = signal<Run | null>(null);
  private readonly asked = signal(false); // to stop
  private readonly newest = signal<number | null>(null);
  private readonly stopWatching: () => void;
  private followTimer: ReturnType<typeof setTimeout> | null = null;
  private followAt = 0;
  private closed = false;

  constructor(id: string, run: Run | null, around: Surroundings) {
    this.id = id;
    this.around = around;
    this.feed = new SessionFeed(around.api, id);
    this.info = this.latestInfo;
    this.run = this.latestRun;
    this.latestRun.value = run;
    const { view } = around.navigation;
    this.active = computed(() => isActive(this.latestRun.value?.state));
    this.stopping = computed(() => this.asked.value && this.active.value);
    this.unrecorded = computed(() => {
      const info = this.latestInfo.value;
      const missing = info.is === 'failed' && isMissing(info.error);
      return missing && this.latestRun.value !== null && !this.active.value;
    });
    this.step = computed(() => view.value.step ?? this.newest.value);
    this.following = computed(() => view.value.step === null);
    this.stopWatching = effect(() => {
      void this.feed.version.value;
      void view.value.phase;
      this.follow();
    });
    // A request that was just sent has no file yet; what it says live comes first.
    if (!run) void this.refresh();
  }

  get data(): TraceData {
    return this.feed.data;
  }

  close(): void {
    this.closed = true;
    this.stopWatching();
    this.feed.close();
    if (this.followTimer !== null) clearTimeout(this.followTimer);
  }

  // Reads anew what may have changed while nobody listened.
  async refresh(): Promise<void> {
    await Promise.all([this.refreshInfo(), this.refreshRun(), this.feed.pull()]);
    this.checkStep();
  }

  async refreshRun(): Promise<void> {
    const answer = await this.around.api.run(this.id);
    const wasActive = this.active.peek();
    const run = this.take(answer);
    if (wasActive && run && !isActive(run.state)) await this.ended(run);
  }

  async stop(): Promise<void> {
    this.asked.value = true;
    const answer = await this.around.api.cancel(this.id);
    if (this.closed) return;
    if (answer.ok) {
      const wasActive = this.active.peek();
      this.latestRun.value = answer.value;
      if (wasActive && !isActive(answer.value.state)) await this.ended(answer.value);
    } else {
      this.asked.value = false;
      this.around.fault('The run could not be stopped.');
    }
  }

  rename(session: Session): void {
    if (this.latestInfo.peek().is === 'ready')
      this.latestInfo.value = settled({ ok: true, value: session });
  }

  event(event: LiveEvent): void {
    switch (event.type) {
      case 'token':
        this.feed.addToken(event);
        return;
      case 'step':
        this.feed.addStep(event);
        if (this.latestInfo.peek().is !== 'ready') void this.refreshInfo();
        return;
      case 'loss':
        this.feed.addLoss(event.frames);
        return;
      case 'progress': {
        const { prompt_done, prompt_tokens, generated, max_tokens } = event;
        this.changeRun({ prompt_done, prompt_tokens, generated, max_tokens });
        return;
      }
      case 'state': {
        const { state, position = 0, error = null } = event;
        const wasActive = this.active.peek();
        this.changeRun({ state, position, error });
        if (wasActive && !isActive(state)) {
          // The whole answer is in the run alone.
          void this.around.api.run(this.id).then((answer) => this.ended(this.take(answer)));
        }
        return;
      }
      default:
    }
  }

  opsFrame(frame: OpsFrame): void {
    this.feed.addOps(frame);
  }

  private changeRun(change: Partial<Run>): void {
    const run = this.latestRun.peek();
    if (run) this.latestRun.value = { ...run, ...change };
  }

  // Null where it could not be read.
  private take(answer: Awaited<ReturnType<Api['run']>>): Run | null {
    if (this.closed) return null;
    if (answer.ok) {
      this.latestRun.value = answer.value;
      return answer.value;
    }
    // Recorded by an earlier run of the server: nothing runs any more.
    if (isMissing(answer.error)) this.latestRun.value = null;
    return null;
  }

  private async ended(run: Run | null): Promise<void> {
    if (this.closed) return;
    this.around.ended(run);
    await Promise.all([this.refreshInfo(), this.feed.pull()]);
  }

  private async refreshInfo(): Promise<void> {
    const result = await this.around.api.session(this.id);
    if (this.closed) return;
    // A queued request has no session file yet; its steps bring us back.
    if (!result.ok && isMissing(result.error) && this.active.peek()) return;
    // A refresh that fails does not take away what is shown.
    if (!result.ok && this.latestInfo.peek().is === 'ready') return;
    this.latestInfo.value = settled(result);
  }

  // A link may name a step that the session does not have.
  private checkStep(): void {
    const { navigation } = this.around;
    const { step, session } = navigation.view.peek();
    const info = this.latestInfo.peek();
    if (this.closed || session !== this.id || step === null || this.active.peek()) return;
    if (this.feed.stepsError.peek()) return; // it may have it
    if (info.is !== 'ready' || step < Math.max(this.data.steps.length, 1)) return;
    this.around.fault(`This session has no step ${step}.`);
    navigation.toStep(null, 'replace');
  }

  private follow(): void {
    const { phase } = this.around.navigation.view.peek();
    const newest = lastStepOf(this.data, phase)?.step ?? null;
    if (newest === this.newest.peek()) return;
    const wait = this.active.peek() ? this.followAt - Date.now() : 0;
    if (wait > 0) {
      this.followTimer ??= setTimeout(() => {
        this.followTimer = null;
        this.follow();
      }, wait);
      return;
    }
    this.followAt = Date.now() + FOLLOW_MS;
    this.newest.value = newest;
  }
}

export function isActive(state: RunState | undefined): boolean {
  return state === 'queued' || state === 'running';
}

export const isInPhase = (step: StepSummary, phase: PhaseFilter): boolean =>
  phase === 'all' || step.phase === phase;

export function lastStepOf(data: TraceData, phase: PhaseFilter): StepSummary | undefined {
  return data.steps.findLast((step) => step !== undefined && isInPhase(step, phase));
}

// The nearest step of the phase after (by 1) or before (by -1) `from`.
export function stepBeside(
  data: TraceData,
  phase: PhaseFilter,
  from: number,
  by: 1 | -1,
): number | null {
  for (let at = from + by; at >= 0 && at < data.steps.length; at += by) {
    const step = data.steps[at];
    if (step && isInPhase(step, phase)) return at;
  }
  return null;
}

// The step that computed a token; null for one that none did.
export function stepOfToken(data: TraceData, token: number): number | null {
  const step = data.steps.find(
    (one) => one && token >= one.first_token && token < one.first_token + one.n_tokens,
  );
  return step?.step ?? null;
}
