// The list of recorded sessions that match the filter, and its actions: rename, delete with undo,
// upload.
import { signal, type ReadonlySignal } from '@preact/signals';
import { MAX_PAGE_ROWS, errorText, type ApiResult, type Api, type ApiError } from '../../net/api';
import type { Session, SessionQuery, SessionSort, SessionState } from '../../net/types';
import { loading, ok, toLoadable, type Loadable } from '../../result';
import type { Toasts } from '../toasts';
import { changesOf } from './changes';
import { settingsOf } from './told_apart';

export interface SessionFilter {
  readonly q: string;
  readonly state: SessionState | '';
  readonly model: string; // file name; empty: any
  readonly sort: SessionSort;
}

// Of the facts, which are most of a session's memory, only how the run was altered and its settings.
export type ListedSession = Omit<Session, 'facts'> & {
  readonly changes?: readonly string[];
  readonly settings?: Readonly<Record<string, string>>;
};

export interface ListedPage {
  readonly total: number;
  readonly sessions: readonly ListedSession[];
}

export interface Upload {
  readonly id: number;
  readonly name: string;
  readonly share: number; // fraction of the bytes sent
  readonly stop: () => void;
}

export const emptyFilter: SessionFilter = { q: '', state: '', model: '', sort: '-start' };

const PAGE = 100;
const TYPING_DELAY_MS = 200;
const REFRESH_MS = 2000; // minimum interval between refreshes for changes on the server
const EMPTY_PAGE: ListedPage = { total: 0, sessions: [] };

type SessionsApi = Pick<Api, 'sessions' | 'runs' | 'rename' | 'remove' | 'restore' | 'upload'>;

export class SessionList {
  readonly filter: ReadonlySignal<SessionFilter>;
  readonly page: ReadonlySignal<Loadable<ListedPage, ApiError>>;
  readonly uploads: ReadonlySignal<readonly Upload[]>;
  private readonly currentFilter = signal<SessionFilter>(emptyFilter);
  private readonly latest = signal<Loadable<ListedPage, ApiError>>(loading);
  private readonly sending = signal<readonly Upload[]>([]);
  private readonly api: SessionsApi;
  private readonly toasts: Toasts;
  private control: AbortController | null = null; // while the list is read
  private loadedFilter: SessionFilter | null = null; // the filter of `page`
  private timer: ReturnType<typeof setTimeout> | null = null;
  private refreshTimer: ReturnType<typeof setTimeout> | null = null;
  private refreshAt = 0;
  private uploadNumber = 0;

  constructor(api: SessionsApi, toasts: Toasts) {
    this.api = api;
    this.toasts = toasts;
    this.filter = this.currentFilter;
    this.page = this.latest;
    this.uploads = this.sending;
  }

  setFilter(change: Partial<SessionFilter>): void {
    this.currentFilter.value = { ...this.currentFilter.peek(), ...change };
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = setTimeout(
      () => {
        void this.load(PAGE);
      },
      change.q === undefined ? 0 : TYPING_DELAY_MS,
    );
  }

  // Reloads the list with the same number of rows.
  refresh(): Promise<void> {
    const page = this.latest.peek();
    return this.load(Math.max(PAGE, page.is === 'ready' ? page.value.sessions.length : 0));
  }

  // The list has changed on the server: it is read at once, or with the other changes of the interval.
  refreshSoon(): void {
    this.refreshTimer ??= setTimeout(
      () => {
        this.refreshTimer = null;
        this.refreshAt = Date.now() + REFRESH_MS;
        if (this.control) this.refreshSoon();
        else void this.refresh();
      },
      Math.max(0, this.refreshAt - Date.now()),
    );
  }

  loadMore(): Promise<void> {
    const page = this.latest.peek();
    const isCurrent = this.loadedFilter === this.currentFilter.peek(); // else another list is loading
    if (!isCurrent || page.is !== 'ready' || page.value.sessions.length >= page.value.total) {
      return Promise.resolve();
    }
    return this.load(page.value.sessions.length + PAGE, page.value);
  }

  find(id: string): ListedSession | undefined {
    const page = this.latest.peek();
    return page.is === 'ready' ? page.value.sessions.find((one) => one.id === id) : undefined;
  }

  // Whether the server has a session of this id, or a request that has none yet. The lists are asked,
  // because the browser logs each answer 404 as an error. True if they cannot be read.
  async exists(id: string): Promise<boolean> {
    if (this.find(id)) return true;
    const found = await this.api.sessions({ q: id, limit: 1 });
    if (!found.ok || found.value.total > 0) return true;
    const runs = await this.api.runs();
    return !runs.ok || runs.value.generations.some((run) => run.id === id);
  }

  // Newer facts of a session, for example of the running one. Reads the list again if it should
  // contain the session and does not.
  update(session: Session): void {
    const page = this.latest.peek();
    if (page.is !== 'ready') return;
    if (this.find(session.id)) this.replace(listed(session));
    else if (page.value.sessions.length < PAGE || this.loadedFilter?.sort === '-start')
      void this.refresh();
  }

  // Returns whether the session has the title now.
  async rename(session: ListedSession, title: string): Promise<boolean> {
    const newTitle = title.trim();
    if (newTitle === '' || newTitle === session.title) return true;
    this.replace({ ...session, title: newTitle });
    const result = await this.api.rename(session.id, newTitle);
    this.replace(result.ok ? listed(result.value) : session);
    if (!result.ok) this.toasts.error(`Cannot rename the session: ${errorText(result.error)}`);
    // The filter and the order may depend on the title.
    void this.refresh();
    return result.ok;
  }

  // `undone` is called after the session was restored.
  async remove(session: ListedSession, undone: () => void): Promise<boolean> {
    const result = await this.api.remove(session.id);
    if (!result.ok) {
      this.toasts.error(`Cannot delete the session: ${errorText(result.error)}`);
      return false;
    }
    this.drop(session.id);
    this.toasts.done(`Deleted “${titleOf(session)}”.`, {
      text: 'Undo',
      run: () => {
        void this.restore(session, undone);
      },
    });
    void this.refresh();
    return true;
  }

  // Uploads the files one after the other. A single file is opened; of several, `open` is offered.
  async upload(files: readonly File[], open: (id: string) => void): Promise<void> {
    for (const file of files) {
      const control = new AbortController();
      const upload = this.begin(file.name, control);
      const result = await this.api.upload(
        file,
        (share) => {
          this.progress(upload.id, share);
        },
        control.signal,
      );
      this.sending.value = this.sending.peek().filter(({ id }) => id !== upload.id);
      if (result.ok) {
        const session = result.value;
        const show = (): void => {
          open(session.id);
        };
        const added = `Added “${titleOf(session)}”.`;
        if (files.length === 1) {
          this.toasts.done(added);
          show();
        } else this.toasts.done(added, { text: 'Open', run: show });
        void this.refresh();
      } else if (result.error.kind !== 'aborted') {
        this.toasts.error(`${file.name} was not added: ${errorText(result.error)}`);
      }
    }
  }

  private async restore(session: ListedSession, undone: () => void): Promise<void> {
    const result = await this.api.restore(session.id);
    if (result.ok) undone();
    else this.toasts.error(`Cannot restore the session: ${errorText(result.error)}`);
    void this.refresh();
  }

  private begin(name: string, control: AbortController): Upload {
    this.uploadNumber += 1;
    const stop = (): void => {
      control.abort();
    };
    const upload = { id: this.uploadNumber, name, share: 0, stop };
    this.sending.value = [...this.sending.peek(), upload];
    return upload;
  }

  private progress(id: number, share: number): void {
    this.sending.value = this.sending
      .peek()
      .map((one) => (one.id === id ? { ...one, share } : one));
  }

  // Loads the first `count` sessions; `known` contains the first of them already.
  private async load(count: number, known: ListedPage = EMPTY_PAGE): Promise<void> {
    this.control?.abort();
    const control = new AbortController();
    this.control = control;
    const filter = this.currentFilter.peek();
    const result = await this.read(filter, count, known, control.signal);
    if (control.signal.aborted) return;
    this.control = null;
    if (result.ok) this.loadedFilter = filter;
    // Keep the shown list if a refresh fails.
    if (result.ok || this.latest.peek().is !== 'ready') this.latest.value = toLoadable(result);
    else if (result.error.kind === 'rejected') this.toasts.error(errorText(result.error));
  }

  private async read(
    filter: SessionFilter,
    count: number,
    known: ListedPage,
    signal: AbortSignal,
  ): ApiResult<ListedPage> {
    const all = new Map(known.sessions.map((one) => [one.id, one]));
    for (let offset = all.size; ;) {
      const limit = Math.min(MAX_PAGE_ROWS, count - offset);
      const page = await this.api.sessions({ ...queryOf(filter), ...from(offset), limit }, signal);
      if (!page.ok) return page;
      const { total, sessions } = page.value;
      const moved = total !== known.total || sessions.some(({ id }) => all.has(id));
      if (known !== EMPTY_PAGE && moved) return this.read(filter, count, EMPTY_PAGE, signal);
      for (const one of sessions) all.set(one.id, listed(one));
      offset += sessions.length;
      if (sessions.length === 0 || offset >= Math.min(count, total)) {
        return ok({ total, sessions: [...all.values()] });
      }
    }
  }

  private change(edit: (sessions: readonly ListedSession[]) => readonly ListedSession[]): void {
    const page = this.latest.peek();
    if (page.is !== 'ready') return;
    const sessions = edit(page.value.sessions);
    const total = page.value.total + sessions.length - page.value.sessions.length;
    this.latest.value = { is: 'ready', value: { total, sessions } };
  }

  private replace(session: ListedSession): void {
    this.change((all) => all.map((one) => (one.id === session.id ? session : one)));
  }

  private drop(id: string): void {
    this.change((all) => all.filter((one) => one.id !== id));
  }
}

const listed = ({ facts, ...session }: Session): ListedSession => ({
  ...session,
  changes: changesOf(facts),
  settings: settingsOf(facts),
});

const from = (offset: number): SessionQuery => (offset === 0 ? {} : { from: offset });

const queryOf = ({ q, state, model, sort }: SessionFilter): SessionQuery => ({
  ...(q.trim() === '' ? {} : { q: q.trim() }),
  ...(state === '' ? {} : { state }),
  ...(model === '' ? {} : { model }),
  ...(sort === '-start' ? {} : { sort }),
});

export const titleOf = (session: ListedSession): string => session.title || session.id;
