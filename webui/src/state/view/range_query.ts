// The range that was brushed in the map, as parameters of the REST routes that sum over accesses.
import { formatNs } from '../../format';
import { parseFilter, restFilter } from './filter';
import type { SumQuery } from './sum_query';
import type { AxisRange, PhaseFilter, RangeFilter, View } from './view';

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
    query: bothOf(terms.query, query),
    missing: [...terms.missing.map(({ text }) => text), ...lost],
  };
}

const RANGES = [
  ['from_token', 'to_token'],
  ['from_step', 'to_step'],
  ['from_ns', 'to_ns'],
] as const;

// What both queries select. Conditions that only one of them has are added up.
export function bothOf(a: SumQuery, b: SumQuery): SumQuery {
  let both: SumQuery = { ...a, ...b };
  for (const [from, to] of RANGES) {
    const begin = Math.max(a[from] ?? 0, b[from] ?? 0);
    const end = Math.min(a[to] ?? Infinity, b[to] ?? Infinity);
    if (end < Infinity) both = { ...both, [from]: begin, [to]: Math.max(begin, end) };
    else if (begin > 0) both = { ...both, [from]: begin };
  }
  const layers = a.layers !== undefined && b.layers !== undefined ? common(a.layers, b.layers) : null; // prettier-ignore
  const isNothing = layers === '' || (a.phase && b.phase && a.phase !== b.phase);
  if (layers) both = { ...both, layers };
  return isNothing ? { ...both, from_step: 0, to_step: 0 } : both;
}

// The layers that are in both lists: "0,3-5,outside".
function common(a: string, b: string): string {
  const listed = (list: string): readonly string[] =>
    list.split(',').flatMap((part) => {
      const [from, to] = part.split('-').map(Number);
      if (from === undefined || Number.isNaN(from)) return [part];
      return Array.from({ length: (to ?? from) - from + 1 }, (_, i) => String(from + i));
    });
  const others = new Set(listed(b));
  return listed(a)
    .filter((one) => others.has(one))
    .join(',');
}

// What the sums of a view are of: "generate, tokens 20 – 39, layer:2"; empty: everything. Only the
// parts that `filteredSums` honours.
export function scopeText(view: Pick<View, 'phase' | 'range' | 'filter'>, layers: number): string {
  const { missing } = filteredSums(view, layers);
  const words = parseFilter(view.filter).map(({ text }) => text);
  const parts = [view.range?.x, view.range?.y].flatMap((part) => (part ? [part] : []));
  return [
    view.phase === 'all' ? '' : view.phase,
    ...parts
      .filter(({ axis }) => !missing.includes(`range of ${axis.replace('_', ' ')}`))
      .map((part) => rangeName(part, layers)),
    words.filter((word) => !missing.includes(word)).join(' '),
  ]
    .filter(Boolean)
    .join(', ');
}

function rangeName(part: AxisRange, layers: number): string {
  const { axis, from, to } = part;
  if (axis === 'time') return `${formatNs(from)} – ${formatNs(to)}`;
  if (axis === 'layer') return `layers ${layersText(part, layers).replace('-', ' – ')}`;
  return to - from === 1 ? `${axis} ${from}` : `${axis}s ${from} – ${to - 1}`;
}
