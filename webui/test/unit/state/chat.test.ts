// The requests of the chat and the state of its turns.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Api } from '../../../src/net/api';
import type { Model, Run } from '../../../src/net/types';
import { messagesOf, conversationOf } from '../../../src/state/request/chat';
import type { Store } from '../../../src/state/store';
import { MODEL, run, server, session, startStore } from '../fake_server';
import { OFFLINE, fails, succeeds, rejected } from '../fakes';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('the chat', () => {
  it('sends the conversation and opens the answer’s session', async () => {
    const runs = new Map<string, Run>();
    const requests: unknown[] = [];
    const api: Partial<Api> = {
      ...server({ runs }),
      generate: (body) => {
        requests.push(body.messages);
        const id = `s${requests.length}`;
        runs.set(id, run(id, { state: 'running' }));
        return succeeds(run(id));
      },
    };
    const store = await startStore(api);
    store.chat.write({ message: 'Hello' });
    await store.chat.send();
    expect(store.open.value?.id).toBe('s1');
    expect(store.chat.draft.value.message).toBe('');
    runs.set('s1', run('s1', { state: 'done', text: 'Hi!', reused_tokens: 0 }));
    await vi.advanceTimersByTimeAsync(1100);
    store.chat.write({ message: 'And?' });
    await store.chat.send();
    expect(requests[1]).toEqual([
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: 'Hi!' },
      { role: 'user', content: 'And?' },
    ]);
    expect(store.navigation.link()).not.toContain('Hello');
    store.chat.edit(0);
    expect(store.chat.turns.value).toEqual([]);
    expect(store.chat.draft.value.message).toBe('Hello');
  });

  const sendHello = async (part: Partial<Api>): Promise<Store> => {
    const store = await startStore({ ...part, generate: () => succeeds(run('s1')) });
    store.chat.write({ message: 'Hello' });
    await store.chat.send();
    return store;
  };
  const answer = (store: Store) => store.chat.turns.value[0]?.run;

  it.each([OFFLINE, rejected(401), rejected(429), rejected(502), rejected(503)])(
    'keeps polling for the answer after a failed request: %j',
    async (error) => {
      const runs = new Map([['s1', run('s1', { state: 'running' })]]);
      let fault = false;
      const part = server({ runs });
      const store = await sendHello({
        ...part,
        run: (id) => (fault ? fails(error) : (part.run?.(id) ?? fails(OFFLINE))),
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

  it('marks an answer as failed if the server does not have its run', async () => {
    const store = await sendHello(server({}));
    await vi.advanceTimersByTimeAsync(1100);
    expect(answer(store)).toMatchObject({ state: 'failed' });
  });

  it('omits messages without an answer from the conversation', () => {
    const turns = [
      { user: 'a', session: '1', run: run('1', { state: 'failed' }) },
      { user: 'b', session: '2', run: run('2', { state: 'done', text: 'B' }) },
    ];
    expect(messagesOf(turns).map(({ content }) => content)).toEqual(['b', 'B']);
  });

  it('continues a recorded conversation', () => {
    const facts = {
      'request.messages.0.system': 'S',
      'request.messages.1.user': 'a',
      'request.messages.2.assistant': 'A',
      'request.messages.3.user': 'b',
    };
    const conversation = conversationOf(
      session('x', { facts }),
      run('x', { state: 'done', text: 'B' }),
    );
    expect(conversation?.system).toBe('S');
    expect(messagesOf(conversation?.turns ?? []).map(({ content }) => content)).toEqual([
      'a',
      'A',
      'b',
      'B',
    ]);
    expect(conversationOf(session('x', { facts: { 'request.prompt': 'a' } }), run('x'))).toBeNull();
  });

  it('keeps what was written while the model loads', async () => {
    const loadingModel = { id: 'm', name: 'm', path: '/m.gguf', state: 'loading' } as Model;
    let model = loadingModel;
    const store = await startStore({ ...server({}), models: () => succeeds({ models: [model] }) });
    expect(store.chat.mode.value).toBe('text');
    store.chat.write({ text: 'Why is the sky' });
    model = MODEL;
    await vi.advanceTimersByTimeAsync(500);
    expect(store.chat.mode.value).toBe('chat');
    expect(store.chat.draft.value).toMatchObject({ message: 'Why is the sky', text: '' });
    // A mode that the user chooses has its own text.
    store.chat.selectMode('text');
    expect(store.chat.draft.value).toMatchObject({ message: 'Why is the sky', text: '' });
  });

  it('shows the server’s error message', async () => {
    const api = { ...server({}), generate: () => fails(rejected(503, 'The queue is full.')) };
    const store = await startStore(api);
    store.chat.write({ message: 'Hello' });
    await store.chat.send();
    expect(store.chat.error.value).toBe('The queue is full.');
    expect(store.chat.draft.value.message).toBe('Hello');
  });

  it('says that the conversation before a short message can make the prompt too long', async () => {
    let isFull = false;
    const tooLong = { ...rejected(413, 'The prompt is too long.'), code: 'too_long' } as const;
    const api = {
      ...server({ runs: new Map([['s1', run('s1', { state: 'done', text: 'Hi!' })]]) }),
      generate: () => (isFull ? fails(tooLong) : succeeds(run('s1'))),
    };
    const store = await startStore(api);
    store.chat.write({ message: 'Hello' });
    await store.chat.send();
    await vi.advanceTimersByTimeAsync(1100);
    isFull = true;
    store.chat.write({ message: 'And?' });
    await store.chat.send();
    expect(store.chat.error.value).toBe(
      'The prompt is too long. The conversation so far is part of the prompt: “New conversation” leaves it out.',
    );
    // Without a conversation, or for a text, only the message itself can be too long.
    store.newConversation();
    store.chat.write({ message: 'And?' });
    await store.chat.send();
    expect(store.chat.error.value).toBe('The prompt is too long.');
  });
});
