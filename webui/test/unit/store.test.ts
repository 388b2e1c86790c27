// What an open session, the connection and the list of sessions make of the server's answers
// and of what happens.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Api } from '../../src/net/api';
import { ok } from '../../src/result';
import { EMPTY_RUN } from '../../src/state/chat';
import { live, run, server, session, started } from './fake_server';
import { AWAY, FakeBrowser, fails, gives, refused } from './fakes';
import { step, token } from './make';

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

  // The new title is shown before the server has it: a search may be faster than that.
  it('are found by their new title, also when it is searched for at once', async () => {
    let title = 'old';
    let rename: (() => void) | undefined;
    const api: Partial<Api> = {
      ...server({}),
      sessions: ({ q = '' }) => {
        const sessions = title.includes(q) ? [{ ...session('a'), title }] : [];
        return gives({ total: sessions.length, sessions });
      },
      rename: (_id, wanted) =>
        new Promise((resolve) => {
          rename = () => {
            title = wanted;
            resolve(ok({ ...session('a'), title }));
          };
        }),
    };
    const store = await started(api);
    const renamed = store.renameSession(session('a'), 'quokka');
    expect(store.sessions.find('a')?.title).toBe('quokka');
    store.sessions.setFilter({ q: 'quokka' });
    await vi.advanceTimersByTimeAsync(300);
    expect(store.sessions.find('a')).toBeUndefined();
    rename?.();
    await renamed;
    await vi.advanceTimersByTimeAsync(10);
    expect(store.sessions.find('a')?.title).toBe('quokka');
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
