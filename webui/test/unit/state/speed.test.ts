import { describe, expect, it } from 'vitest';
import { formatSpeed } from '../../../src/format';
import type { Session } from '../../../src/net/types';
import { generationSpeed } from '../../../src/state/session/speed';
import { TraceData } from '../../../src/state/session/trace_data';
import { step } from '../make';

const SECOND = 1e9;

// A prompt of 3 s, then tokens that end at these times.
function run(ends: readonly number[], part: Parameters<typeof step>[1] = {}): TraceData {
  const data = new TraceData();
  data.addStep(step(0, { phase: 'prompt', token_count: 40, begin_ns: 0, end_ns: 3 * SECOND }));
  ends.forEach((end, i) => {
    const begin = i === 0 ? 3 * SECOND : (ends[i - 1] ?? 0);
    data.addStep(step(i + 1, { token_id: 40 + i, begin_ns: begin, end_ns: end, ...part }));
  });
  return data;
}

const sessionOf = (tokens_per_second: number | null): Session => ({
  id: 'a',
  title: '',
  state: 'done',
  error: null,
  start_utc_ns: 0,
  file_bytes: 0,
  speed: {
    tokens_per_second,
    tokens: 4,
    ns: 1,
    first_token_ns: 1,
    sample_share: null,
    prompt_tokens_per_second: null,
    prompt_tokens: 0,
    prompt_ns: 0,
  },
});

describe('the speed of generation', () => {
  it('of a finished run is that of the server', () => {
    const data = run([4, 5, 6, 8].map((at) => at * SECOND));
    expect(generationSpeed(data, sessionOf(12.5), false)).toBe(12.5);
    expect(generationSpeed(data, sessionOf(null), false)).toBeNull();
    expect(generationSpeed(data, null, false)).toBeNull();
  });
  it('of a running run is that of the latest second', () => {
    const slowThenFast = [4, 4.25, 4.5, 4.75, 5].map((at) => at * SECOND);
    expect(generationSpeed(run(slowThenFast), null, true)).toBe(4);
    expect(generationSpeed(run([5 * SECOND]), null, true)).toBe(0.5); // a token takes longer
  });
  it('is unknown without generated tokens', () => {
    expect(generationSpeed(run([]), null, true)).toBeNull();
  });
  it('has about three digits', () => {
    expect([1534.2, 219.4, 86.26, 0.5, 0.0852].map(formatSpeed)).toEqual([
      '1\u202f534 tokens/s',
      '219 tokens/s',
      '86.3 tokens/s',
      '0.50 tokens/s',
      '0.085 tokens/s',
    ]);
  });
});
