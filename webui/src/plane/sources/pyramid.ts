// Sums or maxima over ranges of units that arrive one after the other. Groups of 4, 16, 64...
// adjacent units are kept, so that a picture of any range costs time in proportion to its pixels.
import { growingFloats, type Growing } from '../../state/session/growing';

const FAN = 4;

export class Pyramid {
  readonly stride: number; // values per unit
  private readonly combine: 'sum' | 'max';
  // By level: [group * stride + value]; level 0 has the units.
  private readonly levels: Growing<Float32Array>[] = [growingFloats()];
  private changedFrom = Infinity; // units from here on are not in the groups

  constructor(stride: number, combine: 'sum' | 'max') {
    this.stride = stride;
    this.combine = combine;
  }

  get units(): number {
    return (this.levels[0]?.length ?? 0) / this.stride;
  }

  // New units have zeros.
  resize(units: number): void {
    this.changedFrom = Math.min(this.changedFrom, units, this.units);
    this.levels[0]?.resize(units * this.stride, 0);
  }

  get(unit: number, value: number): number {
    return this.levels[0]?.at(unit * this.stride + value) ?? 0;
  }

  set(unit: number, value: number, to: number): void {
    if (unit >= this.units) this.resize(unit + 1);
    this.changedFrom = Math.min(this.changedFrom, unit);
    this.levels[0]?.set(unit * this.stride + value, to);
  }

  // Brings the groups up to date; call it after the changes and before query.
  update(): void {
    if (this.changedFrom === Infinity) return;
    let first = this.changedFrom;
    let groups = this.units;
    for (let level = 1; groups >= FAN; level += 1) {
      first = Math.floor(first / FAN);
      groups = Math.floor(groups / FAN);
      const values = (this.levels[level] ??= growingFloats());
      values.resize(groups * this.stride, 0);
      for (let group = first; group < groups; group += 1) this.fillGroup(level, group);
    }
    this.changedFrom = Infinity;
  }

  // Combines units first..last-1 into `into`, which has `stride` entries.
  query(first: number, last: number, into: Float32Array): void {
    into.fill(0);
    let at = first;
    while (at < last) {
      let level = 0;
      let size = 1;
      while (at % (size * FAN) === 0 && at + size * FAN <= last && this.has(level + 1, at, size)) {
        level += 1;
        size *= FAN;
      }
      this.addGroup(level, at / size, into);
      at += size;
    }
  }

  private has(level: number, unit: number, size: number): boolean {
    return (unit / (size * FAN) + 1) * this.stride <= (this.levels[level]?.length ?? 0);
  }

  private addGroup(level: number, group: number, into: Float32Array): void {
    const values = this.levels[level];
    const base = group * this.stride;
    for (let i = 0; i < this.stride; i += 1) {
      const value = values?.at(base + i) ?? 0;
      if (this.combine === 'sum') into[i] = (into[i] ?? 0) + value;
      else if (value > (into[i] ?? 0)) into[i] = value;
    }
  }

  private fillGroup(level: number, group: number): void {
    const into = new Float32Array(this.stride);
    for (let i = 0; i < FAN; i += 1) this.addGroup(level - 1, group * FAN + i, into);
    into.forEach((value, i) => this.levels[level]?.set(group * this.stride + i, value));
  }
}
