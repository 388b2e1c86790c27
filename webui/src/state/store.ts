// The one place that holds state. Each part is changed by its own methods only;
// views read signals. Here the parts are put together, and what comes from the
// server goes to the part that it concerns.
import { computed, effect, signal, untracked, type ReadonlySignal } from '@preact/signals';
import type { Api } from '../net/api';
import type { OpsFrame } from '../net/frames';
import type { LiveSink, LiveStatus, WatchOptions } from '../net/live';
import type { LiveEvent, LiveKind } from '../net/live_events';
import type { Run, Session } from '../net/types';
import { themeOf } from '../theme';
import { Chat } from './chat';
import { Connection } from './connection';
import { Models } from './models';
import { Navigation, type Browser, type How } from './navigation';
import { OpenSession, stepBeside, stepOfToken } from './open_session';
import { sameSelection, type Selection } from './selection';
import { SessionList } from './session_list';
import { SettingsStore, type Theme } from './settings';
import { Shell } from './shell';
import { Toasts } from './toasts';
import type { KnownPanels } from './url';
import { atStep, withKey } from './view';

// The part of net/live.ts that the store uses.
export interface Watcher {
  connect(): void;
  watch(session: string | null, kinds: readonly LiveKind[], options?: WatchOptions): void;
}

export interface StoreParts {
  readonly api: Api;
  readonly browser: Browser;
  readonly panels: KnownPanels;
  readonly local: Pick<Storage, 'getItem' | 'setItem'> | null;
  readonly tab: Pick<Storage, 'getItem' | 'setItem'> | null;
  readonly systemTheme: ReadonlySignal<Theme>;
}

const KINDS: readonly LiveKind[] = ['token', 'step', 'op', 'progress'];
const POLL_MS = 1000; // of a run while the live connection is away
const CLOCK_MS = 10_000;

export class Store implements LiveSink {
  readonly settings: SettingsStore;
  readonly toasts = new Toasts();
  readonly shell = new Shell();
  readonly navigation: Navigation;
  readonly connection: Connection;
  readonly models: Models;
  readonly sessions: SessionList;
  readonly chat: Chat;
  readonly open: ReadonlySignal<OpenSession | null>;
  readonly now: ReadonlySignal<number>; // ms; for "3 min ago"
  readonly theme: ReadonlySignal<Theme>;
  // The token under the pointer, in the answer or the heat map.
  readonly hoverToken = signal<number | null>(null);
  private readonly clock = signal(Date.now());
  private readonly opened = signal<OpenSession | null>(null);
  private readonly api: Api;
  private readonly panels: KnownPanels;
  private live: Watcher | null = null;
  private sent: Run | null = null; // opens with what the answer said

  constructor({ api, browser, panels, local, tab, systemTheme }: StoreParts) {
    this.api = api;
    this.panels = panels;
    this.open = this.opened;
    this.now = this.clock;
    this.settings = new SettingsStore(local);
    this.theme = themeOf(this.settings.chosen, systemTheme);
    this.navigation = new Navigation(browser, panels, (dropped) => {
      this.toasts.fault(`The link has parts that mean nothing here: ${dropped.join(', ')}`);
    });
    this.connection = new Connection(api);
    this.models = new Models(api, this.toasts);
    this.sessions = new SessionList(api, this.toasts);
    this.chat = new Chat({
      api,
      model: this.models.current,
      several: () => {
        const shelf = this.models.shelf.peek();
        return shelf.is === 'ready' && shelf.value.models.length > 1;
      },
      settings: this.settings.chosen,
      open: (run) => {
        this.sent = run;
        this.navigation.toSession(run.id);
        void this.sessions.refresh();
      },
      refused: () => {
        void this.models.watch();
      },
      storage: tab,
    });
  }

  start(live: Watcher): void {
    this.live = live;
    this.navigation.start();
    effect(() => {
      const id = this.navigation.view.value.session;
      untracked(() => {
        this.show(id);
      });
    });
    let seen = 0;
    effect(() => {
      const back = this.connection.back.value;
      if (back === seen) return;
      seen = back;
      untracked(() => {
        this.catchUp();
      });
    });
    live.connect();
    void this.models.watch();
    void this.sessions.refresh();
    setInterval(() => {
      this.clock.value = Date.now();
    }, CLOCK_MS);
    setInterval(() => {
      if (this.connection.reach.peek().is === 'live') return;
      const open = this.opened.peek();
      if (open?.active.peek()) void open.refreshRun();
    }, POLL_MS);
  }

  // ---- What the person does with panels, sessions and steps ---------------------------

  // Brings a panel to the front of its place.
  reveal(panel: string): void {
    const place = this.panels.get(panel);
    if (place === undefined) return;
    const first = [...this.panels].find(([, one]) => one === place)?.[0];
    const { tabs, full } = this.navigation.view.peek();
    this.navigation.change(
      { tabs: withKey(tabs, place, panel === first ? null : panel), full: full && panel },
      'replace',
    );
    this.shell.activate(panel);
    if (place === 'inspector') this.settings.set({ showInspector: true });
    if (place === 'chat' || place === 'shelf') this.settings.set({ showSide: true });
  }

  // By 1 to the next step of the phase, by -1 to the one before.
  moveStep(by: 1 | -1, repeated: boolean): void {
    const open = this.opened.peek();
    const step = open?.step.peek() ?? null;
    if (!open || step === null) return;
    const next = stepBeside(open.data, this.navigation.view.peek().phase, step, by);
    if (next !== null) this.navigation.toStep(next, repeated ? 'walk' : 'push');
  }

  // A token, the step that computed it and, where one is meant, a layer.
  selectToken(session: OpenSession, token: number, layer: number | null = null): void {
    const step = stepOfToken(session.data, token);
    const view = atStep(this.navigation.view.peek(), step ?? this.navigation.view.peek().step);
    this.navigation.go({
      ...view,
      layer: layer ?? view.layer,
      selection: { kind: 'token', token },
    });
  }

  select(selection: Selection | null, how: How = 'push'): void {
    const before = this.navigation.view.peek().selection;
    if (!sameSelection(before, selection)) this.navigation.change({ selection }, how);
  }

  moveLayer(by: 1 | -1, repeated: boolean): void {
    const { layer } = this.navigation.view.peek();
    const layers = this.layers.peek();
    const next = Math.min(layers - 1, Math.max(0, layer + by));
    if (next >= 0 && next !== layer) {
      this.navigation.change({ layer: next }, repeated ? 'walk' : 'push');
    }
  }

  // Layers of the open session's model; 0 while that is not known.
  readonly layers = computed(() => {
    const open = this.opened.value;
    if (!open) return 0;
    void open.feed.version.value;
    const info = open.info.value;
    const known = info.is === 'ready' ? (info.value.n_layers ?? 0) : 0;
    return known || Math.max(0, open.data.rows() - 1);
  });

  async removeSession(session: Session): Promise<void> {
    const wasOpen = this.opened.peek()?.id === session.id;
    const removed = await this.sessions.remove(session, () => {
      if (wasOpen) this.navigation.toSession(session.id, 'replace');
    });
    if (removed && this.opened.peek()?.id === session.id) {
      this.navigation.toSession(null, 'replace');
    }
  }

  async renameSession(session: Session, title: string): Promise<void> {
    if (!(await this.sessions.rename(session, title))) return;
    if (this.opened.peek()?.id === session.id) await this.opened.peek()?.refresh();
  }

  upload(files: readonly File[]): void {
    void this.sessions.upload(files, (id) => {
      this.navigation.toSession(id);
    });
  }

  // Tries to reach the server now instead of later.
  retry(): void {
    this.live?.connect();
    void this.connection.probe();
  }

  // ---- What the server says ----------------------------------------------------

  status(status: LiveStatus): void {
    this.connection.status(status);
  }

  fault(detail: string): void {
    this.toasts.fault(detail);
  }

  event(event: LiveEvent): void {
    switch (event.type) {
      case 'hello':
      case 'subscribed':
        return;
      case 'error': {
        // Recorded by an earlier run of the server: there is nothing to hear,
        // but also nothing running any more.
        const open = this.opened.peek();
        if (event.code === 'not_live') void open?.refreshRun();
        else this.fault(event.detail ?? 'The live connection refused a command.');
        return;
      }
      default: {
        const open = this.opened.peek();
        if (open?.id === event.session) open.event(event);
      }
    }
  }

  opsFrame(session: string, frame: OpsFrame): void {
    const open = this.opened.peek();
    if (open?.id === session) open.opsFrame(frame);
  }

  // ---- How ----------------------------------------------------------------------

  private show(id: string | null): void {
    const before = this.opened.peek();
    if ((before?.id ?? null) === id) return;
    before?.close();
    this.hoverToken.value = null;
    const run = this.sent?.id === id ? this.sent : null;
    this.sent = null;
    this.opened.value = id === null ? null : this.openSession(id, run);
    // A page that falls behind shows what is new; what it missed is read over HTTP.
    this.live?.watch(id, id === null ? [] : KINDS, { thin: 'latest' });
  }

  private openSession(id: string, run: Run | null): OpenSession {
    return new OpenSession(id, run, {
      api: this.api,
      navigation: this.navigation,
      back: this.connection.back,
      ended: (ended) => {
        if (ended) this.chat.settle(ended);
        void this.sessions.refresh();
      },
      fault: (text) => {
        this.toasts.fault(text);
      },
    });
  }

  private catchUp(): void {
    void this.models.watch();
    void this.sessions.refresh();
    void this.opened.peek()?.refresh();
  }
}
