// The value at the share `q` (0 to 1) of ascending values, by nearest rank as everywhere
// (docs/glossary.md): the smallest one such that at least this share of all is not greater. Always
// one of the values; without any, `undefined`.
export function quantile(sorted: ArrayLike<number>, q: number): number | undefined {
  // Not above an exact product because of its rounding: 0.95 * 20 is 19.
  const rank = Math.ceil(q * sorted.length - 1e-9);
  return sorted[Math.min(sorted.length, Math.max(1, rank)) - 1];
}
