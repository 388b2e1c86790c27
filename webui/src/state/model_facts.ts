// What a model is, in words: short facts, and notes about what is unusual in
// using it.
import { formatCount, plural } from '../format';
import type { Model } from '../net/types';

export function modelFacts(model: Model): readonly string[] {
  const { n_heads = 0, n_heads_kv = 0, n_experts = 0, n_experts_used = 0 } = model;
  const heads =
    n_heads_kv > 0 && n_heads_kv !== n_heads
      ? `${n_heads} heads, ${n_heads_kv} KV`
      : n_heads > 0
        ? plural(n_heads, 'head')
        : '';
  return [
    model.architecture ?? '',
    model.n_layers === undefined ? '' : plural(model.n_layers, 'layer'),
    model.n_embd === undefined ? '' : `${formatCount(model.n_embd)} wide`,
    heads,
    n_experts > 0 ? `${n_experts_used} of ${n_experts} experts` : '',
    kindOf(model),
    model.context === undefined ? '' : `context ${formatCount(model.context)}`,
    model.threads === undefined ? '' : plural(model.threads, 'thread'),
  ].filter(Boolean);
}

function kindOf(model: Model): string {
  if (model.embedding_only) return 'embeddings only';
  if (model.has_encoder) return 'encoder and decoder';
  if (model.hybrid) return 'attention and recurrent';
  return model.recurrent ? 'recurrent' : '';
}

// What somebody has to know who runs it.
export function modelNotes(model: Model): readonly string[] {
  const notes: string[] = [];
  if (model.embedding_only) {
    notes.push('Computes embeddings: it reads the prompt and stops; nothing is generated.');
  }
  if (model.has_vocabulary === false) {
    const most = model.n_vocab ? `0 to ${formatCount(model.n_vocab - 1)}` : 'whole numbers';
    notes.push(`Has no vocabulary: prompts are token ids (${most}), answers show ids.`);
  } else if (model.has_chat_template === false && !model.embedding_only) {
    notes.push('Has no chat template: it continues a text, it does not answer messages.');
  }
  if (model.recurrent) {
    notes.push('Keeps a state instead of a cache of positions: layers have no heads to look at.');
  }
  if ((model.n_experts ?? 0) > 0) {
    notes.push('Mixture of experts: of each layer only the routed experts are read.');
  }
  return notes;
}
