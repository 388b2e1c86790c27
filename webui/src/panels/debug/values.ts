// The elements of a tensor at a stop: which ones are read, and their places. Pure functions.
// Shapes have the innermost dimension first, as in ggml; indices the outermost first, as in numpy.

const SHOWN = 8; // elements of the two innermost dimensions that are read at first

// Without the dimensions of 1 at the outside, which are not counted.
function dimensionsOf(shape: readonly number[]): readonly number[] {
  const last = shape.findLastIndex((n) => n !== 1);
  return shape.slice(0, Math.max(1, last + 1));
}

// "0, 0-7, 0-7": the first rows.
export function firstIndices(shape: readonly number[]): string {
  const range = (n: number): string => (n === 1 ? '0' : `0-${Math.min(SHOWN, n) - 1}`);
  return dimensionsOf(shape)
    .map((n, i) => (i < 2 ? range(n) : '0'))
    .toReversed()
    .join(', ');
}

export interface ValueRow {
  readonly name: string; // its indices; empty: there is one row
  readonly values: readonly (number | string)[];
}

export interface ValueTable {
  readonly columns: readonly number[]; // indices of the innermost dimension
  readonly rows: readonly ValueRow[];
}

// `indices`: what was asked for; `selected`: the shape of the answer; `shape`: of the tensor.
export function valueTable(
  shape: readonly number[],
  indices: string,
  selected: readonly number[],
  values: readonly (number | string)[],
): ValueTable {
  const dimensions = dimensionsOf(shape).length;
  // Those of outer dimensions of 1 may be given, too.
  const given = indices.split(',').map((part) => part.trim());
  const parts = given.slice(Math.max(0, given.length - dimensions));
  // Innermost first. Dimensions that are left out are taken whole.
  const starts = Array.from({ length: dimensions }, (_, i) => {
    const from = Number.parseInt(parts[dimensions - 1 - i] ?? '', 10);
    return Number.isNaN(from) ? 0 : from;
  });
  const width = Math.max(1, selected[0] ?? 1);
  const columns = Array.from(
    { length: Math.min(width, values.length) },
    (_, i) => (starts[0] ?? 0) + i,
  );
  const rows: ValueRow[] = [];
  for (let at = 0; at < values.length; at += width) {
    let rest = at / width;
    const place = starts.slice(1).map((start, i) => {
      const n = Math.max(1, selected[i + 1] ?? 1);
      const index = start + (rest % n);
      rest = Math.floor(rest / n);
      return index;
    });
    rows.push({ name: place.toReversed().join(', '), values: values.slice(at, at + width) });
  }
  return { columns, rows };
}

// The place of the first element of which `has` is true of any selection that contains it, as indices;
// null: there is none, or it cannot be told.
export async function firstPlace(
  shape: readonly number[],
  has: (indices: string) => Promise<boolean | null>,
): Promise<string | null> {
  const dimensions = dimensionsOf(shape).toReversed(); // outermost first
  const found: number[] = [];
  const indices = (range: string): string =>
    [...found.map(String), range, ...dimensions.slice(found.length + 1).map(() => '*')].join(', ');
  for (const n of dimensions) {
    let [from, to] = [0, n];
    while (to - from > 1) {
      const middle = Math.floor((from + to) / 2);
      const first = await has(
        indices(middle - from === 1 ? String(from) : `${from}-${middle - 1}`),
      );
      if (first === null) return null;
      if (first) to = middle;
      else from = middle;
    }
    found.push(from);
  }
  return (await has(found.join(', '))) === true ? found.join(', ') : null;
}

// 5 significant digits.
export function valueText(value: number | string | null): string {
  if (typeof value !== 'number') return value ?? '–';
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e6)) return value.toExponential(3);
  return size >= 1e5 ? value.toFixed(0) : value.toPrecision(5);
}
