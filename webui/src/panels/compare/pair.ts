// The two sides of a comparison: what each asks, and the rows of both. Pure functions.
import type { ChartTable } from '../../charts/table';
import { plural } from '../../format';
import type { Breakdown, BreakdownRow } from '../../net/types';
import { bothOf } from '../../state/view/range_query';
import type { SumQuery } from '../../state/view/sum_query';
import type { ComparedValue } from '../inspector/compare';
import type { CompareOptions, Per } from './options';

// How many steps and tokens the sums of a side are of. Times are those of TimedSteps.
export interface Counts {
  readonly steps: number;
  readonly tokens: number;
}

// The left and the right side; `filter`: of all views.
export function sidesOf(options: CompareOptions, filter: SumQuery): readonly [SumQuery, SumQuery] {
  const { of, a, b, phase } = options;
  const side = (index: number, right: boolean): SumQuery => {
    switch (of) {
      case 'sessions':
      case 'values':
        return { phase };
      case 'phases':
        return { phase: right ? 'generate' : 'prompt' };
      case 'layers':
        return { phase, layers: String(index) };
      case 'steps':
        return { from_step: index, to_step: index + 1 };
      case 'tokens':
        return { from_token: index, to_token: index + 1 };
    }
  };
  return [bothOf(side(a, false), filter), bothOf(side(b, true), filter)];
}

// A token is asked for alone: its sums are its own, whatever the step has.
export const divisor = (counts: Counts, { of, per }: CompareOptions): number =>
  of === 'tokens' ? 1 : Math.max(1, per === 'token' ? counts.tokens : counts.steps);

export const perOf = ({ of, per }: CompareOptions): Per => (of === 'tokens' ? 'token' : per);

// Times are those of a usual step: sums depend on single slow steps. A step or a token is one already.
export const hasMedians = ({ of }: CompareOptions): boolean => of !== 'steps' && of !== 'tokens';

// Which steps the times of a side are of; null: of all.
export type TimedSteps = NonNullable<Breakdown['times']>;

export interface Side {
  readonly step: number | null; // the last one
  readonly times: TimedSteps | null;
  readonly rows: readonly BreakdownRow[];
  readonly sums: Breakdown['sums'];
  readonly counts: Counts;
}

export interface PairRow {
  readonly name: string;
  readonly left: number | null; // null: this side has no such row, or did not measure it
  readonly right: number | null;
  readonly isUnmeasured?: boolean; // a side has the row without a value
}

// null: not measured. What only one side has is 0 on the other one.
export const differenceOf = ({ left, right, isUnmeasured }: PairRow): number | null =>
  isUnmeasured === true ? null : (right ?? 0) - (left ?? 0);

const amountOf = (row: PairRow): number => Math.abs(differenceOf(row) ?? 0);

const sumOf = ({ all }: BreakdownRow, value: ComparedValue): number =>
  value === 'time'
    ? all.time_ns
    : value === 'bytes'
      ? all.bytes_read + all.bytes_written
      : all.reads + all.writes;

// Whether values are times of the counted steps, which the server chose.
export const isTimed = (options: CompareOptions): boolean =>
  options.value === 'time' && hasMedians(options);

// Of a row, per token or step; null: not measured.
export function valueOf(
  row: BreakdownRow,
  { counts }: Pick<Side, 'counts'>,
  options: CompareOptions,
): number | null {
  if (isTimed(options))
    return row.step_ns?.[perOf(options) === 'token' ? 'per_token' : 'median'] ?? null;
  return sumOf(row, options.value) / divisor(counts, options);
}

// Rows of both sides by their names, per token or step: the largest difference first, layers in
// their order. `named`: the name that both sides share.
export function pairRows(
  left: Side,
  right: Side,
  options: CompareOptions,
  named: (name: string, side: 'left' | 'right') => string,
): { readonly total: PairRow; readonly rows: readonly PairRow[] } {
  const valuesOf = (side: Side, which: 'left' | 'right'): Map<string, number | null> => {
    const values = new Map<string, number | null>();
    for (const row of side.rows) {
      const name = named(row.name, which);
      const value = valueOf(row, side, options);
      const before = values.get(name) ?? null;
      values.set(name, value === null ? before : (before ?? 0) + value);
    }
    return values;
  };
  const [a, b] = [valuesOf(left, 'left'), valuesOf(right, 'right')];
  // Of a side without a counted step nothing is known.
  const isKnown = (side: Side): boolean => !isTimed(options) || side.times?.steps !== 0;
  const areKnown = isKnown(left) && isKnown(right);
  const pairOf = (
    name: string,
    mine: number | null | undefined,
    other: number | null | undefined,
  ): PairRow => ({
    name,
    left: mine ?? null,
    right: other ?? null,
    ...(mine === null || other === null || !areKnown ? { isUnmeasured: true } : {}),
  });
  const rows = [...new Set([...a.keys(), ...b.keys()])].map((name) =>
    pairOf(name, a.get(name), b.get(name)),
  );
  const total = pairOf('all', valueOf(left.sums, left, options), valueOf(right.sums, right, options)); // prettier-ignore
  if (options.by !== 'layer') rows.sort((x, y) => amountOf(y) - amountOf(x));
  return { total, rows };
}

// The name of a tensor or an op without its layer: "blk.3.attn_q.weight", "Qcur-3", "cache_k_l3".
export const withoutLayer = (name: string, layer: number): string =>
  name.replace(`blk.${layer}.`, 'blk.*.').replace(new RegExp(`(-|_l)${layer}(?=\\D|$)`), '$1*');

// A row without a value on both sides is the same, if the whole was measured.
export const isSame = (rows: readonly PairRow[], total: PairRow): boolean =>
  differenceOf(total) === 0 && rows.every((row) => row.left === row.right);

const MAX_DRAWN = 24;
export const UNIT_OF = { time: 'ns', bytes: 'bytes', accesses: 'number' } as const;

// All layers; of the others, those with the largest differences.
export const drawnRows = (rows: readonly PairRow[], key: ChartTable['key']): readonly PairRow[] =>
  key.of === 'layer' ? rows : rows.slice(0, MAX_DRAWN);

// Both sides on one axis. `key`: what a row is.
export function sidesTable(
  rows: readonly PairRow[],
  key: ChartTable['key'],
  names: readonly [string, string],
  value: ComparedValue,
): ChartTable {
  const drawn = drawnRows(rows, key);
  const unit = UNIT_OF[value];
  return {
    key,
    keys: drawn.map(({ name }) => name),
    series: [
      { name: names[0], unit, values: drawn.map(({ left }) => left) },
      { name: names[1], unit, values: drawn.map(({ right }) => right) },
    ],
    more: [{ name: `${names[1]} − ${names[0]}`, unit, values: drawn.map(differenceOf) }],
  };
}

// Their difference: what each side has more, on one axis.
export function differenceTable(
  rows: readonly PairRow[],
  key: ChartTable['key'],
  names: readonly [string, string],
  value: ComparedValue,
): ChartTable {
  const drawn = drawnRows(rows, key);
  const unit = UNIT_OF[value];
  const more = (sign: 1 | -1): readonly (number | null)[] =>
    drawn.map((row) => {
      const more = sign * (differenceOf(row) ?? 0);
      return more > 0 ? more : null;
    });
  return {
    key,
    keys: drawn.map(({ name }) => name),
    series: [
      { name: `more in ${names[0]}`, unit, values: more(-1) },
      { name: `more in ${names[1]}`, unit, values: more(1) },
    ],
  };
}

// Whether the times of a side are not those of the model alone.
export const isDisturbed = ({ times }: Side): boolean =>
  times !== null && times.steps > 0 && times.verdict !== null && times.verdict !== 'clean';

const LEFT_OUT = ['learned', 'interrupted', 'first', 'disturbed'] as const;

export const countsAll = (times: TimedSteps): boolean => LEFT_OUT.every((why) => times[why] === 0);

// Which steps the times of a side are of: "this session: 1 of 79 generate steps (left out: 78
// disturbed)".
export function countedText(name: string, times: TimedSteps): string {
  const left = LEFT_OUT.filter((why) => times[why] > 0);
  const all = left.reduce((sum, why) => sum + times[why], times.steps);
  const others = left.length > 0 ? ` (left out: ${left.map((why) => `${times[why]} ${why}`).join(', ')})` : ''; // prettier-ignore
  // The server says why, and what to do.
  if (times.steps === 0) return `${name}: ${times.text.replace(/^Times: /, '').replace(/\.$/, '')}`;
  const isDisturbed = times.verdict !== null && times.verdict !== 'clean';
  const counted = left.length > 0 ? `${times.steps} of ${plural(all, `${times.phase} step`)}` : plural(all, `${times.phase} step`); // prettier-ignore
  return `${name}: ${counted}${others}${isDisturbed ? ', disturbed' : ''}`;
}

const MAX_CELL = 120; // characters
const BEFORE = 24;

// Of a long text, the part with the first difference of both: the beginnings of two prompts may be the
// same for pages.
export function aroundDifference(text: string, left: string, right: string): string {
  if (text.length <= MAX_CELL) return text;
  let same = 0;
  while (same < left.length && same < right.length && left[same] === right[same]) same += 1;
  const from = Math.max(0, Math.min(same - BEFORE, text.length - MAX_CELL));
  const to = from + MAX_CELL;
  return `${from > 0 ? '…' : ''}${text.slice(from, to)}${to < text.length ? '…' : ''}`;
}
