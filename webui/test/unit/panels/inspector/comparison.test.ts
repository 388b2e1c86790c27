import { describe, expect, it } from 'vitest';
import {
  COMPARED_VALUES,
  comparedNumbers,
  comparedText,
  valueIn,
  comparisonText,
  compareQuery,
  relativeName,
  rowsThatMatter,
} from '../../../../src/panels/inspector/compare';

describe('a comparison', () => {
  const view = { phase: 'generate', range: null, filter: 'op:mul_mat layer:2' } as const;

  it('of tokens asks for both, with the filter but without the phase', () => {
    expect(compareQuery({ kind: 'token', token: 3 }, { kind: 'token', token: 9 }, view, 4)).toEqual(
      { op: 'mul_mat', layers: '2', left_token: 3, right_token: 9 },
    );
  });

  it('of layers asks for both, with the phase but without other layers', () => {
    expect(compareQuery({ kind: 'layer', layer: 1 }, { kind: 'layer', layer: 0 }, view, 4)).toEqual(
      { phase: 'generate', op: 'mul_mat', left_layer: 1, right_layer: 0 },
    );
  });

  const figures = (time_ns: number, bytes_read: number) => ({
    accesses: 1,
    bytes_read,
    bytes_written: 24,
    executions: 1,
    time_ns,
  });

  it('shows both sides and the signed difference', () => {
    const row = {
      left: figures(3000, 1000),
      right: figures(1000, 3048),
      difference: { ...figures(-2000, 2048), bytes_written: 0, accesses: 0 },
      ratio: null,
    };
    expect(comparedText(row, 'time')).toEqual({
      left: '3 µs',
      right: '1 µs',
      difference: '−2 µs',
      amount: -2000,
    });
    expect(comparedText(row, 'bytes').difference).toBe('+2 KiB');
    expect(comparedText(row, 'accesses').difference).toBe('0');
    expect(comparedText({ ...row, left: null }, 'time').left).toBe('–');
  });

  it('subtracts the first side from the second one', () => {
    expect(comparedNumbers(2000, 3000, 'time').difference).toBe('+1 µs');
    expect(comparedNumbers(3072, 1024, 'bytes').difference).toBe('−2 KiB');
    expect(comparedNumbers(5, 5, 'accesses')).toEqual({ left: '5', right: '5', difference: '0' });
  });

  it.each([
    ['l_out (layer -1)', 'l_out (layer before)'],
    ['l_out (layer +1)', 'l_out (layer after)'],
    ['K (layer -12)', 'K (12 layers before)'],
    ['attn_q.weight', 'attn_q.weight'],
  ])('names a tensor of another layer: %s', (name, text) => {
    expect(relativeName(name)).toBe(text);
  });

  it('leaves out rows with hardly any difference', () => {
    expect(rowsThatMatter([-1000, 500, 10, 9, 0])).toBe(3);
    expect(rowsThatMatter([3, -2])).toBe(2);
    expect(rowsThatMatter([0, 0])).toBe(0);
    expect(rowsThatMatter([])).toBe(0);
  });

  it('has its options in the link', () => {
    for (const value of COMPARED_VALUES) expect(valueIn(comparisonText(value))).toBe(value);
    expect(comparisonText('time')).toBe('');
    expect(valueIn('diff:nothing')).toBe('time');
  });
});
