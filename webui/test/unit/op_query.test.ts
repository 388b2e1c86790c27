import { describe, expect, it } from 'vitest';
import { nextSort, parseFilter, queryOps } from '../../src/grid/op_query';
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
const BY_ORDER = { key: 'op', descending: false };
const found = (filter: string): number[] =>
  queryOps(OPS, parseFilter(filter), BY_ORDER).map((one) => one.op);

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
    ['op:', [0, 1, 2, 3]],
    ['-', [0, 1, 2, 3]], // on the way to -layer:0
  ])('“%s” finds %j', (filter, ops) => {
    expect(found(filter)).toEqual(ops);
  });
});

describe('sort', () => {
  const sorted = (key: string, descending: boolean): number[] =>
    queryOps(OPS, [], { key, descending }).map((one) => one.op);

  it('puts the longest first, equal ones in order of execution', () => {
    expect(sorted('duration', true)).toEqual([1, 2, 0, 3]);
  });
  it('puts ops outside of layers last', () => {
    expect(sorted('layer', false)).toEqual([1, 2, 3, 0]);
  });
  it('leaves the given list alone', () => {
    sorted('duration', true);
    expect(OPS.map((one) => one.op)).toEqual([0, 1, 2, 3]);
  });
  it('begins with the greatest number, then turns round', () => {
    expect(nextSort(BY_ORDER, 'duration')).toEqual({ key: 'duration', descending: true });
    expect(nextSort({ key: 'duration', descending: true }, 'duration').descending).toBe(false);
    expect(nextSort(BY_ORDER, 'tensor').descending).toBe(false);
  });
});
