import { describe, expect, it } from 'vitest';
import {
  axisOf,
  partLabels,
  positionText,
  rangeText,
  rowLabels,
  sectionAt,
  sectionLabels,
  sectionsIn,
  tickStep,
  ticks,
  unitText,
} from '../../../src/plane/axis';
import { clip, extend, moveInto, outwards, panRange, zoomRange } from '../../../src/plane/range';

describe('a range', () => {
  const whole = { from: 0, to: 100 };

  it('keeps the point under the pointer when zooming, and stays inside', () => {
    expect(zoomRange(whole, 40, 0.5, whole, 4)).toEqual({ from: 20, to: 70 });
    expect(zoomRange({ from: 0, to: 10 }, 0, 100, whole, 4)).toEqual(whole);
    expect(zoomRange({ from: 50, to: 54 }, 52, 0.1, whole, 4)).toEqual({ from: 50, to: 54 });
    // An axis smaller than the least range.
    expect(zoomRange({ from: 0, to: 2 }, 1, 0.5, { from: 0, to: 2 }, 4)).toEqual({
      from: 0,
      to: 2,
    });
  });

  it('keeps its span when it is moved', () => {
    expect(panRange({ from: 90, to: 100 }, 30, whole)).toEqual({ from: 90, to: 100 });
    expect(moveInto({ from: -5, to: 5 }, whole)).toEqual({ from: 0, to: 10 });
    expect(moveInto({ from: 0, to: 500 }, whole)).toEqual(whole);
  });

  it('is clipped, extended and rounded outwards', () => {
    expect(clip({ from: 90, to: 120 }, whole)).toEqual({ from: 90, to: 100 });
    expect(clip({ from: 120, to: 130 }, whole)).toEqual({ from: 100, to: 100 });
    expect(extend({ from: 40, to: 60 }, 0.25, whole)).toEqual({ from: 35, to: 65 });
    expect(outwards({ from: 3.2, to: 4.1 }, whole)).toEqual({ from: 3, to: 5 });
  });
});

describe('sections', () => {
  const sections = [
    { name: 'a', from: 0, to: 10 },
    { name: 'b', from: 10, to: 12 },
    { name: 'c', from: 20, to: 90 },
  ];

  it.each([
    [0, 'a'],
    [9.9, 'a'],
    [10, 'b'],
    [12, undefined], // a gap
    [89, 'c'],
    [90, undefined],
    [-1, undefined],
  ])('at %d is %s', (at, name) => {
    expect(sectionAt(sections, at)?.name).toBe(name);
  });

  it('in a range are those that overlap it', () => {
    expect(sectionsIn(sections, { from: 11, to: 20 }).map(({ name }) => name)).toEqual(['b']);
    expect(sectionsIn(sections, { from: 5, to: 21 }).map(({ name }) => name)).toEqual([
      'a',
      'b',
      'c',
    ]);
  });

  it('are labelled in the middle of their visible part if there is room', () => {
    expect(sectionLabels(sections, { from: 5, to: 45 }, 400, 30)).toEqual([
      { from: 5, to: 10, text: 'a' },
      { from: 10, to: 12, text: 'b' }, // small, but with room to the others
      { from: 20, to: 45, text: 'c' },
    ]);
  });
});

describe('labels', () => {
  const layers = axisOf('rows', 'layer', 13, {
    names: [...Array.from({ length: 12 }, (_, i) => String(i)), 'emb+out'],
  });

  it('name every row with room', () => {
    expect(rowLabels(layers, layers.whole, 13 * 20, 13)).toHaveLength(13);
  });

  it('name every second row and the last one', () => {
    const texts = rowLabels(layers, layers.whole, 13 * 8, 13).map(({ text }) => text);
    expect(texts).toEqual(['0', '2', '4', '6', '8', '10', 'emb+out']);
  });

  it('are short beside the names of groups', () => {
    const names = Array.from({ length: 8 }, (_, i) => `blk.${i >> 2} expert ${i % 4}`);
    const of = (groups: number) =>
      axisOf('rows', 'expert', 8, {
        names,
        groups: Array.from({ length: groups }, (_, i) => ({ name: `layer ${i}`, from: 4 * i, to: 4 * i + 4 })),
        besideGroup: (name) => name.replace(/^blk\.\d+ /, ''),
      }); // prettier-ignore
    const texts = (groups: number) =>
      rowLabels(of(groups), { from: 4, to: 8 }, 80, 13).map(({ text }) => text);
    expect(texts(2)).toEqual(['expert 0', 'expert 1', 'expert 2', 'expert 3']);
    expect(texts(0)).toEqual(names.slice(4)); // nothing else says the layer
  });

  it.each([
    [26, 56, 5],
    [8, 56, 10],
    [1, 56, 100],
    [0.1, 56, 1000],
  ])('of %d px per unit with %d px each are %d apart', (pitch, room, step) => {
    expect(tickStep(pitch, room)).toBe(step);
  });

  it('of numbers, times and bytes have round values', () => {
    const texts = (kind: 'count' | 'time' | 'bytes', to: number): readonly string[] =>
      ticks(axisOf(kind, 'x', to), { from: 0, to }, 400, 80).map(({ text }) => text);
    expect(texts('count', 241)).toEqual(['0', '50', '100', '150', '200']);
    expect(texts('time', 5e8)).toEqual(['0 ms', '100 ms', '200 ms', '300 ms', '400 ms']);
    expect(texts('bytes', 4 * 1024 * 1024)).toEqual(['0 B', '1 MiB', '2 MiB', '3 MiB']);
  });
});

describe('texts', () => {
  const file = axisOf('bytes', 'file', 1000, {
    groups: [{ name: 'blk.0', from: 0, to: 600 }],
    parts: [
      { name: 'attn_q', from: 0, to: 200 },
      { name: 'attn_k', from: 200, to: 600 },
    ],
  });

  it.each([
    [{ from: 10, to: 30 }, 'attn_q, 20 B'],
    [{ from: 10, to: 300 }, 'blk.0, 290 B'],
    [{ from: 10, to: 900 }, 'file 10 B – 900 B'],
  ])('of the range %j of a file is %s', (range, text) => {
    expect(rangeText(file, range)).toBe(text);
  });

  it('of tokens and layers are plain', () => {
    const tokens = axisOf('count', 'token', 50);
    expect(rangeText(tokens, { from: 20, to: 49 })).toBe('tokens 20 – 48');
    expect(rangeText(tokens, { from: 20, to: 21 })).toBe('token 20');
    const layers = axisOf('rows', 'layer', 3, { names: ['0', '1', 'emb+out'] });
    expect(rangeText(layers, { from: 1, to: 2 })).toBe('layer 1');
    expect(rangeText(layers, { from: 0, to: 3 })).toBe('layer 0 – emb+out');
    expect(positionText(file, 250)).toBe('attn_k + 50 B');
    expect(positionText(tokens, 3.7)).toBe('token 3');
  });
});

describe('the units of a part', () => {
  // A matrix of 64 rows with 100 bytes.
  const part = { name: 'attn_q', from: 1000, to: 7400, units: { name: 'row', size: 100 } };

  it('are named where they have room', () => {
    const whole = { from: 0, to: 10_000 };
    expect(partLabels([part], whole, 60, 13)).toEqual([{ from: 1000, to: 7400, text: 'attn_q' }]);
    const texts = (from: number, to: number, pixels: number): readonly string[] =>
      partLabels([part], { from, to }, pixels, 13).map(({ text }) => text);
    expect(texts(0, 10_000, 10)).toEqual([]); // no room for its own name
    expect(texts(1000, 7400, 200)).toEqual(['attn_q', 'row 10', 'row 20', 'row 30', 'row 40', 'row 50', 'row 60']); // prettier-ignore
    expect(texts(3000, 3400, 400)).toEqual(['attn_q', 'row 21', 'row 22', 'row 23']);
  });

  it('are found by their position', () => {
    expect(unitText(part, 1000)).toBe('row 0');
    expect(unitText(part, 3199)).toBe('row 21');
    expect(unitText({ name: 'embd', from: 0, to: 5 }, 3)).toBeNull();
  });
});
