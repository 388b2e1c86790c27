// The description of a node, for the tooltip.
import {
  exactBytes,
  exactNs,
  formatBytes,
  formatNs,
  formatShape,
  kindName,
  partName,
} from '../../format';
import type { Item } from '../../graph/scene';
import type { TipText } from '../../ui/tip';

// `ns`: the time of its op; 0: unknown.
export function tipText({ node }: Item, ns: number): TipText {
  const layer = node.layer === null ? 'none (embedding or output)' : String(node.layer);
  return {
    title: node.name,
    head: node.op ?? kindName(node.kind, node.role),
    lines: [
      ...(node.label === '' ? [] : [['meaning', node.label] as const]),
      ['shape', `${node.type} ${formatShape(node.shape)}`],
      ['size', `${formatBytes(node.size)} (${exactBytes(node.size)})`],
      ['layer', layer],
      ['component', partName(node.component, node.role)],
      ['category', node.category.replaceAll('_', ' ')],
      ...(ns > 0 ? [['time', `${formatNs(ns)} (${exactNs(ns)})`] as const] : []),
    ],
  };
}
