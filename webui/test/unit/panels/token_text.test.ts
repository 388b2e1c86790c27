import { describe, expect, it } from 'vitest';
import { costLevels, costScale } from '../../../src/panels/chat/token_cost';
import { CHUNK, TokenOffsets, cutsOf, lastAtOrBefore } from '../../../src/panels/chat/token_text';
import { TraceData } from '../../../src/state/session/trace_data';
import { step, token } from '../make';

describe('TokenOffsets', () => {
  const offsets = new TokenOffsets();
  offsets.append(7, 'He');
  offsets.append(8, ''); // an incomplete character
  offsets.append(9, 'llo');
  offsets.append(12, ' you');

  it.each([
    [-1, null],
    [0, 7],
    [1, 7],
    [2, 9],
    [5, 12],
    [8, 12],
    [9, null],
  ])('the character at %d belongs to token %s', (offset, token) => {
    expect(offsets.tokenAt(offset)).toBe(token);
  });

  it.each([
    [7, 7, [0, 2]],
    [8, 8, null],
    [8, 9, [2, 5]],
    [10, 11, null],
    [9, 99, [2, 9]],
    [0, 6, null],
  ])('tokens %d to %d have the characters %j', (first, last, range) => {
    expect(offsets.rangeOf(first, last)).toEqual(range);
  });

  it('has no token before the first one', () => {
    expect(lastAtOrBefore([], 3)).toBe(-1);
    expect(new TokenOffsets().rangeOf(0, 3)).toBeNull();
  });
});

describe('cutsOf', () => {
  const line = 80;
  const lineStart = (offset: number): number => offset - (offset % line);

  it('does not divide a text of one and a half chunks', () => {
    expect(cutsOf('x'.repeat(CHUNK * 1.5), lineStart)).toEqual([]);
  });

  it('divides after a newline near the end of a chunk', () => {
    const text = 'x'.repeat(2000) + '\n' + 'y'.repeat(3000);
    expect(cutsOf(text, lineStart)[0]).toEqual({ at: 2001, soft: false });
  });

  it('divides a text without newlines at displayed lines', () => {
    const cuts = cutsOf('x'.repeat(10_000), lineStart);
    expect(cuts.length).toBe(4);
    for (const { at, soft } of cuts) expect([at % line, soft]).toEqual([0, true]);
  });

  it('waits for a text that is not displayed', () => {
    expect(cutsOf('x'.repeat(10_000), () => null)).toEqual([]);
  });
});

describe('the cost of tokens', () => {
  it('is a level of the time of their step, which its tokens share', () => {
    const data = new TraceData();
    for (let i = 0; i < 7; i += 1) data.addToken(token(i));
    data.addStep(step(0, { token_id: 0, token_count: 3, begin_ns: 0, end_ns: 300 }));
    data.addStep(step(1, { token_id: 3, begin_ns: 300, end_ns: 400 }));
    data.addStep(step(2, { token_id: 4, begin_ns: 400, end_ns: 10_400 }));
    data.addStep(step(3, { token_id: 5, begin_ns: 10_400, end_ns: 11_400, dropped: true }));
    expect([...costLevels(data)]).toEqual([1, 1, 1, 1, 5, 0, 0]);
    expect(costScale(data)).toMatchObject({ min: 100, max: 10_000, clips: false });
  });
});
