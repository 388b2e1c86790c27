import { describe, expect, it } from 'vitest';
import { lineBetween, type Box } from '../../../../src/panels/chat/attention_lines';

const box = (left: number, top: number): Box => ({ left, top, width: 20, height: 16 });
const numbers = (path: string): readonly number[] => [...path.matchAll(/-?[\d.]+/g)].map(Number);

describe('a line from token to token', () => {
  it('is an arc above the text on one line, the higher the farther', () => {
    const near = numbers(lineBetween(box(100, 50), box(80, 50)).path);
    const far = numbers(lineBetween(box(100, 50), box(10, 50)).path);
    expect(near.slice(0, 2)).toEqual([110, 50]);
    expect(near.slice(-2)).toEqual([90, 50]);
    expect(near[3]).toBeLessThan(50);
    expect(far[3]).toBeLessThan(near[3] ?? NaN);
  });

  it('is a loop of a token that looks at itself', () => {
    const [, , x1 = NaN, , x2 = NaN] = numbers(lineBetween(box(100, 50), box(100, 50)).path);
    expect(x1).toBeGreaterThan(x2);
  });

  it('leads from edge to edge between displayed lines', () => {
    const up = lineBetween(box(100, 80), box(40, 20));
    expect(numbers(up.path).slice(0, 2)).toEqual([110, 80]);
    expect(up.end).toEqual([50, 36]);
    const down = lineBetween(box(40, 20), box(100, 80));
    expect(numbers(down.path).slice(0, 2)).toEqual([50, 36]);
    expect(down.end).toEqual([110, 80]);
  });
});
