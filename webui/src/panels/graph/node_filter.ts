// Which nodes of a graph the filter and the brushed range select. A box of the model has only the layer
// and the component of its nodes. Pure functions.
import type { Item } from '../../graph/scene';
import { isNodeTerm, nodeMatches, parseFilter } from '../../state/view/filter';
import { opsInRange } from '../../state/view/step_range';
import type { View } from '../../state/view/view';

// Null: all nodes.
export function nodeFilter(
  view: Pick<View, 'filter' | 'range'>,
  layers: number,
): ((item: Item) => boolean) | null {
  const terms = parseFilter(view.filter).filter(isNodeTerm);
  const { range } = view;
  const hasLayers = [range?.x, range?.y].some((part) => part?.axis === 'layer');
  if (terms.length === 0 && !hasLayers) return null;
  const { has } = opsInRange(range, layers);
  return ({ node, group }) =>
    terms
      .filter(({ key }) => !group || key === 'layer' || key === 'component')
      .every((term) => nodeMatches(node, term)) &&
    has({ layer: group ? group.layer : node.layer, begin_ns: null, end_ns: null });
}

// What the graph of a step cannot honour.
export function unusedOfGraph(
  view: Pick<View, 'filter' | 'range'>,
  layers: number,
): readonly string[] {
  const words = parseFilter(view.filter).flatMap((term) => (isNodeTerm(term) ? [] : [term.text]));
  const isTime = [view.range?.x, view.range?.y].some((part) => part?.axis === 'time');
  return [...words, ...opsInRange(view.range, layers).unused, ...(isTime ? ['range of time'] : [])];
}
