import { describe, expect, it } from 'vitest';
import type { LensRow } from '../../../../src/net/types';
import { chosenText } from '../../../../src/panels/chat/Alternatives';
import { alternativesOf } from '../../../../src/panels/chat/chosen_tokens';
import {
  decodeLook,
  encodeLook,
  lookLevels,
  mostLookedAt,
} from '../../../../src/panels/chat/token_attention';

const row: LensRow = {
  token: 7,
  step: 3,
  layer: null,
  entropy: 2.5,
  chosen: { id: 9, text: ' cat', probability: 0.125 },
  rank: 11,
  most_likely: null,
  likely: [
    { id: 1, text: ' dog', probability: 0.5 },
    { id: 2, text: ' cow', probability: 0.25 },
  ],
};

describe('the alternatives of a token', () => {
  it('are the most likely ones, and the chosen one', () => {
    const ids = (of: LensRow) => alternativesOf(of).map(({ id, isChosen }) => [id, isChosen]);
    expect(ids(row)).toEqual([[1, false], [2, false], [9, true]]); // prettier-ignore
    const likely = [...row.likely, { id: 9, text: ' cat', probability: 0.125 }];
    expect(ids({ ...row, likely })).toEqual([[1, false], [2, false], [9, true]]); // prettier-ignore
    expect(ids({ ...row, chosen: null })).toEqual([[1, false], [2, false]]); // prettier-ignore
  });

  it('are described in words', () => {
    expect(chosenText(row)).toBe('probability 12.5 %, rank 11, surprise 3 bits, entropy 2.50 bits');
    expect(chosenText({ ...row, rank: 0, entropy: null })).toContain('rank 0, the most likely one');
    expect(chosenText({ ...row, chosen: null })).toBe('No token was chosen.');
    const unknown = { id: 9, text: '', probability: null };
    expect(chosenText({ ...row, chosen: unknown })).toContain('probability not a number');
  });
});

describe('the attention of a token', () => {
  it('is of all heads, those of a layer, or one, as in links', () => {
    for (const look of [{ layer: null, head: null }, { layer: 3, head: null }, { layer: 3, head: 1 }])
      expect(decodeLook(encodeLook(look))).toEqual(look);
    for (const text of ['', 'cost', 'surprise', 'attention:', 'attention:x', 'attention:1:2:3', 'attentive'])
      expect(decodeLook(text)).toBe(null);
  }); // prettier-ignore

  it('has five levels, by the weight', () => {
    expect([...lookLevels([0, 0.009, 0.01, 0.05, 0.1, 0.24, 0.25, 0.5, 1])]).toEqual([0, 0, 1, 2, 3, 3, 4, 5, 5]); // prettier-ignore
  });

  it('names the tokens with the largest weights', () => {
    expect(mostLookedAt([0.1, 0, 0.7, 0.2])).toEqual([
      { token: 2, weight: 0.7 },
      { token: 3, weight: 0.2 },
      { token: 0, weight: 0.1 },
    ]);
    const many = Array.from({ length: 100 }, (_, token) => token / 4950);
    expect(mostLookedAt(many).map(({ token }) => token)).toEqual([99, 98, 97, 96, 95, 94, 93, 92]);
    expect(mostLookedAt([0, 0])).toEqual([]);
  });
});
