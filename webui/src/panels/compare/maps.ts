// Both sides as maps, on the same axes and one scale, and their difference. Rows are those of the charts.
// Columns are tokens, aligned by their place in the phase, or layers or components, aligned by name. Pure
// functions.
import type { ChartTable, Series, Unit } from '../../charts/table';
import type { Picture } from '../../net/frames';
import { componentName, layerName } from '../../format';
import { pixelStart } from '../../plane/raster';
import type { CompareOptions } from './options';

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

// What the columns are. Steps, tokens and phases have other tokens on each side: their columns are layers,
// or components if the rows are layers.
export type Across = 'token' | 'layer' | 'component';
export const acrossOf = ({ of, by }: CompareOptions): Across =>
  of === 'sessions' || of === 'layers' ? 'token' : by === 'layer' ? 'component' : 'layer';

export interface MapSide {
  readonly picture: Picture;
  readonly by: number; // sums of named columns are divided by it: steps or tokens
  readonly named: (row: string) => string; // the name that both sides share
}

type Cell = (row: string, column: number) => number | null;

// The tokens of a phase are those in which something was accessed.
interface Columns {
  readonly count: number;
  readonly tokens: number; // of a column
  readonly sum: Cell;
}

// The row sums of a picture by the names that both sides share; null: this side has no such row.
function sumsOf({ picture: { y, width, cells }, named }: MapSide): Cell {
  const rows = new Map<string, number[]>();
  y.rows.forEach((row, at) => {
    const name = named(row);
    const places = rows.get(name);
    if (places) places.push(at);
    else rows.set(name, [at]);
  });
  return (name, column) =>
    rows.get(name)?.reduce((sum, row) => sum + (cells[row * width + column] ?? 0), 0) ?? null;
}

function columnsOf(side: MapSide): Columns {
  const { x, y, width, cells } = side.picture;
  const used = Array.from({ length: width }, (_, column) => column).filter((column) =>
    y.rows.some((_, row) => (cells[row * width + column] ?? 0) > 0),
  );
  const first = used[0] ?? 0;
  const sum = sumsOf(side);
  return {
    count: used.length === 0 ? 0 : (used.at(-1) ?? 0) - first + 1,
    tokens: Math.max(1, pixelStart(x, width, 1) - pixelStart(x, width, 0)),
    sum: (name, column) => sum(name, first + column),
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

interface Aligned {
  readonly names: readonly string[]; // of the columns
  readonly left: Cell;
  readonly right: Cell;
}

function byToken(sides: readonly [MapSide, MapSide]): Aligned {
  const [a, b] = [columnsOf(sides[0]), columnsOf(sides[1])];
  const longest = Math.max(a.count, b.count);
  const step = Math.max(1, Math.ceil(longest / MAX_COLUMNS));
  const tokens = step * Math.max(a.tokens, b.tokens);
  const names = Array.from({ length: Math.ceil(longest / step) }, (_, n) =>
    tokens === 1 ? `token ${n}` : `tokens ${n * tokens} – ${(n + 1) * tokens - 1}`,
  );
  return { names, left: meanOf(a, step), right: meanOf(b, step) };
}

function byName(sides: readonly [MapSide, MapSide], across: 'layer' | 'component'): Aligned {
  const names = [...new Set(sides.flatMap(({ picture }) => picture.x.rows))];
  const cellOf = (side: MapSide): Cell => {
    const sum = sumsOf(side);
    const columns = names.map((name) => side.picture.x.rows.indexOf(name));
    return (row, n) => {
      const column = columns[n] ?? -1;
      const all = column < 0 ? null : sum(row, column);
      return all === null ? null : all / side.by;
    };
  };
  return {
    names: names.map((name) => (across === 'component' ? componentName(name) : name === layerName(name) ? `layer ${name}` : layerName(name))), // prettier-ignore
    left: cellOf(sides[0]),
    right: cellOf(sides[1]),
  };
}

export function mapsOf(
  sides: readonly [MapSide, MapSide],
  across: Across,
  rows: readonly MapRow[],
  key: ChartTable['key'],
  unit: Unit,
  names: readonly [string, string],
): Maps {
  const aligned = across === 'token' ? byToken(sides) : byName(sides, across);
  const { left, right } = aligned;
  const table = (cell: Cell): ChartTable => ({
    key,
    keys: rows.map(({ name }) => name),
    labels: rows.map(({ label }) => label),
    series: aligned.names.map((name, n): Series => ({
      name,
      unit,
      values: rows.map((row) => cell(row.name, n)),
    })),
  });
  const both = [table(left), table(right)] as const;
  const most = both.flatMap(({ series }) => series.flatMap(({ values }) => values)).reduce<number>((max, value) => Math.max(max, value ?? 0), 0); // prettier-ignore
  return {
    left: { ...both[0], most },
    right: { ...both[1], most },
    difference: {
      ...table((name, n) => {
        const [x, y] = [left(name, n), right(name, n)];
        return x === null || y === null ? null : y - x;
      }),
      sides: names,
    },
  };
}
