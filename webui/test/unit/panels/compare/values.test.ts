// The captured values of two sessions: sentences, order, charts and pictures, of what the server answers.
import { describe, expect, it } from 'vitest';
import type { ComparedOutput, ComparedValues } from '../../../../src/net/types';
import { decodeCompare, encodeCompare, TOLERANCES } from '../../../../src/panels/compare/options';
import {
  firstText,
  layersTable,
  outputOf,
  placeText,
  sortedOutputs,
  valuesColumns,
  valuesMaps,
} from '../../../../src/panels/compare/values';
import { formatValue } from '../../../../src/charts/table';

const output = (more: Partial<ComparedOutput> = {}): ComparedOutput => ({
  step: 0,
  op: 3,
  operation_type: 'ADD',
  tensor_name: 'l_out-0',
  layer_id: 0,
  shape: [4, 3, 1, 1],
  same_shape: true,
  max_error: 0.5,
  relative_error: 0.25,
  element: 6,
  left: 1,
  right: 1.5,
  ...more,
});
const OUTPUTS = [
  output({ relative_error: 0, max_error: 0 }),
  output({ op: 4, tensor_name: 'a', relative_error: 1e-7 }),
  output({ op: 5, tensor_name: 'b', relative_error: null, max_error: null, right: null }),
  output({ op: 6, tensor_name: 'c', same_shape: false, relative_error: 0, max_error: 0 }),
];
const found = (more: Partial<ComparedValues> = {}): ComparedValues => ({
  tolerance: 0.00001,
  first_beyond: null,
  only_left: 0,
  only_right: 0,
  other_tokens_from_step: null,
  total: OUTPUTS.length,
  different: 3,
  layers: [{ layer_id: 0, outputs: 3, max_error: null, relative_error: 1e-7 }],
  outputs: OUTPUTS,
  ...more,
});

describe('the comparison of captured values', () => {
  it('says what is first beyond the tolerance, and where', () => {
    expect(firstText(found())).toBe(
      'No output differs by more than the tolerance, a relative error of 0.00001.',
    );
    expect(placeText(output())).toBe('[2, 1, 0, 0]');
    expect(firstText(found({ first_beyond: output() }))).toBe(
      'First beyond the tolerance: step 0, op 3, ADD l_out-0: relative error 0.25, largest at [2, 1, 0, 0]: 1 and 1.5.',
    );
    expect(
      firstText(found({ first_beyond: output({ relative_error: null, right: null }) })),
    ).toMatch(/relative error ∞, .*: 1 and not finite\.$/);
    expect(firstText(found({ first_beyond: output({ same_shape: false }) }))).toMatch(
      /l_out-0: another shape\.$/,
    );
  });

  it('shows the first output beyond the tolerance, else the one that differs most', () => {
    expect(outputOf(found({ first_beyond: OUTPUTS[2] ?? null }))).toBe(2);
    expect(outputOf(found())).toBe(1);
    expect(outputOf(found({ outputs: [] }))).toBe(0);
  });

  it('is in the order of the ops, or by a column; infinite errors are the largest', () => {
    const order = (key: string, descending: boolean) =>
      sortedOutputs(OUTPUTS, { key, descending }).map(({ op }) => op);
    expect(order('step', false)).toEqual([3, 4, 5, 6]);
    expect(order('relative_error', true)).toEqual([5, 4, 3, 6]);
    expect(order('relative_error', false)).toEqual([3, 6, 4, 5]);
    expect(order('tensor_name', false)).toEqual([4, 5, 6, 3]);
    expect(order('right', false)[0], 'without a value').toBe(5);
  });

  it('has a text for what is no number', () => {
    const cell = (key: string, row: ComparedOutput) =>
      valuesColumns.find((one) => one.key === key)?.text(row);
    expect(OUTPUTS.map((row) => cell('max_error', row))).toEqual(['0', '0.5', '∞', 'other shape']);
    expect(OUTPUTS.map((row) => cell('right', row))).toEqual(['1.5', '1.5', 'not finite', '']);
  });

  it('grows over the layers; small errors have their digits', () => {
    const table = layersTable(found());
    expect(table.keys).toEqual([0]);
    expect(table.series[0]?.values).toEqual([1e-7]);
    expect(table.more?.map(({ values }) => values)).toEqual([[null], [3]]);
    expect(formatValue('number', 1.23456e-7)).toBe('1.23e-7');
    expect(formatValue('number', -0.00123456)).toBe('-0.00123');
    expect(formatValue('number', 0.015)).toBe('0.015');
    expect(formatValue('number', 0)).toBe('0');
    expect(formatValue('number', 0.25)).toBe('0.25');
  });

  it('has both sides on one scale, and their difference', () => {
    const of = output({ shape: [4, 3, 1, 1] });
    const maps = valuesMaps(
      { output: of, width: 2, height: 3, left: [1, -2, 3, null, 5, 6], right: [1, 2, 3, 4, 5, -8] },
      ['this', 'other'],
    );
    expect(maps.left.keys).toEqual(['0', '1', '2']);
    expect(maps.left.series.map(({ name }) => name)).toEqual(['0 – 1', '2 – 3']);
    expect(maps.left.series.map(({ values }) => values)).toEqual([[1, 3, 5], [-2, null, 6]]); // prettier-ignore
    expect([maps.left.most, maps.right.most]).toEqual([8, 8]);
    expect(maps.difference.series.map(({ values }) => values)).toEqual([[0, 0, 0], [4, null, -14]]); // prettier-ignore
    expect(maps.difference.sides).toEqual(['this', 'other']);
  });

  it('is in the link', () => {
    for (const tolerance of TOLERANCES) {
      const options = { ...decodeCompare(''), of: 'values' as const, tolerance, output: 17 };
      expect(decodeCompare(encodeCompare(options))).toEqual(options);
    }
    expect(decodeCompare('of:values,tolerance:2,output:-1')).toEqual(decodeCompare('of:values'));
  });
});
