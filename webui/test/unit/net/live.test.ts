import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Live, type LiveSink } from '../../../src/net/live';

class FakeSocket {
  static readonly made: FakeSocket[] = [];
  readonly sent: string[] = [];
  binaryType = '';
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: (() => void) | null = null;
  constructor(readonly url: string) {
    FakeSocket.made.push(this);
  }
  send(text: string): void {
    this.sent.push(text);
  }
  close(): void {
    this.onclose?.();
  }
  receive(data: unknown): void {
    this.onmessage?.({ data: data instanceof ArrayBuffer ? data : JSON.stringify(data) });
  }
}

const HELLO = { type: 'hello', protocol: 2, server: 'tensor-trace 0.1.0', window: 524288 };
const FROM = { token: 3, step: 2, op: 0, routing: 0 };

// A frame of `rows` ops.
function frame(subscription: number, step: number, first: number, rows = 2): ArrayBuffer {
  const view = new DataView(new ArrayBuffer(32 + rows * 20));
  view.setUint32(0, 0x31465454, true);
  view.setUint16(4, 1, true);
  view.setUint32(8, subscription, true);
  view.setUint32(12, step, true);
  view.setUint32(16, first, true);
  view.setUint32(20, rows, true);
  return view.buffer;
}

const token = (index: number): object => ({
  type: 'token',
  session: 's1',
  index,
  id: 1,
  position: index,
  generated: true,
  reused: false,
  sequence: null,
  draft: null,
  text: 'x',
});

describe('Live', () => {
  const sink = {
    status: vi.fn<LiveSink['status']>(),
    event: vi.fn<LiveSink['event']>(),
    opsFrame: vi.fn<LiveSink['opsFrame']>(),
    fault: vi.fn<LiveSink['fault']>(),
  };
  const socket = (): FakeSocket => {
    const last = FakeSocket.made.at(-1);
    if (!last) throw new Error('no socket was made');
    return last;
  };

  beforeEach(() => {
    vi.useFakeTimers();
    vi.stubGlobal('WebSocket', FakeSocket);
    vi.clearAllMocks();
    FakeSocket.made.length = 0;
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it('subscribes after hello, and again after a reconnect', () => {
    const live = new Live('ws://x', sink);
    live.connect();
    live.watch('s1', ['token']);
    expect(socket().sent).toEqual([]);
    socket().receive(HELLO);
    const subscribe = JSON.stringify({ type: 'subscribe', session: 's1', kinds: ['token'] });
    expect(socket().sent).toEqual([subscribe]);
    socket().close();
    vi.advanceTimersByTime(500);
    expect(FakeSocket.made).toHaveLength(2);
    socket().receive(HELLO);
    expect(socket().sent).toEqual([subscribe]);
  });

  it('changes the kinds and keeps the position of the server', () => {
    const live = new Live('ws://x', sink);
    live.connect();
    socket().receive(HELLO);
    const all = ['token', 'op'] as const;
    live.watch('s1', all, { thin: 'latest' });
    socket().receive({ type: 'subscribed', number: 1, session: 's1', kinds: all, from: FROM });
    live.setKinds('s1', all);
    live.setKinds('another', ['token']);
    expect(socket().sent).toHaveLength(1);
    live.setKinds('s1', ['token']);
    expect(JSON.parse(socket().sent.at(-1) ?? '')).toEqual({
      type: 'subscribe',
      session: 's1',
      kinds: ['token'],
      thin: 'latest',
    });
    socket().close();
    vi.advanceTimersByTime(500);
    socket().receive(HELLO);
    expect(JSON.parse(socket().sent.at(-1) ?? '')).toMatchObject({ kinds: ['token'], from: FROM });
  });

  it('takes a list of messages, and reports only those that are invalid', () => {
    const live = new Live('ws://x', sink);
    live.connect();
    live.watch('s1', ['token']);
    socket().receive([HELLO]);
    socket().receive([
      { type: 'subscribed', number: 1, session: 's1', kinds: ['token'], from: FROM },
      token(3),
      { type: 'token', session: 's1' },
      token(4),
    ]);
    const indices = sink.event.mock.calls.map(([event]) => 'index' in event && event.index);
    expect(indices.slice(-2)).toEqual([3, 4]);
    expect(sink.fault).toHaveBeenCalledOnce();
  });

  it('doubles the retry delay after each failure and resets it after a success', () => {
    const live = new Live('ws://x', sink);
    live.connect();
    const delays = [500, 1000, 1500, 1500];
    for (const [i, delay] of delays.entries()) {
      socket().close();
      vi.advanceTimersByTime(delay - 1);
      expect(FakeSocket.made).toHaveLength(i + 1);
      vi.advanceTimersByTime(1);
      expect(FakeSocket.made).toHaveLength(i + 2);
    }
    socket().receive(HELLO);
    socket().close();
    vi.advanceTimersByTime(500);
    expect(FakeSocket.made).toHaveLength(delays.length + 2);
  });

  it('subscribes again at its position after an unreadable error', () => {
    const live = new Live('ws://x', sink);
    live.connect();
    socket().receive(HELLO);
    live.watch('s1', ['token']);
    socket().receive({
      type: 'subscribed',
      number: 1,
      session: 's1',
      kinds: ['token'],
      from: FROM,
    });
    socket().receive(token(3));
    const before = socket().sent.length;
    socket().receive({
      type: 'error',
      code: 'unreadable',
      session: 's1',
      detail: 'Too many files.',
    });
    vi.advanceTimersByTime(8000);
    expect(socket().sent).toHaveLength(before + 1);
    expect(JSON.parse(socket().sent.at(-1) ?? '')).toMatchObject({
      type: 'subscribe',
      session: 's1',
      from: { ...FROM, token: 4 },
    });
    socket().receive({
      type: 'error',
      code: 'unreadable',
      session: 's1',
      detail: 'Too many files.',
    });
    live.watch('s2', ['token']);
    const other = socket().sent.length;
    vi.advanceTimersByTime(8000);
    expect(socket().sent).toHaveLength(other);
  });

  it('unsubscribes from the old session when it watches another', () => {
    const live = new Live('ws://x', sink);
    live.connect();
    socket().receive(HELLO);
    live.watch('s1', ['token']);
    live.watch('s2', ['token']);
    expect(socket().sent.map((text) => JSON.parse(text) as object)).toMatchObject([
      { type: 'subscribe', session: 's1' },
      { type: 'unsubscribe', session: 's1' },
      { type: 'subscribe', session: 's2' },
    ]);
  });

  const sentMessages = (): readonly object[] =>
    socket().sent.map((text) => JSON.parse(text) as object);
  const watching = (): Live => {
    const live = new Live('ws://x', sink);
    live.connect();
    socket().receive(HELLO);
    live.watch('s1', ['token', 'op', 'step']);
    socket().receive({ type: 'subscribed', session: 's1', number: 4, kinds: [], from: FROM });
    return live;
  };

  it('delivers frames to the session of their subscription', () => {
    watching();
    socket().receive(frame(4, 2, 0));
    socket().receive(frame(5, 2, 2));
    expect(sink.opsFrame).toHaveBeenCalledTimes(1);
    expect(sink.opsFrame.mock.calls[0]?.[0]).toBe('s1');
  });

  // The first message after a reconnect.
  const afterReconnect = (): unknown => {
    socket().close();
    vi.advanceTimersByTime(500);
    socket().receive(HELLO);
    return sentMessages()[0];
  };

  it('sends the thin option', () => {
    const live = new Live('ws://x', sink);
    live.connect();
    socket().receive(HELLO);
    live.watch('s1', ['op'], { thin: 'latest' });
    expect(sentMessages()).toEqual([
      { type: 'subscribe', session: 's1', kinds: ['op'], thin: 'latest' },
    ]);
  });

  it('continues at its position after a reconnect, without duplicates', () => {
    watching();
    socket().receive(token(3));
    socket().receive(frame(4, 2, 0, 4));
    expect(afterReconnect()).toMatchObject({ from: { token: 4, step: 2, op: 4 } });
    socket().receive({
      type: 'subscribed',
      session: 's1',
      number: 9,
      kinds: [],
      from: { token: 4, step: 2, op: 4, routing: 0 },
    });
    socket().receive(token(3)); // received before
    socket().receive(frame(9, 2, 0, 4));
    socket().receive(frame(9, 1, 4, 4));
    socket().receive(token(4));
    socket().receive(frame(9, 2, 4, 4));
    expect(afterReconnect()).toMatchObject({ from: { token: 5, step: 2, op: 8 } });
    socket().receive({ type: 'text', session: 's1', index: 5, text: 'rest' });
    const layers = { ns: [], bytes: [] };
    const step = { step: 2, phase: 'generate', timing: 'fast', template: 1, begin_ns: 0, layers };
    const sizes = { end_ns: 1, duration_ns: 1, token_id: 4, token_count: 1, accesses: 0 };
    const rest = { bytes_read: 0, bytes_written: 0, dropped: false, aborted: false };
    socket().receive({ type: 'step', session: 's1', ...step, ...sizes, ...rest });
    expect(afterReconnect()).toMatchObject({ from: { token: 6, step: 3, op: 0 } });
    const tokens = sink.event.mock.calls.map(([event]) => event).filter((e) => e.type === 'token');
    expect(tokens.map((event) => event.index)).toEqual([3, 4]);
    expect(sink.opsFrame.mock.calls.map(([, ops]) => ops.firstOp)).toEqual([0, 4]);
  });

  it('accepts the replacement of withdrawn ops', () => {
    watching();
    socket().receive(frame(4, 2, 0, 4));
    const instead = frame(4, 2, 0, 2);
    new DataView(instead).setUint16(6, 3, true);
    socket().receive(instead);
    expect(sink.opsFrame).toHaveBeenCalledTimes(2);
    expect(afterReconnect()).toMatchObject({ from: { step: 2, op: 2 } });
  });

  it('acknowledges the UTF-8 bytes received on this connection', () => {
    watching();
    const sizes = [HELLO, { type: 'subscribed', session: 's1', number: 4, kinds: [], from: FROM }];
    let bytes = sizes.reduce((sum, message) => sum + JSON.stringify(message).length, 0);
    const euros = { type: 'new', text: '€'.repeat(1000) };
    bytes += JSON.stringify(euros).length + 2000;
    socket().receive(euros);
    const rows = 6000;
    socket().receive(frame(4, 2, 0, rows));
    expect(sentMessages()).toHaveLength(1); // less than 128 KiB so far
    socket().receive(frame(4, 2, rows, rows));
    bytes += 2 * (32 + 20 * rows);
    expect(sentMessages().at(-1)).toEqual({ type: 'ack', bytes });
    socket().receive(token(3));
    expect(sentMessages()).toHaveLength(2);
    socket().close();
    vi.advanceTimersByTime(500);
    socket().receive({ ...HELLO, window: 4096 });
    socket().receive(frame(9, 0, 0, 60));
    expect(sentMessages().at(-1)).toEqual({
      type: 'ack',
      bytes: JSON.stringify({ ...HELLO, window: 4096 }).length + 32 + 20 * 60,
    });
  });

  it('does not subscribe again to a session that has ended', () => {
    watching();
    socket().receive({
      type: 'state',
      session: 's1',
      state: 'recovered',
      position: 0,
      error: null,
    });
    expect(sink.event.mock.calls.at(-1)?.[0]).toMatchObject({ type: 'state', state: 'failed' });
    socket().close();
    vi.advanceTimersByTime(500);
    socket().receive(HELLO);
    expect(socket().sent).toEqual([]);
  });

  it('sums up skipped messages', () => {
    watching();
    socket().receive({ type: 'loss', session: 's1', tokens: 1, steps: 2, ops: 3, routing: 0 });
    expect(sink.event.mock.calls.at(-1)?.[0]).toMatchObject({ type: 'loss', ops: 3, frames: 6 });
  });

  it('reports invalid messages and ignores unknown types', () => {
    const live = new Live('ws://x', sink);
    live.connect();
    socket().receive({ type: 'token', session: 's1', index: 'x' });
    expect(sink.fault).toHaveBeenCalledWith(
      'invalid live message: index must be a whole number up to 16777216, not string',
    );
    socket().receive({ type: 'invented later' });
    expect(sink.fault).toHaveBeenCalledTimes(1);
    expect(sink.event).not.toHaveBeenCalled();
  });
});
