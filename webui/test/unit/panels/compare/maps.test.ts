// Maps of two sides: aligned columns and rows, one scale, and their difference.
import { describe, expect, it } from 'vitest';
import type { Picture } from '../../../../src/net/frames';
import { decodeCompare, type CompareOptions } from '../../../../src/panels/compare/options';
import { acrossOf, mapsOf, type MapSide } from '../../../../src/panels/compare/maps';

// `columns`: their names, none of tokens. `rows`: a list of values for each row.
function picture(
  rows: Readonly<Record<string, readonly number[]>>,
  columns: readonly string[] = [],
): Picture {
  const all = Object.values(rows);
  const width = all[0]?.length ?? 0;
  const axis = { sections: [], from: 0, unit: '' };
  return {
    x: { ...axis, axis: 'token', size: width, to: width, pixels: width, rows: columns },
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

const side = (of: Picture, by = 1, named = (name: string) => name): MapSide => ({ picture: of, by, named }); // prettier-ignore
const rows = ['MUL_MAT', 'ADD', 'SCALE'].map((name) => ({ name, label: name.toLowerCase() }));
const key = { name: 'op type', of: 'op_kind' } as const;

describe('maps of two sessions', () => {
  // The prompts have 2 and 1 tokens, which the phase leaves out: their cells are 0.
  const left = picture({ MUL_MAT: [0, 0, 5, 6, 7], ADD: [0, 0, 1, 1, 0] });
  const right = picture({ ADD: [0, 4, 1], MUL_MAT: [0, 3, 6], SCALE: [0, 0, 9] });
  const maps = mapsOf([side(left), side(right)], 'token', rows, key, 'ns', ['a', 'b']);
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
    const { left: map } = mapsOf([side(long), side(right)], 'token', rows, key, 'ns', ['a', 'b']);
    expect(map.series.map(({ name }) => name).slice(0, 2)).toEqual([
      'tokens 0 – 2',
      'tokens 3 – 5',
    ]);
    expect(map.series.at(0)?.values[0]).toBe(2);
    expect(map.series.at(-1)?.values[0]).toBe(250); // the rest of the tokens: one
  });

  it('have no column without tokens', () => {
    const nothing = picture({ MUL_MAT: [0, 0] });
    expect(
      mapsOf([side(nothing), side(nothing)], 'token', rows, key, 'ns', ['a', 'b']).difference
        .series,
    ).toEqual([]);
  });

  it('have named columns aligned by name, divided by the tokens of each side', () => {
    const prompt = picture({ 'ADD-1': [8, 4], 'MUL_MAT-1': [2, 6] }, ['0', 'none']);
    const answer = picture({ 'ADD-2': [3, 5, 7] }, ['0', '1', 'none']);
    const named = (name: string): string => name.replace(/-\d/, '');
    const { difference, ...both } = mapsOf([side(prompt, 2, named), side(answer, 1, named)], 'layer', rows.slice(0, 2), key, 'ns', ['a', 'b']); // prettier-ignore
    expect(difference.series.map(({ name }) => name)).toEqual(['layer 0', 'emb+out', 'layer 1']);
    expect(both.left.series.map(({ values }) => values)).toEqual([[1, 4], [3, 2], [null, null]]); // prettier-ignore
    expect(both.right.series.map(({ values }) => values)).toEqual([[null, 3], [null, 7], [null, 5]]); // prettier-ignore
    expect(difference.series.map(({ values }) => values)).toEqual([[null, -1], [null, 5], [null, null]]); // prettier-ignore
  });

  it('have the tokens of a phase as columns, or layers, or components', () => {
    const of = (kind: CompareOptions['of'], by: CompareOptions['by'] = 'op_kind') => acrossOf({ ...decodeCompare(''), of: kind, by }); // prettier-ignore
    expect([of('sessions'), of('layers', 'tensor'), of('steps'), of('tokens', 'layer'), of('phases', 'tensor')]).toEqual(['token', 'token', 'layer', 'component', 'layer']); // prettier-ignore
  });
});
