// The open session: its metadata, its run, the data received so far and the selected step. One
// object per session. Responses that arrive after `close` are ignored.
import { computed, effect, signal, untracked, type ReadonlySignal } from '@preact/signals';
import { isNotFound, type Api, type ApiError } from '../../net/api';
import type { OpsFrame } from '../../net/frames';
import type { LiveEvent } from '../../net/live_events';
import type { Run, RunState, Session, StepSummary } from '../../net/types';
import { loading, toLoadable, type Loadable } from '../../result';
import type { Navigation } from '../view/navigation';
import { SessionFeed } from './session_feed';
import type { TraceData } from './trace_data';
import type { PhaseFilter } from '../view/view';

export interface SessionContext {
  readonly api: Api;
  readonly navigation: Navigation;
  readonly reconnects: ReadonlySignal<number>; // counts reconnects
  readonly ended: (run: Run | null) => void; // null: the run could not be read
  readonly changed: (session: Session) => void; // newer facts
  readonly exists: () => Promise<boolean>; // a link may name a session that was deleted
  readonly missing: () => void; // it does not exist
  readonly fault: (text: string) => void;
}

export interface SequenceCounts {
  readonly prompt: number; // tokens
  readonly generated: number; // in the answer
  readonly rejected: number; // of drafts
  readonly reused: number; // of the prompt, from the KV cache of an earlier request
  // Position of the first token that was evaluated: all before were in the KV cache, but the session
  // may lack them.
  readonly first: number;
}

// What arrived of the session. All views take their counts from here.
export interface SessionCounts {
  readonly prompt: number; // tokens
  readonly reused: number; // of them, from the KV cache of an earlier request
  readonly generated: number; // tokens
  readonly steps: number;
}

const INFO_MS = 900; // interval for reading the facts of a running session
const NO_EVENTS_MS = 5000; // then facts and run are read although no event has arrived
const FOLLOW_MS = 1000; // minimum interval between changes of the followed step

export class OpenSession {
  readonly id: string;
  readonly context: SessionContext;
  readonly feed: SessionFeed;
  readonly info: ReadonlySignal<Loadable<Session, ApiError>>;
  // The run in the server process; null for a recorded session.
  readonly run: ReadonlySignal<Run | null>;
  // It grows: its run has not ended, or another program records it.
  readonly active: ReadonlySignal<boolean>;
  readonly stopping: ReadonlySignal<boolean>;
  // A finished run without a file: only the received live data exists.
  readonly unrecorded: ReadonlySignal<boolean>;
  readonly deleted: ReadonlySignal<boolean>; // since the page opened it
  readonly step: ReadonlySignal<number | null>; // the selected step
  readonly hasStep: ReadonlySignal<boolean>; // the selected step exists: a link may have any number
  readonly counts: ReadonlySignal<SessionCounts>;
  // The number of steps that an answer of the server is of. A page still reads those of a file that has
  // ended, page by page; the answers are of all of them from the start.
  readonly answeredSteps: ReadonlySignal<number>;
  // Tokens of each request, by its number, ascending; empty if the session does not tell them apart.
  readonly sequences: ReadonlySignal<ReadonlyMap<number, SequenceCounts>>;
  readonly following: ReadonlySignal<boolean>; // the selected step follows the newest
  private readonly latestInfo = signal<Loadable<Session, ApiError>>(loading);
  private readonly latestRun = signal<Run | null>(null);
  private readonly isGone = signal(false);
  private readonly stopRequested = signal(false); // stop was requested
  private readonly newest = signal<number | null>(null);
  private readonly isLoaded = signal(false); // facts and steps were read once
  private readonly stopWatching: () => void;
  private readonly stopChecking: () => void;
  private followTimer: ReturnType<typeof setTimeout> | null = null;
  private followAt = 0;
  private readonly infoTimer: ReturnType<typeof setInterval>;
  private closed = false;
  private infoRequested = false;

  constructor(id: string, run: Run | null, around: SessionContext) {
    this.id = id;
    this.context = around;
    this.feed = new SessionFeed(around.api, id);
    this.info = this.latestInfo;
    this.run = this.latestRun;
    this.latestRun.value = run;
    this.deleted = this.isGone;
    const { view } = around.navigation;
    const isFileGrowing = computed(() => {
      const info = this.latestInfo.value;
      return info.is === 'ready' && info.value.state === 'running';
    });
    this.active = computed(() => {
      const known = this.latestRun.value;
      return known ? isActive(known.state) : isFileGrowing.value;
    });
    this.stopping = computed(() => this.stopRequested.value && this.active.value);
    this.unrecorded = computed(() => {
      const info = this.latestInfo.value;
      const missing = info.is === 'failed' && isNotFound(info.error);
      return missing && this.latestRun.value !== null && !this.active.value;
    });
    this.counts = computed(() => {
      void this.feed.version.value;
      const { tokenTotals: tokens, stepTotals } = this.data;
      const known = this.latestRun.value;
      return {
        // The text of the prompt is read later than its number of tokens is known.
        prompt: Math.max(tokens.prompt, known?.prompt_tokens ?? 0),
        reused: Math.max(tokens.reused, known?.reused_tokens ?? 0),
        generated: Math.max(tokens.generated, known?.generated ?? 0),
        steps: stepTotals.steps,
      };
    });
    this.answeredSteps = computed(() => {
      const info = this.latestInfo.value;
      const isWhole = !this.active.value && info.is === 'ready' && info.value.state !== 'running';
      return (isWhole ? info.value.steps : null) ?? this.counts.value.steps;
    });
    this.sequences = computed(() => {
      void this.feed.version.value;
      return new Map([...this.data.tokenTotals.sequences].sort(([a], [b]) => a - b));
    });
    this.step = computed(() => view.value.step ?? this.newest.value);
    this.hasStep = computed(() => {
      void this.feed.version.value;
      const step = this.step.value;
      const info = this.latestInfo.value;
      if (step === null) return false;
      return (
        this.data.steps[step] !== undefined ||
        (info.is === 'ready' && step < (info.value.steps ?? 0))
      );
    });
    this.following = computed(() => view.value.step === null);
    this.stopWatching = effect(() => {
      void this.feed.version.value;
      void view.value.phase;
      void this.isLoaded.value;
      untracked(() => {
        this.follow();
        this.countGenerated();
      });
    });
    this.stopChecking = effect(() => {
      void view.value;
      if (this.isLoaded.value)
        untracked(() => {
          this.checkView();
        });
    });
    const openedMs = Date.now();
    let waitedMs = openedMs; // when it was last seen in the queue
    // The facts of a run change; the server sends no events for them.
    this.infoTimer = setInterval(() => {
      // Of a file that another program writes, the server tells that it has changed.
      if (!isActive(this.latestRun.peek()?.state) || this.infoRequested) return;
      const hasSteps = this.data.steps.length > 0;
      // A queued request has no file, nor does one that has just begun to run. The event that it began
      // may have been lost.
      const isQueued = this.latestRun.peek()?.state === 'queued';
      if (isQueued) waitedMs = Date.now();
      if (!hasSteps && Date.now() < (isQueued ? openedMs : waitedMs) + NO_EVENTS_MS) return;
      if (hasSteps || !isQueued) {
        void this.refreshInfo();
        return;
      }
      this.infoRequested = true;
      void this.refreshRun().finally(() => {
        this.infoRequested = false;
      });
    }, INFO_MS);
    // A request that was just sent has no file yet; its live events arrive first.
    if (!run) void this.refresh();
  }

  get data(): TraceData {
    return this.feed.data;
  }

  close(): void {
    this.closed = true;
    this.stopWatching();
    this.stopChecking();
    this.feed.close();
    if (this.followTimer !== null) clearTimeout(this.followTimer);
    clearInterval(this.infoTimer);
  }

  // Reads everything again that may have changed without an event.
  async refresh(): Promise<void> {
    const isKnown = this.latestInfo.peek().is === 'ready' || this.latestRun.peek() !== null;
    const exists = isKnown || (await this.context.exists());
    if (this.isClosed()) return;
    if (!exists) {
      this.context.missing();
      return;
    }
    await Promise.all([this.refreshInfoAndRun(), this.feed.pull()]);
    if (this.isClosed()) return;
    if (this.isLoaded.peek()) this.checkView();
    else this.isLoaded.value = true;
  }

  // Only a session that runs or left no file has a run that is worth reading: after a restart the server
  // does not know the runs before.
  private async refreshInfoAndRun(): Promise<void> {
    await this.refreshInfo();
    const info = this.latestInfo.peek();
    const isOver = info.is === 'ready' && info.value.state !== 'running';
    if (!isOver || isActive(this.latestRun.peek()?.state)) await this.readRun();
  }

  // Another page may have deleted the session.
  async checkExists(): Promise<void> {
    if (this.active.peek() || this.isGone.peek() || this.latestInfo.peek().is !== 'ready') return;
    const answer = await this.context.api.session(this.id);
    if (!this.isClosed()) this.isGone.value = !answer.ok && isNotFound(answer.error);
  }

  async refreshRun(): Promise<void> {
    if (this.latestRun.peek() === null && this.active.peek()) {
      await this.fileChanged();
    } else {
      await this.readRun();
    }
  }

  private async readRun(): Promise<void> {
    const answer = await this.context.api.run(this.id);
    const wasActive = this.active.peek();
    const run = this.applyRun(answer);
    if (wasActive && run && !isActive(run.state)) await this.finish(run);
  }

  // Session files have changed, perhaps that of this session, which another program records.
  async fileChanged(): Promise<void> {
    if (this.latestRun.peek() || !this.active.peek() || this.infoRequested) return;
    await this.refreshInfo();
  }

  async stop(): Promise<void> {
    this.stopRequested.value = true;
    const answer = await this.context.api.cancel(this.id);
    if (this.closed) return;
    if (answer.ok) {
      const wasActive = this.active.peek();
      this.latestRun.value = answer.value;
      if (wasActive && !isActive(answer.value.state)) await this.finish(answer.value);
    } else {
      this.stopRequested.value = false;
      this.context.fault('The run could not be stopped.');
    }
  }

  rename(session: Session): void {
    if (this.latestInfo.peek().is === 'ready')
      this.latestInfo.value = toLoadable({ ok: true, value: session });
  }

  event(event: LiveEvent): void {
    switch (event.type) {
      case 'token':
        this.feed.addToken(event);
        return;
      case 'step':
        this.feed.addStep(event);
        if (this.latestInfo.peek().is !== 'ready' && !this.infoRequested) void this.refreshInfo();
        return;
      case 'op':
        this.feed.setNewOp(event);
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
        const { state, position = 0, error = null, stopped = null, stopped_ahead = null } = event;
        const wasActive = this.active.peek();
        this.changeRun({ state, position, error, stopped, stopped_ahead });
        if (this.latestRun.peek() === null) {
          if (wasActive && !isActive(state)) void this.refreshInfo(); // another program has recorded it
        } else if (wasActive && !isActive(state)) {
          // Only the run contains the full answer.
          void this.context.api.run(this.id).then((answer) => this.finish(this.applyRun(answer)));
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

  // The page may not receive progress events.
  private countGenerated(): void {
    const { generated } = this.data.tokenTotals;
    if (this.active.peek() && generated > (this.latestRun.peek()?.generated ?? 0))
      this.changeRun({ generated });
  }

  // Stores the run. Returns null if it could not be read.
  private applyRun(answer: Awaited<ReturnType<Api['run']>>): Run | null {
    if (this.closed) return null;
    if (answer.ok) {
      this.latestRun.value = answer.value;
      return answer.value;
    }
    // Recorded by an earlier server process: there is no run.
    if (isNotFound(answer.error)) this.latestRun.value = null;
    return null;
  }

  private async finish(run: Run | null): Promise<void> {
    if (this.closed) return;
    this.context.ended(run);
    this.feed.endFlight();
    await Promise.all([this.refreshInfo(), this.feed.pull()]);
    if (this.isClosed()) return;
    this.isLoaded.value = true;
  }

  // A method, because TypeScript would assume that the field cannot change during an await.
  private isClosed(): boolean {
    return this.closed;
  }

  private async refreshInfo(): Promise<void> {
    this.infoRequested = true;
    const result = await this.context.api.session(this.id);
    this.infoRequested = false;
    if (this.closed) return;
    // A queued request has no session file yet. Its first step triggers another refresh.
    if (!result.ok && isNotFound(result.error) && this.active.peek()) return;
    // Keep the shown data if a refresh fails.
    if (!result.ok && this.latestInfo.peek().is === 'ready') return;
    const grew = this.latestRun.peek() === null && this.active.peek();
    this.latestInfo.value = toLoadable(result);
    if (!result.ok) return;
    this.context.changed(result.value);
    if (grew && !this.active.peek()) void this.finish(null);
    // The last live event may have been lost.
    if (result.value.state !== 'running' && this.active.peek()) void this.refreshRun();
  }

  // Replaces what the session does not have, for example from a link: the step, the layer, a step
  // of another phase.
  private checkView(): void {
    const { navigation } = this.context;
    const { step, session, layer, phase } = navigation.view.peek();
    const info = this.latestInfo.peek();
    if (this.closed || session !== this.id || info.is !== 'ready') return;
    const layers = info.value.n_layers ?? 0;
    if (layers > 0 && layer >= layers) {
      this.context.fault(`This model has no layer ${layer}.`);
      navigation.change({ layer: layers - 1 }, 'replace');
    }
    if (this.active.peek() || this.feed.stepsError.peek()) return; // it may exist
    const { stepTotals } = this.data;
    if (step === null && phase !== 'all' && stepTotals.steps > 0 && !stepTotals.has(phase)) {
      this.context.fault(`This session has no step of the phase ${phase}: all phases are shown.`);
      navigation.change({ phase: 'all' }, 'replace');
    }
    if (step === null) return;
    const summary = this.data.steps[step];
    if (step >= Math.max(this.data.steps.length, 1)) {
      this.context.fault(`This session has no step ${step}.`);
      navigation.toStep(null, 'replace');
    } else if (summary && !isInPhase(summary, phase)) {
      this.context.fault(`Step ${step} is not of the phase ${phase}: all phases are shown.`);
      navigation.change({ phase: 'all' }, 'replace');
    }
  }

  private follow(): void {
    const { phase } = this.context.navigation.view.peek();
    const newest = lastStepOf(this.data, phase)?.step ?? null;
    if (newest === this.newest.peek()) return;
    const isGrowing = this.active.peek() || !this.isLoaded.peek();
    const wait = isGrowing ? this.followAt - Date.now() : 0;
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
  return data.steps[data.stepTotals.last(phase)];
}

// The next (by 1) or previous (by -1) step of the phase; null if none.
export function adjacentStep(
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
