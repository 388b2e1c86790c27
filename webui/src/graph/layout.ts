// Layered graph layout: inputs at the top, outputs at the bottom. Pure, without recursion; runs in
// a worker.
//
// Passes:
//   1. ranks: a node is one rank below the lowest node that it reads. Sources (weights, the cache,
//      inputs) and views of them are moved down to the rank above their first reader;
//   2. folds: ranks are divided into columns side by side, so that the graph is about as wide as its
//      panel. A column begins where few edges cross;
//   3. bends: an edge over several ranks gets a bend point in each rank between;
//   4. order within the ranks: barycentre sweeps down and up; the order with the fewest crossings
//      is kept;
//   5. coordinates: sweeps that move each item towards the mean of its neighbours, without
//      changing the order and without overlap;
//   6. paths of the edges through their bend points. Between two columns they are wires: below the
//      column, up beside it, and down into the next one.
// Passes 2 to 6 run for each number of columns; the layout that is the largest in its panel is kept.

export interface LayoutNode {
  readonly w: number;
  readonly h: number;
  // May be moved down: neither it nor its inputs are computed by this graph.
  readonly canSink: boolean;
}

export interface LayoutGraph {
  readonly nodes: readonly LayoutNode[];
  readonly edges: readonly (readonly [from: number, to: number])[]; // acyclic
  readonly aspect?: number; // width by height of the panel; without it: one column
}

export interface Layout {
  readonly width: number;
  readonly height: number;
  readonly x: Float64Array; // left edge of each node
  readonly y: Float64Array; // top edge of each node
  // For each edge: x, y of its start at the source, of its bends, and of its end at the target.
  readonly paths: readonly Float64Array[];
}

const GAP_X = 8;
const GAP_Y = 11;
const BEND_W = 3;
const WIRE = 5; // distance of wires
const ARROW = 9; // above a column, for the ends of its wires
const MAX_COLUMNS = 8;
const BEND_WEIGHT = 6;
const ORDER_SWEEPS = 4;
const PLACE_SWEEPS = 6;

export function layoutGraph(graph: LayoutGraph): Layout {
  const links = linksOf(graph);
  const ranks = ranksOf(graph, links);
  let best = folded(graph, ranks, 1);
  const { aspect } = graph;
  if (aspect === undefined) return best;
  // Half as large is twice as readable.
  const extent = ({ width, height }: Layout): number => Math.max(width / aspect, height);
  for (let columns = 2; columns <= MAX_COLUMNS && best.height > best.width / aspect; columns += 1) {
    const next = folded(graph, ranks, columns);
    if (extent(next) < extent(best)) best = next;
  }
  return best;
}

function folded(graph: LayoutGraph, ranks: Int32Array, columns: number): Layout {
  const folds = foldsOf(graph, ranks, columns);
  const ranked = insertBends(graph, ranks, folds);
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

// ---- 2. Folds -------------------------------------------------------------------

// The first ranks of the columns after the first one: near to equal parts, where few edges cross.
function foldsOf({ edges }: LayoutGraph, rankOf: Int32Array, columns: number): ReadonlySet<number> {
  const ranks = rankOf.reduce((most, rank) => Math.max(most, rank), -1) + 1;
  const crossing = new Int32Array(ranks + 1);
  for (const [from, to] of edges)
    for (let rank = (rankOf[from] ?? 0) + 1; rank <= (rankOf[to] ?? 0); rank += 1)
      crossing[rank] = (crossing[rank] ?? 0) + 1;
  const folds = new Set<number>();
  for (let column = 1; column < columns; column += 1) {
    const middle = Math.round((column * ranks) / columns);
    const near = [middle, middle + 1, middle - 1].filter((rank) => rank > 0 && rank < ranks);
    const cost = (rank: number): number => crossing[rank] ?? 0;
    if (near.length > 0)
      folds.add(near.reduce((best, one) => (cost(one) < cost(best) ? one : best)));
  }
  return folds;
}

// ---- 3. Bends -------------------------------------------------------------------

// The graph after pass 3. Items are the nodes, then the bends. Each link connects adjacent ranks of a
// column.
interface RankedGraph {
  readonly nodes: number; // number of nodes
  readonly width: number[]; // by item
  readonly above: number[][]; // by item: its neighbours one rank up
  readonly below: number[][];
  readonly ranks: number[][]; // items from left to right
  readonly at: number[]; // by item: index in its rank
  readonly chains: readonly (readonly number[])[]; // by edge: its items, ends included
  readonly folds: ReadonlySet<number>; // first ranks of the columns after the first one
}

function insertBends(
  { nodes, edges }: LayoutGraph,
  rankOf: Int32Array,
  folds: ReadonlySet<number>,
): RankedGraph {
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
      if (folds.has((rankOf[from] ?? 0) + i)) continue; // a wire
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
    folds,
  };
}

// ---- 4. Order -------------------------------------------------------------------

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

// ---- 5. Coordinates -------------------------------------------------------------

// Returns the centre x of each item.
function placeRanks(ranked: RankedGraph): Float64Array {
  const centre = new Float64Array(ranked.width.length);
  const room: number[] = []; // by rank: the width of its column, which is that of its widest rank
  let first = 0;
  ranked.ranks.forEach((rank, i) => {
    if (ranked.folds.has(i)) first = i;
    room[i] = Math.max(room[first] ?? 0, widthOf(ranked, rank));
    room.fill(room[i], first, i);
  });
  for (const rank of ranked.ranks) {
    let x = -widthOf(ranked, rank) / 2;
    for (const item of rank) {
      const w = ranked.width[item] ?? 0;
      centre[item] = x + w / 2;
      x += w + GAP_X;
    }
  }
  for (let sweep = 0; sweep < PLACE_SWEEPS; sweep += 1) {
    const down = sweep % 2 === 0;
    const ranks = [...ranked.ranks.entries()];
    for (const [i, rank] of down ? ranks : ranks.toReversed())
      placeRank(ranked, rank, room[i] ?? 0, centre, down);
  }
  return centre;
}

const widthOf = ({ width }: RankedGraph, rank: readonly number[]): number =>
  rank.reduce((sum, item) => sum + (width[item] ?? 0) + GAP_X, -GAP_X);

// Places the items as close as possible (least squares) to their wanted x while keeping the order,
// the minimum gaps and the width of the column: items that would overlap are merged into one block.
function placeRank(
  ranked: RankedGraph,
  rank: readonly number[],
  room: number,
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
  const least = ((ranked.width[rank[0] ?? 0] ?? 0) - room) / 2;
  const most = least + room - widthOf(ranked, rank);
  let i = 0;
  for (const { sum, weight, items } of blocks) {
    const start = Math.max(least, Math.min(most, sum / weight));
    for (let end = i + items; i < end; i += 1) centre[rank[i] ?? 0] = start + (offset[i] ?? 0);
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

// ---- 6. Paths -------------------------------------------------------------------

function finish({ nodes, edges }: LayoutGraph, ranked: RankedGraph, centre: Float64Array): Layout {
  const rankOf = new Int32Array(ranked.width.length);
  ranked.ranks.forEach((rank, i) => {
    for (const item of rank) rankOf[item] = i;
  });
  const columns = columnsOf(nodes, ranked, centre, rankOf);
  const placed = columns.flatMap((column) => column.ranks.map((rank) => ({ ...rank, column })));
  const rankAt = (item: number) => placed[rankOf[item] ?? 0];
  const middle = (item: number): number => (centre[item] ?? 0) + (rankAt(item)?.column.shift ?? 0);
  // A node that is lower than its rank is centred vertically.
  const topOf = (node: number): number => {
    const rank = rankAt(node);
    return (rank?.top ?? 0) + ((rank?.height ?? 0) - (nodes[node]?.h ?? 0)) / 2;
  };
  const paths = edges.map(([from, to], edge) => {
    const points: number[] = [middle(from), topOf(from) + (nodes[from]?.h ?? 0)];
    const chain = ranked.chains[edge] ?? [];
    chain.slice(1).forEach((item, i) => {
      const x = middle(item);
      const rank = rankAt(item);
      if (ranked.folds.has(rankOf[item] ?? 0)) {
        const wire = rank?.column.wires.get(chain[i] ?? 0)?.get(item);
        if (wire) points.push(points.at(-2) ?? 0, wire.bottom, wire.x, wire.bottom, wire.x, wire.top, x, wire.top); // prettier-ignore
      }
      // Two points per bend, so that the edge passes vertically between the nodes of the rank.
      if (item !== to) points.push(x, rank?.top ?? 0, x, (rank?.top ?? 0) + (rank?.height ?? 0));
    });
    points.push(middle(to), topOf(to));
    return Float64Array.from(points);
  });
  return {
    width: columns.at(-1)?.right ?? 0,
    height: columns.reduce((most, { bottom }) => Math.max(most, bottom), 0),
    x: Float64Array.from(nodes, ({ w }, node) => middle(node) - w / 2),
    y: Float64Array.from(nodes, (_, node) => topOf(node)),
    paths,
  };
}

interface Wire {
  readonly bottom: number; // y below the column before
  readonly x: number;
  readonly top: number; // y above the column
}

interface Column {
  readonly shift: number; // of x
  readonly right: number;
  readonly bottom: number; // with the wires that leave it
  readonly ranks: readonly { readonly top: number; readonly height: number }[];
  readonly wires: ReadonlyMap<number, ReadonlyMap<number, Wire>>; // into it, by both ends
}

function columnsOf(
  nodes: LayoutGraph['nodes'],
  ranked: RankedGraph,
  centre: Float64Array,
  rankOf: Int32Array,
): readonly Column[] {
  const { ranks, folds, chains } = ranked;
  const starts = [0, ...[...folds].sort((a, b) => a - b)];
  // By column: the ends of the wires into it, from the rightmost start.
  const links = starts.map((start, column) =>
    column === 0
      ? []
      : chains
          .flatMap((chain) => chain.slice(1).map((item, i) => [chain[i] ?? 0, item] as const))
          .filter(([, item]) => rankOf[item] === start)
          .sort(([a], [b]) => (centre[b] ?? 0) - (centre[a] ?? 0)),
  );
  const made: Column[] = [];
  starts.forEach((start, column) => {
    const own = ranks.slice(start, starts[column + 1]);
    const into = links[column] ?? [];
    const out = links[column + 1] ?? [];
    const before = made.at(-1);
    let left = Infinity;
    let right = -Infinity;
    for (const item of own.flat()) {
      left = Math.min(left, (centre[item] ?? 0) - (ranked.width[item] ?? 0) / 2);
      right = Math.max(right, (centre[item] ?? 0) + (ranked.width[item] ?? 0) / 2);
    }
    const gutter = before ? before.right + GAP_X : 0;
    const x = before ? gutter + into.length * WIRE + GAP_X : 0;
    let top = into.length > 0 ? into.length * WIRE + ARROW : 0;
    const placed = own.map((rank) => {
      const height = rank.reduce((most, item) => Math.max(most, nodes[item]?.h ?? 0), 0);
      const at = { top, height };
      top += height + GAP_Y;
      return at;
    });
    const wires = new Map<number, Map<number, Wire>>();
    into.forEach(([from, to], i) => {
      const end = before?.ranks.at(-1);
      const bottom = (end?.top ?? 0) + (end?.height ?? 0) + (i + 1) * WIRE;
      const of = wires.get(from) ?? new Map<number, Wire>();
      of.set(to, { bottom, x: gutter + i * WIRE, top: i * WIRE });
      wires.set(from, of);
    });
    made.push({
      shift: Number.isFinite(left) ? x - left : 0,
      right: Number.isFinite(left) ? x + right - left : x,
      bottom: Math.max(0, top - GAP_Y + out.length * WIRE),
      ranks: placed,
      wires,
    });
  });
  return made;
}
