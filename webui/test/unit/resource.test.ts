import { signal } from '@preact/signals';
import { describe, expect, it, vi } from 'vitest';
import type { Answer } from '../../src/net/api';
import { Resource } from '../../src/state/resource';
import { AWAY, fails, gives, refused } from './fakes';

type Load = (signal: AbortSignal) => Answer<string>;

function make(load: Load, more: { keep?: number; comes?: () => boolean } = {}) {
  const key = signal<string | null>('a');
  const back = signal(0);
  const asked: string[] = [];
  const resource = new Resource<string>({
    key: () => key.value,
    load: (abort) => {
      asked.push(key.peek() ?? '');
      return load(abort);
    },
    back,
    ...more,
  });
  return { key, back, asked, resource };
}
const settled = () => new Promise((done) => setTimeout(done, 0));

describe('a resource', () => {
  it('is read while somebody looks, and not before', async () => {
    const { asked, resource } = make(() => gives('A'));
    expect(asked).toEqual([]);
    const stop = resource.use();
    expect(resource.state.value).toMatchObject({ loading: true, value: null });
    await settled();
    expect(resource.state.value).toMatchObject({ of: 'a', value: 'A', loading: false });
    stop();
  });

  it('keeps what it shows until the next answer, and ignores an older one', async () => {
    const answers = new Map<string, (text: string) => void>();
    const { key, resource } = make(() => {
      const wanted = key.peek() ?? '';
      return new Promise((done) => {
        answers.set(wanted, (value) => {
          done({ ok: true, value });
        });
      });
    });
    resource.use();
    answers.get('a')?.('A');
    await settled();
    key.value = 'b';
    key.value = 'c';
    expect(resource.state.value).toMatchObject({ key: 'c', of: 'a', value: 'A', loading: true });
    answers.get('c')?.('C');
    await settled();
    answers.get('b')?.('B');
    await settled();
    expect(resource.state.value).toMatchObject({ of: 'c', value: 'C' });
  });

  it('is read again when the server is back', async () => {
    let away = true;
    const { back, asked, resource } = make(() => (away ? fails(AWAY) : gives('A')));
    resource.use();
    await settled();
    expect(resource.state.value.error).toBe(AWAY);
    away = false;
    back.value += 1;
    await settled();
    expect(resource.state.value).toMatchObject({ value: 'A', error: null });
    back.value += 1;
    await settled();
    expect(asked).toEqual(['a', 'a']);
  });

  it('asks again for what may come', async () => {
    vi.useFakeTimers();
    let missing = 3;
    const { asked, resource } = make(
      () => ((missing -= 1) > 0 ? fails(refused(404)) : gives('A')),
      { comes: () => true },
    );
    resource.use();
    await vi.advanceTimersByTimeAsync(1000);
    expect(asked).toHaveLength(3);
    expect(resource.state.value.value).toBe('A');
    vi.useRealTimers();
  });

  it('keeps a few answers where they never change', async () => {
    const { key, asked, resource } = make(() => gives(key.peek() ?? ''), { keep: 2 });
    resource.use();
    for (const next of ['b', 'a', 'c', 'a', 'b']) {
      await settled();
      key.value = next;
    }
    await settled();
    expect(asked).toEqual(['a', 'b', 'c', 'b']);
    resource.reload();
    await settled();
    expect(asked).toEqual(['a', 'b', 'c', 'b', 'b']);
  });

  it('shows nothing where nothing is wanted', async () => {
    const { key, resource } = make(() => gives('A'));
    resource.use();
    await settled();
    key.value = null;
    expect(resource.state.value).toMatchObject({ key: null, value: null });
  });
});
