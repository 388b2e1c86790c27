import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Live, type LiveSink } from '../../src/net/live';

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
  says(data: unknown): void {
    this.onmessage?.({ data: data instanceof ArrayBuffer ? data : JSON.stringify(data) });
  }
}

const HELLO = { type: 'hello', protocol: 1, server: 'tensor-trace 0.1.0' };

function opsFrame(subscription: number): ArrayBuffer {
  const frame = new DataView(new ArrayBuffer(32));
  frame.setUint32(0, 0x31465454, true);
  frame.setUint16(4, 1, true);
  frame.setUint32(8, subscription, true);
  return frame.buffer;
}

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

  it('subscribes once the server has greeted, and again after a reconnect', () => {
    const live = new Live('ws://x', sink);
    live.connect();
    live.watch('s1', ['token']);
    expect(socket().sent).toEqual([]);
    socket().says(HELLO);
    const wish = JSON.stringify({ type: 'subscribe', session: 's1', kinds: ['token'] });
    expect(socket().sent).toEqual([wish]);
    socket().close();
    vi.advanceTimersByTime(500);
    expect(FakeSocket.made).toHaveLength(2);
    socket().says(HELLO);
    expect(socket().sent).toEqual([wish]);
  });

  it('waits longer after each failure and starts anew after a success', () => {
    const live = new Live('ws://x', sink);
    live.connect();
    const delays = [500, 1000, 2000, 4000, 8000, 8000];
    for (const [i, delay] of delays.entries()) {
      socket().close();
      vi.advanceTimersByTime(delay - 1);
      expect(FakeSocket.made).toHaveLength(i + 1);
      vi.advanceTimersByTime(1);
      expect(FakeSocket.made).toHaveLength(i + 2);
    }
    socket().says(HELLO);
    socket().close();
    vi.advanceTimersByTime(500);
    expect(FakeSocket.made).toHaveLength(delays.length + 2);
  });

  it('leaves the old session when it watches another', () => {
    const live = new Live('ws://x', sink);
    live.connect();
    socket().says(HELLO);
    live.watch('s1', ['token']);
    live.watch('s2', ['token']);
    expect(socket().sent.map((text) => JSON.parse(text) as object)).toMatchObject([
      { type: 'subscribe', session: 's1' },
      { type: 'unsubscribe', session: 's1' },
      { type: 'subscribe', session: 's2' },
    ]);
  });

  it('gives ops to the session of their subscription', () => {
    const live = new Live('ws://x', sink);
    live.connect();
    socket().says(HELLO);
    socket().says({ type: 'subscribed', session: 's1', number: 4, kinds: [] });
    socket().says(opsFrame(4));
    socket().says(opsFrame(5));
    expect(sink.opsFrame).toHaveBeenCalledTimes(1);
    expect(sink.opsFrame.mock.calls[0]?.[0]).toBe('s1');
  });

  it('reports what it cannot understand and passes over what is new', () => {
    const live = new Live('ws://x', sink);
    live.connect();
    socket().says({ type: 'token', session: 's1', index: 'x' });
    expect(sink.fault).toHaveBeenCalledWith(
      'a live message is not understood: index should be a number, not string',
    );
    socket().says({ type: 'invented later' });
    expect(sink.fault).toHaveBeenCalledTimes(1);
    expect(sink.event).not.toHaveBeenCalled();
  });
});
