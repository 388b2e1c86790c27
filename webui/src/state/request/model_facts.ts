// A short description of a model, and notes about special properties.
import { formatCount, plural } from '../../format';
import type { Model } from '../../net/types';

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
    model.n_embd === undefined ? '' : `embedding size ${formatCount(model.n_embd)}`,
    heads,
    n_experts > 0 ? `${n_experts_used} of ${n_experts} experts used` : '',
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

// Notes for users of the model.
export function modelNotes(model: Model): readonly string[] {
  const notes: string[] = [];
  if (model.embedding_only) {
    notes.push('Embedding model: it processes the prompt and generates nothing.');
  }
  if (model.has_vocabulary === false) {
    const range = model.n_vocab ? `0 to ${formatCount(model.n_vocab - 1)}` : 'whole numbers';
    notes.push(`Has no vocabulary: prompts are token IDs (${range}) and answers are shown as IDs.`);
  } else if (model.has_chat_template === false && !model.embedding_only) {
    notes.push(
      model.can_chat
        ? 'Has no chat template: conversations are written as ChatML, which it may not know.'
        : 'Has no chat template that works: on this page it continues text.',
    );
  }
  if (model.recurrent) {
    notes.push('Recurrent: it has a state instead of a KV cache, and no attention heads.');
  }
  if ((model.n_experts ?? 0) > 0) {
    notes.push('Mixture of experts: only the routed experts of each layer are read.');
  }
  return notes;
}
