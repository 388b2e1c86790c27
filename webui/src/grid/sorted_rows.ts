// Rows in sorted order; a row is inserted in logarithmic time plus a move, without sorting again.

export class SortedRows<Row> {
  readonly rows: Row[] = [];
  private readonly compare: (a: Row, b: Row) => number;

  // `compare` never returns 0 for different rows.
  constructor(compare: (a: Row, b: Row) => number) {
    this.compare = compare;
  }

  add(row: Row): void {
    this.rows.splice(this.indexOf(row), 0, row);
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
