// Approximate quantiles of positive numbers that arrive one by one: counts in intervals of equal
// ratio (1.1 %), each with the largest number it received. Constant memory, constant time.

const PER_OCTAVE = 64;
const FIRST = -32 * PER_OCTAVE; // numbers below 2^-32 share an interval
const INTERVALS = 96 * PER_OCTAVE; // up to 2^64

export class Distribution {
  count = 0;
  largest = 0;
  private readonly counts = new Uint32Array(INTERVALS);
  private readonly largestOf = new Float64Array(INTERVALS);

  clear(): void {
    this.count = this.largest = 0;
    this.counts.fill(0);
    this.largestOf.fill(0);
  }

  add(value: number): void {
    const at = Math.floor(Math.log2(value) * PER_OCTAVE) - FIRST;
    const index = Math.min(INTERVALS - 1, Math.max(0, at));
    this.counts[index] = (this.counts[index] ?? 0) + 1;
    this.largestOf[index] = Math.max(this.largestOf[index] ?? 0, value);
    this.count += 1;
    this.largest = Math.max(this.largest, value);
  }

  // The number of rank floor(share * (count - 1)), or a number at most 1.1 % larger; 0: no numbers.
  quantile(share: number): number {
    let left = Math.floor(share * (this.count - 1)) + 1;
    for (let i = 0; i < INTERVALS; i += 1) {
      left -= this.counts[i] ?? 0;
      if (left <= 0 && (this.counts[i] ?? 0) > 0) return this.largestOf[i] ?? 0;
    }
    return 0;
  }
}
