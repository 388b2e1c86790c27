// The values of the heat map's cells: time or bytes of one token in one layer. The total of a step
// with several tokens is divided equally among them, so that prompt and generated tokens are
// comparable. Values are appended with the columns. Maxima of 4, 16, 64... adjacent columns and
// the distribution of the values are kept, so that a picture costs time in proportion to its
// pixels, not to the session.
import { growingFloats, type Growing } from '../state/growing';
import type { Metric } from '../state/settings';
import type { TraceData } from '../state/trace_data';
import { Columns, IN_FLIGHT, NO_STEP } from './columns';
import { Distribution } from './distribution';

// The value of a cell; NaN if there is none.
export function cellValue(
  data: TraceData,
  columns: Columns,
  metric: Metric,
  column: number,
  row: number,
): number {
  const index = columns.step.at(column) ?? NO_STEP;
  if (index === NO_STEP) return NaN;
  if (index === IN_FLIGHT) return metric === 'ns' ? (data.flight?.layersNs?.[row] ?? NaN) : NaN;
  const step = data.steps[index];
  if (!step || (metric === 'ns' && step.dropped)) return NaN;
  return (step.layers[metric][row] ?? NaN) / step.token_count;
}

const FAN = 4; // columns of one level per column of the next

// Values of a column after its rows.
export const TOTAL = 0;
export const MARK = 1; // how its step was timed, see Mark
export const EVALUATED = 2; // 1: a step with times processed the token; else -1
const EXTRAS = 3;

export const Mark = { flight: 1, fast: 2, learned: 3, exact: 4 } as const;

export class LayerValues {
  rows = 0;
  readonly distribution = new Distribution();
  // By level: [column * stride + row], then the extra values of the column. -1: no value.
  private levels: Growing<Float32Array>[] = [];
  private settled = 0;
  private generation = 0;
  readonly metric: Metric;

  constructor(metric: Metric) {
    this.metric = metric;
  }

  update(data: TraceData, columns: Columns): void {
    const rows = data.rows();
    if (rows !== this.rows || columns.generation !== this.generation) this.clear(rows);
    this.generation = columns.generation;
    // Columns that were provisional are computed again.
    for (const [i, level] of this.levels.entries())
      level.length = Math.floor(this.settled / FAN ** i) * this.stride;
    for (let column = this.settled; column < columns.count; column += 1) {
      const isSettled = column < columns.settled;
      this.append(data, columns, column, isSettled);
    }
    this.settled = columns.settled;
  }

  // The maxima over columns first..last-1 into `into`, which has `stride` entries: rows, then
  // extras. -1: no value.
  maxima(first: number, last: number, into: Float32Array): void {
    into.fill(-1);
    let at = first;
    while (at < last) {
      let level = 0;
      let size = 1;
      while (at % (size * FAN) === 0 && at + size * FAN <= last && this.has(level + 1, at, size)) {
        level += 1;
        size *= FAN;
      }
      this.maximum(level, at / size, into);
      at += size;
    }
  }

  // The value of a cell, -1: none.
  value(column: number, row: number): number {
    return this.levels[0]?.at(column * this.stride + row) ?? -1;
  }

  get stride(): number {
    return this.rows + EXTRAS;
  }

  private has(level: number, column: number, size: number): boolean {
    return (column / (size * FAN) + 1) * this.stride <= (this.levels[level]?.length ?? 0);
  }

  private maximum(level: number, index: number, into: Float32Array): void {
    const values = this.levels[level];
    const base = index * this.stride;
    for (let row = 0; row < this.stride; row += 1) {
      const value = values?.at(base + row) ?? -1;
      if (value > (into[row] ?? -1)) into[row] = value;
    }
  }

  private clear(rows: number): void {
    this.rows = rows;
    this.levels = [];
    this.settled = 0;
    this.distribution.clear();
  }

  private append(data: TraceData, columns: Columns, column: number, settled: boolean): void {
    const index = columns.step.at(column) ?? NO_STEP;
    const isFirst = settled && columns.firstOfStep.at(index) === column;
    const values = this.level(0);
    let total = -1;
    for (let row = 0; row < this.rows; row += 1) {
      const value = cellValue(data, columns, this.metric, column, row);
      const known = value >= 0;
      values.push(known ? value : -1);
      if (known) total = Math.max(0, total) + value;
      // Tokens that were evaluated together are one measurement.
      if (isFirst && value > 0) this.distribution.add(value);
    }
    values.push(total);
    const step = data.steps[index];
    const timing = index === IN_FLIGHT ? 'flight' : step?.timing;
    values.push(timing !== undefined && timing in Mark ? Mark[timing as keyof typeof Mark] : -1);
    values.push(index === IN_FLIGHT || (step && !step.dropped) ? 1 : -1);
    // A group is added with its last column.
    for (let level = 1, size = FAN; (column + 1) % size === 0; level += 1, size *= FAN) {
      this.appendGroup(level, (column + 1) / size - 1);
    }
  }

  private appendGroup(level: number, index: number): void {
    const into = new Float32Array(this.stride).fill(-1);
    for (let i = 0; i < FAN; i += 1) this.maximum(level - 1, index * FAN + i, into);
    const values = this.level(level);
    for (const value of into) values.push(value);
  }

  private level(level: number): Growing<Float32Array> {
    return (this.levels[level] ??= growingFloats());
  }
}
