import { describe, expect, it } from 'vitest';
import {
  againstMedian,
  grouped,
  median,
  partsOfLine,
  rowIndex,
  slownessText,
  withGaps,
} from '../../../../src/panels/inspector/place';
import { CLEAN_STEPS } from '../../../../src/state/view/filter';
import { step } from '../../make';

describe('a course', () => {
  it('is compared with its median', () => {
    expect(median([3, 1, 0, 2])).toBe(2);
    expect(median([4, 2])).toBe(2);
    expect(againstMedian(6, 3)).toBe('2.0 × the median');
    expect(againstMedian(3, 3)).toBe('1.0 × the median');
    expect(againstMedian(3, 0)).toBe('');
  });
  it('says what the machine did to the step, as the server found', () => {
    const busy = step(0, { verdict: 'contended', cpu_wait_ns: 9_570_000 });
    expect(slownessText(busy)).toBe(
      'in this step the machine was busy: its threads waited 9.57 ms for a processor',
    );
    expect(slownessText(step(0, { verdict: 'disk' }))).toBe('in this step it waited for the disk');
    expect(slownessText(step(0, { verdict: 'clean' }))).toBe('');
    expect(slownessText(undefined)).toBe('');
    const slow = step(0, { verdict: 'throttled', throttled_ns: 2_000_000 });
    expect(slownessText(slow)).toBe('in this step a CPU limit stopped it for 2 ms');
  });
  it('has at most as many groups as pixels, with the same mean', () => {
    const values = Array.from({ length: 1200 }, (_, i) => i);
    const groups = grouped(values);
    expect(groups).toHaveLength(120);
    expect(groups[0]).toBe(4.5);
    expect(grouped([1, 2])).toEqual([1, 2]);
  });
  it('has a gap, not 0, where the steps have no values', () => {
    const steps = [
      step(0, { phase: 'prompt', verdict: 'clean' }),
      step(1, { verdict: 'clean' }),
      step(2, { dropped: true }),
      step(3, { verdict: 'contended' }),
      undefined,
      step(5, { verdict: 'clean' }),
    ];
    const all = { phase: 'all', filter: '' } as const;
    expect(withGaps([9, 8, 0, 7, 0, 0], steps, all)).toEqual([9, 8, null, 7, null, 0]);
    expect(withGaps([0, 8, 0, 7, 0, 0], steps, { ...all, phase: 'generate' })).toEqual([
      null,
      8,
      null,
      7,
      null,
      0,
    ]);
    expect(withGaps([0, 8, 0, 0, 0, 6], steps, { ...all, filter: CLEAN_STEPS })).toEqual([
      0,
      8,
      null,
      null,
      null,
      6,
    ]);
    // Means of two steps.
    expect(withGaps([8, 0, 0], steps, all)).toEqual([8, 0, 0]);
    expect(withGaps([8, 0, 0], [...steps.slice(0, 4), undefined, undefined], all)).toEqual([
      8,
      0,
      null,
    ]);
    expect(partsOfLine([null, 1, 2, null, 0, null])).toEqual([
      [1, 3],
      [4, 5],
    ]);
    expect(
      grouped(Array.from({ length: 240 }, (_, i) => (i < 2 ? null : i % 2 ? null : 4))).slice(0, 2),
    ).toEqual([null, 4]);
  });
  it('is that of the row with its name', () => {
    const rows = ['a', 'b', 'a', 'c'];
    expect(rowIndex({ axis: 'op', name: 'a', index: 2 }, rows)).toBe(2);
    expect(rowIndex({ axis: 'op', name: 'c', index: 2 }, rows)).toBe(3);
    expect(rowIndex({ axis: 'tensor', name: 'x', index: null }, rows)).toBe(-1);
  });
});
