// The open session, the connection and the session list, with server responses and live events.
import { effect } from '@preact/signals';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Api } from '../../../src/net/api';
import { ok } from '../../../src/result';
import { EMPTY_RUN } from '../../../src/state/request/chat';
import { live, run, server, session, startStore } from '../fake_server';
import { OFFLINE, FakeBrowser, fails, succeeds, rejected } from '../fakes';
import { step, token } from '../make';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('the filter', () => {
  it('brings the layer that it names into the graph', async () => {
    const has = { sessions: [session('a', { n_layers: 4 })], steps: [step(0)] };
    const store = await startStore(server(has), new FakeBrowser('#1&session=a'));
    const layer = () => store.navigation.view.peek().layer;
    store.setFilter('layer:2');
    expect(layer()).toBe(2);
    store.moveLayer(1, false);
    for (const text of ['layer:2 attn', 'layer:1-2', '-layer:1', 'layer:none', 'layer:9', '']) {
      store.setFilter(text);
      expect(layer(), text).toBe(3);
    }
  });
});

describe('an open session', () => {
  it('is opened from the URL, with its tokens and steps', async () => {
    const has = { sessions: [session('a')], tokens: [token(0), token(1)], steps: [step(0)] };
    const store = await startStore(server(has), new FakeBrowser('#1&session=a'));
    const open = store.open.value;
    expect(open?.id).toBe('a');
    expect(open?.info.value).toMatchObject({ is: 'ready', value: { title: 'title a' } });
    expect(open?.data.tokens).toHaveLength(2);
    expect(open?.step.value).toBe(0);
    expect(live.watched).toEqual(['a']);
  });

  it('has the answers of all steps of a file that has ended, of the steps so far of one that grows', async () => {
    const asked = async (state: 'done' | 'running') => {
      const has = { sessions: [session('a', { steps: 9, state })], steps: [step(0), step(1)] };
      const store = await startStore(server(has), new FakeBrowser('#1&session=a'));
      return store.open.peek()?.answeredSteps.value;
    };
    expect(await asked('done')).toBe(9);
    expect(await asked('running')).toBe(2);
  });

  it('shows what each token adds to the answer, as it was streamed', async () => {
    const part = token(2, { generated: true, text: '\ufffd', answer: '' });
    const rest = token(3, { generated: true, text: '\ufffd', answer: 'é' });
    const has = { sessions: [session('a')], tokens: [token(0), token(1), part, rest] };
    const store = await startStore(server(has), new FakeBrowser('#1&session=a'));
    const open = store.open.peek();
    expect(open?.data.tokens.map((one) => one?.text)).toEqual(['t0', 't1', '', 'é']);
    // The live events have the same text: nothing is shown again.
    const before = open?.data.answer.rewrites;
    store.event({ type: 'token', session: 'a', ...token(3, { generated: true, text: 'é' }) });
    expect(open?.data.answer.rewrites).toBe(before);
  });

  it.each([
    ['stays open', 'done', 'a'],
    ['is closed while it is generated', 'running', null],
  ] as const)('of a conversation %s when a new one starts', async (_, state, left) => {
    const runs = new Map([['a', run('a', { state })]]);
    const has = { sessions: [session('a')], steps: [step(0), step(1)], runs };
    const store = await startStore(server(has), new FakeBrowser('#1&session=a&step=0'));
    await store.open.peek()?.refreshRun();
    store.chat.continueFrom({ system: '', turns: [{ user: 'Hi', session: 'a', run: null }] });
    store.newConversation();
    expect(store.chat.turns.value).toEqual([]);
    expect(store.open.value?.id ?? null).toBe(left);
    expect(store.navigation.view.value.step).toBe(left === null ? null : 0);
    expect(store.leftTurns.value?.length ?? null).toBe(left === null ? null : 1);
    if (left === null) return;
    store.backToConversation();
    expect(store.chat.turns.value).toMatchObject([{ user: 'Hi', session: 'a' }]);
    expect(store.leftTurns.value).toBeNull();
    store.newConversation();
    store.navigation.toSession(null);
    expect(store.leftTurns.value).toBeNull();
  });

  it('is closed when another is opened, and opened again by Back', async () => {
    const browser = new FakeBrowser('#1&session=a');
    const store = await startStore(server({ sessions: [session('a'), session('b')] }), browser);
    store.navigation.toSession('b');
    expect(store.open.value?.id).toBe('b');
    browser.go(-1);
    expect(store.open.value?.id).toBe('a');
    expect(live.watched).toEqual(['a', 'b', 'a']);
  });

  it('receives only its own events', async () => {
    const store = await startStore(
      server({ sessions: [session('a')] }),
      new FakeBrowser('#1&session=a'),
    );
    store.event({ type: 'token', session: 'b', ...token(0, { generated: true }) });
    expect(store.open.value?.data.tokens).toHaveLength(0);
    store.event({ type: 'token', session: 'a', ...token(0, { generated: true }) });
    expect(store.open.value?.data.tokens).toHaveLength(1);
  });

  it('shows its last step at once, and reads the others afterwards', async () => {
    const steps = Array.from({ length: 25_000 }, (_, i) => step(i));
    const asked: Parameters<Api['steps']>[1][] = [];
    const slow: Api['steps'] = async (_id, part) => {
      asked.push(part);
      await new Promise((done) => setTimeout(done, 'last' in part ? 60 : 300));
      const page = 'last' in part ? steps.slice(-part.last) : steps.slice(part.from, part.from + part.limit); // prettier-ignore
      return ok({ total: steps.length, steps: page });
    };
    const there = server({ sessions: [session('a')] });
    const store = await startStore({ ...there, steps: slow }, new FakeBrowser('#1&session=a'));
    const seen: (number | null)[] = [];
    const stop = effect(() => {
      seen.push(store.open.value?.step.value ?? null);
    });
    await vi.advanceTimersByTimeAsync(200);
    expect(seen).toEqual([null, 24_999]);
    expect(store.open.value?.data.stepTotals.steps).toBe(4000);
    await vi.advanceTimersByTimeAsync(1000);
    stop();
    expect(seen).toEqual([null, 24_999]);
    expect(store.open.value?.data.stepTotals.steps).toBe(25_000);
    expect(asked).toEqual([
      { last: 4000 },
      { from: 0, limit: 10_000 },
      { from: 10_000, limit: 10_000 },
      { from: 20_000, limit: 1000 },
    ]);
  });

  it('follows the newest step until a step is selected', async () => {
    const runs = new Map([['a', run('a', { state: 'running' })]]);
    const has = { sessions: [session('a')], runs, steps: [step(0)] };
    const store = await startStore(server(has), new FakeBrowser('#1&session=a'));
    const open = store.open.value;
    store.event({ type: 'step', session: 'a', ...step(1) });
    await vi.advanceTimersByTimeAsync(1100);
    expect(open?.step.value).toBe(1);
    store.moveStep(-1, false);
    store.event({ type: 'step', session: 'a', ...step(2) });
    await vi.advanceTimersByTimeAsync(1100);
    expect(open?.step.value).toBe(0);
    expect(open?.following.value).toBe(false);
  });

  it('receives fewer kinds of events while its steps are short', async () => {
    const runs = new Map([['a', run('a', { state: 'running', max_tokens: 99 })]]);
    const store = await startStore(server({ runs }), new FakeBrowser('#1&session=a'));
    const send = async (from: number, seconds: number): Promise<void> => {
      for (let i = from; i < from + 20; i += 1) {
        const end_ns = (i - from) * seconds * 1e9 + from * 1e12;
        store.event({
          type: 'step',
          session: 'a',
          ...step(i, { begin_ns: end_ns - seconds * 1e9, end_ns }),
        });
        store.event({ type: 'token', session: 'a', ...token(i, { generated: true }) });
      }
      await vi.advanceTimersByTimeAsync(100);
    };
    await send(0, 0.01);
    expect(live.kinds).toEqual(['token', 'step']);
    expect(store.open.value?.run.value?.generated).toBe(20);
    await send(20, 0.07); // in between: no change
    expect(live.kinds).toEqual(['token', 'step']);
    await send(40, 0.3);
    expect(live.kinds).toContain('op');
  });

  it('moves only between steps of the phase', async () => {
    const steps = [step(0, { phase: 'prompt' }), step(1), step(2)];
    const has = { sessions: [session('a')], steps };
    const store = await startStore(server(has), new FakeBrowser('#1&session=a&ph=p'));
    expect(store.open.value?.step.value).toBe(0);
    store.moveStep(1, false);
    expect(store.navigation.view.value.step).toBeNull();
    store.navigation.change({ phase: 'all', step: 0 });
    store.moveStep(1, false);
    expect(store.navigation.view.value.step).toBe(1);
  });

  it('resets a step that does not exist, with a message', async () => {
    const has = { sessions: [session('a')], steps: [step(0)] };
    const store = await startStore(server(has), new FakeBrowser('#1&session=a&step=9'));
    expect(store.navigation.view.value.step).toBeNull();
    expect(store.toasts.list.value[0]?.text).toContain('no step 9');
  });

  it('is stopping until the run has ended', async () => {
    const runs = new Map([['a', run('a', { state: 'running' })]]);
    const api = {
      ...server({ sessions: [session('a')], runs }),
      cancel: (id: string) => succeeds(runs.get(id) ?? EMPTY_RUN),
    };
    const store = await startStore(api, new FakeBrowser('#1&session=a'));
    const open = store.open.value;
    await open?.stop();
    expect(open?.stopping.value).toBe(true);
    runs.set('a', run('a', { state: 'cancelled' }));
    store.event({ type: 'state', session: 'a', state: 'cancelled' });
    await vi.advanceTimersByTimeAsync(10);
    expect(open?.stopping.value).toBe(false);
  });

  it('keeps its live data if it left no file', async () => {
    const runs = new Map([['a', run('a', { state: 'running' })]]);
    const none = {
      ...server({ runs }),
      tokens: () => fails(rejected(404)),
      steps: () => fails(rejected(404)),
    };
    const store = await startStore(none, new FakeBrowser('#1&session=a'));
    const open = store.open.value;
    store.event({ type: 'token', session: 'a', ...token(0, { generated: true }) });
    expect(open?.unrecorded.value).toBe(false);
    runs.set('a', run('a', { state: 'done', text: 't0' }));
    store.event({ type: 'state', session: 'a', state: 'done' });
    await vi.advanceTimersByTimeAsync(50);
    expect(open?.unrecorded.value).toBe(true);
    expect(open?.data.tokens).toHaveLength(1);
    // A new page reads the answer from the run.
    const other = await startStore(none, new FakeBrowser('#1&session=a'));
    expect(other.open.value?.unrecorded.value).toBe(true);
    expect(other.open.value?.run.value?.text).toBe('t0');
    const third = await startStore(none, new FakeBrowser('#1&session=b'));
    expect(third.open.value?.unrecorded.value).toBe(false);
    expect(third.open.value?.info.value.is).toBe('failed');
  });

  it('has the error of unreadable steps or tokens until they are readable', async () => {
    const has = { sessions: [session('a')], tokens: [token(0)], steps: [step(0), step(1)] };
    const there = server(has);
    const api = { ...there, steps: () => fails(rejected(500, 'Its row is damaged.')) };
    const store = await startStore(api, new FakeBrowser('#1&session=a&step=1'));
    const feed = store.open.value?.feed;
    expect(feed?.stepsError.value).toMatchObject({ detail: 'Its row is damaged.' });
    expect(feed?.tokensError.value).toBeNull();
    // The step of the link may exist.
    expect(store.navigation.view.value.step).toBe(1);
    Object.assign(api, { ...there, tokens: () => fails(rejected(503)) });
    await store.open.value?.refresh();
    expect(feed?.stepsError.value).toBeNull();
    expect(feed?.tokensError.value).toMatchObject({ status: 503 });
    expect(store.open.value?.data.steps).toHaveLength(2);
  });

  it('reports its end once', async () => {
    const runs = new Map([['a', run('a', { state: 'running' })]]);
    let listed = 0;
    const api: Partial<Api> = {
      ...server({ sessions: [session('a', { state: 'running' })], runs }),
      sessions: () => {
        listed += 1;
        return succeeds({ total: 1, sessions: [session('a')] });
      },
    };
    const store = await startStore(api, new FakeBrowser('#1&session=a'));
    listed = 0;
    runs.set('a', run('a', { state: 'done' }));
    void store.open.value?.refreshRun();
    store.event({ type: 'state', session: 'a', state: 'done' });
    await vi.advanceTimersByTimeAsync(50);
    expect(listed).toBe(1);
  });

  it('adds itself to the list when it has a file, and keeps its row current', async () => {
    const runs = new Map([['a', run('a', { state: 'running' })]]);
    const sessions = [session('b')];
    const store = await startStore(server({ sessions, runs }), new FakeBrowser('#1&session=a'));
    sessions.unshift(session('a', { state: 'running', steps: 1, file_bytes: 10 }));
    store.event({ type: 'step', session: 'a', ...step(0) });
    await vi.advanceTimersByTimeAsync(100);
    expect(store.sessions.find('a')).toMatchObject({ steps: 1 });
    sessions[0] = session('a', { state: 'running', steps: 9, file_bytes: 90 });
    await vi.advanceTimersByTimeAsync(1000);
    expect(store.sessions.find('a')).toMatchObject({ steps: 9, file_bytes: 90 });
  });

  it('is listed without its facts, of which every session has many', async () => {
    const facts = { 'model.name': 'm' };
    const has = [session('a', { state: 'running', facts }), session('b', { facts })];
    const runs = new Map([['a', run('a', { state: 'running' })]]);
    const store = await startStore(
      server({ sessions: has, runs }),
      new FakeBrowser('#1&session=a'),
    );
    expect(store.open.value?.info.value).toMatchObject({ value: { facts } });
    expect(store.sessions.find('b')).toBeDefined();
    for (const id of ['a', 'b']) expect(store.sessions.find(id)).not.toHaveProperty('facts');
  });

  it('asks for no run of a recorded session', async () => {
    const asked: string[] = [];
    const api: Partial<Api> = {
      ...server({ sessions: [session('a')] }),
      run: (id) => {
        asked.push(id);
        return fails(rejected(404));
      },
    };
    const store = await startStore(api, new FakeBrowser('#1&session=a'));
    store.event({ type: 'error', session: 'a', code: 'not_live' });
    await vi.advanceTimersByTimeAsync(100);
    expect(asked).toEqual([]);
  });

  it.each([
    ['l=77', { layer: 3 }, /no layer 77/],
    ['step=99999', { step: null }, /no step 99999/],
    ['ph=p&step=1', { phase: 'all', step: 1 }, /not of the phase prompt/],
  ])('replaces %s of a link, with a message', async (part, view, text) => {
    const steps = [step(0, { phase: 'prompt' }), step(1)];
    const has = { sessions: [session('a', { n_layers: 4 })], steps };
    const store = await startStore(server(has), new FakeBrowser(`#1&session=a&${part}`));
    expect(store.navigation.view.value).toMatchObject(view);
    expect(store.toasts.list.value.map((toast) => toast.text)).toEqual([
      expect.stringMatching(text),
    ]);
  });

  it('keeps the phase for another session, unless that has no such step', async () => {
    const steps = [step(0, { phase: 'prompt' }), step(1)];
    const two = { sessions: [session('a'), session('b')], steps };
    const store = await startStore(server(two), new FakeBrowser('#1&session=a&ph=g'));
    store.navigation.toSession('b');
    await vi.advanceTimersByTimeAsync(100);
    expect(store.navigation.view.value).toMatchObject({ session: 'b', phase: 'generate' });

    const prompt = { sessions: [session('a')], steps: [step(0, { phase: 'prompt' })] };
    const other = await startStore(server(prompt), new FakeBrowser('#1&session=a&ph=g'));
    expect(other.navigation.view.value.phase).toBe('all');
    expect(other.toasts.list.value.at(-1)?.text).toMatch(/no step of the phase generate/);
  });

  it('shows a step of the phase when the phase changes', async () => {
    const steps = [step(0, { phase: 'prompt' }), step(1), step(2)];
    const store = await startStore(
      server({ sessions: [session('a')], steps }),
      new FakeBrowser('#1&session=a&step=2'),
    );
    store.setPhase('prompt');
    expect(store.navigation.view.value).toMatchObject({ phase: 'prompt', step: null });
    expect(store.open.value?.step.value).toBe(0);
    store.navigation.toStep(0);
    store.setPhase('all');
    expect(store.open.value?.step.value).toBe(0);
  });

  it('is stopped by the second press of the key', async () => {
    const runs = new Map([['a', run('a', { state: 'running' })]]);
    let cancelled = 0;
    const api: Partial<Api> = {
      ...server({ sessions: [session('a', { state: 'running' })], runs }),
      cancel: (id) => {
        cancelled += 1;
        return succeeds(run(id, { state: 'running' }));
      },
    };
    const store = await startStore(api, new FakeBrowser('#1&session=a'));
    store.stopByKey();
    await vi.advanceTimersByTimeAsync(3000); // too late
    store.stopByKey();
    expect(cancelled).toBe(0);
    await vi.advanceTimersByTimeAsync(500);
    store.stopByKey();
    expect(cancelled).toBe(1);
  });

  it('selects a token with the step that processed it', async () => {
    const steps = [step(0, { token_count: 2, token_id: 0 }), step(1, { token_id: 2 })];
    const has = { sessions: [session('a')], steps };
    const store = await startStore(server(has), new FakeBrowser('#1&session=a'));
    const open = store.open.value;
    if (!open) throw new Error('not open');
    store.selectToken(open, 1, 4);
    const expected = { step: 0, layer: 4, selection: { kind: 'token', token: 1 } };
    expect(store.navigation.view.value).toMatchObject(expected);
  });
});

describe('the connection', () => {
  it('reloads everything after a reconnect', async () => {
    let away = true;
    const there = server({ sessions: [session('a')] });
    const api: Partial<Api> = {
      ...there,
      health: () => (away ? fails(OFFLINE) : succeeds({ status: 'ok', version: '1' } as never)),
      sessions: () => (away ? fails(OFFLINE) : succeeds({ total: 1, sessions: [session('a')] })),
      session: (id) => (away ? fails(OFFLINE) : (there.session?.(id) ?? fails(OFFLINE))),
    };
    const store = await startStore(api, new FakeBrowser('#1&session=a'));
    store.status({ is: 'open', server: '' });
    store.status({ is: 'waiting', retryAtMs: 5 });
    store.toasts.error('The run could not be stopped.');
    await vi.advanceTimersByTimeAsync(10);
    expect(store.connection.state.value).toEqual({ is: 'away', retryAtMs: 5 });
    expect(store.open.value?.info.value.is).toBe('failed');
    expect(store.sessions.page.value.is).toBe('failed');
    away = false;
    store.status({ is: 'open', server: '' });
    await vi.advanceTimersByTimeAsync(10);
    expect(store.connection.state.value.is).toBe('live');
    expect(store.open.value?.info.value.is).toBe('ready');
    expect(store.sessions.page.value.is).toBe('ready');
    expect(store.toasts.list.value).toEqual([]); // about the lost connection
  });

  it('is polling while only the WebSocket is closed', async () => {
    const store = await startStore(server({}));
    store.status({ is: 'waiting', retryAtMs: 5 });
    await vi.advanceTimersByTimeAsync(10);
    expect(store.connection.state.value.is).toBe('slow');
  });
});

describe('sessions', () => {
  it('are read again when the server tells of changes, once in two seconds at most', async () => {
    const has = { sessions: [session('a')] };
    const api = server(has);
    const list = vi.fn(api.sessions);
    const store = await startStore({ ...api, sessions: list });
    const titles = () => {
      const page = store.sessions.page.peek();
      return page.is === 'ready' ? page.value.sessions.map(({ id }) => id) : [];
    };
    const before = list.mock.calls.length;
    has.sessions.push(session('b'));
    store.event({ type: 'list' });
    await vi.advanceTimersByTimeAsync(10);
    expect(titles()).toEqual(['a', 'b']);
    has.sessions.push(session('c'));
    for (let i = 0; i < 19; i += 1) {
      store.event({ type: 'list' });
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(list.mock.calls.length - before).toBe(1);
    await vi.advanceTimersByTimeAsync(100);
    expect(list.mock.calls.length - before).toBe(2);
    expect(titles()).toEqual(['a', 'b', 'c']);
  });

  it('of another program are followed while they are open, and read again when they have ended', async () => {
    const has = { sessions: [session('a', { state: 'running', steps: 1 })], steps: [step(0)] };
    const store = await startStore(server(has), new FakeBrowser('#1&session=a'));
    const open = store.open.peek();
    expect(open?.active.peek()).toBe(true);
    has.sessions[0] = session('a', { state: 'running', steps: 2 });
    store.event({ type: 'list' });
    await vi.advanceTimersByTimeAsync(10);
    expect(open?.info.peek()).toMatchObject({ value: { steps: 2 } });
    has.sessions[0] = session('a', { state: 'done', steps: 3 });
    has.steps.push(step(1), step(2));
    store.event({ type: 'list' });
    await vi.advanceTimersByTimeAsync(10);
    expect(open?.active.peek()).toBe(false);
    expect(open?.data.steps).toHaveLength(3);
  });

  it('are deleted with Undo', async () => {
    const list = [session('a'), session('b')];
    const api: Partial<Api> = {
      ...server({ sessions: list }),
      remove: (id) => {
        list.splice(0, 1);
        return succeeds({ id, restore_until_utc_ns: 0 });
      },
      restore: (id) => {
        list.unshift(session(id));
        return succeeds(session(id));
      },
    };
    const store = await startStore(api, new FakeBrowser('#1&session=a'));
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

  // The new title is shown before the server has it, so a search may be faster.
  it('are found by their new title, even by an immediate search', async () => {
    let title = 'old';
    let rename: (() => void) | undefined;
    const api: Partial<Api> = {
      ...server({}),
      sessions: ({ q = '' }) => {
        const sessions = title.includes(q) ? [{ ...session('a'), title }] : [];
        return succeeds({ total: sessions.length, sessions });
      },
      rename: (_id, newTitle) =>
        new Promise((resolve) => {
          rename = () => {
            title = newTitle;
            resolve(ok({ ...session('a'), title }));
          };
        }),
    };
    const store = await startStore(api);
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

  it('keep their title if the server rejects the new one', async () => {
    const api = {
      ...server({ sessions: [session('a')] }),
      rename: () => fails(rejected(409, 'It runs.')),
    };
    const store = await startStore(api);
    await store.renameSession(session('a'), 'new');
    expect(store.sessions.find('a')?.title).toBe('title a');
    expect(store.toasts.list.value[0]?.text).toContain('It runs.');
  });

  it('are requested with the filter, after a delay for typing', async () => {
    const requests: unknown[] = [];
    const api: Partial<Api> = {
      ...server({}),
      sessions: (query) => {
        requests.push(query);
        return succeeds({ total: 0, sessions: [] });
      },
    };
    const store = await startStore(api);
    requests.length = 0;
    store.sessions.setFilter({ q: 'f' });
    store.sessions.setFilter({ q: 'frog ' });
    await vi.advanceTimersByTimeAsync(300);
    store.sessions.setFilter({ state: 'done', sort: '-bytes' });
    await vi.advanceTimersByTimeAsync(10);
    expect(requests).toEqual([
      { limit: 100, q: 'frog' },
      { limit: 100, q: 'frog', state: 'done', sort: '-bytes' },
    ]);
  });

  it('are listed page by page, with at most 10,000 per page', async () => {
    const list = Array.from({ length: 10_150 }, (_, i) => session(String(i)));
    const api: Partial<Api> = {
      ...server({}),
      sessions: ({ from: offset = 0, limit = 100 }) =>
        limit > 10_000
          ? fails(rejected(400, 'At most 10000.'))
          : succeeds({ total: list.length, sessions: list.slice(offset, offset + limit) }),
    };
    const store = await startStore(api);
    const listed = (): readonly string[] => {
      const page = store.sessions.page.value;
      return page.is === 'ready' ? page.value.sessions.map(({ id }) => id) : [];
    };
    for (let pages = 0; pages < 102; pages += 1) await store.sessions.loadMore();
    expect(listed()).toEqual(list.map(({ id }) => id));
    expect(store.toasts.list.value).toEqual([]);
    list.unshift(session('new'));
    await store.sessions.refresh();
    expect(listed()).toEqual(list.slice(0, 10_150).map(({ id }) => id));
  });

  it('are listed again from the start if the list has changed', async () => {
    const list = Array.from({ length: 300 }, (_, i) => session(String(i)));
    const requests: unknown[] = [];
    const api: Partial<Api> = {
      ...server({}),
      sessions: (query) => {
        requests.push(query);
        const { from: offset = 0, limit = 100 } = query;
        return succeeds({ total: list.length, sessions: list.slice(offset, offset + limit) });
      },
    };
    const store = await startStore(api);
    await store.sessions.loadMore();
    list.unshift(session('new'));
    await store.sessions.loadMore();
    expect(requests).toEqual([
      { limit: 100 },
      { limit: 100, from: 100 },
      { limit: 100, from: 200 },
      { limit: 300 },
    ]);
    expect(store.sessions.find('new')).toBeDefined();
    // Results of another filter are not appended to the list.
    store.sessions.setFilter({ q: 'frog' });
    await store.sessions.loadMore();
    expect(requests).toHaveLength(4);
  });

  it('report which upload was rejected, and why', async () => {
    const api = { ...server({}), upload: () => fails(rejected(422, 'Not a session.')) };
    const store = await startStore(api);
    store.upload([new File(['x'], 'x.ttrace')]);
    await vi.advanceTimersByTimeAsync(10);
    expect(store.toasts.list.value[0]?.text).toBe('x.ttrace was not added: Not a session.');
    expect(store.sessions.uploads.value).toEqual([]);
  });
});
