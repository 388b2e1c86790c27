import { describe, expect, it } from 'vitest';
import { filterOps, parseFilter } from '../../src/grid/op_filter';
import { nextSort, sortOf, sortText } from '../../src/grid/vgrid';
import type { OpSource } from '../../src/net/types';
import { op } from './make';

const weight: OpSource = {
  tensor: 1,
  tensor_name: 'blk.0.attn_q.weight',
  tensor_type: 'Q4_K',
  tensor_kind: 'weight',
  memory_source: 'disk',
  ne0: 8,
  ne1: 1,
  ne2: 1,
  ne3: 1,
};
const OPS = [
  op(0, { operation_type: 'GET_ROWS', tensor_name: 'embd' }),
  op(1, {
    tensor_name: 'Qcur-0',
    op_layer_id: 0,
    component: 'attention',
    role: 'Q',
    sources: [weight],
  }),
  op(2, { tensor_name: 'ffn_up-1', op_layer_id: 1, component: 'ffn' }),
  op(3, { operation_type: 'ADD', tensor_name: 'l_out-11', op_layer_id: 11 }),
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
