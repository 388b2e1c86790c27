// Answers the statements of the table of accesses (panels/table/access_rows.ts) about one step, from
// the accesses of the step. Pure functions.
import type { HeldAccess } from './answers';

type Cell = string | number | null;

export interface Answered {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
}

// As in SQL: flags are numbers.
const cellOf = (value: string | number | boolean | null | undefined): Cell =>
  typeof value === 'boolean' ? Number(value) : (value ?? null);

const STATEMENT =
  /^SELECT (?<columns>.+) FROM access WHERE step = \d+(?: AND op = (?<op>\d+))?(?: GROUP BY (?<group>step|op))?(?: ORDER BY (?<order>.+?))?(?: LIMIT (?<limit>\d+))?(?: OFFSET (?<offset>\d+))?$/;

// Null: another statement.
export function accessRows(sql: string, all: readonly HeldAccess[]): Answered | null {
  const parts = STATEMENT.exec(sql)?.groups;
  if (!parts) return null;
  const { columns = '', op, group, order = '', limit, offset } = parts;
  const own = op === undefined ? all : all.filter((one) => one.op === Number(op));
  if (group !== undefined) {
    const counts = new Map<Cell, number>();
    for (const one of own) {
      const key = cellOf(one[group]);
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    return { columns: columns.split(', '), rows: [...counts] };
  }
  const names = columns.split(', ');
  if (names.some((name) => all[0] && !(name in all[0]))) return null;
  const sorted = own.toSorted(orderOf(order));
  const from = Number(offset ?? 0);
  const rows = sorted.slice(from, from + Number(limit ?? sorted.length));
  return { columns: names, rows: rows.map((one) => names.map((name) => cellOf(one[name]))) };
}

// "size_bytes DESC, step, op, access". Null is the smallest, as in SQLite.
function orderOf(text: string): (a: HeldAccess, b: HeldAccess) => number {
  const keys = text.split(', ').map((part) => {
    const [name = '', way] = part.split(' ');
    return { name, sign: way === 'DESC' ? -1 : 1 };
  });
  return (a, b) => {
    for (const { name, sign } of keys) {
      const [x, y] = [cellOf(a[name]), cellOf(b[name])];
      if (x === y) continue;
      if (x === null || y === null) return x === null ? -sign : sign;
      return x < y ? -sign : sign;
    }
    return 0;
  };
}
