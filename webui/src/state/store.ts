// The store holds all state. It connects the parts and forwards server events to them. Only the
// methods of a part change its state; views read signals.
import { computed, effect, signal, untracked, type ReadonlySignal } from '@preact/signals';
import type { Api } from '../net/api';
import type { OpsFrame } from '../net/frames';
import type { LiveSink, LiveStatus, WatchOptions } from '../net/live';
import type { LiveEvent, LiveKind } from '../net/live_events';
import type { DebugPlace, Run } from '../net/types';
import { themeOf } from '../theme';
import { LAYOUTS, parseLayout, withTab, type Layout, type LayoutName } from './view/layout';
import { Chat, type Turn } from './request/chat';
import { Connection } from './connection';
import { Debug } from './request/debug';
import { onlyLayer, parseFilter } from './view/filter';
import { FollowedSelection } from './view/follow_selection';
import { MemoryBudget } from './request/memory_budget';
import { Models } from './request/models';
import { Recorded } from './request/recorded_program';
import { layerOfSelection, stepOpsOf } from './session/per_session';
import { Navigation, type Browser, type HistoryMode } from './view/navigation';
import { OpenSession, adjacentStep, isInPhase } from './session/open_session';
import { sameSelection, type Selection } from './view/selection';
import { Saves, type Offer } from './saves';
import { SessionList, type ListedSession } from './session/session_list';
import { SettingsStore, type Theme } from './request/settings';
import { Shell } from './shell';
import { generationSpeed } from './session/speed';
import { Toasts } from './toasts';
import { Playback } from './view/playback';
import type { KnownPanels } from './view/url';
import { withStep, type PhaseFilter, type View } from './view/view';

// The part of net/live.ts that the store uses.
export interface Watcher {
  connect(): void;
  watch(session: string | null, kinds: readonly LiveKind[], options?: WatchOptions): void;
  setKinds(session: string, kinds: readonly LiveKind[]): void;
}

export interface StoreParts {
  readonly api: Api;
  readonly waiting: ReadonlySignal<number>; // requests that a busy server rejected and that are repeated
  readonly browser: Browser;
  readonly panels: KnownPanels;
  readonly local: Pick<Storage, 'getItem' | 'setItem'> | null;
  readonly tab: Pick<Storage, 'getItem' | 'setItem'> | null;
  readonly systemTheme: ReadonlySignal<Theme>;
  readonly offer: Offer;
  // The session of the file that the page was opened from (file/held_session.ts), the only one that can
  // be shown; null: a server has the sessions.
  readonly held: string | null;
}

const KINDS: readonly LiveKind[] = ['token', 'step', 'op', 'progress'];
// While steps are shorter than a glance, their ops and the progress are more messages than help:
// the steps show the same a moment later.
const KINDS_OF_FAST_STEPS: readonly LiveKind[] = ['token', 'step'];
const FAST_PER_SECOND = 20; // tokens; with half of it, all kinds are received again
const POLL_MS = 1000; // interval for polling a run without WebSocket
const CLOCK_MS = 10_000;
const PROGRAM_MS = 2000; // interval for asking whether the recorded program runs
const STOP_MS = 2000;

export class Store implements LiveSink {
  readonly settings: SettingsStore;
  readonly toasts = new Toasts();
  readonly saves: Saves;
  readonly offer: Offer; // of files that the page makes
  readonly shell = new Shell();
  readonly navigation: Navigation;
  readonly connection: Connection;
  readonly models: Models;
  readonly sessions: SessionList;
  readonly recorded: Recorded;
  readonly chat: Chat;
  readonly debug: Debug;
  readonly playback: Playback;
  readonly open: ReadonlySignal<OpenSession | null>;
  readonly now: ReadonlySignal<number>; // ms; for "3 min ago"
  readonly theme: ReadonlySignal<Theme>;
  // The token under the pointer, in the answer or the heat map.
  readonly hoverToken = signal<number | null>(null);
  // The turns that New conversation removed while a session was open, until another one is opened: the
  // chat panel does not show the session. Null: it does.
  readonly leftTurns: ReadonlySignal<readonly Turn[] | null>;
  private readonly left = signal<readonly Turn[] | null>(null);
  private readonly clock = signal(Date.now());
  private readonly current = signal<OpenSession | null>(null);
  readonly api: Api;
  // Without a server there is nothing to run, load, save or change, and no other session. What needs
  // one is not shown.
  readonly hasServer: boolean;
  private readonly held: string | null;
  private readonly panels: KnownPanels;
  private live: Watcher | null = null;
  private followed: FollowedSelection | null = null;
  private stopPressedMs = 0;
  private readonly budgets = new Map<string, MemoryBudget>();
  private startedRun: Run | null = null; // the run that was just started, used when its session opens

  constructor({ api, waiting, browser, panels, local, tab, systemTheme, offer, held }: StoreParts) {
    this.api = api;
    this.held = held;
    this.hasServer = held === null;
    this.panels = panels;
    this.open = this.current;
    this.saves = new Saves(api, this.toasts, offer);
    this.offer = offer;
    this.leftTurns = this.left;
    this.now = this.clock;
    this.settings = new SettingsStore(local);
    this.theme = themeOf(this.settings.current, systemTheme);
    this.navigation = new Navigation(
      browser,
      panels,
      (dropped) => {
        this.toasts.error(`Ignored invalid parts of the link: ${dropped.join(', ')}`);
      },
      ({ session, selection }) =>
        this.current.peek()?.id === session ? (this.followed?.nameOf(selection) ?? null) : null,
    );
    this.playback = new Playback(this.open, this.navigation);
    this.connection = new Connection(api, waiting);
    this.models = new Models(api, this.toasts);
    this.sessions = new SessionList(api, this.toasts);
    this.recorded = new Recorded(api);
    this.chat = new Chat({
      api,
      model: this.models.current,
      hasSeveralModels: () => {
        const list = this.models.list.peek();
        return list.is === 'ready' && list.value.models.length > 1;
      },
      settings: this.settings.current,
      breakpoints: () => this.debug.options(),
      open: (run, request) => {
        this.startedRun = run;
        this.debug.started(run.id, request);
        this.navigation.toSession(run.id);
        void this.sessions.refresh();
      },
      rejected: (detail, request) => {
        this.debug.rejected(detail, request);
        void this.models.watch();
      },
      storage: tab,
    });
    this.debug = new Debug({
      api,
      open: this.open,
      toasts: this.toasts,
      storage: tab,
      stopped: (place, isFirst) => {
        this.showPlace(place);
        if (isFirst) this.reveal('debug');
      },
    });
  }

  // `live`: null without a server.
  start(live: Watcher | null): void {
    this.live = live;
    this.navigation.start();
    effect(() => {
      const id = this.navigation.view.value.session;
      untracked(() => {
        if (this.held !== null && id !== this.held)
          this.navigation.change({ session: this.held }, 'replace');
        else this.openById(id);
      });
    });
    if (live) this.startServing(live);
  }

  private startServing(live: Watcher): void {
    this.debug.start();
    let seen = 0;
    effect(() => {
      const back = this.connection.reconnects.value;
      if (back === seen) return;
      const wasLost = seen > 0;
      seen = back;
      untracked(() => {
        if (wasLost) this.toasts.clearErrors();
        this.reloadAll();
      });
    });
    effect(() => {
      const open = this.current.value;
      void open?.feed.version.value;
      if (open) this.chooseKinds(open);
    });
    this.openFirstRecorded();
    live.connect();
    void this.models.watch();
    void this.sessions.refresh();
    setInterval(() => {
      this.clock.value = Date.now();
      void this.current.peek()?.checkExists();
    }, CLOCK_MS);
    setInterval(() => {
      void this.recorded.watch();
    }, PROGRAM_MS);
    setInterval(() => {
      const connection = this.connection.state.peek().is;
      if (connection === 'live') return;
      if (connection === 'slow') this.sessions.refreshSoon();
      const open = this.current.peek();
      if (open?.active.peek()) void open.refreshRun();
    }, POLL_MS);
  }

  // The page of `tt attach --live` opens on the newest session of the program, as soon as there is one.
  private openFirstRecorded(): void {
    const stop = effect(() => {
      const { session } = this.navigation.view.value;
      const program = this.recorded.program.value;
      const page = this.sessions.page.value;
      if (session === null && (program === null || page.is !== 'ready')) return;
      const newest = page.is === 'ready' ? page.value.sessions.find((one) => one.program) : undefined; // prettier-ignore
      if (session === null && !newest) return;
      queueMicrotask(() => {
        stop();
        if (session === null && newest) this.navigation.toSession(newest.id, 'replace');
      });
    });
  }

  // ---- User actions -----------------------------------------------------------------

  // The arrangement of the panels: all are tabs of one dock in a narrow window.
  readonly layout = computed((): Layout => {
    const all = [...this.panels];
    if (this.shell.narrow.value) return { kind: 'dock', panels: all };
    const known = JSON.stringify(LAYOUTS.explore); // without the panels that are not there
    return parseLayout(this.settings.current.value.layout, all) ?? parseLayout(known, all) ?? LAYOUTS.explore; // prettier-ignore
  });

  // Whether the page can run, change or delete something: not without a server, and not in the frame of
  // another page.
  readonly canAct = computed(
    (): boolean => this.hasServer && this.navigation.view.value.embed === null,
  );

  setLayout(layout: Layout): void {
    if (!this.shell.narrow.peek()) this.settings.set({ layout: JSON.stringify(layout) });
  }

  // Arranges the panels as in a named layout, with the first tab of each dock in front.
  applyLayout(name: LayoutName): void {
    this.setLayout(LAYOUTS[name]);
    this.navigation.change({ tabs: [], full: null }, 'replace');
  }

  // Starts a new conversation. The open session stays, because the other views show it; an answer of
  // the old conversation that is being generated is closed.
  newConversation(): void {
    const open = this.current.peek();
    const turns = this.chat.turns.peek();
    const isShown = turns.some((turn) => turn.session === open?.id);
    this.chat.clear();
    if (isShown && open?.active.peek() === true) this.navigation.toSession(null);
    else if (open) this.left.value = turns;
  }

  // Shows the open session and its conversation in the chat panel again.
  backToConversation(): void {
    this.chat.resume(this.left.peek() ?? []);
    this.left.value = null;
  }

  has(panel: string): boolean {
    return this.panels.has(panel);
  }

  // Selects the tab of a panel.
  reveal(panel: string): void {
    if (!this.has(panel)) return;
    const { tabs, full } = this.navigation.view.peek();
    const next = withTab(this.layout.peek(), tabs, panel);
    this.navigation.change({ tabs: next, full: full && panel }, 'replace');
    this.shell.activate(panel);
  }

  // Goes to the next (1) or previous (-1) step of the phase.
  moveStep(by: 1 | -1, repeated: boolean): void {
    const open = this.current.peek();
    const step = open?.step.peek() ?? null;
    if (!open || step === null) return;
    const before = this.navigation.view.peek();
    const next = adjacentStep(open.data, before.phase, step, by);
    if (next === null) return;
    const view = withStep(before, next);
    // A selected token moves with the step.
    const token = open.data.steps[next]?.token_id;
    const isToken = before.selection?.kind === 'token' && token !== undefined;
    this.navigation.go(
      isToken ? { ...view, selection: { kind: 'token', token } } : view,
      repeated ? 'coalesce' : 'push',
    );
  }

  // Stops the run at the second press of the key within two seconds: one press may be an accident.
  stopByKey(): void {
    const open = this.current.peek();
    if (!open?.active.peek() || !open.run.peek()) return;
    if (Date.now() - this.stopPressedMs < STOP_MS) void open.stop();
    else this.toasts.done('Press X again to stop the run.');
    this.stopPressedMs = Date.now();
  }

  // Shows only steps of a phase. A selected step of another phase is replaced by the phase's newest.
  setPhase(phase: PhaseFilter): void {
    this.navigation.go(this.inPhase(this.navigation.view.peek(), phase));
  }

  // The view with this phase, without the step if it is of another one.
  inPhase(view: View, phase: PhaseFilter): View {
    const step = view.step === null ? undefined : this.current.peek()?.data.steps[view.step];
    const isLost = step !== undefined && !isInPhase(step, phase);
    return { ...(isLost ? withStep(view, null) : view), phase };
  }

  // Selects a token, the step that processed it and optionally a layer.
  selectToken(
    session: OpenSession,
    token: number,
    layer: number | null = null,
    how: HistoryMode = 'push',
  ): void {
    const step = session.data.stepOfToken(token);
    const view = withStep(this.navigation.view.peek(), step ?? this.navigation.view.peek().step);
    this.navigation.go(
      {
        ...view,
        layer: layer ?? view.layer,
        selection: { kind: 'token', token },
      },
      how,
    );
  }

  // Selects an item, with the graph of its layer.
  select(selection: Selection | null, how: HistoryMode = 'push'): void {
    const before = this.navigation.view.peek();
    const open = this.current.peek();
    const found = open && layerOfSelection(open, selection, open.step.peek());
    const layer = found ?? before.layer;
    if (layer !== before.layer || !sameSelection(before.selection, selection))
      this.navigation.change({ selection, layer }, how);
  }

  // Selects an item of the graph that is shown, which stays: its inputs are of other layers.
  selectInGraph(selection: Selection, how: HistoryMode = 'push'): void {
    const before = this.navigation.view.peek().selection;
    if (!sameSelection(before, selection)) this.navigation.change({ selection }, how);
  }

  // Sets the filter of all views. The graph shows the layer that it names, if it is only one.
  setFilter(filter: string, how: HistoryMode = 'debounced'): void {
    const { navigation } = this;
    const before = navigation.view.peek();
    if (filter === before.filter) return;
    const named = onlyLayer(parseFilter(filter));
    const isNew = named !== null && named !== onlyLayer(parseFilter(before.filter));
    const layer = isNew && named < this.layers.peek() ? named : before.layer;
    navigation.change({ filter, layer }, how);
  }

  // Selects the op at which a run is stopped: by its name, because its step is not recorded yet.
  private showPlace({ layer_id: layer, tensor_name: name }: DebugPlace): void {
    const before = this.navigation.view.peek();
    this.navigation.change(
      { selection: { kind: 'output', of: 'op', name }, layer: layer ?? before.layer },
      'replace',
    );
  }

  moveLayer(by: 1 | -1, repeated: boolean): void {
    const { layer } = this.navigation.view.peek();
    const layers = this.layers.peek();
    const next = Math.min(layers - 1, Math.max(0, layer + by));
    if (next < 0 || next === layer) return;
    const how = repeated ? 'coalesce' : 'push';
    // A selected op moves with the layer: to the first one of the new layer.
    const open = this.current.peek();
    const step = open?.step.peek() ?? null;
    const isOp = this.navigation.view.peek().selection?.kind === 'op';
    const ops = open && step !== null && isOp ? stepOpsOf(open).known(step) : undefined;
    const first = ops?.find(({ op_layer_id }) => op_layer_id === next);
    this.navigation.change(
      { layer: next, ...(first ? { selection: { kind: 'op', op: first.op } } : {}) },
      how,
    );
  }

  // Number of layers of the open session's model; 0 if unknown.
  readonly layers = computed(() => {
    const open = this.current.value;
    if (!open) return 0;
    void open.feed.version.value;
    const info = open.info.value;
    const known = info.is === 'ready' ? (info.value.n_layers ?? 0) : 0;
    return known || Math.max(0, open.data.rows() - 1);
  });

  async removeSession(session: ListedSession): Promise<void> {
    const wasOpen = this.current.peek()?.id === session.id;
    const removed = await this.sessions.remove(session, () => {
      if (wasOpen) this.navigation.toSession(session.id, 'replace');
    });
    if (removed && this.current.peek()?.id === session.id) {
      this.navigation.toSession(null, 'replace');
    }
  }

  async renameSession(session: ListedSession, title: string): Promise<void> {
    if (!(await this.sessions.rename(session, title))) return;
    if (this.current.peek()?.id === session.id) await this.current.peek()?.refresh();
  }

  upload(files: readonly File[]): void {
    void this.sessions.upload(files, (id) => {
      this.navigation.toSession(id);
    });
  }

  // Adds the session that is part of the page, and opens it.
  async openExample(): Promise<void> {
    const file = await this.api.example();
    if (file.ok) this.upload([new File([file.value], 'example.ttrace')]);
    else this.toasts.error('The example session cannot be read.');
  }

  // The memory budget of a model. Its history is kept while the page is open.
  memoryBudget(model: string): MemoryBudget {
    const known = this.budgets.get(model);
    if (known) return known;
    const budget = new MemoryBudget(
      model,
      this.api,
      this.toasts,
      () => void this.models.watch(),
      () => this.open.peek()?.id ?? '',
    );
    this.budgets.set(model, budget);
    return budget;
  }

  // Reconnects now.
  retry(): void {
    this.live?.connect();
    void this.connection.probe();
  }

  // ---- Server events ----------------------------------------------------------------

  status(status: LiveStatus): void {
    this.connection.setLiveStatus(status);
  }

  fault(detail: string): void {
    this.toasts.error(detail);
  }

  event(event: LiveEvent): void {
    switch (event.type) {
      case 'hello':
      case 'subscribed':
        return;
      case 'list':
        this.sessions.refreshSoon();
        void this.current.peek()?.fileChanged();
        return;
      case 'error': {
        // Recorded by an earlier server process: there are no live events and no run.
        const open = this.current.peek();
        if (event.code !== 'not_live')
          this.fault(event.detail ?? 'The server rejected a live command.');
        else if (open?.active.peek()) void open.refreshRun();
        return;
      }
      default: {
        const open = this.current.peek();
        if (open?.id === event.session) open.event(event);
      }
    }
  }

  opsFrame(session: string, frame: OpsFrame): void {
    const open = this.current.peek();
    if (open?.id === session) open.opsFrame(frame);
  }

  // ---- Internals --------------------------------------------------------------------

  private openById(id: string | null): void {
    const before = this.current.peek();
    if ((before?.id ?? null) === id) return;
    before?.close();
    this.followed?.stop();
    this.followed = null;
    this.hoverToken.value = null;
    this.left.value = null;
    const run = this.startedRun?.id === id ? this.startedRun : null;
    this.startedRun = null;
    const opened = id === null ? null : this.openSession(id, run);
    this.current.value = opened;
    this.followed = opened && new FollowedSelection(opened);
    // If the page falls behind, it gets the newest data and reads the skipped data over HTTP.
    this.live?.watch(id, id === null ? [] : KINDS, { thin: 'latest' });
  }

  private openSession(id: string, run: Run | null): OpenSession {
    return new OpenSession(id, run, {
      api: this.api,
      navigation: this.navigation,
      reconnects: this.connection.reconnects,
      ended: (ended) => {
        if (ended) this.chat.finishTurn(ended);
        void this.sessions.refresh();
      },
      changed: (session) => {
        this.sessions.update(session);
      },
      exists: async () => !this.hasServer || (await this.sessions.exists(id)),
      missing: () => {
        this.toasts.error(
          `Session ${id} not found: it was deleted, or the link is of another server.`,
        );
        this.navigation.toSession(null, 'replace');
      },
      fault: (text) => {
        this.toasts.error(text);
      },
    });
  }

  private chooseKinds({ id, data }: OpenSession): void {
    const speed = generationSpeed(data, null, true) ?? 0;
    if (speed > FAST_PER_SECOND) this.live?.setKinds(id, KINDS_OF_FAST_STEPS);
    else if (speed < FAST_PER_SECOND / 2) this.live?.setKinds(id, KINDS);
  }

  private reloadAll(): void {
    void this.models.watch();
    void this.recorded.refresh();
    void this.sessions.refresh();
    void this.current.peek()?.refresh();
  }
}
