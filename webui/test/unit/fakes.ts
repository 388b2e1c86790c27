// Fakes of the server API, the storage and the browser's history, for tests of the store.
import { signal } from '@preact/signals';
import type { Api } from '../../src/net/api';
import type { ApiError } from '../../src/net/call';
import type { Browser } from '../../src/state/view/navigation';
import { Store, type StoreParts } from '../../src/state/store';
import { err, ok } from '../../src/result';

export const OFFLINE: ApiError = { kind: 'offline', detail: 'The server does not respond.' };
export const rejected = (status: number, detail = 'no'): ApiError => ({
  kind: 'rejected',
  status,
  code: null,
  title: 'No',
  detail,
});

export const succeeds = <T>(value: T) => Promise.resolve(ok(value));
export const fails = (error: ApiError) => Promise.resolve(err(error));

// Calls that are not defined fail as offline.
export function fakeApi(part: Partial<Api>): Api {
  return new Proxy(part, {
    get: (target, name: keyof Api) => target[name] ?? (() => fails(OFFLINE)),
  }) as Api;
}

export class FakeStorage {
  readonly items = new Map<string, string>();
  getItem(key: string): string | null {
    return this.items.get(key) ?? null;
  }
  setItem(key: string, value: string): void {
    this.items.set(key, value);
  }
}

// A browser history with Back and Forward.
export class FakeBrowser implements Browser {
  readonly entries = ['/'];
  at = 0;
  private readonly listeners: (() => void)[] = [];
  readonly location: Browser['location'];
  readonly history: Browser['history'];

  constructor(hash = '') {
    const entries = this.entries;
    entries[0] = `/${hash}`;
    const now = () => entries[this.at] ?? '';
    this.location = {
      pathname: '/',
      search: '',
      get hash() {
        const at = now().indexOf('#');
        return at < 0 ? '' : now().slice(at);
      },
    };
    this.history = {
      pushState: (_state, _unused, url) => {
        this.at += 1;
        entries.splice(this.at, Infinity, String(url));
      },
      replaceState: (_state, _unused, url) => {
        entries[this.at] = String(url);
      },
    };
  }

  addEventListener(_type: string, listener: () => void): void {
    this.listeners.push(listener);
  }

  go(by: number): void {
    this.at += by;
    for (const listener of this.listeners) listener();
  }
}

export const PANELS = new Set([
  'chat',
  'sessions',
  'map',
  'graph',
  'table',
  'budget',
  'inspector',
  'analytics',
  'compare',
  'weights',
  'values',
  'sql',
  'debug',
]);

export function fakeStore(
  part: Partial<Api>,
  browser = new FakeBrowser(),
  of: Pick<StoreParts, 'held' | 'panels'> = { held: null, panels: PANELS },
): Store {
  return new Store({
    ...of,
    api: fakeApi(part),
    waiting: signal(0),
    browser,
    local: new FakeStorage(),
    tab: new FakeStorage(),
    systemTheme: signal('dark'),
    offer: () => undefined,
  });
}
