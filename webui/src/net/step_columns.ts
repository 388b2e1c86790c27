// Decodes a page of steps (api/step_format.md). A row reads its values from the columns when it is
// asked for them: nothing is parsed or copied per step.
import { err, type Result } from '../result';
import { bool, count, isCount, list, Mismatch, object, optional, str } from './check';
import { HEADER, hasKind, withDescription } from './frames';
import type { StepSummary } from './types';

export interface StepPage {
  readonly total: number; // steps of the session
  readonly steps: readonly StepSummary[];
}

interface Column {
  readonly name: string;
  readonly words?: readonly string[] | undefined; // the numbers are indices into it
  readonly flag?: boolean | undefined; // 0: false, 1: true
}
interface Description {
  readonly total: number;
  readonly columns: readonly Column[];
}

const KIND_STEPS = 4;
const description = object<Description>({
  total: count,
  columns: list(object<Column>({ name: str, words: optional(list(str)), flag: optional(bool) })),
});

export function decodeSteps(buffer: ArrayBuffer): Result<StepPage, string> {
  if (!hasKind(buffer, KIND_STEPS)) return err('a list of steps does not begin with its kind');
  const head = new DataView(buffer, 0, HEADER);
  const steps = head.getUint32(8, true);
  const columns = head.getUint32(12, true);
  const layers = head.getUint32(16, true);
  const numbers = steps * (columns + 2 * layers);
  const end = HEADER + 8 * numbers;
  if (buffer.byteLength < end) return err(`a list of ${steps} steps is truncated`);
  return withDescription(buffer, end, 'list of steps', (json) => {
    const told = description(json, '');
    if (told.columns.length !== columns) throw new Mismatch('a column has no description');
    const table = new Table(new Float64Array(buffer, HEADER, numbers), steps, columns, layers);
    check(table, told.columns);
    const Row = rowOf(told.columns);
    const rows = Array.from({ length: steps }, (_, i) => new Row(table, i));
    // The fields of a row are those of the columns.
    return { total: told.total, steps: rows as unknown as readonly StepSummary[] };
  });
}

class Table {
  readonly values: Float64Array;
  readonly steps: number;
  private readonly columns: number;
  private readonly layers: number;

  constructor(values: Float64Array, steps: number, columns: number, layers: number) {
    this.values = values;
    this.steps = steps;
    this.columns = columns;
    this.layers = layers;
  }

  column(index: number): Float64Array {
    return this.values.subarray(index * this.steps, (index + 1) * this.steps);
  }

  // The values per layer of a step. `which`: 0 times, 1 bytes.
  layersOf(step: number, which: 0 | 1): Float64Array {
    const at = this.steps * (this.columns + which * this.layers) + step * this.layers;
    return this.values.subarray(at, at + this.layers);
  }
}

// What the page relies on: the same as of a live event (stepSummary).
const COUNTS = ['step', 'token_id', 'token_count'];
const NUMBERS = ['begin_ns', 'end_ns', 'duration_ns'];
const WORDS = ['phase', 'timing'];

function check(table: Table, columns: readonly Column[]): void {
  const require = (name: string, holds: (value: number, column: Column) => boolean): void => {
    const index = columns.findIndex((one) => one.name === name);
    const column = columns[index];
    if (!column || !table.column(index).every((value) => holds(value, column)))
      throw new Mismatch(`the column ${name} is missing or has an invalid value`);
  };
  if (!columns.some(({ name }) => name === 'template')) throw new Mismatch('no column template');
  for (const name of COUNTS) require(name, isCount);
  for (const name of NUMBERS) require(name, Number.isFinite);
  for (const name of WORDS) require(name, (value, { words }) => words?.[value] !== undefined);
  const perLayer = table.values.subarray(columns.length * table.steps);
  if (!perLayer.every(Number.isFinite)) throw new Mismatch('a value of a layer is not a number');
}

class StepRow {
  readonly table: Table;
  readonly at: number;

  constructor(table: Table, at: number) {
    this.table = table;
    this.at = at;
  }

  get layers(): StepSummary['layers'] {
    return { ns: this.table.layersOf(this.at, 0), bytes: this.table.layersOf(this.at, 1) };
  }
}

// The class of rows with these columns. All pages have the same, so that the code that reads rows
// sees one class.
let made: { readonly key: string; readonly Row: typeof StepRow } | null = null;

function rowOf(columns: readonly Column[]): typeof StepRow {
  const key = JSON.stringify(columns);
  if (made?.key === key) return made.Row;
  class Row extends StepRow {}
  columns.forEach(({ name, words, flag }, index) => {
    const valueOf = ({ table, at }: StepRow): number => table.values[index * table.steps + at] ?? 0;
    const read = words
      ? (row: StepRow) => words[valueOf(row)] ?? null
      : flag
        ? (row: StepRow) => valueOf(row) !== 0
        : (row: StepRow) => {
            const value = valueOf(row);
            return Number.isNaN(value) ? null : value;
          };
    Object.defineProperty(Row.prototype, name, {
      get(this: StepRow) {
        return read(this);
      },
      enumerable: true,
    });
  });
  made = { key, Row };
  return Row;
}
