import { describe, expect, it } from 'vitest';
import type { ErrorsOfTensor, WeightsOfTensor, WeightsValue } from '../../../../src/net/types';
import { wholeCamera } from '../../../../src/plane/camera';
import {
  decodeWeights,
  defaultWeights,
  encodeWeights,
  withTensor,
  type WeightsOptions,
} from '../../../../src/panels/weights/weights_options';
import {
  blockText,
  blockValuesText,
  formulaText,
  superBlockText,
} from '../../../../src/panels/weights/value_text';
import {
  errorColumns,
  errorsCsv,
  orderOf,
  sortedWeights,
  weightColumns,
  WORST_FIRST,
  worstOf,
} from '../../../../src/panels/weights/weights_tables';

describe('the options of the weights panel', () => {
  const some: WeightsOptions = {
    model: 'a,b:c %',
    reference: 'b,c:d %',
    imatrix: 'e:f',
    session: 'g,h',
    tensor: 'blk.0.attn_q.weight',
    show: 'picture',
    cells: 'max_abs',
    at: { row: 3, column: 40 },
    camera: { x: { from: 0, to: 64.5 }, ys: [{ from: 1, to: 2 }] },
  };

  it('are the same after a link', () => {
    expect(decodeWeights(encodeWeights(some))).toEqual(some);
    expect(encodeWeights(defaultWeights)).toBe('');
    expect(decodeWeights('')).toEqual(defaultWeights);
  });

  it('of a damaged link are the default ones', () => {
    expect(decodeWeights('m:%E0%A4%A,show:all,cells:,at:1,cx:5:5,cy0:-1:2,x')).toEqual(
      defaultWeights,
    );
    expect(decodeWeights('at:1.5:2').at).toBe(null);
  });

  it('of another tensor show all of it', () => {
    expect(withTensor(some, 'output.weight')).toEqual({
      ...some,
      tensor: 'output.weight',
      at: null,
      camera: wholeCamera,
    });
    expect(withTensor(some, 'blk.0.attn_q.weight')).toBe(some);
  });
});

describe('a value of a tensor as text', () => {
  const value: WeightsValue = {
    tensor: 'a',
    type: 'q4_1',
    row: 0,
    column: 33,
    value: 0.0025,
    quant: 5,
    scale: 0.0025,
    minimum: 0.01,
    super_block: null,
    block: {
      first: 32,
      values: 32,
      bytes: '00ff10',
      min: -0.01,
      max: 0.0275,
      mean: 0.005,
      zeros: 1,
      outliers: 0,
    },
  };

  it('says what it is decoded from', () => {
    expect(formulaText(value)).toBe('5 × 0.0025 − 0.01');
    expect(formulaText({ ...value, minimum: null })).toBe('5 × 0.0025');
    expect(formulaText({ ...value, quant: null, scale: null })).toBe(null);
    expect(blockText(value)).toBe('q4_1 block of 32 values from column 32: 00 ff 10');
    expect(blockText({ ...value, type: 'f32', block: { ...value.block, first: 33, values: 1, bytes: '0000c07f' } })).toBe('f32: 00 00 c0 7f'); // prettier-ignore
  });

  it('says what its scale is made of, and what the values of its block are', () => {
    expect(superBlockText(value)).toBe(null);
    const super_block = { scale: 0.0001, scale_factor: 25, minimum: 0.002, minimum_factor: 5 };
    expect(superBlockText({ ...value, super_block })).toBe(
      'scale 0.0025 = 0.0001 × 25, minimum 0.01 = 0.002 × 5',
    );
    expect(
      superBlockText({
        ...value,
        minimum: null,
        super_block: { ...super_block, minimum: null, minimum_factor: null },
      }),
    ).toBe('scale 0.0025 = 0.0001 × 25');
    expect(blockValuesText(value)).toBe('-0.01 to 0.0275, mean 0.005, 1 zero, 0 outliers');
    expect(blockValuesText({ ...value, block: { ...value.block, values: 1 } })).toBe(null);
  });
});

describe('the order of the tensors', () => {
  const row = (name: string, part: Partial<WeightsOfTensor>): WeightsOfTensor => ({
    name,
    type: 'f32',
    shape: [1, 1, 1, 1],
    layer: null,
    component: 'other',
    bytes: 4,
    ...part,
  });
  const rows = [
    row('blk.10.a', { max: 3 }),
    row('ids', { error: 'integers' }),
    row('blk.9.a', { max: -1 }),
  ];

  it('is by number, with those without figures last', () => {
    const order = (key: string, descending: boolean) =>
      sortedWeights(rows, { key, descending }).map(({ name }) => name);
    expect(order('max', true)).toEqual(['blk.10.a', 'blk.9.a', 'ids']);
    expect(order('max', false)).toEqual(['blk.9.a', 'blk.10.a', 'ids']);
    expect(order('name', false)).toEqual(['blk.9.a', 'blk.10.a', 'ids']);
  });
});

describe('the errors of the tensors', () => {
  const row = (name: string, relative_error?: number): ErrorsOfTensor => ({
    name,
    type: 'q4_K',
    shape: [256, 2, 1, 1],
    layer: 0,
    component: 'ffn',
    bytes: 288,
    reference_type: 'f32',
    bytes_saved: 1760,
    reads: null,
    ...(relative_error === undefined
      ? { error: 'the shapes differ' }
      : {
          relative_error,
          predicted_error: 0.02,
          rmse: 0.5,
          cosine: 0.99,
          max_error: 2,
          error_per_byte: 3,
        }),
  });
  const rows = [row('a', 0.01), row('b'), row('c', 0.2)];

  it('begin with the tensor that lost most', () => {
    expect(worstOf(rows)?.name).toBe('c');
    expect(worstOf([row('b')])).toBe(null);
    expect(sortedWeights(rows, WORST_FIRST).map(({ name }) => name)).toEqual(['c', 'a', 'b']);
  });

  it('are in the order that was chosen for their columns', () => {
    const max = { key: 'max', descending: true };
    const error = { key: 'rmse', descending: false };
    expect(orderOf(errorColumns, error, WORST_FIRST)).toBe(error);
    expect(orderOf(errorColumns, max, WORST_FIRST)).toBe(WORST_FIRST);
    expect(orderOf(weightColumns, error, null)).toBe(null);
  });

  it('are rows of a CSV file, empty if there are none', () => {
    expect(errorsCsv(rows).split('\n').slice(0, 3)).toEqual([
      'name,type,reference_type,layer,component,bytes,bytes_saved,relative_error,predicted_error,rmse,cosine,max_error,error_per_byte,reads',
      'a,q4_K,f32,0,ffn,288,1760,0.01,0.02,0.5,0.99,2,3,',
      'b,q4_K,f32,0,ffn,288,1760,,,,,,,',
    ]);
  });
});
