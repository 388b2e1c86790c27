import { signal } from '@preact/signals';
import { describe, expect, it, vi } from 'vitest';
import type { ApiResult } from '../../../src/net/api';
import { Resource } from '../../../src/state/resource';
import { OFFLINE, fails, succeeds, rejected } from '../fakes';

type Load = (
  signal: AbortSignal,
  progress: (of: { readBytes: number; allBytes: number }) => void,
) => ApiResult<string>;

function make(load: Load, more: { cacheSize?: number; isTemporary?: () => boolean } = {}) {
  const key = signal<string | null>('a');
  const reconnects = signal(0);
  const requests: string[] = [];
  const resource = new Resource<string>({
    key: () => key.value,
    load: (abort, progress) => {
      requests.push(key.peek() ?? '');
      return load(abort, progress);
    },
    reconnects,
    ...more,
  });
  return { key, reconnects, requests, resource };
}
const settled = () => new Promise((done) => setTimeout(done, 0));

describe('a resource', () => {
  it('is loaded when it gets a user', async () => {
    const { requests, resource } = make(() => succeeds('A'));
    expect(requests).toEqual([]);
    const stop = resource.use();
    expect(resource.state.value).toMatchObject({ loading: true, value: null });
    await settled();
    expect(resource.state.value).toMatchObject({ loadedKey: 'a', value: 'A', loading: false });
    stop();
  });

  it('shows how far a load is, and can be cancelled', async () => {
    const signals: AbortSignal[] = [];
    const { reconnects, requests, resource } = make((abort, progress) => {
      signals.push(abort);
      progress({ readBytes: 3, allBytes: 8 });
      return signals.length === 1 ? new Promise(() => undefined) : succeeds('A');
    });
    resource.use();
    expect(resource.state.value).toMatchObject({ loading: true, progress: { readBytes: 3, allBytes: 8 } }); // prettier-ignore
    resource.cancel();
    expect(signals[0]?.aborted).toBe(true);
    expect(resource.state.value).toMatchObject({ loading: false, progress: null, error: { kind: 'aborted' } }); // prettier-ignore
    await settled();
    expect(requests).toEqual(['a']); // not by itself
    reconnects.value += 1; // nor after a lost connection
    await settled();
    expect(requests).toEqual(['a']);
    resource.reload();
    await settled();
    expect(resource.state.value).toMatchObject({ value: 'A', progress: null, error: null });
    resource.cancel(); // nothing is loading
    expect(resource.state.value).toMatchObject({ value: 'A', error: null });
  });

  it('keeps its value until the next response, and ignores outdated responses', async () => {
    const answers = new Map<string, (text: string) => void>();
    const { key, resource } = make(() => {
      const requested = key.peek() ?? '';
      return new Promise((done) => {
        answers.set(requested, (value) => {
          done({ ok: true, value });
        });
      });
    });
    resource.use();
    answers.get('a')?.('A');
    await settled();
    key.value = 'b';
    key.value = 'c';
    expect(resource.state.value).toMatchObject({
      key: 'c',
      loadedKey: 'a',
      value: 'A',
      loading: true,
    });
    answers.get('c')?.('C');
    await settled();
    answers.get('b')?.('B');
    await settled();
    expect(resource.state.value).toMatchObject({ loadedKey: 'c', value: 'C' });
  });

  it('is reloaded after a reconnect if it failed', async () => {
    let away = true;
    const { reconnects, requests, resource } = make(() => (away ? fails(OFFLINE) : succeeds('A')));
    resource.use();
    await settled();
    expect(resource.state.value.error).toBe(OFFLINE);
    away = false;
    reconnects.value += 1;
    await settled();
    expect(resource.state.value).toMatchObject({ value: 'A', error: null });
    reconnects.value += 1;
    await settled();
    expect(requests).toEqual(['a', 'a']);
  });

  it('retries temporary errors', async () => {
    vi.useFakeTimers();
    let missing = 3;
    const { requests, resource } = make(
      () => ((missing -= 1) > 0 ? fails(rejected(404)) : succeeds('A')),
      { isTemporary: () => true },
    );
    resource.use();
    await vi.advanceTimersByTimeAsync(1000);
    expect(requests).toHaveLength(3);
    expect(resource.state.value.value).toBe('A');
    vi.useRealTimers();
  });

  it('caches a limited number of values', async () => {
    const { key, requests, resource } = make(() => succeeds(key.peek() ?? ''), { cacheSize: 2 });
    resource.use();
    for (const next of ['b', 'a', 'c', 'a', 'b']) {
      await settled();
      key.value = next;
    }
    await settled();
    expect(requests).toEqual(['a', 'b', 'c', 'b']);
    resource.reload();
    await settled();
    expect(requests).toEqual(['a', 'b', 'c', 'b', 'b']);
  });

  it('is empty without a key', async () => {
    const { key, resource } = make(() => succeeds('A'));
    resource.use();
    await settled();
    key.value = null;
    expect(resource.state.value).toMatchObject({ key: null, value: null });
  });
});
