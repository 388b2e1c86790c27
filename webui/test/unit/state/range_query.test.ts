import { describe, expect, it } from 'vitest';
import { bothOf, filteredSums, scopeText } from '../../../src/state/view/range_query';
import type { View } from '../../../src/state/view/view';

const view = (part: Partial<View>) => ({ phase: 'all' as const, range: null, filter: '', ...part });
const range = (axis: string, from: number, to: number) => ({ axis, from, to });

describe('what a view selects', () => {
  it('is what phase, range and filter have in common', () => {
    const tokens = { x: range('token', 3, 9), y: range('layer', 1, 3) };
    const both = view({ phase: 'generate', range: tokens, filter: 'token:5-20 layer:2-7 kind:kv' });
    expect(filteredSums(both, 4)).toEqual({
      query: { phase: 'generate', from_token: 5, to_token: 9, layers: '2', kind: 'kv' },
      missing: [],
    });
  });

  it('is nothing if they have nothing in common', () => {
    const nothing = { from_step: 0, to_step: 0 };
    expect(filteredSums(view({ phase: 'generate', filter: 'phase:prompt' }), 4).query).toMatchObject(nothing); // prettier-ignore
    expect(bothOf({ layers: '0,2' }, { layers: '1,outside' })).toMatchObject(nothing);
    expect(bothOf({ from_token: 1, to_token: 3 }, { from_token: 5, to_token: 9 })).toEqual({
      from_token: 5,
      to_token: 5,
    });
  });

  it('has ranges that are open at one end', () => {
    expect(bothOf({ from_step: 2 }, {})).toEqual({ from_step: 2 });
    expect(bothOf({ from_step: 5 }, { from_step: 2 })).toEqual({ from_step: 5 });
    expect(bothOf({ to_ns: 9 }, { from_ns: 2 })).toEqual({ from_ns: 2, to_ns: 9 });
  });

  it('has the layers of both lists', () => {
    expect(bothOf({ layers: '0-4,outside' }, { layers: '3-9,outside' }).layers).toBe('3,4,outside');
  });

  it('is named, without the parts that sums cannot honour', () => {
    expect(scopeText(view({}), 4)).toBe('');
    const part = view({
      phase: 'prompt',
      range: { x: range('token', 3, 9), y: range('file', 0, 4096) },
      filter: 'op:mul_mat -role:q kind:weight',
    });
    expect(scopeText(part, 4)).toBe('prompt, tokens 3 – 8, op:mul_mat kind:weight');
    expect(filteredSums(part, 4).missing).toEqual(['-role:q', 'range of file']);
    expect(scopeText(view({ range: { x: range('token', 3, 4), y: null } }), 4)).toBe('token 3');
    expect(scopeText(view({ range: { x: range('layer', 1, 3), y: null } }), 4)).toBe(
      'layers 1 – 2',
    );
    expect(scopeText(view({ range: { x: range('time', 1000, 2000), y: null } }), 4)).toBe('1 µs – 2 µs'); // prettier-ignore
  });
});
