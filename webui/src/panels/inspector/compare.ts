// A comparison of two tokens or layers: its request, and what its rows show. Pure functions.
import { formatBytes, formatCount, formatNs } from '../../format';
import type { ComparedSums, WithinQuery } from '../../net/types';
import { filteredSums } from '../../state/view/range_query';
import type { SumQuery } from '../../state/view/sum_query';
import type { Compared, View } from '../../state/view/view';

export const COMPARED_VALUES = ['time', 'bytes', 'accesses'] as const;
export type ComparedValue = (typeof COMPARED_VALUES)[number];

// With names that set the time apart from that of a step, which begins and ends with waiting.
export const VALUE_OPTIONS: readonly { value: ComparedValue; text: string; hint?: string }[] =
  COMPARED_VALUES.map((value) =>
    value === 'time'
      ? { value, text: 'op time', hint: 'The sum of the op times, without waiting between ops' }
      : { value, text: value },
  );

// The option of the inspector, in links "diff:bytes". The default is omitted.
export function valueIn(text: string | undefined): ComparedValue {
  const words = (text ?? '').split(',');
  return COMPARED_VALUES.find((value) => words.includes(`diff:${value}`)) ?? 'time';
}

export const comparisonText = (value: ComparedValue): string =>
  value === 'time' ? '' : `diff:${value}`;

export const indexOf = (one: Compared): number => (one.kind === 'token' ? one.token : one.layer);
export const itemOf = (kind: Compared['kind'], index: number): Compared =>
  kind === 'token' ? { kind, token: index } : { kind, layer: index };

// The filter of all views applies to both sides; phase and range only to layers.
export function compareQuery(
  left: Compared,
  right: Compared,
  view: Pick<View, 'phase' | 'range' | 'filter'>,
  layers: number,
): WithinQuery {
  if (left.kind === 'token') {
    const { query } = filteredSums({ phase: 'all', range: null, filter: view.filter }, layers);
    return { ...query, left_token: indexOf(left), right_token: indexOf(right) };
  }
  return {
    ...layerSums(view, layers),
    left_layer: indexOf(left),
    right_layer: indexOf(right),
  };
}

// What counts of a compared layer: what the view selects, whatever layers it selects.
export function layerSums(
  view: Pick<View, 'phase' | 'range' | 'filter'>,
  layers: number,
): SumQuery {
  const { query } = filteredSums(view, layers);
  return Object.fromEntries(Object.entries(query).filter(([name]) => name !== 'layers'));
}

// The name of a row of two layers: the server writes the distance of another layer as a number,
// "l_out (layer -1)".
export const relativeName = (name: string): string =>
  name.replace(/ \(layer ([+-])(\d+)\)$/, (_, sign: string, distance: string) => {
    const layers = distance === '1' ? 'layer' : `${distance} layers`;
    return ` (${layers} ${sign === '-' ? 'before' : 'after'})`;
  });

type Figures = NonNullable<ComparedSums['left']>;

const numberOf = (figures: Figures, value: ComparedValue): number =>
  value === 'time'
    ? (figures.time_ns ?? 0)
    : value === 'bytes'
      ? (figures.bytes_read ?? 0) + (figures.bytes_written ?? 0)
      : (figures.accesses ?? 0);

const format = (n: number, value: ComparedValue): string =>
  value === 'time'
    ? formatNs(n)
    : value === 'bytes'
      ? formatBytes(Math.round(n))
      : formatCount(Math.round(n * 100) / 100);

// The number of first rows that matter. `amounts`: the differences, the largest first. Those below a
// hundredth of the largest one are left out: their bars would not be seen.
export function rowsThatMatter(amounts: readonly number[]): number {
  const least = Math.abs(amounts[0] ?? 0) / 100;
  const end = amounts.findIndex((amount) => amount === 0 || Math.abs(amount) < least);
  return end < 0 ? amounts.length : end;
}

export interface ComparedText {
  readonly left: string; // a dash: only the other side has it
  readonly right: string;
  readonly difference: string; // right minus left, with its sign
  readonly amount: number;
}

export function comparedText(
  { left, right, difference }: ComparedSums,
  value: ComparedValue,
): ComparedText {
  const side = (figures: Figures | null): string =>
    figures ? format(numberOf(figures, value), value) : '–';
  const amount = difference ? numberOf(difference, value) : 0;
  return {
    left: side(left),
    right: side(right),
    difference: signed(amount, value),
    amount,
  };
}

export function comparedNumbers(
  left: number,
  right: number,
  value: ComparedValue,
): Omit<ComparedText, 'amount'> {
  return {
    left: format(left, value),
    right: format(right, value),
    difference: signed(right - left, value),
  };
}

function signed(amount: number, value: ComparedValue): string {
  const sign = amount > 0 ? '+' : amount < 0 ? '−' : '';
  return sign + format(Math.abs(amount), value);
}
