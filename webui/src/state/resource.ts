// Something that is read from the server for a key (a session's step, a layer of
// it) and shown as long as the key stands. It is only read while somebody looks
// (`use`); an answer to an older key is thrown away, what is shown stays until
// the next answer is there, and what failed because the server was away is read
// again when it is back.
import { effect, signal, type ReadonlySignal, untracked } from '@preact/signals';
import type { Answer, ApiError } from '../net/api';

export interface Loaded<T> {
  readonly key: string | null; // what is wanted; null: nothing
  readonly of: string | null; // the key that `value` belongs to
  readonly value: T | null;
  readonly loading: boolean;
  readonly error: ApiError | null; // of `key`
}

export interface ResourceOptions<T> {
  // Null while there is nothing to read. Read inside of an effect.
  readonly key: () => string | null;
  readonly load: (signal: AbortSignal) => Answer<T>;
  // Counts up whenever the server is back.
  readonly back: ReadonlySignal<number>;
  // Whether it may be there soon: asked again, a few times.
  readonly comes?: (error: ApiError) => boolean;
  // How many answers are kept, for what never changes.
  readonly keep?: number;
}

const NOTHING = { key: null, of: null, value: null, loading: false, error: null } as const;
const TRIES = 8;
const TRY_AGAIN_MS = 150;

const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

export class Resource<T> {
  readonly state: ReadonlySignal<Loaded<T>>;
  private readonly current = signal<Loaded<T>>(NOTHING);
  private readonly options: ResourceOptions<T>;
  private readonly kept = new Map<string, T>();
  private users = 0;
  private stop: (() => void) | null = null;
  private control: AbortController | null = null;

  constructor(options: ResourceOptions<T>) {
    this.state = this.current;
    this.options = options;
  }

  // From now on somebody looks; the function that it gives ends that.
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
      // Who looks next begins with what the key says then.
      if (this.current.peek().loading) this.current.value = NOTHING;
    };
  }

  // Reads it again, although the key is the same.
  reload(): void {
    const { key } = this.current.peek();
    if (key !== null) this.kept.delete(key);
    if (key !== null && this.stop) void this.read(key);
    else this.current.value = NOTHING;
  }

  private watch(): () => void {
    let seen = this.options.back.peek();
    return effect(() => {
      const key = this.options.key();
      const back = this.options.back.value;
      const isBack = back !== seen;
      seen = back;
      untracked(() => {
        const { key: wanted, error, loading } = this.current.value;
        if (key === null) this.leave();
        else if (key !== wanted || (isBack && (error !== null || loading))) void this.read(key);
      });
    });
  }

  private leave(): void {
    this.control?.abort();
    if (this.current.value !== NOTHING) this.current.value = NOTHING;
  }

  private async read(key: string): Promise<void> {
    this.control?.abort();
    const kept = this.kept.get(key);
    if (kept !== undefined) {
      this.remember(key, kept); // the latest used
      this.current.value = { key, of: key, value: kept, loading: false, error: null };
      return;
    }
    const control = new AbortController();
    this.control = control;
    this.current.value = { ...this.current.value, key, loading: true, error: null };
    const answer = await this.ask(control.signal);
    if (control.signal.aborted) return;
    if (answer.ok) {
      this.remember(key, answer.value);
      this.current.value = { key, of: key, value: answer.value, loading: false, error: null };
    } else {
      this.current.value = { key, of: null, value: null, loading: false, error: answer.error };
    }
  }

  private async ask(signal: AbortSignal): Answer<T> {
    for (let tries = 1; ; tries += 1) {
      const answer = await this.options.load(signal);
      const final = answer.ok || tries === TRIES || this.options.comes?.(answer.error) !== true;
      if (final || signal.aborted) return answer;
      await sleep(TRY_AGAIN_MS);
    }
  }

  private remember(key: string, value: T): void {
    const { keep = 0 } = this.options;
    if (keep === 0) return;
    this.kept.delete(key);
    this.kept.set(key, value);
    const oldest = this.kept.keys().next();
    if (this.kept.size > keep && !oldest.done) this.kept.delete(oldest.value);
  }
}
