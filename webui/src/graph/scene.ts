// Converts a layer's subgraph into boxes with text, and edges. A shared input (positions, masks)
// is drawn as a stub next to each reader, so that its edges do not cross the whole graph. Pure
// functions.
import { formatBytes, formatShape, plural } from '../format';
import {
  durationOf,
  type Category,
  type GraphNode,
  type LayerSubgraph,
  type Op,
} from '../net/types';
import type { Layout, LayoutGraph } from './layout';
import type { Group, WholeGraph } from './whole';

// The origin of a node: computed by an op, a view without computation, or not part of this graph's
// computation (weights, the cache, inputs).
export type NodeOrigin = 'computed' | 'view' | 'external';

export interface Item {
  readonly node: GraphNode;
  readonly stub: boolean;
  readonly origin: NodeOrigin;
  readonly group: Group | null; // a box of the whole model
  readonly title: string;
  readonly brief: string; // after the title, where there is room for one line; may be empty
  readonly sub: string; // below the title, where there is room for two lines; may be empty
  readonly w: number;
  readonly h: number;
}

export interface SceneEdge {
  readonly from: number; // index of the item
  readonly to: number;
  readonly crossLayer: boolean;
  readonly back: boolean; // to an earlier node: laid out the other way round, drawn upwards
}

export interface Scene {
  readonly graph: Pick<LayerSubgraph, 'nodes' | 'edges' | 'layer'>; // layer: -1 for the whole model
  readonly items: readonly Item[];
  readonly edges: readonly SceneEdge[];
  readonly itemsOf: ReadonlyMap<number, readonly number[]>; // by tensor
}

// A scene with its layout.
export interface LaidOutScene {
  readonly scene: Scene;
  readonly layout: Layout;
}

// Text of the items at scale 1.
export const TEXT_SIZE = 10;
const LINE = 14; // height of an item
const PADDING = 12;
// Widths in a wide font of the system at TEXT_SIZE, so that no name is cut.
const LETTER = 5.8;
const CAPITAL_MORE = 2.2;
const WIDE_MORE = 3.5; // of m and w
export const BRIEF_GAP = 5;

const countOf = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0;
const widthOf = (text: string): number =>
  LETTER * text.length +
  CAPITAL_MORE * countOf(text, /[A-Z×]/g) +
  WIDE_MORE * countOf(text, /[mw]/gi);

// An item as large as its one line.
type Sized = Pick<Item, 'w' | 'h'>;
const sizeOf = (title: string, brief: string): Sized => ({
  w: Math.ceil(PADDING + widthOf(title) + (brief === '' ? 0 : BRIEF_GAP + widthOf(brief))),
  h: LINE,
});

// `whole`: the boxes of the whole model.
export function sceneOf(graph: Scene['graph'], whole: WholeGraph | null = null): Scene {
  const known = new Set(graph.nodes.map(({ tensor }) => tensor));
  const links = graph.edges.filter(({ from, to }) => known.has(from) && known.has(to));
  const readers = new Map<number, number>();
  for (const { from } of links) readers.set(from, (readers.get(from) ?? 0) + 1);
  const items: Item[] = [];
  const itemsOf = new Map<number, number[]>();
  const put = (item: Item): number => {
    const index = items.push(item) - 1;
    const same = itemsOf.get(item.node.tensor);
    if (same) same.push(index);
    else itemsOf.set(item.node.tensor, [index]);
    return index;
  };
  const isShared = new Map<number, boolean>();
  const byTensor = new Map<number, GraphNode>();
  for (const node of graph.nodes) {
    const shared = node.node === null && (readers.get(node.tensor) ?? 0) > 1;
    isShared.set(node.tensor, shared);
    byTensor.set(node.tensor, node);
    if (!shared) put(itemOf(node, graph.layer, false, whole?.groups.get(node.tensor) ?? null));
  }
  const edges = links.map((edge): SceneEdge => {
    const node = byTensor.get(edge.from);
    const from =
      node && isShared.get(edge.from)
        ? put(itemOf(node, graph.layer, true, whole?.groups.get(node.tensor) ?? null))
        : (itemsOf.get(edge.from)?.[0] ?? 0);
    const place = (tensor: number): number => whole?.position.get(tensor) ?? 0;
    const back = whole !== null && place(edge.from) > place(edge.to);
    return { from, to: itemsOf.get(edge.to)?.[0] ?? 0, crossLayer: edge.cross_layer, back };
  });
  return { graph, items, edges, itemsOf };
}

function itemOf(node: GraphNode, layer: number, stub: boolean, group: Group | null): Item {
  const texts = group ? textsOfGroup(node, group) : textsOf(node, layer, stub);
  return { node, stub, group, ...texts, ...sizeOf(texts.title, texts.brief) };
}

type Texts = Pick<Item, 'origin' | 'title' | 'brief' | 'sub'>;

function textsOf(node: GraphNode, layer: number, stub: boolean): Texts {
  const origin = node.node === null ? 'external' : node.executed_op === null ? 'view' : 'computed';
  const name = shortName(node, layer);
  const shape = formatShape(node.shape);
  const op = node.op ?? '';
  switch (origin) {
    case 'computed':
      return { origin, title: op, brief: name, sub: `${name}  ${shape}` };
    case 'view':
      return { origin, title: op, brief: '', sub: `${name}  ${shape}` };
    case 'external':
      return { origin, title: node.label || name, brief: '', sub: stub ? '' : `${node.type}  ${shape}` }; // prettier-ignore
  }
}

function textsOfGroup(node: GraphNode, { ops, tensors, weightBytes }: Group): Texts {
  const what = ops.length > 0 ? plural(ops.length, 'op') : plural(tensors, 'tensor');
  return {
    origin: ops.length > 0 ? 'computed' : 'external',
    title: node.name,
    brief: what,
    sub: weightBytes > 0 ? `${what}, ${formatBytes(weightBytes)}` : what,
  };
}

// The layout of a scene with the paths of all edges from their source to their target.
export function laidOut(scene: Scene, layout: Layout): LaidOutScene {
  const paths = layout.paths.map((path, i) => {
    if (scene.edges[i]?.back !== true) return path;
    const points = Array.from({ length: path.length / 2 }, (_, p) => [path[2 * p] ?? 0, path[2 * p + 1] ?? 0]); // prettier-ignore
    return Float64Array.from(points.reverse().flat());
  });
  return { scene, layout: { ...layout, paths } };
}

// The name without the layer number, and without ".weight" and "(view)", which the op says. Nodes of
// another layer keep their number.
export function shortName({ name, layer }: GraphNode, shown: number): string {
  if (layer !== shown) return name.replace(/\.weight$/, '');
  return name
    .replace(/^blk\.\d+\./, '')
    .replace(/\.weight$/, '')
    .replace(/-\d+(?=$| )/, '')
    .replace(/_l\d+(?=$| )/, '')
    .replace(/ \(view\)$/, '');
}

// Width by height of the graph in the default arrangement of the panels. A constant: where a node is
// must not depend on the window, or a link would show another part.
const ASPECT = 2.4;

export function layoutGraphOf({ items, edges }: Scene): LayoutGraph {
  return {
    aspect: ASPECT,
    nodes: items.map(({ w, h, origin }) => ({ w, h, canSink: origin !== 'computed' })),
    edges: edges.map(({ from, to, back }) =>
      back ? ([to, from] as const) : ([from, to] as const),
    ),
  };
}

// The time of each item's op. The time of a fused op is assigned to its last node.
export function timesOf(scene: Scene, ops: readonly Op[]): Float64Array {
  const times = new Map(ops.map((op) => [op.op, durationOf(op)]));
  return valuesOf(scene, times);
}

// A value of each op by item; that of a box is the sum of its ops.
export function valuesOf({ items }: Scene, byOp: ReadonlyMap<number, number>): Float64Array {
  const last = new Map<number, number>();
  items.forEach(({ node }, i) => {
    const before = node.executed_op === null ? undefined : last.get(node.executed_op);
    if (node.executed_op === null) return;
    if (before === undefined || (items[before]?.node.node ?? 0) < (node.node ?? 0)) {
      last.set(node.executed_op, i);
    }
  });
  const values = new Float64Array(items.length);
  for (const [op, value] of byOp) {
    const item = last.get(op);
    if (item !== undefined) values[item] = value;
  }
  items.forEach(({ group }, i) => {
    if (group) values[i] = group.ops.reduce((sum, op) => sum + (byOp.get(op) ?? 0), 0);
  });
  return values;
}

// The items whose text contains all words of the query.
export function findItems({ items }: Scene, query: string): ReadonlySet<number> {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return new Set();
  const hits = items.flatMap(({ node }, i) => {
    const { name, op, label, role, component, type } = node;
    const text = [name, op, label, role, component, type].join(' ').toLowerCase();
    return words.every((word) => text.includes(word)) ? [i] : [];
  });
  return new Set(hits);
}

export function countsOf({ graph }: Scene): ReadonlyMap<Category, number> {
  const counts = new Map<Category, number>();
  for (const { category } of graph.nodes) counts.set(category, (counts.get(category) ?? 0) + 1);
  return counts;
}
