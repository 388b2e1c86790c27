// A layer of both sides as one graph: nodes with the same op and name are one node, whatever layer they are
// of, and each knows what it cost on both sides. Pure functions.
import type { GraphEdge, GraphNode, LayerSubgraph } from '../../net/types';
import type { Scene } from '../../graph/scene';
import { withoutLayer } from './pair';

// `rows`: the ops of the layer by the names of their outputs, in execution order; null: not measured.
export interface GraphSide {
  readonly graph: Pick<LayerSubgraph, 'layer' | 'nodes' | 'edges'>;
  readonly rows: readonly { readonly name: string; readonly value: number | null }[];
}

export type On = 'both' | 'left' | 'right';

export interface PairNode {
  readonly node: GraphNode; // of the left side, if it has it; its tensor is its index in the graph of both
  readonly on: On;
  readonly left: number | null; // null: it executes no op, or has no value
  readonly right: number | null;
}

export interface PairGraph {
  readonly graph: Scene['graph'];
  readonly nodes: readonly PairNode[];
}

interface Keyed {
  readonly key: string;
  readonly node: GraphNode;
  readonly value: number | null;
}

// ggml calls an output without a name "node_55", by its place in the graph.
const sharedName = ({ name, layer }: GraphNode): string =>
  (layer === null ? name : withoutLayer(name, layer)).replace(/^node_\d+/, 'node');

// The distance to the shown layer, the op, the name without the layer, and which one of the same.
function keyed({ graph: { layer, nodes }, rows }: GraphSide): readonly Keyed[] {
  const values = valuesOf(nodes, rows);
  const counts = new Map<string, number>();
  return nodes.map((node, i) => {
    const from = node.layer === null ? '' : node.layer - layer;
    const same = `${from} ${node.op ?? node.kind} ${sharedName(node)}`;
    const count = (counts.get(same) ?? 0) + 1;
    counts.set(same, count);
    return { key: `${same} ${count}`, node, value: values[i] ?? null };
  });
}

// An op is that of its last node: the N-th one with a name has the N-th row with it.
function valuesOf(
  nodes: readonly GraphNode[],
  rows: GraphSide['rows'],
): readonly (number | null)[] {
  const last = new Map<number, number>();
  nodes.forEach(({ executed_op: op, node }, i) => {
    const before = op === null ? null : nodes[last.get(op) ?? -1]?.node;
    if (op !== null && (before === undefined || (before ?? 0) < (node ?? 0))) last.set(op, i);
  });
  const queues = new Map<string, (number | null)[]>();
  for (const { name, value } of rows) {
    const queue = queues.get(name);
    if (queue) queue.push(value);
    else queues.set(name, [value]);
  }
  const values = nodes.map((): number | null => null);
  for (const [, i] of [...last].sort(([a], [b]) => a - b))
    values[i] = queues.get(nodes[i]?.name ?? '')?.shift() ?? null;
  return values;
}

export function pairGraph(left: GraphSide, right: GraphSide): PairGraph {
  const [mine, others] = [keyed(left), keyed(right)];
  const found = new Map(others.map((one) => [one.key, one]));
  const known = new Set(mine.map(({ key }) => key));
  // What only the right side has follows what it follows there.
  const after = new Map<string, Keyed[]>();
  let place = '';
  for (const one of others) {
    if (known.has(one.key)) place = one.key;
    else after.set(place, [...(after.get(place) ?? []), one]);
  }
  const nodes: (PairNode & { readonly key: string })[] = [];
  const put = (key: string, node: GraphNode, on: On, l: number | null, r: number | null): void => {
    nodes.push({ key, node: { ...node, tensor: nodes.length }, on, left: l, right: r });
  };
  const putRight = (key: string): void => {
    for (const one of after.get(key) ?? []) put(one.key, one.node, 'right', null, one.value);
  };
  putRight('');
  for (const { key, node, value } of mine) {
    const other = found.get(key);
    put(key, node, other ? 'both' : 'left', value, other?.value ?? null);
    putRight(key);
  }
  const at = new Map(nodes.map(({ key }, i) => [key, i]));
  const graph = {
    layer: left.graph.layer,
    nodes: nodes.map(({ node }) => node),
    edges: edgesOf([edgesIn(left.graph, mine, at), edgesIn(right.graph, others, at)]),
  };
  return { graph, nodes };
}

function edgesIn(
  { edges }: GraphSide['graph'],
  nodes: readonly Keyed[],
  at: ReadonlyMap<string, number>,
): readonly GraphEdge[] {
  const place = new Map(nodes.map(({ key, node }) => [node.tensor, at.get(key)]));
  return edges.flatMap((edge) => {
    const [from, to] = [place.get(edge.from), place.get(edge.to)];
    return from === undefined || to === undefined ? [] : [{ ...edge, from, to }];
  });
}

// Without those that would make a circle: two graphs may have the same two nodes in another order.
function edgesOf(sides: readonly (readonly GraphEdge[])[]): readonly GraphEdge[] {
  const targets = new Map<number, number[]>();
  const reaches = (from: number, to: number, seen = new Set<number>()): boolean => {
    if (from === to) return true;
    if (seen.has(from)) return false;
    seen.add(from);
    return (targets.get(from) ?? []).some((next) => reaches(next, to, seen));
  };
  return sides.flat().filter(({ from, to }) => {
    const known = targets.get(from) ?? [];
    if (known.includes(to) || reaches(to, from)) return false;
    targets.set(from, [...known, to]);
    return true;
  });
}

// Right minus left; what only one side has is 0 on the other one. NaN: it has no value on a side that has it.
export function differences(nodes: readonly PairNode[]): Float64Array {
  return Float64Array.from(nodes, ({ on, left, right }) => {
    if (on === 'both') return left === null || right === null ? NaN : right - left;
    return on === 'left' ? -(left ?? NaN) : (right ?? NaN);
  });
}
