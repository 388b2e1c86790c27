// Short messages about completed actions, some with Undo, and errors. They disappear after a
// timeout, or when they do not apply any more; errors stay until dismissed.
import { effect, signal, untracked, type ReadonlySignal } from '@preact/signals';

export interface Toast {
  readonly id: number;
  readonly tone: 'done' | 'fault';
  readonly text: string;
  readonly action: { readonly text: string; readonly run: () => void } | null;
}

const DONE_MS = 6000;
const MAX_TOASTS = 4;

export class Toasts {
  readonly list: ReadonlySignal<readonly Toast[]>;
  private readonly current = signal<readonly Toast[]>([]);
  private readonly timers = new Map<number, ReturnType<typeof setTimeout>>();
  private readonly watches = new Map<number, () => void>(); // by toast: stops watching if it applies
  private last = 0;

  constructor() {
    this.list = this.current;
  }

  // Returns its id. `applies` reads signals: the toast is removed as soon as it does not.
  done(text: string, action: Toast['action'] = null, applies?: () => boolean): number {
    const { id } = this.add('done', text, action);
    this.startTimer(id);
    if (applies) this.watch(id, applies);
    return id;
  }

  error(text: string): void {
    // Do not repeat the same error.
    if (this.current.peek().some((toast) => toast.text === text)) return;
    this.add('fault', text, null);
  }

  // After a reconnect, the errors of the lost connection do not apply any more.
  clearErrors(): void {
    for (const { id, tone } of this.current.peek()) if (tone === 'fault') this.remove(id);
  }

  remove(id: number): void {
    this.forget(id);
    this.current.value = this.current.peek().filter((toast) => toast.id !== id);
  }

  // Keeps the toast while the pointer or the focus is on it.
  pause(id: number): void {
    clearTimeout(this.timers.get(id));
    this.timers.delete(id);
  }

  resume(id: number): void {
    const toast = this.current.peek().find((one) => one.id === id);
    if (toast?.tone === 'done') this.startTimer(id);
  }

  private add(tone: Toast['tone'], text: string, action: Toast['action']): Toast {
    this.last += 1;
    const toast = { id: this.last, tone, text, action };
    const all = [...this.current.peek(), toast];
    for (const old of all.slice(0, -MAX_TOASTS)) this.forget(old.id);
    this.current.value = all.slice(-MAX_TOASTS);
    return toast;
  }

  private watch(id: number, applies: () => boolean): void {
    const stop = effect(() => {
      if (applies()) return;
      untracked(() => {
        this.remove(id);
      });
    });
    this.watches.set(id, stop);
  }

  private forget(id: number): void {
    this.pause(id);
    this.watches.get(id)?.();
    this.watches.delete(id);
  }

  private startTimer(id: number): void {
    this.pause(id);
    const timer = setTimeout(() => {
      this.remove(id);
    }, DONE_MS);
    this.timers.set(id, timer);
  }
}
