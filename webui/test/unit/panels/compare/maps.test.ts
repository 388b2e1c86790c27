// Maps of two sessions: aligned tokens and rows, one scale, and their difference.
import { describe, expect, it } from 'vitest';
import type { Picture } from '../../../../src/net/frames';
import { mapsOf } from '../../../../src/panels/compare/maps';

// `cells`: a list of tokens for each row.
function picture(rows: Readonly<Record<string, readonly number[]>>): Picture {
  const all = Object.values(rows);
  const width = all[0]?.length ?? 0;
  const axis = { sections: [], from: 0, unit: '' };
  return {
    x: { ...axis, axis: 'token', size: width, to: width, pixels: width, rows: [] },
    y: {
      ...axis,
      axis: 'op_kind',
      size: all.length,
      to: all.length,
      pixels: all.length,
      rows: Object.keys(rows),
    },
    value: 'time',
    damaged_steps: 0,
    left_out_steps: 0,
    largest: 0,
    shown: 0,
    total: 0,
    width,
    height: all.length,
    cells: Float32Array.from(all.flat()),
  };
}

const rows = ['MUL_MAT', 'ADD', 'SCALE'].map((name) => ({ name, label: name.toLowerCase() }));
const key = { name: 'op type', of: 'op_kind' } as const;

describe('maps of two sessions', () => {
  // The prompts have 2 and 1 tokens, which the phase leaves out: their cells are 0.
  const left = picture({ MUL_MAT: [0, 0, 5, 6, 7], ADD: [0, 0, 1, 1, 0] });
  const right = picture({ ADD: [0, 4, 1], MUL_MAT: [0, 3, 6], SCALE: [0, 0, 9] });
  const maps = mapsOf([left, right], rows, key, 'ns', ['a', 'b']);
  const valuesOf = (part: keyof typeof maps) => maps[part].series.map(({ values }) => values);

  it('have the same axes and one scale, and show what one side does not have', () => {
    expect(maps.left.keys).toEqual(maps.right.keys);
    expect(maps.left.labels).toEqual(['mul_mat', 'add', 'scale']);
    expect(valuesOf('left')).toEqual([
      [5, 1, null],
      [6, 1, null],
      [7, 0, null],
    ]);
    expect(valuesOf('right')).toEqual([
      [3, 4, 0],
      [6, 1, 9],
      [null, null, null],
    ]);
    expect([maps.left.most, maps.right.most]).toEqual([9, 9]);
  });

  it('are subtracted where both have a value', () => {
    expect(valuesOf('difference')).toEqual([
      [-2, 3, null],
      [0, 0, null],
      [null, null, null],
    ]);
    expect(maps.difference.sides).toEqual(['a', 'b']);
  });

  it('have means over several tokens where there are too many to draw', () => {
    const long = picture({ MUL_MAT: Array.from({ length: 250 }, (_, n) => 1 + n) });
    const { left: map } = mapsOf([long, right], rows, key, 'ns', ['a', 'b']);
    expect(map.series.map(({ name }) => name).slice(0, 2)).toEqual([
      'tokens 0 – 2',
      'tokens 3 – 5',
    ]);
    expect(map.series.at(0)?.values[0]).toBe(2);
    expect(map.series.at(-1)?.values[0]).toBe(250); // the rest of the tokens: one
  });

  it('have no column without tokens', () => {
    const nothing = picture({ MUL_MAT: [0, 0] });
    expect(mapsOf([nothing, nothing], rows, key, 'ns', ['a', 'b']).difference.series).toEqual([]);
  });
});
