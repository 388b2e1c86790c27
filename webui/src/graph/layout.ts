// Layered graph layout: inputs at the top, outputs at the bottom. Pure, without recursion; runs in
// a worker.
//
// Passes:
//   1. ranks: a node is one rank below the lowest node that it reads. Sources (weights, the cache,
//      inputs) and views of them are moved down to the rank above their first reader;
//   2. bends: an edge over several ranks gets a bend point in each rank between;
//   3. order within the ranks: barycentre sweeps down and up; the order with the fewest crossings
//      is kept;
//   4. coordinates: sweeps that move each item towards the mean of its neighbours, without
//      changing the order and without overlap;
//   5. paths of the edges through their bend points.

export interface LayoutNode {
  readonly w: number;
  readonly h: number;
  // May be moved down: neither it nor its inputs are computed by this graph.
  readonly canSink: boolean;
}

export interface LayoutGraph {
  readonly nodes: readonly LayoutNode[];
  readonly edges: readonly (readonly [from: number, to: number])[]; // acyclic
}

export interface Layout {
  readonly width: number;
  readonly height: number;
  readonly x: Float64Array; // left edge of each node
  readonly y: Float64Array; // top edge of each node
  // For each edge: x, y of its start at the source, of its bends, and of its end at the target.
  readonly paths: readonly Float64Array[];
}

const GAP_X = 18;
const GAP_Y = 34;
const BEND_W = 6;
const BEND_WEIGHT = 6;
const ORDER_SWEEPS = 4;
const PLACE_SWEEPS = 6;

export function layoutGraph(graph: LayoutGraph): Layout {
  const links = linksOf(graph);
  const ranks = ranksOf(graph, links);
  const ranked = insertBends(graph, ranks);
  orderRanks(ranked);
  const centre = placeRanks(ranked);
  return finish(graph, ranked, centre);
}

interface Links {
  readonly reads: readonly (readonly number[])[]; // by node: the nodes that it reads
  readonly readers: readonly (readonly number[])[];
  readonly order: readonly number[]; // topological
}

function linksOf({ nodes, edges }: LayoutGraph): Links {
  const reads: number[][] = nodes.map(() => []);
  const readers: number[][] = nodes.map(() => []);
  for (const [from, to] of edges) {
    reads[to]?.push(from);
    readers[from]?.push(to);
  }
  const missing = reads.map((list) => list.length);
  const order: number[] = [];
  nodes.forEach((_, node) => {
    if (missing[node] === 0) order.push(node);
  });
  // `order` grows during the loop.
  for (const node of order) {
    for (const reader of readers[node] ?? []) {
      missing[reader] = (missing[reader] ?? 0) - 1;
      if (missing[reader] === 0) order.push(reader);
    }
  }
  return { reads, readers, order };
}

// ---- 1. Ranks -------------------------------------------------------------------

function ranksOf({ nodes }: LayoutGraph, { reads, readers, order }: Links): Int32Array {
  const ranks = new Int32Array(nodes.length);
  for (const node of order) {
    for (const source of reads[node] ?? []) {
      ranks[node] = Math.max(ranks[node] ?? 0, (ranks[source] ?? 0) + 1);
    }
  }
  for (const node of order.toReversed()) {
    const below = readers[node] ?? [];
    if (!nodes[node]?.canSink || below.length === 0) continue;
    ranks[node] = below.reduce((min, one) => Math.min(min, ranks[one] ?? 0), Infinity) - 1;
  }
  // The first ranks may be empty now.
  const first = ranks.reduce((min, rank) => Math.min(min, rank), Infinity);
  return ranks.map((rank) => rank - first);
}

// ---- 2. Bends -------------------------------------------------------------------

// The graph after pass 2. Items are the nodes, then the bends. Each link connects adjacent ranks.
interface RankedGraph {
  readonly nodes: number; // number of nodes
  readonly width: number[]; // by item
  readonly above: number[][]; // by item: its neighbours one rank up
  readonly below: number[][];
  readonly ranks: number[][]; // items from left to right
  readonly at: number[]; // by item: index in its rank
  readonly chains: readonly (readonly number[])[]; // by edge: its items, ends included
}

function insertBends({ nodes, edges }: LayoutGraph, rankOf: Int32Array): RankedGraph {
  const width = nodes.map(({ w }) => w);
  const above: number[][] = nodes.map(() => []);
  const below: number[][] = nodes.map(() => []);
  const ranks: number[][] = [];
  const put = (item: number, rank: number): void => {
    (ranks[rank] ??= []).push(item);
  };
  nodes.forEach((_, node) => {
    put(node, rankOf[node] ?? 0);
  });
  const chains = edges.map(([from, to]) => {
    const chain = [from];
    for (let rank = (rankOf[from] ?? 0) + 1; rank < (rankOf[to] ?? 0); rank += 1) {
      const bend = width.push(BEND_W) - 1;
      above.push([]);
      below.push([]);
      put(bend, rank);
      chain.push(bend);
    }
    chain.push(to);
    for (let i = 1; i < chain.length; i += 1) {
      const [upper = 0, lower = 0] = [chain[i - 1], chain[i]];
      below[upper]?.push(lower);
      above[lower]?.push(upper);
    }
    return chain;
  });
  const filled = Array.from(ranks, (rank: number[] | undefined) => rank ?? []);
  return {
    nodes: nodes.length,
    width,
    above,
    below,
    ranks: filled,
    at: new Array<number>(width.length).fill(0),
    chains,
  };
}

// ---- 3. Order -------------------------------------------------------------------

function orderRanks(ranked: RankedGraph): void {
  updateIndices(ranked);
  let best = ranked.ranks.map((rank) => [...rank]);
  let fewest = crossings(ranked);
  for (let sweep = 0; sweep < ORDER_SWEEPS && fewest > 0; sweep += 1) {
    const down = sweep % 2 === 0;
    const neighbours = down ? ranked.above : ranked.below;
    const ranks = down ? ranked.ranks : ranked.ranks.toReversed();
    for (const rank of ranks) sortRank(ranked, rank, neighbours);
    const now = crossings(ranked);
    if (now < fewest) {
      fewest = now;
      best = ranked.ranks.map((rank) => [...rank]);
    }
  }
  best.forEach((rank, i) => {
    ranked.ranks[i]?.splice(0, Infinity, ...rank);
  });
  updateIndices(ranked);
}

function updateIndices({ ranks, at }: RankedGraph): void {
  for (const rank of ranks) {
    rank.forEach((item, i) => {
      at[item] = i;
    });
  }
}

// Sorts by the mean index of the neighbours. An item without neighbours keeps its index.
function sortRank({ at }: RankedGraph, rank: number[], neighbours: readonly number[][]): void {
  const targets = new Map(
    rank.map((item) => {
      const near = neighbours[item] ?? [];
      const sum = near.reduce((total, one) => total + (at[one] ?? 0), 0);
      return [item, near.length === 0 ? (at[item] ?? 0) : sum / near.length];
    }),
  );
  rank.sort((a, b) => (targets.get(a) ?? 0) - (targets.get(b) ?? 0) || (at[a] ?? 0) - (at[b] ?? 0));
  rank.forEach((item, i) => {
    at[item] = i;
  });
}

// Number of crossing links between adjacent ranks, counted with a Fenwick tree over the indices of
// the lower rank.
function crossings({ ranks, below, at }: RankedGraph): number {
  let count = 0;
  ranks.forEach((rank, i) => {
    const places = ranks[i + 1]?.length ?? 0;
    const tree = new Int32Array(places + 1);
    let seen = 0;
    for (const item of rank) {
      const ends = (below[item] ?? []).map((lower) => at[lower] ?? 0);
      for (const end of ends) count += seen - sumTo(tree, end + 1);
      for (const end of ends) {
        for (let node = end + 1; node <= places; node += node & -node) {
          tree[node] = (tree[node] ?? 0) + 1;
        }
      }
      seen += ends.length;
    }
  });
  return count;
}

function sumTo(tree: Int32Array, end: number): number {
  let sum = 0;
  for (let node = end; node > 0; node -= node & -node) sum += tree[node] ?? 0;
  return sum;
}

// ---- 4. Coordinates -------------------------------------------------------------

// Returns the centre x of each item.
function placeRanks(ranked: RankedGraph): Float64Array {
  const centre = new Float64Array(ranked.width.length);
  for (const rank of ranked.ranks) {
    const whole = rank.reduce((sum, item) => sum + (ranked.width[item] ?? 0) + GAP_X, -GAP_X);
    let x = -whole / 2;
    for (const item of rank) {
      const w = ranked.width[item] ?? 0;
      centre[item] = x + w / 2;
      x += w + GAP_X;
    }
  }
  for (let sweep = 0; sweep < PLACE_SWEEPS; sweep += 1) {
    const down = sweep % 2 === 0;
    const ranks = down ? ranked.ranks : ranked.ranks.toReversed();
    for (const rank of ranks) placeRank(ranked, rank, centre, down);
  }
  return centre;
}

// Places the items as close as possible (least squares) to their wanted x while keeping the order
// and the minimum gaps: items that would overlap are merged into one block.
function placeRank(
  ranked: RankedGraph,
  rank: readonly number[],
  centre: Float64Array,
  down: boolean,
): void {
  interface Block {
    sum: number; // sum of wanted x minus offset
    weight: number;
    items: number;
  }
  const blocks: Block[] = [];
  const offset: number[] = []; // offset of each item in the packed rank
  let packed = 0;
  rank.forEach((item, i) => {
    const before = rank[i - 1];
    if (before !== undefined) {
      packed += ((ranked.width[before] ?? 0) + (ranked.width[item] ?? 0)) / 2 + GAP_X;
    }
    offset.push(packed);
    const { place, weight } = wantedPlace(ranked, item, centre, down);
    let block: Block = { sum: (place - packed) * weight, weight, items: 1 };
    for (;;) {
      const left = blocks.at(-1);
      if (!left || left.sum / left.weight <= block.sum / block.weight) break;
      blocks.pop();
      block = {
        sum: left.sum + block.sum,
        weight: left.weight + block.weight,
        items: left.items + block.items,
      };
    }
    blocks.push(block);
  });
  let i = 0;
  for (const { sum, weight, items } of blocks) {
    for (let end = i + items; i < end; i += 1) {
      centre[rank[i] ?? 0] = sum / weight + (offset[i] ?? 0);
    }
  }
}

// The wanted x of a node is the mean of all its neighbours. That of a bend is the x of its
// neighbour in the rank of the previous sweep step, with a higher weight, so that long edges are
// straight.
function wantedPlace(
  ranked: RankedGraph,
  item: number,
  centre: Float64Array,
  down: boolean,
): { readonly place: number; readonly weight: number } {
  const above = ranked.above[item] ?? [];
  const below = ranked.below[item] ?? [];
  const bend = item >= ranked.nodes;
  const near = bend ? (down ? above : below) : [...above, ...below];
  if (near.length === 0) return { place: centre[item] ?? 0, weight: 1 };
  const sum = near.reduce((total, one) => total + (centre[one] ?? 0), 0);
  return { place: sum / near.length, weight: bend ? BEND_WEIGHT : near.length };
}

// ---- 5. Paths -------------------------------------------------------------------

function finish({ nodes, edges }: LayoutGraph, ranked: RankedGraph, centre: Float64Array): Layout {
  const top: number[] = [];
  const rankHeight: number[] = [];
  let height = 0;
  for (const rank of ranked.ranks) {
    const maxHeight = rank.reduce((h, item) => Math.max(h, nodes[item]?.h ?? 0), 0);
    top.push(height);
    rankHeight.push(maxHeight);
    height += maxHeight + GAP_Y;
  }
  height = Math.max(0, height - GAP_Y);
  let left = Infinity;
  let right = -Infinity;
  centre.forEach((x, item) => {
    left = Math.min(left, x - (ranked.width[item] ?? 0) / 2);
    right = Math.max(right, x + (ranked.width[item] ?? 0) / 2);
  });
  const shift = Number.isFinite(left) ? -left : 0;
  const rankOf = new Int32Array(ranked.width.length);
  ranked.ranks.forEach((rank, i) => {
    for (const item of rank) rankOf[item] = i;
  });
  const middle = (item: number): number => (centre[item] ?? 0) + shift;
  // A node that is lower than its rank is centred vertically.
  const topOf = (node: number): number => {
    const rank = rankOf[node] ?? 0;
    return (top[rank] ?? 0) + ((rankHeight[rank] ?? 0) - (nodes[node]?.h ?? 0)) / 2;
  };
  const paths = edges.map(([from, to], edge) => {
    const points: number[] = [middle(from), topOf(from) + (nodes[from]?.h ?? 0)];
    for (const bend of ranked.chains[edge]?.slice(1, -1) ?? []) {
      const rank = rankOf[bend] ?? 0;
      // Two points per bend, so that the edge passes vertically between the nodes of the rank.
      points.push(middle(bend), top[rank] ?? 0);
      points.push(middle(bend), (top[rank] ?? 0) + (rankHeight[rank] ?? 0));
    }
    points.push(middle(to), topOf(to));
    return Float64Array.from(points);
  });
  return {
    width: Number.isFinite(left) ? right - left : 0,
    height,
    x: Float64Array.from(nodes, ({ w }, node) => middle(node) - w / 2),
    y: Float64Array.from(nodes, (_, node) => topOf(node)),
    paths,
  };
}
