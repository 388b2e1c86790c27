// Repeats requests that only read while the server rejects them because other queries occupy it.
import type { Signal } from '@preact/signals';
import { err } from '../result';
import { ABORTED, isBusy, type ApiResult } from './call';

export type WhileBusy = <T>(send: () => ApiResult<T>, signal?: AbortSignal) => ApiResult<T>;

// Most queries take milliseconds, so the first attempts follow sooner than Retry-After demands.
const FIRST_MS = 150;
const DEFAULT_RETRY_MS = 2000; // of a response without Retry-After

// `waiting`: counts the requests that wait for their next attempt.
export function retryWhileBusy(waiting: Signal<number>): WhileBusy {
  return async (send, signal) => {
    for (let waitMs = FIRST_MS; ; waitMs *= 2) {
      const answer = await send();
      if (answer.ok || !isBusy(answer.error)) return answer;
      waiting.value += 1;
      await pause(Math.min(waitMs, answer.error.retryAfterMs ?? DEFAULT_RETRY_MS), signal);
      waiting.value -= 1;
      if (signal?.aborted) return err(ABORTED);
    }
  };
}

// Ends early if the signal is aborted.
function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((done) => {
    if (signal?.aborted) {
      done();
      return;
    }
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      done();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end);
  });
}
