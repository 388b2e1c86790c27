// Repeats requests that only read while the server rejects them because other queries occupy it.
import type { Signal } from '@preact/signals';
import { err } from '../result';
import { ABORTED, isBusy, type ApiResult, type CallOptions } from './call';

export type WhileBusy = <T>(
  send: () => ApiResult<T>,
  signal?: AbortSignal,
  progress?: CallOptions['progress'],
) => ApiResult<T>;

// Most queries take milliseconds, so the first attempts follow sooner than Retry-After demands.
const FIRST_MS = 150;
const DEFAULT_RETRY_MS = 2000; // of a response without Retry-After

// `waiting`: counts the requests that wait for their next attempt.
export function retryWhileBusy(waiting: Signal<number>): WhileBusy {
  return async (send, signal, progress) => {
    for (let waitMs = FIRST_MS; ;) {
      const answer = await send();
      if (answer.ok || !isBusy(answer.error)) return answer;
      const { progress: far, retryAfterMs = DEFAULT_RETRY_MS } = answer.error;
      if (far) progress?.(far);
      waiting.value += 1;
      await pause(Math.min(waitMs, retryAfterMs), signal);
      waiting.value -= 1;
      // The server computes this answer, and holds the next request until it is ready.
      if (!far) waitMs *= 2;
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
