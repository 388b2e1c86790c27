// Lays a layer's graph out in ranks, from what is read at the top to what is
// computed at the bottom. Pure and without recursion; runs in a worker.
//
// Passes:
//   1. ranks: a node lies one below the lowest of those that it reads; what
//      reads nothing by itself (weights, the cache, inputs) and views of it are
//      pulled down to just above who reads them;
//   2. an edge over several ranks gets a bend in each rank on its way;
//   3. order within the ranks: sweeps down and up by barycentre, the order with
//      the fewest crossings is kept;
//   4. places: sweeps that move every rank to the means of its neighbours,
//      in order and without overlap;
//   5. paths of the edges through their bends.

export interface LayoutNode {
  readonly w: number;
  readonly h: number;
  // May be pulled down: it, and all that it reads, is no work of this graph.
  readonly loose: boolean;
}

export interface LayoutGraph {
  readonly nodes: readonly LayoutNode[];
  readonly edges: readonly (readonly [from: number, to: number])[]; // acyclic
}

export interface Layout {
  readonly width: number;
  readonly height: number;
  readonly x: Float64Array; // of each node: left
  readonly y: Float64Array; // top
  // Of each edge: x, y of the end of its source, of its bends, and of the
  // beginning of its target.
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
  const web = withBends(graph, ranks);
  orderRanks(web);
  const centre = placeRanks(web);
  return finish(graph, web, centre);
}

interface Links {
  readonly reads: readonly (readonly number[])[]; // by node: what it reads
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
  // It grows while it is read.
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
    if (!nodes[node]?.loose || below.length === 0) continue;
    ranks[node] = below.reduce((least, one) => Math.min(least, ranks[one] ?? 0), Infinity) - 1;
  }
  // Pulling may have emptied the first ranks.
  const first = ranks.reduce((least, rank) => Math.min(least, rank), Infinity);
  return ranks.map((rank) => rank - first);
}

// ---- 2. Bends -------------------------------------------------------------------

// Nodes and, after them, bends; every link goes from one rank to the next.
interface Web {
  readonly nodes: number; // how many of the items are nodes
  readonly width: number[]; // by item
  readonly above: number[][]; // by item: its neighbours one rank up
  readonly below: number[][];
  readonly ranks: number[][]; // items from left to right
  readonly at: number[]; // by item: index in its rank
  readonly chains: readonly (readonly number[])[]; // by edge: its items, ends included
}

function withBends({ nodes, edges }: LayoutGraph, rankOf: Int32Array): Web {
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

function orderRanks(web: Web): void {
  number(web);
  let best = web.ranks.map((rank) => [...rank]);
  let fewest = crossings(web);
  for (let sweep = 0; sweep < ORDER_SWEEPS && fewest > 0; sweep += 1) {
    const down = sweep % 2 === 0;
    const upon = down ? web.above : web.below;
    const ranks = down ? web.ranks : web.ranks.toReversed();
    for (const rank of ranks) sortRank(web, rank, upon);
    const now = crossings(web);
    if (now < fewest) {
      fewest = now;
      best = web.ranks.map((rank) => [...rank]);
    }
  }
  best.forEach((rank, i) => {
    web.ranks[i]?.splice(0, Infinity, ...rank);
  });
  number(web);
}

function number({ ranks, at }: Web): void {
  for (const rank of ranks) {
    rank.forEach((item, i) => {
      at[item] = i;
    });
  }
}

// By the mean place of the neighbours; an item without any keeps its own.
function sortRank({ at }: Web, rank: number[], upon: readonly number[][]): void {
  const wanted = new Map(
    rank.map((item) => {
      const near = upon[item] ?? [];
      const sum = near.reduce((total, one) => total + (at[one] ?? 0), 0);
      return [item, near.length === 0 ? (at[item] ?? 0) : sum / near.length];
    }),
  );
  rank.sort((a, b) => (wanted.get(a) ?? 0) - (wanted.get(b) ?? 0) || (at[a] ?? 0) - (at[b] ?? 0));
  rank.forEach((item, i) => {
    at[item] = i;
  });
}

// Pairs of links between neighbouring ranks that cross, counted with a tree of
// sums over the places of the lower rank.
function crossings({ ranks, below, at }: Web): number {
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

// ---- 4. Places ------------------------------------------------------------------

// The middle of each item.
function placeRanks(web: Web): Float64Array {
  const centre = new Float64Array(web.width.length);
  for (const rank of web.ranks) {
    const whole = rank.reduce((sum, item) => sum + (web.width[item] ?? 0) + GAP_X, -GAP_X);
    let x = -whole / 2;
    for (const item of rank) {
      const w = web.width[item] ?? 0;
      centre[item] = x + w / 2;
      x += w + GAP_X;
    }
  }
  for (let sweep = 0; sweep < PLACE_SWEEPS; sweep += 1) {
    const down = sweep % 2 === 0;
    const ranks = down ? web.ranks : web.ranks.toReversed();
    for (const rank of ranks) placeRank(web, rank, centre, down);
  }
  return centre;
}

// The places nearest to what is wanted (least squares) that keep the order and
// the distances: neighbours that want to overlap move as one block.
function placeRank(web: Web, rank: readonly number[], centre: Float64Array, down: boolean): void {
  interface Block {
    sum: number; // of wanted places, less the offsets in the block
    weight: number;
    items: number;
  }
  const blocks: Block[] = [];
  const offset: number[] = []; // of each item from the rank's first, packed
  let packed = 0;
  rank.forEach((item, i) => {
    const before = rank[i - 1];
    if (before !== undefined) {
      packed += ((web.width[before] ?? 0) + (web.width[item] ?? 0)) / 2 + GAP_X;
    }
    offset.push(packed);
    const { place, weight } = wantedPlace(web, item, centre, down);
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

// A node wants to be amid all of its neighbours. A bend wants to go straight on
// from the rank that the sweep comes from, and more than a node wants anything,
// so that a long edge is a straight line.
function wantedPlace(
  web: Web,
  item: number,
  centre: Float64Array,
  down: boolean,
): { readonly place: number; readonly weight: number } {
  const above = web.above[item] ?? [];
  const below = web.below[item] ?? [];
  const bend = item >= web.nodes;
  const near = bend ? (down ? above : below) : [...above, ...below];
  if (near.length === 0) return { place: centre[item] ?? 0, weight: 1 };
  const sum = near.reduce((total, one) => total + (centre[one] ?? 0), 0);
  return { place: sum / near.length, weight: bend ? BEND_WEIGHT : near.length };
}

// ---- 5. Paths -------------------------------------------------------------------

function finish({ nodes, edges }: LayoutGraph, web: Web, centre: Float64Array): Layout {
  const top: number[] = [];
  const tall: number[] = [];
  let height = 0;
  for (const rank of web.ranks) {
    const most = rank.reduce((h, item) => Math.max(h, nodes[item]?.h ?? 0), 0);
    top.push(height);
    tall.push(most);
    height += most + GAP_Y;
  }
  height = Math.max(0, height - GAP_Y);
  let left = Infinity;
  let right = -Infinity;
  centre.forEach((x, item) => {
    left = Math.min(left, x - (web.width[item] ?? 0) / 2);
    right = Math.max(right, x + (web.width[item] ?? 0) / 2);
  });
  const shift = Number.isFinite(left) ? -left : 0;
  const rankOf = new Int32Array(web.width.length);
  web.ranks.forEach((rank, i) => {
    for (const item of rank) rankOf[item] = i;
  });
  const middle = (item: number): number => (centre[item] ?? 0) + shift;
  // A node shorter than its rank stands in the middle of it.
  const topOf = (node: number): number => {
    const rank = rankOf[node] ?? 0;
    return (top[rank] ?? 0) + ((tall[rank] ?? 0) - (nodes[node]?.h ?? 0)) / 2;
  };
  const paths = edges.map(([from, to], edge) => {
    const points: number[] = [middle(from), topOf(from) + (nodes[from]?.h ?? 0)];
    for (const bend of web.chains[edge]?.slice(1, -1) ?? []) {
      const rank = rankOf[bend] ?? 0;
      // In and out of the rank: the edge passes between its nodes.
      points.push(middle(bend), top[rank] ?? 0);
      points.push(middle(bend), (top[rank] ?? 0) + (tall[rank] ?? 0));
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
