// Rows in sorted order; a row is inserted in logarithmic time plus a move, without sorting again.

const MERGED = 16;

export class SortedRows<Row> {
  rows: Row[] = [];
  private readonly compare: (a: Row, b: Row) => number;

  // `compare` never returns 0 for different rows.
  constructor(compare: (a: Row, b: Row) => number) {
    this.compare = compare;
  }

  add(row: Row): void {
    this.rows.splice(this.indexOf(row), 0, row);
  }

  // Many rows are merged in one pass.
  addAll(added: readonly Row[]): void {
    if (added.length < MERGED) {
      for (const row of added) this.add(row);
      return;
    }
    const sorted = [...added].sort(this.compare);
    const merged: Row[] = [];
    let at = 0;
    for (const row of this.rows) {
      for (
        let next = sorted[at];
        next !== undefined && this.compare(next, row) < 0;
        next = sorted[at]
      ) {
        merged.push(next);
        at += 1;
      }
      merged.push(row);
    }
    for (; at < sorted.length; at += 1) merged.push(sorted[at] as Row);
    this.rows = merged;
  }

  // The number of rows before `row`: its index if it is contained.
  indexOf(row: Row): number {
    let low = 0;
    let high = this.rows.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const at = this.rows[middle];
      if (at !== undefined && this.compare(at, row) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
