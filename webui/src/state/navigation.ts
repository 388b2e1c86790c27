// Holds the view and keeps it and the browser's address the same. A choice makes
// an entry of its own in the history, so that Back undoes it; looking around
// (pan, zoom, typing a filter) changes the entry that is there, a quarter of a
// second after the last move.
import { signal, type ReadonlySignal } from '@preact/signals';
import { fromHash, toHash, type KnownPanels } from './url';
import { atSession, atStep, emptyView, withKey, type View, type Window } from './view';

// walk: one of several small steps by key, which together are one entry.
export type How = 'push' | 'replace' | 'later' | 'walk';

// The parts of `window` that this needs.
export interface Browser {
  readonly location: { readonly hash: string; readonly pathname: string; readonly search: string };
  readonly history: Pick<History, 'pushState' | 'replaceState'>;
  addEventListener(type: 'popstate' | 'hashchange', listener: () => void): void;
}

const SETTLE_MS = 250;

export class Navigation {
  readonly view: ReadonlySignal<View>;
  private readonly current = signal<View>(emptyView);
  private readonly browser: Browser;
  private readonly panels: KnownPanels;
  private readonly tell: (dropped: readonly string[]) => void;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private walking = false;

  // `tell` hears of parts of an address that were not understood.
  constructor(browser: Browser, panels: KnownPanels, tell: (dropped: readonly string[]) => void) {
    this.view = this.current;
    this.browser = browser;
    this.panels = panels;
    this.tell = tell;
  }

  start(): void {
    for (const type of ['popstate', 'hashchange'] as const) {
      this.browser.addEventListener(type, () => {
        this.read();
      });
    }
    this.read();
  }

  go(next: View, how: How = 'push'): void {
    const before = this.current.peek();
    if (next === before) return;
    const push = how === 'push' || (how === 'walk' && !this.walking);
    if (push) this.settle(); // the entry that is left keeps how it was looked at last
    this.current.value = next;
    this.walking = how === 'walk' || (how === 'later' && this.walking);
    if (how === 'later') this.settleLater();
    else this.write(push);
  }

  change(part: Partial<View>, how: How = 'push'): void {
    this.go({ ...this.current.peek(), ...part }, how);
  }

  toSession(session: string | null, how: How = 'push'): void {
    this.go(atSession(this.current.peek(), session), how);
  }

  toStep(step: number | null, how: How = 'push'): void {
    this.go(atStep(this.current.peek(), step), how);
  }

  // What a panel shows of its plane; null: everything.
  look(panel: string, window: Window | null): void {
    const { windows } = this.current.peek();
    this.change({ windows: withKey(windows, panel, window) }, 'later');
  }

  filter(panel: string, text: string): void {
    const { filters } = this.current.peek();
    this.change({ filters: withKey(filters, panel, text === '' ? null : text) }, 'later');
  }

  sort(panel: string, sort: string): void {
    this.change({ sorts: withKey(this.current.peek().sorts, panel, sort) }, 'replace');
  }

  // The address of what is shown now, whole.
  link(): string {
    const { pathname, search } = this.browser.location;
    return `${pathname}${search}${toHash(this.current.peek())}`;
  }

  private read(): void {
    const { hash } = this.browser.location;
    if (hash === toHash(this.current.peek())) return;
    this.cancel();
    this.walking = false;
    const { view, dropped } = fromHash(hash, this.panels);
    this.current.value = view;
    if (dropped.length === 0) return;
    this.write(false);
    this.tell(dropped);
  }

  private write(push: boolean): void {
    this.cancel();
    const url = this.link();
    if (push) this.browser.history.pushState(null, '', url);
    else this.browser.history.replaceState(null, '', url);
  }

  private settleLater(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.write(false);
    }, SETTLE_MS);
  }

  private settle(): void {
    if (this.timer !== null) this.write(false);
  }

  private cancel(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }
}
