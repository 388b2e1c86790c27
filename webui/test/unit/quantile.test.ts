import { describe, expect, it } from 'vitest';
import { quantile } from '../../src/quantile';

// The rule as docs/glossary.md words it.
const byDefinition = (sorted: readonly number[], q: number): number | undefined =>
  sorted.find((value) => sorted.filter((other) => other <= value).length / sorted.length >= q);

describe('a quantile', () => {
  it('is the smallest value such that at least this share of all is not greater', () => {
    for (let count = 1; count <= 40; count += 1) {
      const sorted = Array.from({ length: count }, (_, i) => 3 * i + 1);
      for (const q of [0, 0.005, 0.05, 0.25, 0.5, 0.75, 0.95, 0.995, 1])
        expect(quantile(sorted, q), `${q} of ${count}`).toBe(byDefinition(sorted, q));
    }
  });

  it('is the lower middle for the median of an even number', () => {
    expect(quantile([1, 2], 0.5)).toBe(1);
    expect(quantile([1, 2, 3, 9], 0.5)).toBe(2);
  });

  it('of no values is undefined', () => {
    expect(quantile([], 0.5)).toBeUndefined();
  });
});
