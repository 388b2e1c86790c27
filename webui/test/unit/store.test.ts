// What the parts of the store make of the server's answers and of what happens.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Api } from '../../src/net/api';
import type { Model, Run, Session, StepSummary, Token } from '../../src/net/types';
import { EMPTY_RUN, messagesOf, saidIn } from '../../src/state/chat';
import { currentModel } from '../../src/state/models';
import { ok } from '../../src/result';
import type { Store } from '../../src/state/store';
import { AWAY, FakeBrowser, fails, fakeStore, gives, refused } from './fakes';
import { step, token } from './make';

const MODEL = {
  id: 'm',
  name: 'm',
  path: '/m.gguf',
  state: 'loaded',
  has_vocabulary: true,
  has_chat_template: true,
} as Model;

const session = (id: string, part: Partial<Session> = {}): Session => ({
  id,
  title: `title ${id}`,
  state: 'done',
  error: null,
  start_utc_ns: 1,
  file_bytes: 1,
  ...part,
});
const run = (id: string, part: Partial<Run> = {}): Run => ({ ...EMPTY_RUN, id, ...part });

class FakeLive {
  watched: (string | null)[] = [];
  connect(): void {
    // It is always there.
  }
  watch(id: string | null): void {
    this.watched.push(id);
  }
}

// A server that has what it is given.
interface Has {
  sessions?: Session[];
  runs?: Map<string, Run>;
  tokens?: Token[];
  steps?: StepSummary[];
}
function server(has: Has): Partial<Api> {
  const { sessions = [], runs = new Map<string, Run>(), tokens = [], steps = [] } = has;
  const page = <T>(list: readonly T[], from: number) => ({
    total: list.length,
    rows: list.slice(from),
  });
  return {
    health: () => gives({ status: 'ok', version: '1' } as never),
    models: () => gives({ models: [MODEL] }),
    sessions: () => gives({ total: sessions.length, sessions: [...sessions] }),
    session: (id) => {
      const found = sessions.find((one) => one.id === id);
      return found ? gives(found) : fails(refused(404));
    },
    run: (id) => {
      const found = runs.get(id);
      return found ? gives(found) : fails(refused(404));
    },
    tokens: (_id, from) => {
      const { total, rows } = page(tokens, from);
      return gives({ total, tokens: rows });
    },
    steps: (_id, from) => {
      const { total, rows } = page(steps, from);
      return gives({ total, steps: rows });
    },
  };
}

const live = new FakeLive();
async function started(part: Partial<Api>, browser = new FakeBrowser()): Promise<Store> {
  const store = fakeStore(part, browser);
  live.watched = [];
  store.start(live);
  await vi.advanceTimersByTimeAsync(50);
  return store;
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('an open session', () => {
  it('is the one of the address, with its tokens and steps', async () => {
    const has = { sessions: [session('a')], tokens: [token(0), token(1)], steps: [step(0)] };
    const store = await started(server(has), new FakeBrowser('#1&session=a'));
    const open = store.open.value;
    expect(open?.id).toBe('a');
    expect(open?.info.value).toMatchObject({ is: 'ready', value: { title: 'title a' } });
    expect(open?.data.tokens).toHaveLength(2);
    expect(open?.step.value).toBe(0);
    expect(live.watched).toEqual(['a']);
  });

  it('ends when another is opened, and Back opens it again', async () => {
    const browser = new FakeBrowser('#1&session=a');
    const store = await started(server({ sessions: [session('a'), session('b')] }), browser);
    store.navigation.toSession('b');
    expect(store.open.value?.id).toBe('b');
    browser.go(-1);
    expect(store.open.value?.id).toBe('a');
    expect(live.watched).toEqual(['a', 'b', 'a']);
  });

  it('hears only what concerns it', async () => {
    const store = await started(
      server({ sessions: [session('a')] }),
      new FakeBrowser('#1&session=a'),
    );
    store.event({ type: 'token', session: 'b', ...token(0, { generated: true }) });
    expect(store.open.value?.data.tokens).toHaveLength(0);
    store.event({ type: 'token', session: 'a', ...token(0, { generated: true }) });
    expect(store.open.value?.data.tokens).toHaveLength(1);
  });

  it('follows the newest step until one is chosen', async () => {
    const runs = new Map([['a', run('a', { state: 'running' })]]);
    const has = { sessions: [session('a')], runs, steps: [step(0)] };
    const store = await started(server(has), new FakeBrowser('#1&session=a'));
    const open = store.open.value;
    store.event({ type: 'step', session: 'a', ...step(1) });
    await vi.advanceTimersByTimeAsync(600);
    expect(open?.step.value).toBe(1);
    store.moveStep(-1, false);
    store.event({ type: 'step', session: 'a', ...step(2) });
    await vi.advanceTimersByTimeAsync(600);
    expect(open?.step.value).toBe(0);
    expect(open?.following.value).toBe(false);
  });

  it('stays within the phase', async () => {
    const steps = [step(0, { phase: 'prompt' }), step(1), step(2)];
    const has = { sessions: [session('a')], steps };
    const store = await started(server(has), new FakeBrowser('#1&session=a&ph=p'));
    expect(store.open.value?.step.value).toBe(0);
    store.moveStep(1, false);
    expect(store.navigation.view.value.step).toBeNull();
    store.navigation.change({ phase: 'all', step: 0 });
    store.moveStep(1, false);
    expect(store.navigation.view.value.step).toBe(1);
  });

  it('drops a step that it does not have, and says so', async () => {
    const has = { sessions: [session('a')], steps: [step(0)] };
    const store = await started(server(has), new FakeBrowser('#1&session=a&step=9'));
    expect(store.navigation.view.value.step).toBeNull();
    expect(store.toasts.list.value[0]?.text).toContain('no step 9');
  });

  it('says stopping until the run has ended', async () => {
    const runs = new Map([['a', run('a', { state: 'running' })]]);
    const api = {
      ...server({ sessions: [session('a')], runs }),
      cancel: (id: string) => gives(runs.get(id) ?? EMPTY_RUN),
    };
    const store = await started(api, new FakeBrowser('#1&session=a'));
    const open = store.open.value;
    await open?.stop();
    expect(open?.stopping.value).toBe(true);
    runs.set('a', run('a', { state: 'cancelled' }));
    store.event({ type: 'state', session: 'a', state: 'cancelled' });
    await vi.advanceTimersByTimeAsync(10);
    expect(open?.stopping.value).toBe(false);
  });

  it('that left no file keeps what was heard of it', async () => {
    const runs = new Map([['a', run('a', { state: 'running' })]]);
    const none = {
      ...server({ runs }),
      tokens: () => fails(refused(404)),
      steps: () => fails(refused(404)),
    };
    const store = await started(none, new FakeBrowser('#1&session=a'));
    const open = store.open.value;
    store.event({ type: 'token', session: 'a', ...token(0, { generated: true }) });
    expect(open?.unrecorded.value).toBe(false);
    runs.set('a', run('a', { state: 'done', text: 't0' }));
    store.event({ type: 'state', session: 'a', state: 'done' });
    await vi.advanceTimersByTimeAsync(50);
    expect(open?.unrecorded.value).toBe(true);
    expect(open?.data.tokens).toHaveLength(1);
    // Another page finds the answer in its run.
    const other = await started(none, new FakeBrowser('#1&session=a'));
    expect(other.open.value?.unrecorded.value).toBe(true);
    expect(other.open.value?.run.value?.text).toBe('t0');
    const third = await started(none, new FakeBrowser('#1&session=b'));
    expect(third.open.value?.unrecorded.value).toBe(false);
    expect(third.open.value?.info.value.is).toBe('failed');
  });

  it('says why its steps or tokens cannot be read, until they can', async () => {
    const has = { sessions: [session('a')], tokens: [token(0)], steps: [step(0), step(1)] };
    const there = server(has);
    const api = { ...there, steps: () => fails(refused(500, 'Its row is damaged.')) };
    const store = await started(api, new FakeBrowser('#1&session=a&step=1'));
    const feed = store.open.value?.feed;
    expect(feed?.stepsError.value).toMatchObject({ detail: 'Its row is damaged.' });
    expect(feed?.tokensError.value).toBeNull();
    // The link's step may be there.
    expect(store.navigation.view.value.step).toBe(1);
    Object.assign(api, { ...there, tokens: () => fails(refused(503)) });
    await store.open.value?.refresh();
    expect(feed?.stepsError.value).toBeNull();
    expect(feed?.tokensError.value).toMatchObject({ status: 503 });
    expect(store.open.value?.data.steps).toHaveLength(2);
  });

  it('tells its end once', async () => {
    const runs = new Map([['a', run('a', { state: 'running' })]]);
    let listed = 0;
    const api: Partial<Api> = {
      ...server({ sessions: [session('a')], runs }),
      sessions: () => {
        listed += 1;
        return gives({ total: 0, sessions: [] });
      },
    };
    const store = await started(api, new FakeBrowser('#1&session=a'));
    listed = 0;
    runs.set('a', run('a', { state: 'done' }));
    void store.open.value?.refreshRun();
    store.event({ type: 'state', session: 'a', state: 'done' });
    await vi.advanceTimersByTimeAsync(50);
    expect(listed).toBe(1);
  });

  it('selects a token with the step that computed it', async () => {
    const steps = [step(0, { n_tokens: 2, first_token: 0 }), step(1, { first_token: 2 })];
    const has = { sessions: [session('a')], steps };
    const store = await started(server(has), new FakeBrowser('#1&session=a'));
    const open = store.open.value;
    if (!open) throw new Error('not open');
    store.selectToken(open, 1, 4);
    const expected = { step: 0, layer: 4, selection: { kind: 'token', token: 1 } };
    expect(store.navigation.view.value).toMatchObject(expected);
  });
});

describe('the connection', () => {
  it('reads everything again when the server is back', async () => {
    let away = true;
    const there = server({ sessions: [session('a')] });
    const api: Partial<Api> = {
      ...there,
      health: () => (away ? fails(AWAY) : gives({ status: 'ok', version: '1' } as never)),
      sessions: () => (away ? fails(AWAY) : gives({ total: 1, sessions: [session('a')] })),
      session: (id) => (away ? fails(AWAY) : (there.session?.(id) ?? fails(AWAY))),
    };
    const store = await started(api, new FakeBrowser('#1&session=a'));
    store.status({ is: 'waiting', retryAtMs: 5 });
    await vi.advanceTimersByTimeAsync(10);
    expect(store.connection.reach.value).toEqual({ is: 'away', retryAtMs: 5 });
    expect(store.open.value?.info.value.is).toBe('failed');
    expect(store.sessions.page.value.is).toBe('failed');
    away = false;
    store.status({ is: 'open', server: '' });
    await vi.advanceTimersByTimeAsync(10);
    expect(store.connection.reach.value.is).toBe('live');
    expect(store.open.value?.info.value.is).toBe('ready');
    expect(store.sessions.page.value.is).toBe('ready');
  });

  it('is not away where only the live half is', async () => {
    const store = await started(server({}));
    store.status({ is: 'waiting', retryAtMs: 5 });
    await vi.advanceTimersByTimeAsync(10);
    expect(store.connection.reach.value.is).toBe('slow');
  });
});

describe('sessions', () => {
  it('are deleted with a way back', async () => {
    const list = [session('a'), session('b')];
    const api: Partial<Api> = {
      ...server({ sessions: list }),
      remove: (id) => {
        list.splice(0, 1);
        return gives({ id, restore_until_utc_ns: 0 });
      },
      restore: (id) => {
        list.unshift(session(id));
        return gives(session(id));
      },
    };
    const store = await started(api, new FakeBrowser('#1&session=a'));
    await store.removeSession(session('a'));
    await vi.advanceTimersByTimeAsync(10);
    expect(store.navigation.view.value.session).toBeNull();
    expect(store.sessions.page.value).toMatchObject({ value: { total: 1 } });
    const [toast] = store.toasts.list.value;
    expect(toast?.action?.text).toBe('Undo');
    toast?.action?.run();
    await vi.advanceTimersByTimeAsync(10);
    expect(store.navigation.view.value.session).toBe('a');
    expect(store.sessions.page.value).toMatchObject({ value: { total: 2 } });
  });

  it('keep their title where the server refuses another', async () => {
    const api = {
      ...server({ sessions: [session('a')] }),
      rename: () => fails(refused(409, 'It runs.')),
    };
    const store = await started(api);
    await store.renameSession(session('a'), 'new');
    expect(store.sessions.find('a')?.title).toBe('title a');
    expect(store.toasts.list.value[0]?.text).toContain('It runs.');
  });

  it('are asked for as the filter says, once the typing rests', async () => {
    const asked: unknown[] = [];
    const api: Partial<Api> = {
      ...server({}),
      sessions: (query) => {
        asked.push(query);
        return gives({ total: 0, sessions: [] });
      },
    };
    const store = await started(api);
    asked.length = 0;
    store.sessions.setFilter({ q: 'f' });
    store.sessions.setFilter({ q: 'frog ' });
    await vi.advanceTimersByTimeAsync(300);
    store.sessions.setFilter({ state: 'done', sort: '-bytes' });
    await vi.advanceTimersByTimeAsync(10);
    expect(asked).toEqual([
      { limit: 100, q: 'frog' },
      { limit: 100, q: 'frog', state: 'done', sort: '-bytes' },
    ]);
  });

  it('are listed on and on, of which a page has 10,000 at most', async () => {
    const list = Array.from({ length: 10_150 }, (_, i) => session(String(i)));
    const api: Partial<Api> = {
      ...server({}),
      sessions: ({ offset = 0, limit = 100 }) =>
        limit > 10_000
          ? fails(refused(400, 'At most 10000.'))
          : gives({ total: list.length, sessions: list.slice(offset, offset + limit) }),
    };
    const store = await started(api);
    const listed = (): readonly string[] => {
      const page = store.sessions.page.value;
      return page.is === 'ready' ? page.value.sessions.map(({ id }) => id) : [];
    };
    for (let pages = 0; pages < 102; pages += 1) await store.sessions.more();
    expect(listed()).toEqual(list.map(({ id }) => id));
    expect(store.toasts.list.value).toEqual([]);
    list.unshift(session('new'));
    await store.sessions.refresh();
    expect(listed()).toEqual(list.slice(0, 10_150).map(({ id }) => id));
  });

  it('are listed anew where they are others by now', async () => {
    const list = Array.from({ length: 300 }, (_, i) => session(String(i)));
    const asked: unknown[] = [];
    const api: Partial<Api> = {
      ...server({}),
      sessions: (query) => {
        asked.push(query);
        const { offset = 0, limit = 100 } = query;
        return gives({ total: list.length, sessions: list.slice(offset, offset + limit) });
      },
    };
    const store = await started(api);
    await store.sessions.more();
    list.unshift(session('new'));
    await store.sessions.more();
    expect(asked).toEqual([
      { limit: 100 },
      { limit: 100, offset: 100 },
      { limit: 100, offset: 200 },
      { limit: 300 },
    ]);
    expect(store.sessions.find('new')).toBeDefined();
    // What another filter finds is not put below what this one found.
    store.sessions.setFilter({ q: 'frog' });
    await store.sessions.more();
    expect(asked).toHaveLength(4);
  });

  it('say which file was refused, and why', async () => {
    const api = { ...server({}), upload: () => fails(refused(422, 'Not a session.')) };
    const store = await started(api);
    store.upload([new File(['x'], 'x.ttrace')]);
    await vi.advanceTimersByTimeAsync(10);
    expect(store.toasts.list.value[0]?.text).toBe('x.ttrace was not added: Not a session.');
    expect(store.sessions.uploads.value).toEqual([]);
  });
});

describe('the chat', () => {
  it('sends the conversation and opens the answer’s session', async () => {
    const runs = new Map<string, Run>();
    const asked: unknown[] = [];
    const api: Partial<Api> = {
      ...server({ runs }),
      generate: (body) => {
        asked.push(body.messages);
        const id = `s${asked.length}`;
        runs.set(id, run(id, { state: 'running' }));
        return gives(run(id));
      },
    };
    const store = await started(api);
    store.chat.write({ message: 'Hello' });
    await store.chat.send();
    expect(store.open.value?.id).toBe('s1');
    expect(store.chat.draft.value.message).toBe('');
    runs.set('s1', run('s1', { state: 'done', text: 'Hi!', reused_tokens: 0 }));
    await vi.advanceTimersByTimeAsync(1100);
    store.chat.write({ message: 'And?' });
    await store.chat.send();
    expect(asked[1]).toEqual([
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: 'Hi!' },
      { role: 'user', content: 'And?' },
    ]);
    expect(store.navigation.link()).not.toContain('Hello');
    store.chat.edit(0);
    expect(store.chat.turns.value).toEqual([]);
    expect(store.chat.draft.value.message).toBe('Hello');
  });

  const asked = async (part: Partial<Api>): Promise<Store> => {
    const store = await started({ ...part, generate: () => gives(run('s1')) });
    store.chat.write({ message: 'Hello' });
    await store.chat.send();
    return store;
  };
  const answer = (store: Store) => store.chat.turns.value[0]?.run;

  it.each([AWAY, refused(401), refused(429), refused(502), refused(503)])(
    'keeps the answer where one question for it fails: %j',
    async (error) => {
      const runs = new Map([['s1', run('s1', { state: 'running' })]]);
      let fault = false;
      const part = server({ runs });
      const store = await asked({
        ...part,
        run: (id) => (fault ? fails(error) : (part.run?.(id) ?? fails(AWAY))),
      });
      runs.set('s1', run('s1', { state: 'done', text: 'Hi!' }));
      fault = true;
      store.event({ type: 'state', session: 's1', state: 'done' });
      await vi.advanceTimersByTimeAsync(3100);
      expect(store.open.value?.active.value).toBe(false);
      expect(answer(store)).toBeNull();
      fault = false;
      await vi.advanceTimersByTimeAsync(1100);
      expect(answer(store)?.text).toBe('Hi!');
    },
  );

  it('gives an answer up that the server does not know', async () => {
    const store = await asked(server({}));
    await vi.advanceTimersByTimeAsync(1100);
    expect(answer(store)).toMatchObject({ state: 'failed' });
  });

  it('leaves out a message that got no answer', () => {
    const turns = [
      { user: 'a', session: '1', run: run('1', { state: 'failed' }) },
      { user: 'b', session: '2', run: run('2', { state: 'done', text: 'B' }) },
    ];
    expect(messagesOf(turns).map(({ content }) => content)).toEqual(['b', 'B']);
  });

  it('can go on after a recorded conversation', () => {
    const facts = {
      'request.messages.0.system': 'S',
      'request.messages.1.user': 'a',
      'request.messages.2.assistant': 'A',
      'request.messages.3.user': 'b',
    };
    const said = saidIn(session('x', { facts }), run('x', { state: 'done', text: 'B' }));
    expect(said?.system).toBe('S');
    expect(
      messagesOf(said?.turns ?? [])
        .map(({ content }) => content)
        .join(''),
    ).toBe('aAbB');
    expect(saidIn(session('x', { facts: { 'request.prompt': 'a' } }), run('x'))).toBeNull();
  });

  it('tells what the server refuses', async () => {
    const api = { ...server({}), generate: () => fails(refused(503, 'The queue is full.')) };
    const store = await started(api);
    store.chat.write({ message: 'Hello' });
    await store.chat.send();
    expect(store.chat.complaint.value).toBe('The queue is full.');
    expect(store.chat.draft.value.message).toBe('Hello');
  });
});

describe('the models', () => {
  const shelf = (state: Model['state']) => ({ models: [{ ...MODEL, state }] });
  const current = (store: Store) => store.models.current.value?.state;

  it('are asked for again where a request is refused', async () => {
    let state: Model['state'] = 'loaded';
    const api: Partial<Api> = {
      ...server({}),
      models: () => gives(shelf(state)),
      generate: () => fails(refused(409, 'No model is loaded.')),
    };
    const store = await started(api);
    state = 'available'; // another page unloaded it
    store.chat.write({ message: 'Hello' });
    await store.chat.send();
    await vi.advanceTimersByTimeAsync(10);
    expect(current(store)).toBe('available');
  });

  it('are asked for until none moves, also where an older answer says so', async () => {
    let state: Model['state'] = 'available';
    const api: Partial<Api> = {
      ...server({}),
      models: () => {
        const said = shelf(state);
        return new Promise((done) => {
          setTimeout(() => {
            done(ok(said));
          }, 100);
        });
      },
      load: () => {
        state = 'loading';
        return gives({ ...MODEL, state });
      },
    };
    const store = await started(api);
    await vi.advanceTimersByTimeAsync(1000);
    void store.models.watch();
    void store.models.load(MODEL); // before the answer
    await vi.advanceTimersByTimeAsync(1000);
    expect(current(store)).toBe('loading');
    state = 'loaded';
    await vi.advanceTimersByTimeAsync(1000);
    expect(current(store)).toBe('loaded');
  });
});

describe('currentModel', () => {
  const model = (id: string, state: Model['state']): Model => ({ ...MODEL, id, state });
  it.each([
    [[model('a', 'available'), model('b', 'loaded')], null, 'b'],
    [[model('a', 'loaded'), model('b', 'loaded')], 'b', 'b'],
    [[model('a', 'loaded'), model('b', 'available')], 'b', 'a'],
    [[model('a', 'loaded'), model('b', 'loading')], 'b', 'b'],
    [[model('a', 'available')], null, 'a'],
    [[], null, undefined],
  ] as const)('of %j, chosen %s', (models, chosen, id) => {
    expect(currentModel(models, chosen)?.id).toBe(id);
  });
});
