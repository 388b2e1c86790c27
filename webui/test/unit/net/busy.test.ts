import { signal } from '@preact/signals';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { retryWhileBusy } from '../../../src/net/busy';
import type { Rejection } from '../../../src/net/call';
import { fails, rejected, succeeds } from '../fakes';

const busy = (retryAfterMs?: number): Rejection => ({
  kind: 'rejected',
  status: 503,
  code: 'queries_busy',
  title: 'Too many concurrent queries',
  detail: '',
  ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
});

describe('a request to a busy server', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('is repeated until it is answered, with growing pauses up to Retry-After', async () => {
    const waiting = signal(0);
    const sentMs: number[] = [];
    const answer = retryWhileBusy(waiting)(() => {
      sentMs.push(Date.now());
      return sentMs.length < 6 ? fails(busy(1000)) : succeeds('rows');
    });
    await vi.advanceTimersByTimeAsync(0);
    expect(waiting.value).toBe(1);
    await vi.runAllTimersAsync();
    expect(await answer).toEqual({ ok: true, value: 'rows' });
    expect(sentMs.slice(1).map((ms, i) => ms - (sentMs[i] ?? 0))).toEqual([
      150, 300, 600, 1000, 1000,
    ]);
    expect(waiting.value).toBe(0);
  });

  it('is not repeated after any other error', async () => {
    const send = vi.fn(() => fails(rejected(503)));
    expect(await retryWhileBusy(signal(0))(send)).toMatchObject({ ok: false });
    expect(send).toHaveBeenCalledTimes(1);
  });

  it('says how far the server is, and asks again soon', async () => {
    const sentMs: number[] = [];
    const seen: unknown[] = [];
    const answer = retryWhileBusy(signal(0))(
      () => {
        sentMs.push(Date.now());
        const progress = { readBytes: 100 * sentMs.length, allBytes: 1000 };
        return sentMs.length < 4 ? fails({ ...busy(2000), progress }) : succeeds('rows');
      },
      undefined,
      (progress) => seen.push(progress),
    );
    await vi.runAllTimersAsync();
    expect(await answer).toEqual({ ok: true, value: 'rows' });
    expect(seen).toEqual([100, 200, 300].map((readBytes) => ({ readBytes, allBytes: 1000 })));
    expect(sentMs.slice(1).map((ms, i) => ms - (sentMs[i] ?? 0))).toEqual([150, 150, 150]);
  });

  it('ends when it is aborted', async () => {
    const waiting = signal(0);
    const control = new AbortController();
    const answer = retryWhileBusy(waiting)(() => fails(busy()), control.signal);
    await vi.advanceTimersByTimeAsync(10);
    control.abort();
    expect(await answer).toMatchObject({ ok: false, error: { kind: 'aborted' } });
    expect(waiting.value).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  });
});
