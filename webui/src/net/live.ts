// The live half of the one door: one WebSocket that reconnects, says so, and
// subscribes again. What was missed while it was away is not repeated by the
// server; the store pulls it over HTTP when `status` says open again.
import type { Result } from '../result';
import { Mismatch } from './check';
import { decodeOpsFrame, type OpsFrame } from './frames';
import { liveEvent, type LiveEvent, type LiveKind } from './live_events';

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

const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 8000;

export class Live {
  private socket: WebSocket | null = null;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private failures = 0;
  private greeted = false; // "hello" arrived: subscriptions may be sent
  private readonly wanted = new Map<string, readonly LiveKind[]>();
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
    socket.onmessage = (message: MessageEvent<unknown>) => {
      this.receive(message.data);
    };
    // An error is always followed by close, so close alone decides.
    socket.onclose = () => {
      if (this.socket === socket) this.retryLater();
    };
  }

  close(): void {
    this.cancelRetry();
    const socket = this.socket;
    this.socket = null;
    this.greeted = false;
    socket?.close();
  }

  // Replaces every earlier subscription: the page looks at one session.
  watch(session: string | null, kinds: readonly LiveKind[]): void {
    for (const old of this.wanted.keys()) {
      if (old !== session) this.send({ type: 'unsubscribe', session: old });
    }
    this.wanted.clear();
    if (session === null) return;
    this.wanted.set(session, kinds);
    this.send({ type: 'subscribe', session, kinds });
  }

  private receive(data: unknown): void {
    if (data instanceof ArrayBuffer) {
      const frame: Result<OpsFrame, string> = decodeOpsFrame(data);
      if (!frame.ok) {
        this.sink.fault(frame.error);
        return;
      }
      const session = this.sessionOf.get(frame.value.subscription);
      if (session !== undefined) this.sink.opsFrame(session, frame.value);
      return;
    }
    const event = parse(data);
    if (typeof event === 'string') this.sink.fault(event);
    else if (event) this.accept(event);
  }

  private accept(event: LiveEvent): void {
    if (event.type === 'hello') {
      this.failures = 0;
      this.greeted = true;
      this.sessionOf.clear();
      this.sink.status({ is: 'open', server: event.server ?? '' });
      for (const [session, kinds] of this.wanted) this.send({ type: 'subscribe', session, kinds });
    } else if (event.type === 'subscribed') {
      this.sessionOf.set(event.number, event.session);
    }
    this.sink.event(event);
  }

  private send(message: object): void {
    // Nothing before "hello": accept() then subscribes to all that is wanted.
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
