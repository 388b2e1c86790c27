// The WebSocket client of /api/v1/live. Acknowledges received bytes and reconnects with
// exponential backoff. Each subscription keeps its position, so that after a reconnect the server
// continues there: no message is missed or delivered twice.
import { Mismatch } from './check';
import { decodeOpsFrame, type OpsFrame } from './frames';
import { liveEvent, type LiveEvent, type LiveKind } from './live_events';
import type { LivePosition } from './live_events';
import { afterEvent, afterFrame } from './live_position';

export type LiveStatus =
  | { readonly is: 'connecting' }
  | { readonly is: 'open'; readonly server: string }
  | { readonly is: 'waiting'; readonly retryAtMs: number }; // wall clock

export interface LiveSink {
  status(status: LiveStatus): void;
  event(event: LiveEvent): void;
  opsFrame(session: string, frame: OpsFrame): void;
  fault(detail: string): void; // a message was invalid
}

export interface WatchOptions {
  // 'latest': if the page falls behind, the server skips to the newest step.
  readonly thin?: 'none' | 'latest';
}

interface Subscription extends WatchOptions {
  kinds: readonly LiveKind[];
  position: LivePosition | null; // null: "subscribed" has not arrived
}

const MIN_RETRY_MS = 500;
const MAX_RETRY_MS = 1500; // the page is back within 2 s of the server
const RESUBSCRIBE_MS = 8000;
const ACK_BYTES = 128 * 1024;
// The window if "hello" does not contain one.
const DEFAULT_WINDOW = 4 * ACK_BYTES;

const utf8 = new TextEncoder();

export class Live {
  private socket: WebSocket | null = null;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private failures = 0;
  private helloReceived = false; // "hello" arrived: subscriptions may be sent
  private received = 0; // bytes, on this connection
  private acknowledged = 0;
  private ackEvery = ACK_BYTES;
  private readonly subscriptions = new Map<string, Subscription>(); // subscriptions by session
  private readonly sessionOf = new Map<number, string>(); // by subscription number
  private readonly url: string;
  private readonly sink: LiveSink;

  constructor(url: string, sink: LiveSink) {
    this.url = url;
    this.sink = sink;
  }

  connect(): void {
    if (this.socket) return;
    this.cancelRetry();
    this.sink.status({ is: 'connecting' });
    const socket = new WebSocket(this.url);
    socket.binaryType = 'arraybuffer';
    this.socket = socket;
    this.received = this.acknowledged = 0;
    socket.onmessage = (message: MessageEvent<unknown>) => {
      this.receive(message.data);
      this.acknowledge();
    };
    // An error is always followed by close, so only close is handled.
    socket.onclose = () => {
      this.reconnectLater();
    };
  }

  // Subscribes to one session, or to none, and ends every other subscription.
  watch(session: string | null, kinds: readonly LiveKind[], options: WatchOptions = {}): void {
    for (const old of this.subscriptions.keys()) {
      if (old !== session) this.send({ type: 'unsubscribe', session: old });
    }
    this.subscriptions.clear();
    this.sessionOf.clear();
    if (session === null) return;
    const watched: Subscription = { ...options, kinds, position: null };
    this.subscriptions.set(session, watched);
    this.subscribe(session, watched);
  }

  // Changes the kinds of events of a watched session; the server keeps the position.
  setKinds(session: string, kinds: readonly LiveKind[]): void {
    const watched = this.subscriptions.get(session);
    if (!watched || watched.kinds === kinds) return;
    watched.kinds = kinds;
    this.subscribe(session, { ...watched, position: null });
  }

  private subscribe(session: string, { kinds, position, thin }: Subscription): void {
    this.send({
      type: 'subscribe',
      session,
      kinds,
      ...(position ? { from: position } : {}),
      ...(thin ? { thin } : {}),
    });
  }

  private receive(data: unknown): void {
    if (data instanceof ArrayBuffer) {
      this.received += data.byteLength;
      const frame = decodeOpsFrame(data);
      if (frame.ok) this.acceptFrame(frame.value);
      else this.sink.fault(frame.error);
      return;
    }
    this.received += utf8.encode(String(data)).length;
    for (const event of parse(String(data))) {
      if (typeof event === 'string') this.sink.fault(event);
      else if (event) this.acceptEvent(event);
    }
  }

  private acceptFrame(frame: OpsFrame): void {
    const session = this.sessionOf.get(frame.subscription);
    const watched = session === undefined ? undefined : this.subscriptions.get(session);
    if (session === undefined || !watched?.position) return;
    const at = afterFrame(watched.position, frame);
    if (!at) return;
    watched.position = at;
    this.sink.opsFrame(session, frame);
  }

  private acceptEvent(event: LiveEvent): void {
    if (event.type === 'hello') {
      this.onHello(event.server ?? '', event.window ?? DEFAULT_WINDOW);
    } else if (event.type === 'subscribed') {
      const watched = this.subscriptions.get(event.session);
      if (!watched) return; // replaced meanwhile
      this.sessionOf.set(event.number, event.session);
      watched.position = event.from ?? watched.position;
    } else if (event.type !== 'error' && event.type !== 'list') {
      const watched = this.subscriptions.get(event.session);
      const at = watched?.position ? afterEvent(watched.position, event) : null;
      if (!watched || !at) return;
      watched.position = at;
      if (event.type === 'state' && isFinalState(event.state))
        this.subscriptions.delete(event.session);
    } else if (event.type === 'list') {
      // Of no subscription.
    } else if (event.code === 'not_live' && event.session !== undefined) {
      this.subscriptions.delete(event.session);
    } else if (event.code === 'unreadable' && event.session !== undefined) {
      this.resubscribeLater(event.session);
    }
    this.sink.event(event);
  }

  // The server ended the subscription because it could not read the session's file. Subscribes
  // again later.
  private resubscribeLater(session: string): void {
    const watched = this.subscriptions.get(session);
    setTimeout(() => {
      if (watched && this.subscriptions.get(session) === watched) this.subscribe(session, watched);
    }, RESUBSCRIBE_MS);
  }

  private onHello(server: string, window: number): void {
    this.failures = 0;
    this.helloReceived = true;
    this.ackEvery = Math.min(ACK_BYTES, window / 4);
    this.sessionOf.clear();
    this.sink.status({ is: 'open', server });
    for (const [session, watched] of this.subscriptions) this.subscribe(session, watched);
  }

  private acknowledge(): void {
    if (!this.helloReceived || this.received - this.acknowledged < this.ackEvery) return;
    this.acknowledged = this.received;
    this.send({ type: 'ack', bytes: this.received });
  }

  private send(message: object): void {
    // Nothing is sent before "hello"; onHello() then sends all subscriptions.
    if (this.helloReceived) this.socket?.send(JSON.stringify(message));
  }

  private reconnectLater(): void {
    this.socket = null;
    this.helloReceived = false;
    const delay = Math.min(MAX_RETRY_MS, MIN_RETRY_MS * 2 ** this.failures);
    this.failures += 1;
    this.sink.status({ is: 'waiting', retryAtMs: Date.now() + delay });
    this.timer = setTimeout(() => {
      this.connect();
    }, delay);
  }

  private cancelRetry(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }
}

const isFinalState = (state: string): boolean => state !== 'queued' && state !== 'running';

// The events of a message (null: of an unknown type), or what is wrong with them. A message holds one
// event or, as asked for with ?batch=true, a list.
function parse(text: string): (LiveEvent | null | string)[] {
  return attempt(() =>
    [JSON.parse(text) as unknown].flat().flatMap((one) => attempt(() => [liveEvent(one, '')])),
  );
}

function attempt<T>(read: () => T[]): (T | string)[] {
  try {
    return read();
  } catch (cause) {
    if (cause instanceof Mismatch || cause instanceof SyntaxError) {
      return [`invalid live message: ${cause.message}`];
    }
    throw cause;
  }
}
