import { describe, expect, it } from 'vitest';
import { CHUNK, TokenOffsets, cutsOf, lastAtOrBefore } from '../../src/panels/chat/token_text';

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
