// The live half of the one door: one WebSocket that acknowledges what it gets,
// reconnects with growing patience, says so, and goes on where it was: each
// subscription is a position, so what happened meanwhile comes too, and nothing
// comes twice.
import { Mismatch } from './check';
import { decodeOpsFrame, type OpsFrame } from './frames';
import { liveEvent, type LiveEvent, type LiveKind } from './live_events';
import { afterEvent, afterFrame, type LivePosition } from './live_position';

export type LiveStatus =
  | { readonly is: 'connecting' }
  | { readonly is: 'open'; readonly server: string }
  | { readonly is: 'waiting'; readonly retryAtMs: number }; // wall clock

export interface LiveSink {
  status(status: LiveStatus): void;
  event(event: LiveEvent): void;
  opsFrame(session: string, frame: OpsFrame): void;
  fault(detail: string): void; // a message that could not be understood
}

export interface WatchOptions {
  // Behind, skip to the newest step instead of hearing everything, later.
  readonly thin?: 'none' | 'latest';
}

interface Watched extends WatchOptions {
  readonly kinds: readonly LiveKind[];
  at: LivePosition | null; // null: the server has not yet said where it begins
}

const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 8000;
const ACK_BYTES = 128 * 1024;
// A window that a server has without saying so.
const USUAL_WINDOW = 4 * ACK_BYTES;

const utf8 = new TextEncoder();

export class Live {
  private socket: WebSocket | null = null;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private failures = 0;
  private greeted = false; // "hello" arrived: subscriptions may be sent
  private received = 0; // bytes, on this connection
  private acknowledged = 0;
  private ackEvery = ACK_BYTES;
  private readonly wanted = new Map<string, Watched>();
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
    // An error is always followed by close, so close alone decides.
    socket.onclose = () => {
      this.retryLater();
    };
  }

  // Replaces every earlier subscription: the page looks at one session.
  watch(session: string | null, kinds: readonly LiveKind[], options: WatchOptions = {}): void {
    for (const old of this.wanted.keys()) {
      if (old !== session) this.send({ type: 'unsubscribe', session: old });
    }
    this.wanted.clear();
    this.sessionOf.clear();
    if (session === null) return;
    const watched = { ...options, kinds, at: null };
    this.wanted.set(session, watched);
    this.subscribe(session, watched);
  }

  private subscribe(session: string, { kinds, at, thin }: Watched): void {
    this.send({
      type: 'subscribe',
      session,
      kinds,
      ...(at ? { from: at } : {}),
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
    const event = parse(data);
    if (typeof event === 'string') this.sink.fault(event);
    else if (event) this.acceptEvent(event);
  }

  private acceptFrame(frame: OpsFrame): void {
    const session = this.sessionOf.get(frame.subscription);
    const watched = session === undefined ? undefined : this.wanted.get(session);
    if (session === undefined || !watched?.at) return;
    const at = afterFrame(watched.at, frame);
    if (!at) return;
    watched.at = at;
    this.sink.opsFrame(session, frame);
  }

  private acceptEvent(event: LiveEvent): void {
    if (event.type === 'hello') {
      this.greet(event.server ?? '', event.window ?? USUAL_WINDOW);
    } else if (event.type === 'subscribed') {
      const watched = this.wanted.get(event.session);
      if (!watched) return; // the page looks elsewhere by now
      this.sessionOf.set(event.number, event.session);
      watched.at = event.from ?? watched.at;
    } else if (event.type !== 'error') {
      const watched = this.wanted.get(event.session);
      const at = watched?.at ? afterEvent(watched.at, event) : null;
      if (!watched || !at) return;
      watched.at = at;
      if (event.type === 'state' && isLast(event.state)) this.wanted.delete(event.session);
    } else if (event.code === 'not_live' && event.session !== undefined) {
      this.wanted.delete(event.session);
    } else if (event.code === 'unreadable' && event.session !== undefined) {
      this.tryAgain(event.session);
    }
    this.sink.event(event);
  }

  // The server ended the subscription, as it could not read the session's file.
  private tryAgain(session: string): void {
    const watched = this.wanted.get(session);
    setTimeout(() => {
      if (watched && this.wanted.get(session) === watched) this.subscribe(session, watched);
    }, LAST_RETRY_MS);
  }

  private greet(server: string, window: number): void {
    this.failures = 0;
    this.greeted = true;
    this.ackEvery = Math.min(ACK_BYTES, window / 4);
    this.sessionOf.clear();
    this.sink.status({ is: 'open', server });
    for (const [session, watched] of this.wanted) this.subscribe(session, watched);
  }

  private acknowledge(): void {
    if (!this.greeted || this.received - this.acknowledged < this.ackEvery) return;
    this.acknowledged = this.received;
    this.send({ type: 'ack', bytes: this.received });
  }

  private send(message: object): void {
    // Nothing before "hello": greet() then subscribes to all that is wanted.
    if (this.greeted) this.socket?.send(JSON.stringify(message));
  }

  private retryLater(): void {
    this.socket = null;
    this.greeted = false;
    const delay = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.failures);
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

const isLast = (state: string): boolean => state !== 'queued' && state !== 'running';

function parse(data: unknown): LiveEvent | null | string {
  try {
    return liveEvent(JSON.parse(String(data)), '');
  } catch (cause) {
    if (cause instanceof Mismatch || cause instanceof SyntaxError) {
      return `a live message is not understood: ${cause.message}`;
    }
    throw cause;
  }
}
