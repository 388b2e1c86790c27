import { describe, expect, it } from 'vitest';
import { SortedRows } from '../../../src/grid/sorted_rows';
import { randomOf } from '../make';

describe('SortedRows', () => {
  it('has the order of a sorted array, in any order of arrival', () => {
    const random = randomOf(9);
    const rows = Array.from({ length: 300 }, (_, id) => ({ id, key: Math.floor(30 * random()) }));
    const compare = (a: (typeof rows)[0], b: (typeof rows)[0]): number =>
      a.key - b.key || a.id - b.id;
    const sorted = new SortedRows(compare);
    const arriving = [...rows].sort(() => random() - 0.5);
    // One by one, and many at once.
    for (const row of arriving.slice(0, 40)) sorted.add(row);
    sorted.addAll(arriving.slice(40, 150));
    sorted.addAll(arriving.slice(150, 153));
    sorted.addAll(arriving.slice(153));
    const wanted = [...rows].sort(compare);
    expect(sorted.rows).toEqual(wanted);
    wanted.forEach((row, i) => {
      expect(sorted.indexOf(row)).toBe(i);
    });
  });
});
