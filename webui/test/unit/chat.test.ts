// What the chat sends, and what becomes of its turns.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Api } from '../../src/net/api';
import type { Run } from '../../src/net/types';
import { messagesOf, saidIn } from '../../src/state/chat';
import type { Store } from '../../src/state/store';
import { run, server, session, started } from './fake_server';
import { AWAY, fails, gives, refused } from './fakes';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
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
