// The graph of the whole model: the nodes of a layer and component are one box until it is opened.
// Pure functions.
import { EVERY_GROUP } from './graph_options';
import { componentName } from '../format';
import type { Category, Graph, GraphEdge, GraphNode } from '../net/types';

export interface Group {
  readonly key: string; // layer_component: "3_ffn", "x_output" outside of layers
  readonly layer: number | null;
  readonly component: string;
  readonly tensors: number;
  readonly ops: readonly number[]; // executed ops whose output is in the group
  readonly weights: number;
  readonly weightBytes: number;
}

export interface WholeGraph {
  readonly nodes: readonly GraphNode[]; // groups have negative tensors
  readonly edges: readonly GraphEdge[];
  readonly groups: ReadonlyMap<number, Group>; // by tensor
  // Position of each node in execution order, by tensor. An edge to an earlier node is drawn
  // upwards: between groups there may be cycles.
  readonly position: ReadonlyMap<number, number>;
}

export const groupKey = (layer: number | null, component: string): string =>
  `${layer ?? 'x'}_${component}`;

export const isOpen = (open: ReadonlySet<string>, key: string): boolean =>
  open.has(EVERY_GROUP) !== open.has(key);

// `open`: keys of the groups that are opened, and EVERY_GROUP.
export function wholeGraph({ nodes, edges }: Graph, open: ReadonlySet<string>): WholeGraph {
  const at = new Map<string, number>(); // by layer, component and category: the group's tensor
  const groups = new Map<number, Group & { ops: number[]; tensors: number }>();
  const shown: GraphNode[] = [];
  const boxOf = new Map<number, number>(); // by tensor: the node that shows it
  const position = new Map<number, number>();
  const categories = new Map<number, Category>();
  nodes.forEach((node, index) => {
    const key = groupKey(node.layer, node.component);
    if (isOpen(open, key)) {
      shown.push(node);
      boxOf.set(node.tensor, node.tensor);
      position.set(node.tensor, index);
      return;
    }
    const id = `${key} ${node.category}`;
    const known = at.get(id);
    const tensor = known ?? -1 - at.size;
    at.set(id, tensor);
    boxOf.set(node.tensor, tensor);
    const isWeight = node.kind === 'weight';
    const before = groups.get(tensor);
    groups.set(tensor, {
      key,
      layer: node.layer,
      component: node.component,
      tensors: (before?.tensors ?? 0) + 1,
      ops: before?.ops ?? [],
      weights: (before?.weights ?? 0) + Number(isWeight),
      weightBytes: (before?.weightBytes ?? 0) + (isWeight ? node.size : 0),
    });
    const ops = groups.get(tensor)?.ops;
    if (node.executed_op !== null && ops?.at(-1) !== node.executed_op) ops?.push(node.executed_op);
    // A group is where its first computed node is: its weights may be listed much earlier.
    const place = position.get(tensor);
    if (place === undefined || (ops?.length === 1 && node.executed_op === ops[0]))
      position.set(tensor, index);
    if (known === undefined) categories.set(tensor, node.category);
  });
  for (const [tensor, group] of groups) {
    shown.push(boxNode(tensor, group, categories.get(tensor) ?? 'layer'));
  }
  return { nodes: shown, edges: mergedEdges(edges, boxOf), groups, position };
}

function boxNode(tensor: number, group: Group, category: Category): GraphNode {
  const where = group.layer === null ? '' : ` ${group.layer}`;
  return {
    tensor,
    node: group.ops.length > 0 ? -1 : null,
    executed_op: null,
    op: null,
    name: `${componentName(group.component)}${where}`,
    label: '',
    type: '',
    shape: [],
    size: group.weightBytes,
    kind: group.ops.length > 0 ? 'intermediate' : 'input',
    source: 'compute',
    layer: group.layer,
    component: group.component,
    role: '',
    category,
    file: null,
  } as unknown as GraphNode;
}

function mergedEdges(
  edges: readonly GraphEdge[],
  boxOf: ReadonlyMap<number, number>,
): readonly GraphEdge[] {
  const merged = new Map<string, GraphEdge>();
  for (const edge of edges) {
    const [from, to] = [boxOf.get(edge.from), boxOf.get(edge.to)];
    if (from === undefined || to === undefined || from === to) continue;
    const key = `${from} ${to}`;
    const known = merged.get(key);
    merged.set(key, { from, to, cross_layer: edge.cross_layer || known?.cross_layer === true });
  }
  return [...merged.values()];
}
