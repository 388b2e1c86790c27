import { describe, expect, it } from 'vitest';
import { layoutGraph } from '../../../../src/graph/layout';
import { layoutGraphOf, sceneOf } from '../../../../src/graph/scene';
import { differences, pairGraph, type GraphSide } from '../../../../src/panels/compare/graphs';
import { llamaLayer } from '../../graph/graphs';

const LAYERS = 8;
const CROSSES: Readonly<Record<string, number>> = { cross_layer_input: -1, cross_layer_output: 1 };

// Each op has its place in the execution order as its value, times `by`.
function side(layer: number, by: number, without: readonly string[] = []): GraphSide {
  const { nodes, edges } = llamaLayer(layer, LAYERS);
  const gone = new Set(nodes.filter(({ name }) => without.includes(name)).map(({ tensor }) => tensor)); // prettier-ignore
  const graph = {
    layer,
    // What crosses the border of the layer is of its neighbour.
    nodes: nodes.filter(({ tensor }) => !gone.has(tensor)).map((node) => ({ ...node, layer: node.layer === null ? null : layer + (CROSSES[node.category] ?? 0) })), // prettier-ignore
    edges: edges.filter(({ from, to }) => !gone.has(from) && !gone.has(to)),
  };
  const ops = graph.nodes.filter(({ executed_op: op }) => op !== null).toSorted((a, b) => (a.executed_op ?? 0) - (b.executed_op ?? 0)); // prettier-ignore
  return { graph, rows: ops.map(({ name, executed_op: op }) => ({ name, value: by * ((op ?? 0) + 1) })) }; // prettier-ignore
}

describe('the graph of both sides', () => {
  it('has the nodes of two layers once, with the values of both', () => {
    const [left, right] = [side(3, 10), side(5, 100)];
    const { graph, nodes } = pairGraph(left, right);
    expect(nodes.flatMap(({ node, on }) => (on === 'both' ? [] : [node.name]))).toEqual([]);
    expect(nodes).toHaveLength(left.graph.nodes.length);
    expect(graph.edges).toHaveLength(left.graph.edges.length);
    for (const { node, left: mine, right: other } of nodes) {
      const own = node.executed_op;
      expect([node.name, mine]).toEqual([node.name, own === null ? null : 10 * (own + 1)]);
      // Both layers have the same ops in the same order.
      expect(other).toBe(mine === null ? null : 10 * mine);
    }
    expect(differences(nodes).some((by) => by > 0)).toBe(true);
  });

  it('names what only one side has, beside its neighbours', () => {
    const { graph, nodes } = pairGraph(side(3, 1, ['ffn_gate-3']), side(3, 1, ['attn_norm-3']));
    const only = (side: string) => nodes.flatMap(({ node, on }) => (on === side ? [node.name] : [])); // prettier-ignore
    expect(only('left')).toEqual(['attn_norm-3']);
    expect(only('right')).toEqual(['ffn_gate-3']);
    const at = (name: string): number => nodes.findIndex(({ node }) => node.name === name);
    expect(at('ffn_gate-3')).toBe(at('blk.3.ffn_gate.weight') + 1);
    // Both keep their edges.
    const isEdge = (from: string, to: string): boolean => graph.edges.some((edge) => edge.from === at(from) && edge.to === at(to)); // prettier-ignore
    expect(isEdge('attn_norm-3', 'Qcur-3')).toBe(true);
    expect(isEdge('blk.3.ffn_gate.weight', 'ffn_gate-3')).toBe(true);
    const by = differences(nodes);
    expect(by[at('attn_norm-3')]).toBeLessThan(0);
    expect(by[at('ffn_gate-3')]).toBeGreaterThan(0);
  });

  it('of a side with itself differs nowhere', () => {
    const { nodes } = pairGraph(side(2, 7), side(2, 7));
    expect(nodes.every(({ on, left, right }) => on === 'both' && left === right)).toBe(true);
    expect([...differences(nodes)].filter((by) => by !== 0 && !Number.isNaN(by))).toEqual([]);
  });

  it('has no circle, even if the sides have two nodes in the opposite order', () => {
    const swapped = (by: 1 | -1): GraphSide => {
      const { graph, rows } = side(1, 1);
      const [a, b] = ['Qcur-1', 'Kcur-1'].map((name) => graph.nodes.find((node) => node.name === name)?.tensor ?? 0); // prettier-ignore
      const edge = { from: by === 1 ? (a ?? 0) : (b ?? 0), to: by === 1 ? (b ?? 0) : (a ?? 0), cross_layer: false }; // prettier-ignore
      return { graph: { ...graph, edges: [...graph.edges, edge] }, rows };
    };
    const [left, right] = [swapped(1), swapped(-1)];
    const { graph } = pairGraph(left, right);
    expect(graph.edges).toHaveLength(left.graph.edges.length);
    const layout = layoutGraph(layoutGraphOf(sceneOf(graph)));
    expect(layout.height).toBeGreaterThan(0);
  });
});
