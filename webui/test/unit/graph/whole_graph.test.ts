import { describe, expect, it } from 'vitest';
import { decodeGraph, defaultGraph, encodeGraph } from '../../../src/graph/graph_options';
import { heatColours } from '../../../src/graph/heat';
import { luminance } from '../../../src/plane/colours';
import { layoutGraph } from '../../../src/graph/layout';
import { graphSvg } from '../../../src/graph/paint_svg';
import { laidOut, layoutGraphOf, sceneOf, valuesOf } from '../../../src/graph/scene';
import { wholeGraph } from '../../../src/graph/whole';
import { EVERY_GROUP } from '../../../src/graph/graph_options';
import type { Graph, GraphNode } from '../../../src/net/types';
import { byOp } from '../../../src/panels/graph/graph_values';

const node = (tensor: number, part: Partial<GraphNode>): GraphNode =>
  ({
    tensor,
    node: tensor,
    executed_op: tensor,
    op: 'ADD',
    name: `t${tensor}`,
    label: '',
    type: 'F32',
    shape: [4],
    size: 16,
    kind: 'intermediate',
    source: 'compute',
    layer: 0,
    component: 'ffn',
    role: '',
    category: 'layer',
    file: null,
    ...part,
  }) as unknown as GraphNode;
const weight = { node: null, executed_op: null, op: null, kind: 'weight', size: 100 } as const;

// norm -> attention -> norm -> ffn in each of two layers: the boxes norm and attention read each other.
const LAYERS = 2;
const NODES = Array.from({ length: LAYERS }, (_, layer) => {
  const at = 10 * layer;
  return [
    node(at, { layer, component: 'norm' }),
    node(at + 1, { layer, component: 'attention', ...weight }),
    node(at + 2, { layer, component: 'attention' }),
    node(at + 3, { layer, component: 'norm' }),
    node(at + 4, { layer, component: 'ffn' }),
  ];
}).flat();
const edge = (from: number, to: number) => ({ from, to, cross_layer: false });
const GRAPH = {
  step: null,
  template: 1,
  layers: LAYERS,
  nodes: NODES,
  edges: [
    ...[0, 10].flatMap((at) => [
      edge(at, at + 2),
      edge(at + 1, at + 2),
      edge(at + 2, at + 3),
      edge(at + 3, at + 4),
    ]),
    { from: 4, to: 10, cross_layer: true },
  ],
} as unknown as Graph;

describe('the graph of the model', () => {
  it('has a box per layer and component', () => {
    const { nodes, groups, edges } = wholeGraph(GRAPH, new Set());
    expect(nodes.map(({ name }) => name).toSorted()).toEqual([
      'attention 0', 'attention 1', 'ffn 0', 'ffn 1', 'norm 0', 'norm 1',
    ]); // prettier-ignore
    expect([...groups.values()][1]).toMatchObject({
      key: '0_attention', tensors: 2, ops: [2], weights: 1, weightBytes: 100,
    }); // prettier-ignore
    // norm and attention read each other in both layers.
    expect(edges).toHaveLength(2 * 3 + 1);
    expect(edges.filter(({ cross_layer }) => cross_layer)).toHaveLength(1);
  });

  it('opens a box in place', () => {
    const { nodes, groups } = wholeGraph(GRAPH, new Set(['0_norm']));
    expect(nodes.filter(({ tensor }) => tensor >= 0).map(({ name }) => name)).toEqual(['t0', 't3']);
    expect(groups.size).toBe(5);
  });

  it.each([[], ['0_norm'], ['0_norm', '0_attention', '1_ffn']])(
    'with %s opened is laid out without overlap, although boxes read each other',
    (...open) => {
      const whole = wholeGraph(GRAPH, new Set(open));
      const scene = sceneOf({ nodes: whole.nodes, edges: whole.edges, layer: -1 }, whole);
      const drawn = laidOut(scene, layoutGraph(layoutGraphOf(scene)));
      const boxes = scene.items.map(({ w, h }, i) => ({
        x: drawn.layout.x[i] ?? 0,
        y: drawn.layout.y[i] ?? 0,
        w,
        h,
      }));
      boxes.forEach((a, i) => {
        for (const b of boxes.slice(i + 1)) {
          const apart =
            a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
          expect(apart).toBe(true);
        }
      });
      // Each path starts at its source.
      scene.edges.forEach(({ from }, i) => {
        const x = (drawn.layout.x[from] ?? 0) + (scene.items[from]?.w ?? 0) / 2;
        expect(drawn.layout.paths[i]?.[0]).toBeCloseTo(x);
      });
      const values = valuesOf(
        scene,
        new Map([
          [0, 1],
          [2, 5],
          [3, 2],
        ]),
      );
      expect(values.reduce((sum, value) => sum + value, 0)).toBe(8);
    },
  );
});

describe('the whole model opened', () => {
  it('has all nodes and edges', () => {
    const whole = wholeGraph(GRAPH, new Set([EVERY_GROUP]));
    expect(whole.nodes.map(({ tensor }) => tensor)).toEqual(NODES.map(({ tensor }) => tensor));
    expect(whole.edges).toHaveLength(GRAPH.edges.length);
    expect(whole.groups.size).toBe(0);
  });
  it('has a box for each group that is closed again', () => {
    const whole = wholeGraph(GRAPH, new Set([EVERY_GROUP, '0_attention']));
    expect([...whole.groups.values()].map(({ key }) => key)).toEqual(['0_attention']);
    expect(whole.nodes).toHaveLength(NODES.length - 1);
  });
});

describe('the options of the graph', () => {
  it.each(['', 'model,heat:bytes,all,open:3_ffn.x_kv-cache,hide:output', 'list'])(
    '“%s” are read and written',
    (text) => {
      expect(encodeGraph(decodeGraph(text))).toBe(text);
    },
  );
  it('keep that every group is open, however many are closed', () => {
    const closed = Array.from({ length: 60 }, (_, i) => `${i}_ffn`);
    const { open } = decodeGraph(encodeGraph({ ...defaultGraph, form: 'model', open: [...closed, EVERY_GROUP] })); // prettier-ignore
    expect(open).toEqual([EVERY_GROUP, ...closed.slice(20)]);
  });
  it('are never invalid', () => {
    expect(decodeGraph('x,heat:y,hide:z,open:')).toEqual(defaultGraph);
  });
});

describe('the heat of the graph', () => {
  it('goes from the smallest to the largest value, with readable text', () => {
    const colours = heatColours(Float64Array.from([0, 1, 10, 100]));
    expect(colours[0]).toBeNull();
    expect(new Set(colours.map((colour) => colour?.fill)).size).toBe(4);
    for (const colour of colours) {
      if (!colour) continue;
      const rgb = (colour.fill.match(/\d+/g) ?? []).map(Number) as [number, number, number];
      const [text, back] = [colour.text === '#000000' ? 0 : 1, luminance(rgb)];
      const contrast = (Math.max(text, back) + 0.05) / (Math.min(text, back) + 0.05);
      expect(contrast).toBeGreaterThan(4.5);
    }
    expect(heatColours(Float64Array.from([0, 0]))).toEqual([null, null]);
  });
  it('assigns rows to ops by name, in order', () => {
    const sums = (time_ns: number) => ({ time_ns }) as never;
    const rows = [
      { name: 'Q', all: sums(1) },
      { name: 'Q', all: sums(2) },
      { name: 'out', all: sums(3) },
    ];
    const names = new Map([[2, 'Q'], [5, 'Q'], [4, 'K'], [9, 'out']]); // prettier-ignore
    expect([...byOp(rows, names, 'time')]).toEqual([[2, 1], [5, 2], [9, 3]]); // prettier-ignore
  });
});

describe('an exported graph', () => {
  it('is SVG with all boxes and escaped texts', () => {
    const whole = wholeGraph(GRAPH, new Set());
    const scene = sceneOf({ nodes: whole.nodes, edges: whole.edges, layer: -1 }, whole);
    const drawn = laidOut(scene, layoutGraph(layoutGraphOf(scene)));
    const colour = { layer: '#111', infrastructure: '#222', cross_layer_input: '#333', cross_layer_output: '#444', embedding: '#555', output: '#666' }; // prettier-ignore
    const palette = { panel: '#000', text: '#fff', dim: '#ccc', accent: '#f00', edge: '#888', bar: '#ff0', breakpoint: '#f0f', line: colour, back: colour, sans: 'A "B"', mono: 'm' }; // prettier-ignore
    const marks = {
      times: new Float64Array(scene.items.length),
      selected: new Set([0]),
      breakpoints: new Map(),
      running: new Set<number>(),
      heat: null,
      hidden: new Set(['output'] as const),
      focused: null,
      found: null,
    };
    const svg = graphSvg(drawn, marks, palette, 'a < b');
    expect(svg.match(/<g><title>/g)).toHaveLength(scene.items.length);
    expect(svg).toContain('<title>a &lt; b</title>');
    expect(svg).toContain('font-family="A &quot;B&quot;"');
    expect(svg.match(/stroke-dasharray/g)).toHaveLength(1);
  });
});
