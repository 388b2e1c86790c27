// A fake server that responds immediately with the data of the test, and a store that uses it. The
// clock is vitest's.
import { vi } from 'vitest';
import type { Api } from '../../src/net/api';
import type { Model, Run, Session, StepSummary, Token } from '../../src/net/types';
import { EMPTY_RUN } from '../../src/state/request/chat';
import type { Store } from '../../src/state/store';
import { FakeBrowser, fails, fakeStore, succeeds, rejected } from './fakes';

export const MODEL = {
  id: 'm',
  name: 'm',
  path: '/m.gguf',
  state: 'loaded',
  has_vocabulary: true,
  has_chat_template: true,
  can_chat: true,
} as Model;

export const session = (id: string, part: Partial<Session> = {}): Session => ({
  id,
  title: `title ${id}`,
  state: 'done',
  error: null,
  start_utc_ns: 1,
  file_bytes: 1,
  ...part,
});
export const run = (id: string, part: Partial<Run> = {}): Run => ({ ...EMPTY_RUN, id, ...part });

class FakeLive {
  watched: (string | null)[] = [];
  connect(): void {
    // Always connected.
  }
  watch(id: string | null): void {
    this.watched.push(id);
  }
  kinds: readonly string[] = [];
  setKinds(_id: string, kinds: readonly string[]): void {
    this.kinds = kinds;
  }
}

// The data of the server.
interface ServerData {
  sessions?: Session[];
  runs?: Map<string, Run>;
  tokens?: Token[];
  steps?: StepSummary[];
}
export function server(has: ServerData): Partial<Api> {
  const { sessions = [], runs = new Map<string, Run>(), tokens = [], steps = [] } = has;
  const page = <T>(list: readonly T[], from: number) => ({
    total: list.length,
    rows: list.slice(from),
  });
  return {
    health: () => succeeds({ status: 'ok', version: '1' } as never),
    server: () => succeeds({ data_dir: '/data', recorded_program: null } as never),
    models: () => succeeds({ models: [MODEL] }),
    sessions: () => succeeds({ total: sessions.length, sessions: [...sessions] }),
    session: (id) => {
      const found = sessions.find((one) => one.id === id);
      return found ? succeeds(found) : fails(rejected(404));
    },
    run: (id) => {
      const found = runs.get(id);
      return found ? succeeds(found) : fails(rejected(404));
    },
    tokens: (_id, from) => {
      const { total, rows } = page(tokens, from);
      return succeeds({ total, tokens: rows });
    },
    steps: (_id, part) => {
      const { total, rows } = page(steps, 'from' in part ? part.from : Math.max(0, steps.length - part.last)); // prettier-ignore
      return succeeds({ total, steps: rows });
    },
  };
}

export const live = new FakeLive();
export async function startStore(part: Partial<Api>, browser = new FakeBrowser()): Promise<Store> {
  const store = fakeStore(part, browser);
  live.watched = [];
  store.start(live);
  await vi.advanceTimersByTimeAsync(50);
  return store;
}
