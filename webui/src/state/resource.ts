// A value that is loaded from the server for a key, for example a step or a layer of a session.
// It is loaded only while it has users (`use`). Responses for an older key are discarded. The old
// value is kept until the next response. After a reconnect, failed loads are repeated.
import { effect, signal, type ReadonlySignal, untracked } from '@preact/signals';
import type { ApiResult, ApiError, ReadProgress } from '../net/api';
import { ABORTED } from '../net/call';

export interface Loaded<T> {
  readonly key: string | null; // the current key; null: nothing to load
  readonly loadedKey: string | null; // the key that `value` belongs to
  readonly value: T | null;
  readonly loading: boolean;
  readonly progress: ReadProgress | null; // of the load; null: not known
  readonly error: ApiError | null; // of `key`
}

export interface ResourceOptions<T> {
  // Returns null if there is nothing to load. Called inside an effect.
  readonly key: () => string | null;
  readonly load: (signal: AbortSignal, progress: (progress: ReadProgress) => void) => ApiResult<T>;
  // Incremented after each reconnect.
  readonly reconnects: ReadonlySignal<number>;
  // Whether the error is temporary: the load is retried a few times.
  readonly isTemporary?: (error: ApiError) => boolean;
  // Number of cached values, for immutable data.
  readonly cacheSize?: number;
}

const EMPTY = {
  key: null,
  loadedKey: null,
  value: null,
  loading: false,
  progress: null,
  error: null,
} as const;
const MAX_ATTEMPTS = 8;
const RETRY_MS = 150;

const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

export class Resource<T> {
  readonly state: ReadonlySignal<Loaded<T>>;
  private readonly current = signal<Loaded<T>>(EMPTY);
  private readonly options: ResourceOptions<T>;
  private readonly cache = new Map<string, T>();
  private users = 0;
  private stop: (() => void) | null = null;
  private control: AbortController | null = null;

  constructor(options: ResourceOptions<T>) {
    this.state = this.current;
    this.options = options;
  }

  // Registers a user. Returns a function that unregisters it.
  use(): () => void {
    this.users += 1;
    this.stop ??= this.watch();
    let used = true;
    return () => {
      if (!used) return;
      used = false;
      this.users -= 1;
      if (this.users > 0) return;
      this.stop?.();
      this.stop = null;
      this.control?.abort();
      // The next user starts without a pending load.
      if (this.current.peek().loading) this.current.value = EMPTY;
    };
  }

  // Loads the current key again.
  reload(): void {
    const { key } = this.current.peek();
    if (key !== null) this.cache.delete(key);
    if (key !== null && this.stop) void this.read(key);
    else this.current.value = EMPTY;
  }

  // Ends the load; its error is then that it was cancelled, until the next one.
  cancel(): void {
    const { loading } = this.current.peek();
    if (!loading) return;
    this.control?.abort();
    this.current.value = {
      ...this.current.peek(),
      loadedKey: null,
      value: null,
      loading: false,
      progress: null,
      error: ABORTED,
    };
  }

  private watch(): () => void {
    let seen = this.options.reconnects.peek();
    return effect(() => {
      const key = this.options.key();
      const back = this.options.reconnects.value;
      const isBack = back !== seen;
      seen = back;
      untracked(() => {
        const { key: currentKey, error, loading } = this.current.value;
        if (key === null) this.clear();
        else if (
          key !== currentKey ||
          (isBack && ((error !== null && error !== ABORTED) || loading))
        )
          void this.read(key);
      });
    });
  }

  private clear(): void {
    this.control?.abort();
    if (this.current.value !== EMPTY) this.current.value = EMPTY;
  }

  private async read(key: string): Promise<void> {
    this.control?.abort();
    const kept = this.cache.get(key);
    if (kept !== undefined) {
      this.store(key, kept); // mark as most recently used
      this.current.value = { ...EMPTY, key, loadedKey: key, value: kept };
      return;
    }
    const control = new AbortController();
    this.control = control;
    this.current.value = {
      ...this.current.value,
      key,
      loading: true,
      progress: null,
      error: null,
    };
    const answer = await this.loadWithRetries(control.signal);
    if (control.signal.aborted) return;
    if (answer.ok) {
      this.store(key, answer.value);
      this.current.value = { ...EMPTY, key, loadedKey: key, value: answer.value };
    } else {
      this.current.value = { ...EMPTY, key, error: answer.error };
    }
  }

  private async loadWithRetries(signal: AbortSignal): ApiResult<T> {
    for (let tries = 1; ; tries += 1) {
      const answer = await this.options.load(signal, (progress) => {
        if (!signal.aborted) this.current.value = { ...this.current.peek(), progress };
      });
      const final =
        answer.ok || tries === MAX_ATTEMPTS || this.options.isTemporary?.(answer.error) !== true;
      if (final || signal.aborted) return answer;
      await sleep(RETRY_MS);
    }
  }

  private store(key: string, value: T): void {
    const { cacheSize = 0 } = this.options;
    if (cacheSize === 0) return;
    this.cache.delete(key);
    this.cache.set(key, value);
    const oldest = this.cache.keys().next();
    if (this.cache.size > cacheSize && !oldest.done) this.cache.delete(oldest.value);
  }
}
