// A layer as llama.cpp builds it for a llama model, and random graphs.
import type { LayoutGraph } from '../../../src/graph/layout';
import type { Category, GraphNode, LayerSubgraph } from '../../../src/net/types';

// `op name <- sources`, in execution order. Nodes without an op are not computed. The category is
// `layer` by default.
const LLAMA = `
l_out-@ :cross_layer_input
attn_norm.weight
RMS_NORM norm-# <- l_out-@
MUL attn_norm-# <- norm-# attn_norm.weight
attn_q.weight
MUL_MAT Qcur-# <- attn_q.weight attn_norm-#
RESHAPE Qcur-#_(reshaped) <- Qcur-#
inp_pos :infrastructure
ROPE Qrope-# <- Qcur-#_(reshaped) inp_pos
attn_k.weight
MUL_MAT Kcur-# <- attn_k.weight attn_norm-#
RESHAPE Kcur-#_(reshaped) <- Kcur-#
ROPE Krope-# <- Kcur-#_(reshaped) inp_pos
attn_v.weight
MUL_MAT Vcur-# <- attn_v.weight attn_norm-#
cache_k_l#
k_idxs :infrastructure
SET_ROWS cache_k_set-# <- Krope-# k_idxs cache_k_l#
cache_v_l#
v_idxs :infrastructure
SET_ROWS cache_v_set-# <- Vcur-# v_idxs cache_v_l#
VIEW cache_k_view-# <- cache_k_set-#
PERMUTE K-# <- cache_k_view-#
PERMUTE Q-# <- Qrope-#
MUL_MAT kq-# <- K-# Q-#
KQ_mask :infrastructure
SOFT_MAX kq_soft-# <- kq-# KQ_mask
VIEW cache_v_view-# <- cache_v_set-#
MUL_MAT kqv-# <- cache_v_view-# kq_soft-#
PERMUTE kqv_merged-# <- kqv-#
CONT kqv_out-# <- kqv_merged-#
attn_output.weight
MUL_MAT attn_out-# <- attn_output.weight kqv_out-#
ADD ffn_inp-# <- attn_out-# l_out-@
ffn_norm.weight
RMS_NORM norm2-# <- ffn_inp-#
MUL ffn_norm-# <- norm2-# ffn_norm.weight
ffn_gate.weight
MUL_MAT ffn_gate-# <- ffn_gate.weight ffn_norm-#
ffn_up.weight
MUL_MAT ffn_up-# <- ffn_up.weight ffn_norm-#
SWIGLU ffn_swiglu-# <- ffn_gate-# ffn_up-#
ffn_down.weight
MUL_MAT ffn_out-# <- ffn_down.weight ffn_swiglu-#
ADD l_out-# <- ffn_out-# ffn_inp-#
RMS_NORM norm-+ :cross_layer_output <- l_out-#
`;

export function llamaLayer(layer: number, layers: number): LayerSubgraph {
  const tensorOf = new Map<string, number>();
  const nodes: GraphNode[] = [];
  const edges: LayerSubgraph['edges'][number][] = [];
  const text = LLAMA.replaceAll('#', String(layer))
    .replaceAll('@', String(layer - 1))
    .replaceAll('+', String(layer + 1));
  for (const line of text.trim().split('\n')) {
    const [head = '', tail] = line.split(' <- ');
    const words = head.split(' ').filter((word) => !word.startsWith(':'));
    const category = (/:(\w+)/.exec(head)?.[1] ?? 'layer') as Category;
    const name = words.at(-1) ?? '';
    const op = words.length > 1 ? (words[0] ?? null) : null;
    const tensor = nodes.length;
    tensorOf.set(name, tensor);
    const across = category.startsWith('cross');
    const view = op !== null && ['VIEW', 'RESHAPE', 'PERMUTE'].includes(op);
    nodes.push({
      tensor,
      node: op === null && !across ? null : tensor,
      executed_op: op === null || view ? null : tensor,
      op: across && op === null ? 'ADD' : op,
      name: name.endsWith('.weight') ? `blk.${layer}.${name}` : name,
      label: category === 'infrastructure' ? `${name} of the batch` : '',
      type: name.endsWith('.weight') ? 'q4_K' : 'f32',
      shape: [2048, name.endsWith('.weight') ? 2048 : 1, 1, 1],
      size: 8192,
      kind:
        name.startsWith('cache') && op === null ? 'kv' : op === null ? 'weight' : 'intermediate',
      source: op === null ? 'disk' : 'compute',
      layer: category === 'infrastructure' ? null : layer,
      component: name.includes('ffn') ? 'ffn' : 'attention',
      role: '',
      category,
      model_file: null,
      file_offset: null,
      file_bytes: null,
    });
    for (const source of tail?.split(' ') ?? []) {
      const from = tensorOf.get(source);
      if (from === undefined) throw new Error(`${source} comes before ${name}`);
      const cross = across || nodes[from]?.category === 'cross_layer_input';
      edges.push({ from, to: tensor, cross_layer: cross });
    }
  }
  return { step: 3, template: 2, layer, layers, nodes, edges };
}

// A deterministic random generator: the same seed gives the same graph.
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

export function randomGraph(seed: number, count: number): LayoutGraph {
  const random = randomOf(seed);
  const below = (n: number): number => Math.floor(random() * n);
  const edges: [number, number][] = [];
  const nodes = Array.from({ length: count }, (_, node) => {
    const reads = node === 0 ? 0 : below(4);
    for (let i = 0; i < reads; i += 1) {
      // Mostly recent nodes, sometimes distant ones.
      const back = random() < 0.9 ? 1 + below(Math.min(node, 6)) : 1 + below(node);
      const from = node - back;
      if (!edges.some(([a, b]) => a === from && b === node)) edges.push([from, node]);
    }
    return { w: 40 + below(120), h: 20 + below(30), canSink: reads === 0 };
  });
  return { nodes, edges };
}
