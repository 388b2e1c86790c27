// Both sessions as maps of rows and tokens, on the same axes and one scale, and their difference.
// Tokens are aligned by their place in the phase, rows by name. Pure functions.
import type { ChartTable, Series, Unit } from '../../charts/table';
import type { Picture } from '../../net/frames';
import { pixelStart } from '../../plane/raster';

// What is asked for: more tokens or rows share a pixel.
export const MAP_PIXELS = { width: 1024, height: 2048 } as const;
const MAX_COLUMNS = 120; // that are drawn

export interface MapRow {
  readonly name: string; // as the server calls it
  readonly label: string;
}

export interface Maps {
  readonly left: ChartTable;
  readonly right: ChartTable;
  readonly difference: ChartTable; // right − left, of the tokens and rows that both have
}

type Cell = (row: string, column: number) => number | null;

// The tokens of a phase are those in which something was accessed.
interface Columns {
  readonly count: number;
  readonly tokens: number; // of a column
  readonly sum: Cell;
}

function columnsOf({ x, y, width, cells }: Picture): Columns {
  const used = Array.from({ length: width }, (_, column) => column).filter((column) =>
    y.rows.some((_, row) => (cells[row * width + column] ?? 0) > 0),
  );
  const first = used[0] ?? 0;
  const rows = new Map(y.rows.map((name, row) => [name, row]));
  return {
    count: used.length === 0 ? 0 : (used.at(-1) ?? 0) - first + 1,
    tokens: Math.max(1, pixelStart(x, width, 1) - pixelStart(x, width, 0)),
    sum: (name, column) => {
      const row = rows.get(name);
      return row === undefined ? null : (cells[row * width + first + column] ?? 0);
    },
  };
}

// Per token: the mean over `step` columns.
const meanOf = ({ count, tokens, sum }: Columns, step: number): Cell => (name, n) => {
  const end = Math.min(count, (n + 1) * step);
  if (end <= n * step || sum(name, n * step) === null) return null;
  let all = 0;
  for (let column = n * step; column < end; column += 1) all += sum(name, column) ?? 0;
  return all / (tokens * (end - n * step));
}; // prettier-ignore

export function mapsOf(
  pictures: readonly [Picture, Picture],
  rows: readonly MapRow[],
  key: ChartTable['key'],
  unit: Unit,
  names: readonly [string, string],
): Maps {
  const [a, b] = [columnsOf(pictures[0]), columnsOf(pictures[1])];
  const longest = Math.max(a.count, b.count);
  const step = Math.max(1, Math.ceil(longest / MAX_COLUMNS));
  const [left, right] = [meanOf(a, step), meanOf(b, step)];
  const tokens = step * Math.max(a.tokens, b.tokens);
  const table = (cell: Cell): ChartTable => ({
    key,
    keys: rows.map(({ name }) => name),
    labels: rows.map(({ label }) => label),
    series: Array.from({ length: Math.ceil(longest / step) }, (_, n): Series => ({
      name: tokens === 1 ? `token ${n}` : `tokens ${n * tokens} – ${(n + 1) * tokens - 1}`,
      unit,
      values: rows.map(({ name }) => cell(name, n)),
    })),
  }); // prettier-ignore
  const sides = [table(left), table(right)] as const;
  const most = sides.flatMap(({ series }) => series.flatMap(({ values }) => values)).reduce<number>((max, value) => Math.max(max, value ?? 0), 0); // prettier-ignore
  return {
    left: { ...sides[0], most },
    right: { ...sides[1], most },
    difference: {
      ...table((name, n) => {
        const [x, y] = [left(name, n), right(name, n)];
        return x === null || y === null ? null : y - x;
      }),
      sides: names,
    },
  };
}
