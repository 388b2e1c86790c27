import { describe, expect, it } from 'vitest';
import { filterOps, parseFilter } from '../../src/grid/op_filter';
import { nextSort, sortOf, sortText } from '../../src/grid/vgrid';
import type { OpSource } from '../../src/net/types';
import { op } from './make';

const weight: OpSource = {
  tensor: 'blk.0.attn_q.weight',
  type: 'Q4_K',
  shape: [8],
  kind: 'weight',
  source: 'disk',
};
const OPS = [
  op(0, { name: 'GET_ROWS', tensor: 'embd', begin_ns: 0, end_ns: 2 }),
  op(1, {
    tensor: 'Qcur-0',
    layer: 0,
    component: 'attention',
    role: 'Q',
    sources: [weight],
    end_ns: 90,
  }),
  op(2, { tensor: 'ffn_up-1', layer: 1, component: 'ffn', end_ns: 60 }),
  op(3, { name: 'ADD', tensor: 'l_out-11', layer: 11, begin_ns: 0, end_ns: 2 }),
];
const found = (filter: string): number[] =>
  filterOps(OPS, parseFilter(filter)).map((one) => one.op);

describe('filter', () => {
  it.each([
    ['', [0, 1, 2, 3]],
    ['mul_mat', [1, 2]],
    ['op:mul_mat -layer:0', [2]],
    ['layer:1', [2]],
    ['layer:none', [0]],
    ['attn_q', [1]],
    ['source:disk', [1]],
    ['Component:ATTENTION', [1]],
    ['mul_mat ffn', [2]],
    ['-mul_mat', [0, 3]],
    ['blk:0', []],
    ['n:2', [2]],
    ['op:', [0, 1, 2, 3]],
    ['-', [0, 1, 2, 3]], // while typing -layer:0
  ])('“%s” matches %j', (filter, ops) => {
    expect(found(filter)).toEqual(ops);
  });
});

describe('a sort', () => {
  const next = (text: string, column: string): string =>
    sortText(nextSort(sortOf(text), column, ['duration']));

  it('starts descending for the given columns and reverses on a second click', () => {
    expect(next('op', 'duration')).toBe('-duration');
    expect(next('-duration', 'duration')).toBe('duration');
    expect(next('-duration', 'name')).toBe('name');
  });
});
