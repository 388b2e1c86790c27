// Prompts that a model can answer, for the first minute. Pure functions.
import type { Model } from '../../net/types';
import type { PromptMode } from './request';

export interface ExamplePrompt {
  readonly mode: PromptMode;
  readonly text: string;
  readonly why: string; // what one sees in its run
}

const ask = (mode: PromptMode, text: string, why: string): ExamplePrompt => ({ mode, text, why });

// What one token reads.
const passOf = ({ n_experts: experts = 0 }: Model): string =>
  experts > 0 ? 'each word reads the experts chosen for it' : 'each word reads all weights once';

const KV_CACHE = 'about the memory that grows with each word';

// The bundled model was trained on these questions.
const BUNDLED = /(^|\/)pocket(\.gguf)?$/;

export function examplePrompts(model: Model): readonly ExamplePrompt[] {
  if (model.has_vocabulary === false) {
    return [
      ask('tokens', '1 2 3', 'three tokens, one pass for the prompt'),
      ask('tokens', '1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16', 'a longer prompt in one pass'),
      ask('tokens', '1 1 1 1', 'the same token again and again'),
    ];
  }
  if (model.embedding_only) {
    return [
      ask('text', 'A cat sleeps on the warm roof.', 'one pass through all layers'),
      ask('text', 'memory', 'the smallest input'),
      ask('text', 'The model reads every weight once for each text, however long the text is.', 'a longer input costs more time, not more weights'), // prettier-ignore
    ];
  }
  const pass = passOf(model);
  if (BUNDLED.test(model.path) || model.name === 'pocket') {
    return [
      ask('chat', 'What is the KV cache?', KV_CACHE),
      ask('chat', 'What is a cache?', `a short answer: ${pass}`),
      ask('chat', 'Tell me a story about a fox.', 'a long answer: the KV cache grows'),
    ];
  }
  if (model.has_chat_template) {
    return [
      ask('chat', 'What is the KV cache?', KV_CACHE),
      ask('chat', 'Count from 1 to 20.', `a regular answer: ${pass}`),
      ask('chat', 'Tell me a story about a fox.', 'a long answer: the KV cache grows'),
    ];
  }
  return [
    ask('text', 'Once upon a time', `a story: ${pass}`),
    ask('text', 'The capital of France is', 'a sentence to complete'),
    ask('text', '1, 2, 3, 4, 5,', 'the same pass again and again'),
  ];
}
