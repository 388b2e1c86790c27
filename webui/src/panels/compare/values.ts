// The captured outputs of two sessions as tables, charts and pictures. Pure functions: all figures are
// those of the server.
import type { ChartTable, Series } from '../../charts/table';
import { formatShape } from '../../format';
import type { Column, Sort } from '../../grid/column';
import type { ComparedOutput, ComparedValues, ValuesPicture } from '../../net/types';
import { floatText, shortText } from '../weights/value_text';

// null: infinite, or not a number.
const errorText = (value: number | null): string => (value === null ? '∞' : shortText(value));
const valueText = (value: number | null): string =>
  value === null ? 'not finite' : shortText(value);

const number = (
  key: 'max_error' | 'relative_error' | 'left' | 'right',
  title: string,
  hint: string,
  text: (value: number | null) => string,
): Column<ComparedOutput> => ({
  key,
  title,
  hint,
  width: 96,
  align: 'right',
  text: (row) => (row.same_shape ? text(row[key]) : key === 'max_error' ? 'other shape' : ''),
  exact: (row) => (row.same_shape ? (row[key] === null ? text(null) : floatText(row[key])) : ''),
});

export const valuesColumns: readonly Column<ComparedOutput>[] = [
  { key: 'step', title: 'step', width: 56, align: 'right', text: ({ step }) => String(step) },
  { key: 'op', title: 'op', width: 56, align: 'right', text: ({ op }) => String(op) },
  { key: 'operation_type', title: 'operation', width: 110, mono: true, text: ({ operation_type }) => operation_type },
  { key: 'tensor_name', title: 'output', width: 150, grow: 1, mono: true, text: ({ tensor_name }) => tensor_name },
  { key: 'layer_id', title: 'layer', width: 60, align: 'right', text: ({ layer_id }) => (layer_id === null ? '' : String(layer_id)) },
  { key: 'shape', title: 'shape', width: 100, unsortable: true, text: ({ shape }) => formatShape(shape) },
  number('relative_error', 'relative error', 'Norm of the difference, divided by the norm of the output of this session', errorText),
  number('max_error', 'max error', 'Largest difference of two elements', errorText),
  number('left', 'this session', 'Its element with the largest difference', valueText),
  number('right', 'other session', 'The same element there', valueText),
]; // prettier-ignore

// As computed: the first output beyond the tolerance is what one looks for.
export const IN_ORDER: Sort = { key: 'step', descending: false };
export const GREATEST_FIRST: readonly string[] = ['relative_error', 'max_error'];

// The outputs by a column; equal ones stay in the order of the ops. What is infinite is greater than all.
export function sortedOutputs(rows: readonly ComparedOutput[], { key, descending }: Sort): readonly ComparedOutput[] {
  const isError = GREATEST_FIRST.includes(key);
  const of = (row: ComparedOutput): string | number | null => row[key as Exclude<keyof ComparedOutput, 'shape' | 'same_shape'>];
  return rows.toSorted((a, b) => {
    const [x, y] = [of(a), of(b)];
    if (x === y) return 0;
    const order =
      x === null || y === null
        ? (x === null) === isError ? 1 : -1
        : typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y), 'en', { numeric: true });
    return descending ? -order : order;
  });
} // prettier-ignore

const isSameOutput = (a: ComparedOutput, b: ComparedOutput): boolean =>
  a.step === b.step && a.op === b.op && a.tensor_name === b.tensor_name;

// The index of the output that is shown without a choice: the first one beyond the tolerance, else the one
// with the largest relative error.
export function outputOf({ first_beyond: first, outputs }: ComparedValues): number {
  const at = first === null ? -1 : outputs.findIndex((one) => isSameOutput(one, first));
  if (at >= 0) return at;
  return outputs.reduce(
    (best, one, n) => ((one.relative_error ?? 0) > (outputs[best]?.relative_error ?? 0) ? n : best),
    0,
  );
}

// "[2, 5, 0, 0]": the place of an element, innermost dimension first.
export function placeText({ shape, element }: ComparedOutput): string {
  let rest = element;
  const place = shape.map((n) => {
    const at = n === 0 ? 0 : rest % n;
    rest = Math.floor(rest / Math.max(1, n));
    return at;
  });
  return `[${place.join(', ')}]`;
}

// What the comparison found, in a sentence.
export function firstText({ first_beyond: first, tolerance }: ComparedValues): string {
  if (first === null)
    return `No output differs by more than the tolerance, a relative error of ${tolerance}.`;
  const where = `step ${first.step}, op ${first.op}, ${first.operation_type} ${first.tensor_name}`;
  if (!first.same_shape) return `First beyond the tolerance: ${where}: another shape.`;
  return `First beyond the tolerance: ${where}: relative error ${errorText(first.relative_error)}, largest at ${placeText(first)}: ${valueText(first.left)} and ${valueText(first.right)}.`;
}

// How the errors grow.
export function layersTable({ layers }: ComparedValues): ChartTable {
  return {
    key: { name: 'layer', of: 'layer' },
    keys: layers.map(({ layer_id }) => layer_id),
    series: [
      {
        name: 'relative error',
        unit: 'number',
        values: layers.map(({ relative_error }) => relative_error),
      },
    ],
    more: [
      { name: 'max error', unit: 'number', values: layers.map(({ max_error }) => max_error) },
      { name: 'outputs', unit: 'count', values: layers.map(({ outputs }) => outputs) },
    ],
  };
}

export interface ValuesMaps {
  readonly left: ChartTable;
  readonly right: ChartTable;
  readonly difference: ChartTable; // right − left
}

// Both sides on one scale, and their difference.
export function valuesMaps(picture: ValuesPicture, names: readonly [string, string]): ValuesMaps {
  const { width, height, left, right, output } = picture;
  const columns = output.shape[0] ?? 1;
  const rows = columns === 0 ? 0 : output.shape.reduce((all, n) => all * n, 1) / columns;
  const nameOf = (n: number, cells: number, size: number): string => {
    const [from, to] = [Math.floor((n * size) / cells), Math.floor(((n + 1) * size) / cells)];
    return to - from === 1 ? String(from) : `${from} – ${to - 1}`;
  };
  const names_ = Array.from({ length: height }, (_, n) => nameOf(n, height, rows));
  const table = (cell: (at: number) => number | null): ChartTable => ({
    key: { name: 'row', of: 'name' },
    across: 'column',
    part: output.tensor_name,
    keys: names_,
    series: Array.from({ length: width }, (_, column): Series => ({
      name: nameOf(column, width, columns),
      unit: 'number',
      values: names_.map((_, row) => cell(row * width + column)),
    })),
  });
  const most = [...left, ...right].reduce<number>(
    (max, one) => Math.max(max, Math.abs(one ?? 0)),
    0,
  );
  const side = (cells: readonly (number | null)[]): ChartTable => ({
    ...table((at) => cells[at] ?? null),
    signed: true,
    most,
  });
  return {
    left: side(left),
    right: side(right),
    difference: {
      ...table((at) => {
        const [x, y] = [left[at] ?? null, right[at] ?? null];
        return x === null || y === null ? null : y - x;
      }),
      sides: names,
    },
  };
}
