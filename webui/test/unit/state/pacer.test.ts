import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Pacer, intervalOf } from '../../../src/state/session/pacer';

describe('Pacer', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it.each([
    [0, 100],
    [11, 100],
    [40, 280],
    [1000, 500],
  ])('waits after an update of %d ms for %d ms', (cost, interval) => {
    expect(intervalOf(cost)).toBe(interval);
  });

  it('updates at most 10 times a second, and never in vain', () => {
    const update = vi.fn();
    const pacer = new Pacer(update);
    for (let ms = 0; ms < 1000; ms += 1) {
      pacer.request();
      vi.advanceTimersByTime(1);
    }
    expect(update).toHaveBeenCalledTimes(10); // the first one soon
    vi.advanceTimersByTime(1000);
    expect(update).toHaveBeenCalledTimes(11);
  });

  it('updates less often if an update takes long', () => {
    const update = vi.fn(() => {
      vi.advanceTimersByTime(50); // the clock while it works
    });
    const pacer = new Pacer(update);
    for (let ms = 0; ms < 2000; ms += 1) {
      pacer.request();
      vi.advanceTimersByTime(1);
    }
    const busy = update.mock.calls.length * 50;
    expect(busy / (2000 + busy)).toBeLessThanOrEqual(0.131);
  });

  it('does nothing after cancel', () => {
    const update = vi.fn();
    const pacer = new Pacer(update);
    pacer.request();
    pacer.cancel();
    vi.advanceTimersByTime(1000);
    expect(update).not.toHaveBeenCalled();
  });
});
