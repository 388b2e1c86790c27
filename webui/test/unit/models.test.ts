// Which model is the current one, and when the page asks for them again.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Api } from '../../src/net/api';
import type { Model } from '../../src/net/types';
import { ok } from '../../src/result';
import { currentModel } from '../../src/state/models';
import type { Store } from '../../src/state/store';
import { MODEL, server, started } from './fake_server';
import { fails, gives, refused } from './fakes';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
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
