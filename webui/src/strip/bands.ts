// The bands of the memory strip: the model file, repacked weights, the KV cache, recurrent states and
// the compute buffers, each divided by layer. Pure functions.
import type { GgufTensor, Node, Tensor } from '../net/types';

export type Memory = 'file' | 'repacked' | 'kv' | 'recurrent' | 'compute';

export interface Band {
  readonly memory: Memory;
  readonly layer: number | null; // null: no layer
  readonly bytes: number;
  readonly from: number; // position in the strip, 0..1
  readonly to: number;
}

export interface MemoryGroup {
  readonly memory: Memory;
  readonly bytes: number;
  readonly from: number;
  readonly to: number;
}

export interface Bands {
  readonly groups: readonly MemoryGroup[];
  readonly bands: readonly Band[];
}

const MEMORIES: readonly Memory[] = ['file', 'repacked', 'kv', 'recurrent', 'compute'];
// Share of the strip of a group, so that its name has room. The longest is that of the buffers, whose size
// is that of their tensors and says little.
const LEAST = 0.07;
const LEAST_OF_BUFFERS = 0.17;
const GAP = 0.004; // between groups

// The memory of a tensor; null: not in the strip (another device).
export function memoryOf({
  tensor_kind: kind,
  memory_source: source,
  role,
}: Pick<Tensor, 'tensor_kind' | 'memory_source' | 'role'>): Memory | null {
  if (kind === 'kv' || source === 'kv') return role === 'state' ? 'recurrent' : 'kv';
  if (kind === 'weight')
    return source === 'repacked' ? 'repacked' : source === 'device' ? null : 'file';
  return source === 'device' ? null : 'compute';
}

// Bytes by memory and layer.
type Sizes = Map<Memory, Map<number | null, number>>;

export function bandsOf(tensors: readonly Tensor[]): Bands {
  const sizes: Sizes = new Map();
  const seen = new Set<string>();
  for (const tensor of tensors) {
    const memory = memoryOf(tensor);
    if (memory === null || tensor.view_of !== null || seen.has(`${memory} ${tensor.tensor_name}`))
      continue;
    seen.add(`${memory} ${tensor.tensor_name}`);
    // Compute buffers are reused from layer to layer.
    const layer = memory === 'compute' ? null : tensor.layer_id;
    const of = sizes.get(memory) ?? new Map<number | null, number>();
    of.set(layer, (of.get(layer) ?? 0) + tensor.tensor_bytes);
    sizes.set(memory, of);
  }
  return bandsOfSizes(sizes);
}

// Of a model of which only the files are known.
export function bandsOfFiles(tensors: readonly GgufTensor[]): Bands {
  const layers = new Map<number | null, number>();
  for (const { layer, file_bytes: size } of tensors)
    layers.set(layer, (layers.get(layer) ?? 0) + size);
  return bandsOfSizes(new Map([['file', layers]]));
}

function bandsOfSizes(sizes: Sizes): Bands {
  const present = MEMORIES.filter((memory) => sizes.has(memory));
  const total = (memory: Memory): number =>
    [...(sizes.get(memory)?.values() ?? [])].reduce((sum, bytes) => sum + bytes, 0);
  // By the square root: a KV cache or a file that is much larger leaves room for the others.
  const root = (memory: Memory): number => Math.sqrt(total(memory));
  const all = present.reduce((sum, memory) => sum + root(memory), 0);
  const wanted = present.map((memory) =>
    Math.max(memory === 'compute' ? LEAST_OF_BUFFERS : LEAST, root(memory) / Math.max(1, all)),
  );
  const scale = (1 - GAP * Math.max(0, present.length - 1)) / wanted.reduce((a, b) => a + b, 0);
  const groups: MemoryGroup[] = [];
  const bands: Band[] = [];
  let at = 0;
  present.forEach((memory, i) => {
    const width = (wanted[i] ?? 0) * scale;
    const bytes = total(memory);
    groups.push({ memory, bytes, from: at, to: at + width });
    let left = at;
    const layers = [...(sizes.get(memory) ?? [])].sort(
      ([a], [b]) => (a ?? Infinity) - (b ?? Infinity),
    );
    for (const [layer, size] of layers) {
      const share = (width * size) / Math.max(1, bytes);
      bands.push({ memory, layer, bytes: size, from: left, to: left + share });
      left += share;
    }
    at += width + GAP;
  });
  return { groups, bands };
}

// By op: the bands that it reads or writes.
export function bandsOfOps(
  { bands }: Bands,
  nodes: readonly Node[],
  tensors: readonly Tensor[],
): ReadonlyMap<number, readonly number[]> {
  const found = new Map<number, Set<number>>();
  for (const { executed_op, sources, tensor } of nodes) {
    if (executed_op === null) continue;
    const of = found.get(executed_op) ?? new Set<number>();
    for (const index of [...sources, tensor]) {
      const band = index === null ? -1 : bandOf(bands, tensors, index);
      if (band >= 0) of.add(band);
    }
    found.set(executed_op, of);
  }
  return new Map([...found].map(([op, set]) => [op, [...set]]));
}

function bandOf(bands: readonly Band[], tensors: readonly Tensor[], index: number): number {
  const tensor = tensors[index];
  const memory = tensor ? memoryOf(tensor) : null;
  if (!tensor || memory === null) return -1;
  const layer = memory === 'compute' ? null : tensor.layer_id;
  return bands.findIndex((band) => band.memory === memory && band.layer === layer);
}

// The band of a tensor, by its key in the graph; empty: none.
export function bandsOfTensor(
  { bands }: Bands,
  graph: {
    readonly tensors: readonly Tensor[];
    readonly tensorOf: ReadonlyMap<string, number>;
  } | null,
  key: string,
): readonly number[] {
  const band = graph ? bandOf(bands, graph.tensors, graph.tensorOf.get(key) ?? -1) : -1;
  return band < 0 ? [] : [band];
}

// The band at a position of the strip, 0..1; -1: none.
export function bandAt({ bands }: Bands, at: number): number {
  return bands.findIndex(({ from, to }) => at >= from && at < to);
}
