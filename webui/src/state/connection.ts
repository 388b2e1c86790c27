// The state of the connection to the server.
import { computed, signal, type ReadonlySignal } from '@preact/signals';
import type { Api } from '../net/api';
import type { LiveStatus } from '../net/live';

export type ConnectionState =
  | { readonly is: 'connecting' } // no result yet
  | { readonly is: 'live' }
  | { readonly is: 'slow' } // HTTP works, the WebSocket does not
  | { readonly is: 'away'; readonly retryAtMs: number }; // wall clock

export class Connection {
  readonly state: ReadonlySignal<ConnectionState>;
  readonly reconnects: ReadonlySignal<number>; // counts connects and reconnects
  readonly isBusy: ReadonlySignal<boolean>; // requests wait for a busy server
  private readonly liveStatus = signal<LiveStatus>({ is: 'connecting' });
  private readonly responds = signal<boolean | null>(null);
  private readonly reconnectCount = signal(0);
  private readonly api: Pick<Api, 'health'>;

  // `waiting`: number of requests that are repeated because the server is busy.
  constructor(api: Pick<Api, 'health'>, waiting: ReadonlySignal<number>) {
    this.api = api;
    this.isBusy = computed(() => waiting.value > 0);
    this.reconnects = this.reconnectCount;
    this.state = computed(() => {
      const live = this.liveStatus.value;
      const answers = this.responds.value;
      if (live.is === 'open') return { is: 'live' };
      if (answers === null) return { is: 'connecting' };
      if (answers) return { is: 'slow' };
      return { is: 'away', retryAtMs: live.is === 'waiting' ? live.retryAtMs : 0 };
    });
  }

  setLiveStatus(live: LiveStatus): void {
    const before = this.liveStatus.peek();
    this.liveStatus.value = live;
    if (live.is === 'open') {
      this.responds.value = true;
      if (before.is !== 'open') this.reconnectCount.value += 1;
    } else if (live.is === 'waiting') {
      void this.probe();
    }
  }

  // Checks over HTTP whether the server responds although the WebSocket is closed.
  async probe(): Promise<boolean> {
    const health = await this.api.health();
    const answers = health.ok || health.error.kind !== 'offline';
    if (answers && this.responds.peek() === false) this.reconnectCount.value += 1;
    this.responds.value = answers;
    return answers;
  }
}
