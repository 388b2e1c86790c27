import { describe, expect, it } from 'vitest';
import { earlierSession } from '../../../src/state/session/first_graph';

describe('the earlier session whose graph is shown before the first step', () => {
  const session = (id: string, state: 'done' | 'cancelled' | 'running', path = 'a.gguf', steps = 3) => ({
    id,
    state,
    model: { path } as never,
    steps,
  }); // prettier-ignore
  it('is the newest one of the model that was not cancelled', () => {
    const sessions = [
      session('now', 'running'),
      session('cut', 'cancelled'),
      session('other', 'done', 'b.gguf'),
      session('empty', 'done', 'a.gguf', 0),
      session('whole', 'done'),
      session('older', 'done'),
    ];
    expect(earlierSession(sessions, 'now', 'a.gguf')?.id).toBe('whole');
    expect(earlierSession(sessions, 'whole', 'a.gguf')?.id).toBe('older');
    expect(earlierSession(sessions.slice(0, 4), 'now', 'a.gguf')).toBeUndefined();
  });
});
