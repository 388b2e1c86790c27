// Holds the view and keeps it in sync with the browser's URL. A selection pushes a history entry,
// so that Back undoes it. Pan, zoom and typing a filter replace the current entry 250 ms after the
// last change.
import { batch, signal, type ReadonlySignal } from '@preact/signals';
import { fromHash, toHash, type KnownPanels } from './url';
import { withSession, withStep, emptyView, withKey, type View, type Window } from './view';

// debounced: replace after 250 ms. coalesce: consecutive changes, for example by a held key, share one
// entry.
export type HistoryMode = 'push' | 'replace' | 'debounced' | 'coalesce';

// The parts of `window` that Navigation uses.
export interface Browser {
  readonly location: { readonly hash: string; readonly pathname: string; readonly search: string };
  readonly history: Pick<History, 'pushState' | 'replaceState'>;
  addEventListener(type: 'popstate' | 'hashchange', listener: () => void): void;
}

const REPLACE_DELAY_MS = 250;

export class Navigation {
  readonly view: ReadonlySignal<View>;
  private readonly current = signal<View>(emptyView);
  private readonly browser: Browser;
  private readonly panels: KnownPanels;
  private readonly onInvalidParts: (dropped: readonly string[]) => void;
  private readonly outputName: (view: View) => string | null;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private coalescing = false;

  // `onInvalidParts` is called with the invalid parts of a URL. `outputName`: the name of the output of
  // a view's selected op or node; null: unknown.
  constructor(
    browser: Browser,
    panels: KnownPanels,
    onInvalidParts: (invalid: readonly string[]) => void,
    outputName: (view: View) => string | null = () => null,
  ) {
    this.view = this.current;
    this.browser = browser;
    this.panels = panels;
    this.onInvalidParts = onInvalidParts;
    this.outputName = outputName;
  }

  start(): void {
    for (const type of ['popstate', 'hashchange'] as const) {
      this.browser.addEventListener(type, () => {
        this.read();
      });
    }
    this.read();
  }

  go(next: View, how: HistoryMode = 'push'): void {
    const before = this.current.peek();
    if (next === before) return;
    // In a frame, an entry would be one of the page around it.
    const isOwn = next.embed === null;
    const push = isOwn && (how === 'push' || (how === 'coalesce' && !this.coalescing));
    if (push) this.writePending(); // write pending changes to the entry that is left
    this.coalescing = how === 'coalesce' || (how === 'debounced' && this.coalescing);
    // What reacts to the view may replace the entry, which has to be the new one.
    batch(() => {
      this.current.value = next;
      if (how === 'debounced') this.writeLater();
      else this.write(push);
    });
  }

  change(part: Partial<View>, how: HistoryMode = 'push'): void {
    this.go({ ...this.current.peek(), ...part }, how);
  }

  toSession(session: string | null, how: HistoryMode = 'push'): void {
    this.go(withSession(this.current.peek(), session), how);
  }

  toStep(step: number | null, how: HistoryMode = 'push'): void {
    this.go(withStep(this.current.peek(), step), how);
  }

  // Sets the visible window of a panel; null: everything. Rounded as in a link, which then shows the
  // same pixels.
  setWindow(panel: string, window: Window | null): void {
    const { windows } = this.current.peek();
    const rounded = window?.map((n) => Math.round(n * 1000) / 1000) ?? null;
    this.change({ windows: withKey(windows, panel, rounded) }, 'debounced');
  }

  // Sets the filter of all views.
  setFilter(filter: string, how: HistoryMode = 'debounced'): void {
    if (filter !== this.current.peek().filter) this.change({ filter }, how);
  }

  // Sets the search text of one panel.
  setSearch(panel: string, text: string): void {
    const { filters } = this.current.peek();
    this.change({ filters: withKey(filters, panel, text === '' ? null : text) }, 'debounced');
  }

  // Sets the options of a panel; an empty text: the default ones.
  setOptions(panel: string, text: string, how: HistoryMode): void {
    const { options } = this.current.peek();
    this.change({ options: withKey(options, panel, text === '' ? null : text) }, how);
  }

  setSort(panel: string, sort: string): void {
    this.change({ sorts: withKey(this.current.peek().sorts, panel, sort) }, 'replace');
  }

  // The name of the selected output has become known: the URL gets it.
  nameOutput(): void {
    if (this.browser.location.hash !== this.hash()) this.write(false);
  }

  // The URL of the current view, with these changes.
  link(change: Partial<View> = {}): string {
    const { pathname, search } = this.browser.location;
    return `${pathname}${search}${this.hash(change)}`;
  }

  private hash(change: Partial<View> = {}): string {
    const view = this.current.peek();
    return toHash({ ...view, ...change }, this.outputName(view));
  }

  private read(): void {
    const { hash } = this.browser.location;
    if (hash === this.hash()) return;
    this.cancel();
    this.coalescing = false;
    const { view, invalid } = fromHash(hash, this.panels);
    this.current.value = view;
    if (invalid.length === 0) return;
    this.write(false);
    this.onInvalidParts(invalid);
  }

  private write(push: boolean): void {
    this.cancel();
    const url = this.link();
    if (push) this.browser.history.pushState(null, '', url);
    else this.browser.history.replaceState(null, '', url);
  }

  private writeLater(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.write(false);
    }, REPLACE_DELAY_MS);
  }

  private writePending(): void {
    if (this.timer !== null) this.write(false);
  }

  private cancel(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }
}
