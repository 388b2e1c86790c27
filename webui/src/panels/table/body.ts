// What the toolbar of the table needs from its rows: each kind of row provides it.
import type { Result } from '../../result';
import type { ApiError } from '../../net/api';
import type { Cell } from '../../grid/copy';
import type { Rows } from '../../grid/rows';
import type { VGrid } from '../../grid/vgrid';
import type { TableColumn } from './columns';

export interface Copied {
  readonly names: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
}

export interface CopySource {
  readonly count: number;
  selected(): { readonly from: number; readonly to: number } | null;
  read(from: number, limit: number): Promise<Result<Copied, ApiError>>;
  readonly sql: string | null;
}

export type CopyRef = { current: CopySource | null };

// The columns of copied rows. `value` is exact; a composed column is copied as it is shown.
export function cellsOf<Row>(columns: readonly TableColumn<Row>[], rows: readonly Row[]): Copied {
  return {
    names: columns.map(({ key }) => key),
    rows: rows.map((row) => columns.map((column) => column.value(row))),
  };
}

export function copyFromRows<Row>(
  columns: readonly TableColumn<Row>[],
  rows: readonly Row[],
  grid: { readonly current: VGrid<Row> | null },
  sql: string | null,
): CopySource {
  return {
    count: rows.length,
    selected: () => grid.current?.selected() ?? null,
    read: (from, limit) =>
      Promise.resolve({ ok: true, value: cellsOf(columns, rows.slice(from, from + limit)) }),
    sql,
  };
}

// Rows sorted by a column; equal values keep their order.
export function sortedRows<Row>(
  rows: readonly Row[],
  columns: readonly TableColumn<Row>[],
  sort: { readonly key: string; readonly descending: boolean },
): readonly Row[] {
  const column = columns.find(({ key }) => key === sort.key);
  if (!column || column.unsortable) return rows;
  const sign = sort.descending ? -1 : 1;
  const { value } = column;
  return rows.toSorted((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === y) return 0;
    if (x === null || y === null) return x === null ? 1 : -1; // missing values are last
    return x < y ? -sign : sign;
  });
}

// The select list of the columns that SQL has.
export const sqlColumns = <Row>(columns: readonly TableColumn<Row>[]): readonly string[] =>
  columns.flatMap(({ key, sql }) => (sql === null ? [] : [sql ?? key]));

export type { Rows };
