import { describe, expect, it } from 'vitest';
import { levelsOf } from '../../../src/panels/chat/token_surprise';
import type { LensRow } from '../../../src/net/types';

const row = (token: number, probability: number | null): LensRow => ({
  token,
  step: token,
  layer: null,
  entropy: 1,
  chosen: { id: 1, text: 'a', probability },
  rank: 0,
  most_likely: null,
  likely: [],
});

describe('the surprise of the text', () => {
  it('has five levels, and none for tokens that nobody chose', () => {
    const rows = [1, 0.51, 0.5, 0.26, 0.25, 0.07, 0.05, 0.01, 0.007, 1e-9].map((p, i) => row(i + 2, p)); // prettier-ignore
    expect([...levelsOf([...rows, row(12, null), row(99, 1)], 14)]).toEqual([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 0, 0]); // prettier-ignore
  });
});
