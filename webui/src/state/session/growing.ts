// A typed array that grows: appending is amortized O(1), reading needs no copy.
export class Growing<A extends Int32Array | Float32Array | Float64Array> {
  length = 0;
  private buffer: A;
  private readonly make: (length: number) => A;

  constructor(make: (length: number) => A) {
    this.make = make;
    this.buffer = make(64);
  }

  at(index: number): number | undefined {
    return index < this.length ? this.buffer[index] : undefined;
  }

  push(value: number): void {
    this.resize(this.length + 1, 0);
    this.buffer[this.length - 1] = value;
  }

  set(index: number, value: number): void {
    this.buffer[index] = value;
  }

  // New entries have the value `fill`.
  resize(length: number, fill: number): void {
    if (length > this.buffer.length) {
      const larger = this.make(Math.max(length, 2 * this.buffer.length));
      larger.set(this.buffer.subarray(0, this.length));
      this.buffer = larger;
    }
    if (length > this.length) this.buffer.fill(fill, this.length, length);
    this.length = length;
  }

  // A copy of the entries.
  copy(): A {
    return this.buffer.slice(0, this.length) as A;
  }
}

export const growingInts = (): Growing<Int32Array> => new Growing((n) => new Int32Array(n));
export const growingFloats = (): Growing<Float32Array> => new Growing((n) => new Float32Array(n));
