// Which elements of a tensor are read at a stop, and where they are.
import { describe, expect, it } from 'vitest';
import {
  firstIndices,
  firstPlace,
  valueTable,
  valueText,
} from '../../../../src/panels/debug/values';
import { changeText } from '../../../../src/panels/debug/WhatIf';

describe('the elements that are read first', () => {
  it.each([
    [[128, 5, 1, 1], '0-4, 0-7'],
    [[128, 1, 1, 1], '0-7'],
    [[3, 1, 1, 1], '0-2'],
    [[1, 1, 1, 1], '0'],
    [[32, 20, 4, 1], '0, 0-7, 0-7'],
    [[32, 1, 4, 1], '0, 0, 0-7'],
    [[2, 2, 2, 9], '0, 0, 0-1, 0-1'],
  ])('of %j are %s', (shape, indices) => {
    expect(firstIndices(shape)).toBe(indices);
  });
});

describe('the first element', () => {
  // Whether [from, to) of each dimension, outermost first, contains one of the elements.
  const asked = (elements: readonly (readonly number[])[]) => (indices: string) => {
    const ranges = indices.split(', ').map((part) => {
      if (part === '*') return [0, Infinity] as const;
      const [from = 0, to = from] = part.split('-').map(Number);
      return [from, to] as const;
    });
    return Promise.resolve(
      elements.some((one) => one.every((n, i) => n >= (ranges[i]?.[0] ?? 0) && n <= (ranges[i]?.[1] ?? -1))), // prettier-ignore
    );
  };
  it.each([
    [[128, 5, 1, 1], [[3, 70], [2, 127], [4, 0]], '2, 127'],
    [[32, 20, 4, 1], [[3, 19, 31]], '3, 19, 31'],
    [[32, 20, 4, 1], [[0, 0, 0]], '0, 0, 0'],
    [[7, 1, 1, 1], [[6]], '6'],
    [[7, 1, 1, 1], [], null],
  ])('of %j with %j is %j', async (shape, elements, place) => {
    expect(await firstPlace(shape, asked(elements))).toBe(place);
  }); // prettier-ignore
  it('is unknown if it cannot be read', async () => {
    expect(await firstPlace([8, 8, 1, 1], () => Promise.resolve(null))).toBeNull();
  });
});

describe('the table of elements', () => {
  it('names rows and columns by their indices', () => {
    const { columns, rows } = valueTable([128, 5, 1, 1], '2-3, 64-66', [3, 2, 1, 1], [1, 2, 3, 4, 5, 'nan']); // prettier-ignore
    expect(columns).toEqual([64, 65, 66]);
    expect(rows).toEqual([
      { name: '2', values: [1, 2, 3] },
      { name: '3', values: [4, 5, 'nan'] },
    ]);
  });

  it('names outer dimensions, and what is taken whole from 0', () => {
    const { columns, rows } = valueTable([2, 2, 3, 1], '1-2', [2, 2, 2, 1], [1, 2, 3, 4, 5, 6, 7]);
    expect(columns).toEqual([0, 1]);
    expect(rows.map(({ name }) => name)).toEqual(['1, 0', '1, 1', '2, 0', '2, 1']);
    expect(rows.at(-1)?.values).toEqual([7]);
  });

  it('of one row has no name', () => {
    expect(valueTable([4, 1, 1, 1], '0-1', [2, 1, 1, 1], [1, 2]).rows).toEqual([{ name: '', values: [1, 2] }]); // prettier-ignore
    // Outer indices of dimensions of 1.
    expect(valueTable([128, 1, 1, 1], '0, 4-6', [3, 1, 1, 1], [1, 2, 3]).columns).toEqual([
      4, 5, 6,
    ]);
  });

  it('shows numbers with 5 digits', () => {
    expect([0, 1, -0.19652, 123456, 5.123456, 1e-9, -3e20, 'inf', null].map(valueText)).toEqual([
      '0.0000', '1.0000', '-0.19652', '123456', '5.1235', '1.000e-9', '-3.000e+20', 'inf', '–',
    ]); // prettier-ignore
  });
});

it('a change is written in the words of the server', () => {
  expect(changeText('zero', 'all', '0', '1')).toBe('zero');
  expect(changeText('zero', 'head', ' 3 ', '1')).toBe('zero head 3');
  expect(changeText('scale', 'expert', '7', '-1')).toBe('scale expert 7 -1');
  expect(changeText('set', 'indices', '0, 5', ' 1.25')).toBe('set [0, 5] 1.25');
});
