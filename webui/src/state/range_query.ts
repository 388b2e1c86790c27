// The range that was brushed in the map, as parameters of the REST routes that sum over accesses.
import type { PictureQuery } from '../net/types';
import { parseFilter, restFilter } from './filter';
import type { AxisRange, PhaseFilter, RangeFilter, View } from './view';

// The parameters that such routes share.
export type SumQuery = Pick<
  PictureQuery,
  | 'phase'
  | 'from_token'
  | 'to_token'
  | 'from_step'
  | 'to_step'
  | 'from_ns'
  | 'to_ns'
  | 'layers'
  | 'op'
  | 'tensor'
  | 'component'
  | 'kind'
  | 'source'
>;

// Layer axes have a last row for the ops without a layer.
export function layersText({ from, to }: AxisRange, layers: number): string {
  const last = Math.min(to, layers) - 1;
  const numbers = from > last ? [] : from === last ? [String(from)] : [`${from}-${last}`];
  return [...numbers, ...(to > layers ? ['outside'] : [])].join(',');
}

// The query of a phase and a range. `honoured` lists the axes of the range that can be parameters.
export function sumQuery(
  phase: PhaseFilter,
  range: RangeFilter | null,
  layers: number,
): { readonly query: SumQuery; readonly honoured: readonly string[] } {
  let query: SumQuery = phase === 'all' ? {} : { phase };
  const honoured: string[] = [];
  for (const part of [range?.x, range?.y]) {
    if (!part) continue;
    const { axis, from, to } = part;
    if (axis === 'token') query = { ...query, from_token: from, to_token: to };
    else if (axis === 'step') query = { ...query, from_step: from, to_step: to };
    else if (axis === 'time') query = { ...query, from_ns: from, to_ns: to };
    else if (axis === 'layer' && layers > 0) query = { ...query, layers: layersText(part, layers) };
    else continue;
    honoured.push(axis);
  }
  return { query, honoured };
}

// The query of everything that the view selects: phase, range and filter.
export function filteredSums(
  view: Pick<View, 'phase' | 'range' | 'filter'>,
  layers: number,
): { readonly query: SumQuery; readonly missing: readonly string[] } {
  const terms = restFilter(parseFilter(view.filter), layers);
  const { query, honoured } = sumQuery(view.phase, view.range, layers);
  const lost = [view.range?.x, view.range?.y].flatMap((part) =>
    part && !honoured.includes(part.axis) ? [`range of ${part.axis.replace('_', ' ')}`] : [],
  );
  return {
    query: { ...terms.query, ...query },
    missing: [...terms.missing.map(({ text }) => text), ...lost],
  };
}
