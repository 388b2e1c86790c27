import { describe, expect, it } from 'vitest';
import { sessionItems } from '../../../src/commands/session_items';
import type { Model } from '../../../src/net/types';
import { examplePrompts } from '../../../src/state/request/examples';
import { promptOf, emptyDraft } from '../../../src/state/request/request';
import { fakeStore } from '../fakes';
import { MODEL } from '../fake_server';

const model = (part: Partial<Model>): Model => ({ ...MODEL, ...part });

describe('examples', () => {
  it.each([
    ['a chat model', model({}), 'chat'],
    ['the bundled model', model({ path: '/x/pocket.gguf' }), 'chat'],
    ['a base model', model({ has_chat_template: false }), 'text'],
    ['an embedding model', model({ embedding_only: true }), 'text'],
    ['a model without a vocabulary', model({ has_vocabulary: false, n_vocab: 100 }), 'tokens'],
  ])('are three valid prompts of %s', (_name, one, mode) => {
    const prompts = examplePrompts(one);
    expect(prompts).toHaveLength(3);
    for (const example of prompts) {
      expect(example.mode).toBe(mode);
      const field = example.mode === 'chat' ? 'message' : example.mode;
      const draft = { ...emptyDraft, [field]: example.text };
      expect(promptOf(example.mode, draft, [], one).ok).toBe(true);
    }
  });
});

it('examples say what a mixture of experts reads', () => {
  const texts = (part: Partial<Model>) =>
    examplePrompts(model(part))
      .map(({ why }) => why)
      .join();
  expect(texts({})).toContain('all weights once');
  expect(texts({ n_experts: 8 })).toContain('the experts chosen for it');
  expect(texts({ n_experts: 8 })).not.toContain('all weights');
  // Not beside a question that it has nothing to do with.
  const kv = examplePrompts(model({ n_experts: 8 })).find(({ text }) => text.includes('KV cache'));
  expect(kv?.why).toContain('memory that grows');
});

describe('the search of a session', () => {
  it('finds nothing without one', () => {
    expect(sessionItems(fakeStore({}), 'attn')).toEqual([]);
  });
});
