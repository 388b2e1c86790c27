// The one place that holds state and changes it: what the person does and what
// the server says come in here, `reduce` makes the next state, views read it.
// Live events come by the thousand; they are gathered and shown once per frame.
import { computed, signal, type ReadonlySignal } from '@preact/signals';
import { sentence, type Api, type ApiError } from '../net/api';
import type { LiveSink, LiveStatus } from '../net/live';
import type { OpsFrame } from '../net/frames';
import type { LiveEvent, LiveKind } from '../net/live_events';
import type { GenerateRequest, Run, Token } from '../net/types';
import { loadSettings, saveSettings, type Settings } from './settings';
import { initialState, isActive, reduce, type Action, type OpenSession, type State } from './state';
import { TraceData } from './trace_data';
import { fromHash, toHash, type Address } from './url';

// The part of net/live.ts that the store uses.
export interface Watcher {
  connect(): void;
  watch(session: string | null, kinds: readonly LiveKind[]): void;
}

const KINDS: readonly LiveKind[] = ['token', 'step', 'op', 'progress'];
const FRAME_MS = 33;
const HEALTH_RETRY_MS = 1000;
const POLL_MS = 1000; // of a run while the live connection is away
const FOLLOW_MS = 500; // at most that often the op table follows the newest step
const FILL_MS = 500; // at most that often what lacks is asked for
const SESSIONS_PAGE = 50;
const TOKENS_PAGE = 1000;
const STEPS_PAGE = 200;
// A step that has just ended may not be on disk yet.
const FRESH_TRIES = 8;
const FRESH_WAIT_MS = 150;

const EMPTY_RUN: Run = {
  id: '',
  model: '',
  state: 'queued',
  position: 0,
  prompt_tokens: 0,
  prompt_done: 0,
  reused_tokens: 0,
  generated: 0,
  max_tokens: 0,
  text: '',
  stop_reason: null,
  error: null,
};

const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

export class Store implements LiveSink {
  readonly state: ReadonlySignal<State>;
  readonly settings = signal<Settings>(loadSettings());
  // The token under the pointer, in the answer or the heat map; apart from the
  // state because it changes with every move of the mouse.
  readonly hoverToken = signal<number | null>(null);
  readonly now = signal(Date.now()); // for "3 min ago"; moves each 10 s

  private readonly current = signal<State>(initialState);
  private readonly api: Api;
  private live: Watcher | null = null;
  private held = new TraceData();
  private changed = false; // data arrived since the last frame
  private frame: ReturnType<typeof setTimeout> | null = null;
  private pulling = false;
  private pullAgain = false;
  private ops: AbortController | null = null;
  private rows: AbortController | null = null;
  private followAt = 0; // not before
  private fillAt = 0;
  private followTimer: ReturnType<typeof setTimeout> | null = null;
  private awaiting = false;

  constructor(api: Api) {
    this.api = api;
    this.state = computed(() => this.current.value);
  }

  // A part of the state; a view that reads it draws again only when it changes.
  select<T>(part: (state: State) => T): ReadonlySignal<T> {
    return computed(() => part(this.current.value));
  }

  get data(): TraceData {
    return this.held;
  }

  start(live: Watcher): void {
    this.live = live;
    live.connect();
    void this.refreshSessions();
    addEventListener('popstate', () => {
      this.goTo(fromHash(location.hash));
    });
    addEventListener('hashchange', () => {
      this.goTo(fromHash(location.hash));
    });
    this.goTo(fromHash(location.hash));
    void this.awaitModel();
    setInterval(() => {
      this.now.value = Date.now();
    }, 10_000);
    setInterval(() => {
      if (this.current.value.live.is !== 'open') void this.refreshRun();
    }, POLL_MS);
  }

  set(change: Partial<Settings>): void {
    this.settings.value = { ...this.settings.value, ...change };
    saveSettings(this.settings.value);
  }

  // ---- What the person does -------------------------------------------------

  async generate(request: GenerateRequest): Promise<void> {
    this.dispatch({ type: 'submitted' });
    const answer = await this.api.generate(request);
    this.dispatch({ type: 'submitSettled', error: answer.ok ? null : answer.error });
    if (!answer.ok) return;
    const run: Run = { ...EMPTY_RUN, ...answer.value };
    const { id } = run;
    this.open({ session: id, step: null }, run);
    history.pushState(null, '', toHash({ session: id, step: null }));
    void this.refreshSessions();
  }

  async stop(): Promise<void> {
    const id = this.current.value.open?.id;
    if (id === undefined) return;
    this.dispatch({ type: 'stopAsked', id });
    const answer = await this.api.cancel(id);
    if (answer.ok) {
      this.dispatch({ type: 'runArrived', id, run: answer.value });
      if (!isActive(answer.value.state)) this.ended(id);
    } else {
      this.dispatch({ type: 'stopFailed', id });
      this.dispatch({ type: 'faultSeen', detail: `Stop: ${sentence(answer.error)}` });
    }
  }

  openSession(session: string): void {
    if (this.current.value.open?.id === session) return;
    this.open({ session, step: null }, null);
    history.pushState(null, '', toHash({ session, step: null }));
  }

  selectStep(step: number): void {
    const open = this.current.value.open;
    if (!open) return;
    this.dispatch({ type: 'followSet', id: open.id, follow: false });
    if (open.step !== step) this.showStep(open.id, step);
    // Also where following had come to this step by itself: now it was chosen.
    const hash = toHash({ session: open.id, step });
    if (location.hash !== hash) history.pushState(null, '', hash);
  }

  follow(): void {
    const open = this.current.value.open;
    if (!open) return;
    this.dispatch({ type: 'followSet', id: open.id, follow: true });
    this.followNewest();
  }

  selectOp(op: number | null): void {
    const open = this.current.value.open;
    const step = open?.step ?? null;
    if (!open || step === null) return;
    this.rows?.abort();
    this.dispatch({ type: 'opSelected', id: open.id, op });
    if (op !== null) void this.loadAccesses(open.id, step, op);
  }

  reloadOps(): void {
    const open = this.current.value.open;
    if (open && open.step !== null) void this.loadOps(open.id, open.step);
  }

  async moreSessions(): Promise<void> {
    const { sessions } = this.current.value;
    const offset = sessions.is === 'ready' ? sessions.value.sessions.length : 0;
    const result = await this.api.sessions(offset, SESSIONS_PAGE);
    this.dispatch({ type: 'sessionsArrived', result, append: true });
  }

  async refreshSessions(): Promise<void> {
    this.dispatch({ type: 'sessionsAsked' });
    const result = await this.api.sessions(0, SESSIONS_PAGE);
    this.dispatch({ type: 'sessionsArrived', result, append: false });
  }

  // ---- What the server says (LiveSink) --------------------------------------

  status(live: LiveStatus): void {
    const before = this.current.value.live;
    this.dispatch({ type: 'liveChanged', live });
    if (live.is === 'open') void this.awaitModel();
    if (live.is === 'waiting' && before.is === 'open') void this.awaitModel();
  }

  fault(detail: string): void {
    this.dispatch({ type: 'faultSeen', detail });
  }

  event(event: LiveEvent): void {
    switch (event.type) {
      case 'hello':
        return;
      case 'subscribed':
        // Whatever happened before this moment was not sent to this page.
        void this.refreshRun();
        if (this.current.value.open?.run?.state !== 'queued') void this.pull();
        return;
      case 'error': {
        // Recorded by an earlier run of the server: there is nothing to hear,
        // but also nothing running any more.
        const open = this.current.value.open;
        if (event.code !== 'not_live')
          this.fault(event.detail ?? event.code ?? 'The live connection refused a command.');
        else if (open) this.ended(open.id);
        return;
      }
      case 'state': {
        const { state, position = 0, error = null } = event;
        this.dispatch({
          type: 'runChanged',
          id: event.session,
          change: { state, position, error },
        });
        if (!isActive(state)) this.ended(event.session);
        return;
      }
      case 'progress': {
        const { prompt_done, prompt_tokens, generated, max_tokens } = event;
        const change = { prompt_done, prompt_tokens, generated, max_tokens };
        this.dispatch({ type: 'runChanged', id: event.session, change });
        return;
      }
      case 'loss':
        this.dispatch({ type: 'framesLost', id: event.session, frames: event.frames });
        void this.pull();
        return;
      case 'token':
        if (this.isOpen(event.session)) this.hear(event);
        this.touch();
        return;
      case 'step':
        if (this.isOpen(event.session)) this.held.addStep(event);
        this.touch();
        return;
    }
  }

  opsFrame(session: string, frame: OpsFrame): void {
    if (this.isOpen(session)) this.held.addOps(frame);
    this.touch();
  }

  // ---- How -------------------------------------------------------------------

  private dispatch(action: Action): void {
    this.current.value = reduce(this.current.value, action);
  }

  private isOpen(id: string): boolean {
    return this.current.value.open?.id === id;
  }

  private goTo(address: Address): void {
    const open = this.current.value.open;
    if (address.session === null) {
      if (!open) return;
      this.live?.watch(null, []);
      this.dispatch({ type: 'closed' });
    } else if (open?.id !== address.session) {
      this.open(address, null);
    } else if (address.step !== null && address.step !== open.step) {
      this.dispatch({ type: 'followSet', id: open.id, follow: false });
      this.showStep(open.id, address.step);
    }
  }

  private open(address: Address, run: Run | null): void {
    const id = address.session;
    if (id === null) return;
    this.held = new TraceData();
    this.ops?.abort();
    const follow = address.step === null;
    this.dispatch({ type: 'opened', id, run, follow });
    this.live?.watch(id, KINDS);
    // A request that was just sent has no file yet; what it says live comes first.
    if (run) return;
    void this.refreshInfo(id);
    void this.refreshRun();
    void this.pull();
    if (address.step !== null) this.showStep(id, address.step);
  }

  private ended(id: string): void {
    if (!this.isOpen(id)) return;
    void this.refreshRun();
    void this.refreshInfo(id);
    void this.refreshSessions();
    void this.pull();
  }

  private showStep(id: string, step: number): void {
    this.dispatch({ type: 'stepSelected', id, step });
    void this.loadOps(id, step);
  }

  // Asks until the server has loaded its model or said why it cannot.
  private async awaitModel(): Promise<void> {
    if (this.awaiting) return;
    this.awaiting = true;
    for (;;) {
      const health = await this.api.health();
      this.dispatch({ type: 'healthArrived', health: health.ok ? health.value : null });
      const result = await this.api.models();
      if (result.ok) {
        this.dispatch({ type: 'modelsArrived', result: { ok: true, value: result.value.models } });
      } else {
        this.dispatch({ type: 'modelsArrived', result });
      }
      const failed = result.ok && result.value.models.some((model) => model.state === 'failed');
      if (health.ok && result.ok && (health.value.status === 'ok' || failed)) break;
      await sleep(HEALTH_RETRY_MS);
    }
    this.awaiting = false;
    if (this.current.value.sessions.is !== 'ready') void this.refreshSessions();
  }

  private async refreshInfo(id: string): Promise<void> {
    // A queued request has no session file yet; its state events bring us back.
    const result = await this.api.session(id);
    const missing = !result.ok && result.error.kind === 'refused' && result.error.status === 404;
    if (missing && isActive(this.current.value.open?.run?.state)) return;
    this.dispatch({ type: 'infoArrived', id, result });
  }

  private async refreshRun(): Promise<void> {
    const open = this.current.value.open;
    if (!open) return;
    const wasActive = isActive(open.run?.state);
    const result = await this.api.run(open.id);
    if (result.ok) {
      this.dispatch({ type: 'runArrived', id: open.id, run: result.value });
      if (wasActive && !isActive(result.value.state)) this.ended(open.id);
      else if (wasActive && this.current.value.live.is !== 'open') void this.pull();
    } else if (result.error.kind === 'refused' && result.error.status === 404) {
      this.dispatch({ type: 'runArrived', id: open.id, run: null });
    }
  }

  // Fetches what the session has and this page lacks: after opening it, after a
  // loss, at its end. One at a time; a wish that comes meanwhile is kept.
  private async pull(): Promise<void> {
    this.pullAgain = true;
    if (this.pulling) return;
    this.pulling = true;
    while (this.pullAgain) {
      this.pullAgain = false;
      const id = this.current.value.open?.id;
      if (id !== undefined) await Promise.all([this.pullTokens(id), this.pullSteps(id)]);
    }
    this.pulling = false;
  }

  private async pullTokens(id: string): Promise<void> {
    for (let from = this.held.missingToken(0); this.isOpen(id);) {
      const page = await this.api.tokens(id, from, TOKENS_PAGE);
      if (!page.ok || !this.isOpen(id)) return;
      for (const token of page.value.tokens) this.held.addToken(token);
      this.touch();
      const last = page.value.tokens.at(-1);
      if (!last || last.index + 1 >= page.value.total) return;
      from = this.held.missingToken(last.index + 1);
    }
  }

  private async pullSteps(id: string): Promise<void> {
    for (let from = this.held.missingStep(0); this.isOpen(id);) {
      const page = await this.api.steps(id, from, STEPS_PAGE);
      if (!page.ok || !this.isOpen(id)) return;
      for (const step of page.value.steps) this.held.addStep(step);
      this.touch();
      const last = page.value.steps.at(-1);
      if (!last || last.step + 1 >= page.value.total) return;
      from = this.held.missingStep(last.step + 1);
    }
  }

  // Shows what arrived with the next frame. A timer, not an animation frame:
  // a hidden tab has none of those.
  private touch(): void {
    this.changed = true;
    this.frame ??= setTimeout(() => {
      this.frame = null;
      const open = this.current.value.open;
      if (!this.changed || !open) return;
      this.changed = false;
      this.dispatch({ type: 'dataArrived', id: open.id });
      this.followNewest();
      this.catchUp(open);
    }, FRAME_MS);
  }

  private hear(token: Token): void {
    if (token.generated) this.held.addToken(token);
    else this.held.announceToken(token.index);
  }

  // What was sent before this page subscribed may not have been on disk when it
  // asked then.
  private catchUp(open: OpenSession): void {
    const unknown = open.info.is !== 'ready';
    const holes = this.held.hasHoles();
    if ((!unknown && !holes) || Date.now() < this.fillAt) return;
    this.fillAt = Date.now() + FILL_MS;
    if (unknown) void this.refreshInfo(open.id);
    if (holes) void this.pull();
  }

  private followNewest(): void {
    const open = this.current.value.open;
    const newest = this.held.lastStep();
    if (!open?.follow || !newest || newest.step === open.step || open.opsLoading) return;
    const wait = this.followAt - Date.now();
    if (wait > 0) {
      this.followTimer ??= setTimeout(() => {
        this.followTimer = null;
        this.followNewest();
      }, wait);
      return;
    }
    this.followAt = Date.now() + FOLLOW_MS;
    this.showStep(open.id, newest.step);
  }

  private async loadOps(id: string, step: number): Promise<void> {
    this.ops?.abort();
    const control = new AbortController();
    this.ops = control;
    this.dispatch({ type: 'opsAsked', id, step });
    let result = await this.api.ops(id, step, control.signal);
    for (let tries = 0; tries < FRESH_TRIES && this.mayCome(id, result); tries += 1) {
      await sleep(FRESH_WAIT_MS);
      if (control.signal.aborted) return;
      result = await this.api.ops(id, step, control.signal);
    }
    if (control.signal.aborted) return;
    const template = this.held.steps[step]?.template;
    if (result.ok && this.isOpen(id) && template !== undefined) {
      this.held.learnTemplate(template, result.value);
    }
    this.dispatch({ type: 'opsArrived', id, step, result });
    this.followNewest();
  }

  private mayCome(id: string, result: { ok: boolean; error?: ApiError }): boolean {
    if (result.ok || result.error?.kind !== 'refused' || result.error.status !== 404) return false;
    return this.isOpen(id) && this.held.lastStep() !== undefined;
  }

  private async loadAccesses(id: string, step: number, op: number): Promise<void> {
    const control = new AbortController();
    this.rows = control;
    const page = await this.api.accesses(id, step, op, control.signal);
    if (control.signal.aborted) return;
    const result = page.ok ? { ok: true as const, value: page.value.accesses } : page;
    this.dispatch({ type: 'accessesArrived', id, op, result });
  }
}
