import { describe, expect, it } from 'vitest';
import { formatSpeed } from '../../../src/format';
import { generationSpeed } from '../../../src/state/speed';
import { TraceData } from '../../../src/state/trace_data';
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

describe('the speed of generation', () => {
  it('of a finished run is that of the tokens after the first, without the prompt', () => {
    const data = run([4, 5, 6, 8].map((at) => at * SECOND));
    expect(generationSpeed(data, false)).toBe(4 / 5);
  });
  it('of a running run is that of the latest second', () => {
    const slowThenFast = [4, 4.25, 4.5, 4.75, 5].map((at) => at * SECOND);
    expect(generationSpeed(run(slowThenFast), true)).toBe(4);
    expect(generationSpeed(run([5 * SECOND]), true)).toBe(0.5); // a token takes longer
  });
  it('is unknown without generated tokens, and does not count a cancelled one', () => {
    expect(generationSpeed(run([]), false)).toBeNull();
    expect(generationSpeed(run([]), true)).toBeNull();
    expect(generationSpeed(run([4 * SECOND], { aborted: true }), false)).toBeNull();
  });
  it('counts the tokens of steps whose times were lost', () => {
    const data = run([4 * SECOND, 5 * SECOND]);
    data.addStep(step(3, { token_id: 42, token_count: 2, dropped: true, begin_ns: 0, end_ns: 0 }));
    data.addStep(step(4, { token_id: 44, begin_ns: 7 * SECOND, end_ns: 8 * SECOND }));
    expect(generationSpeed(data, false)).toBe(1);
  });
  it('has about three digits', () => {
    expect([1534.2, 219.4, 86.26, 0.5].map(formatSpeed)).toEqual([
      '1\u202f534 tokens/s',
      '219 tokens/s',
      '86.3 tokens/s',
      '0.50 tokens/s',
    ]);
  });
});
