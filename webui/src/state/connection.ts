// Whether the server is there, and since when again.
import { computed, signal, type ReadonlySignal } from '@preact/signals';
import type { Api } from '../net/api';
import type { LiveStatus } from '../net/live';

export type Reach =
  | { readonly is: 'connecting' } // nothing is known yet
  | { readonly is: 'live' }
  | { readonly is: 'slow' } // answers, but the live connection is away
  | { readonly is: 'away'; readonly retryAtMs: number }; // wall clock

export class Connection {
  readonly reach: ReadonlySignal<Reach>;
  readonly back: ReadonlySignal<number>; // counts how often it came (back)
  private readonly live = signal<LiveStatus>({ is: 'connecting' });
  private readonly answers = signal<boolean | null>(null);
  private readonly returns = signal(0);
  private readonly api: Pick<Api, 'health'>;

  constructor(api: Pick<Api, 'health'>) {
    this.api = api;
    this.back = this.returns;
    this.reach = computed(() => {
      const live = this.live.value;
      const answers = this.answers.value;
      if (live.is === 'open') return { is: 'live' };
      if (answers === null) return { is: 'connecting' };
      if (answers) return { is: 'slow' };
      return { is: 'away', retryAtMs: live.is === 'waiting' ? live.retryAtMs : 0 };
    });
  }

  status(live: LiveStatus): void {
    const before = this.live.peek();
    this.live.value = live;
    if (live.is === 'open') {
      this.answers.value = true;
      if (before.is !== 'open') this.returns.value += 1;
    } else if (live.is === 'waiting') {
      void this.probe();
    }
  }

  // The live connection is away; the rest of the server may be there.
  async probe(): Promise<boolean> {
    const health = await this.api.health();
    const answers = health.ok || health.error.kind !== 'offline';
    if (answers && this.answers.peek() === false) this.returns.value += 1;
    this.answers.value = answers;
    return answers;
  }
}
