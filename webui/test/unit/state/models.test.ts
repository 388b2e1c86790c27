// The current model, and the polling of the models.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Api } from '../../../src/net/api';
import type { Model } from '../../../src/net/types';
import { ok } from '../../../src/result';
import { currentModel, withDistinctNames } from '../../../src/state/request/models';
import type { Store } from '../../../src/state/store';
import { MODEL, server, startStore } from '../fake_server';
import { fails, succeeds, rejected } from '../fakes';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('the names of the models', () => {
  const named = (id: string, name: string): Model => ({ ...MODEL, id, name });
  const names = (...models: Model[]) => withDistinctNames(models).map(({ name }) => name);

  it('have the file if they are not distinct', () => {
    const [q4, q8] = [named('qwen-q4', 'Qwen'), named('qwen-q8', 'Qwen')];
    expect(names(q4, named('gemma', 'Gemma 3'))).toEqual(['Qwen', 'Gemma 3']);
    expect(names(q4, named('gemma', 'Gemma 3'), q8)).toEqual([
      'Qwen (qwen-q4)',
      'Gemma 3',
      'Qwen (qwen-q8)',
    ]);
    expect(names(named('a', 'a'), named('b', 'a'))).toEqual(['a', 'a (b)']);
  });

  it('are those of the menu', async () => {
    const models = [named('q4', 'Qwen'), named('q8', 'Qwen')];
    const store = await startStore({ ...server({}), models: () => succeeds({ models }) });
    const list = store.models.list.value;
    expect(list.is === 'ready' && list.value.models.map(({ name }) => name)).toEqual([
      'Qwen (q4)',
      'Qwen (q8)',
    ]);
  });
});

describe('the models', () => {
  const modelList = (state: Model['state']) => ({ models: [{ ...MODEL, state }] });
  const current = (store: Store) => store.models.current.value?.state;

  it('are reloaded after a rejected request', async () => {
    let state: Model['state'] = 'loaded';
    const api: Partial<Api> = {
      ...server({}),
      models: () => succeeds(modelList(state)),
      generate: () => fails(rejected(409, 'No model is loaded.')),
    };
    const store = await startStore(api);
    state = 'available'; // another client unloaded it
    store.chat.write({ message: 'Hello' });
    await store.chat.send();
    await vi.advanceTimersByTimeAsync(10);
    expect(current(store)).toBe('available');
  });

  it('are polled until none is loading, even after an outdated response', async () => {
    let state: Model['state'] = 'available';
    const api: Partial<Api> = {
      ...server({}),
      models: () => {
        const response = modelList(state);
        return new Promise((done) => {
          setTimeout(() => {
            done(ok(response));
          }, 100);
        });
      },
      load: () => {
        state = 'loading';
        return succeeds({ ...MODEL, state });
      },
    };
    const store = await startStore(api);
    await vi.advanceTimersByTimeAsync(1000);
    void store.models.watch();
    void store.models.load(MODEL); // before the response
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
    [[model('a', 'failed'), model('b', 'available')], null, 'b'],
    [[model('a', 'failed'), model('b', 'available')], 'a', 'a'],
    [[model('a', 'failed')], null, 'a'],
    [[], null, undefined],
  ] as const)('of %j, selected %s', (models, chosen, id) => {
    expect(currentModel(models, chosen)?.id).toBe(id);
  });

  it('is the model whose load failed', () => {
    const models = [model('a', 'available'), model('b', 'failed')];
    expect(currentModel(models, null, true)?.id).toBe('b');
  });
});
