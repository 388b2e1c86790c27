import { describe, expect, it } from 'vitest';
import { findJumps, missingText } from '../../../src/commands/jumps';

const COUNTS = { step: 20, token: 30, layer: 4, expert: 8, head: 6 };
const found = (query: string) => findJumps(query, COUNTS, 3);

describe('the search by number', () => {
  it.each([
    'expert 3 layer 2',
    'layer 2 expert 3',
    ' Expert 3, l2 ',
    'expert 3 of layer 2',
    'Expert 3 in the layer 2',
  ])('%s is an expert', (query) => {
    expect(found(query)).toEqual([
      {
        title: 'Select expert 3 of layer 2',
        layer: 2,
        selection: { kind: 'expert', layer: 2, expert: 3 },
      },
    ]);
  });
  it('finds heads, of the layer in view if none is named', () => {
    const head = { kind: 'head', layer: 0, head: 1 } as const;
    expect(found('layer 0 head 1')).toMatchObject([{ layer: 0, selection: head }]);
    expect(found('head 1')).toMatchObject([{ layer: 3, selection: { ...head, layer: 3 } }]);
  });
  it.each([
    ['token 17', [{ selection: { kind: 'token', token: 17 } }]],
    ['expert 3', [{ layer: 3, selection: { kind: 'expert', layer: 3, expert: 3 } }]],
    ['layer 2', [{ layer: 2 }]],
    ['l 2', [{ layer: 2 }]],
    ['step 12', [{ step: 12 }]],
    ['step 12 layer 2', [{ step: 12, layer: 2 }]],
    ['2', [{ step: 2 }, { layer: 2 }]],
    ['12', [{ step: 12 }]],
  ])('%s', (query, expected) => {
    expect(found(query)).toMatchObject(expected);
    expect(found(query)).toHaveLength(expected.length);
  });
  it.each([
    'expert 8', 'expert 3 layer 4', 'head 6 layer 0', 'token 30', 'step 20', '99', // not in the session
    'expert 3 expert 4', 'expert 3 head 1', 'expert', 'ffn 3', 'layer 2 ffn 3', '3 2', 'expert 3 x', '',
  ])('finds nothing for %j', (query) => {
    expect(found(query)).toEqual([]);
  }); // prettier-ignore
  it('says why the session has no such part', () => {
    expect(missingText('expert 3 layer 2', { ...COUNTS, expert: 0 })).toBe('The session has no experts.'); // prettier-ignore
    expect(missingText('layer 4', COUNTS)).toBe('The session has no layer 4: they are 0–3.');
    expect(missingText('expert 3 layer 2', COUNTS)).toBeNull();
    expect(missingText('ffn 3', COUNTS)).toBeNull();
  });
});
