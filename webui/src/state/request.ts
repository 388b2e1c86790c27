// From what stands in the form to a request, or to the sentence that says what
// is wrong with it. Pure.
import type { GenerateRequest, Message, Model } from '../net/types';
import { err, ok, type Result } from '../result';
import type { Settings } from './settings';

export type PromptMode = 'text' | 'chat' | 'tokens';

export interface Draft {
  readonly mode: PromptMode;
  readonly text: string;
  readonly messages: readonly Message[];
  readonly tokens: string;
}

export const emptyDraft: Draft = {
  mode: 'text',
  text: '',
  messages: [{ role: 'user', content: '' }],
  tokens: '',
};

const wholeNumber = /^\d{1,9}$/;

export function requestOf(draft: Draft, settings: Settings): Result<GenerateRequest, string> {
  const prompt = promptOf(draft);
  if (!prompt.ok) return prompt;
  const seed = settings.seed.trim();
  if (seed !== '' && !wholeNumber.test(seed)) {
    return err('The seed is a whole number below a billion, or empty for a random one.');
  }
  return ok({
    ...prompt.value,
    max_tokens: settings.maxTokens,
    temperature: settings.temperature,
    top_k: settings.topK,
    top_p: settings.topP,
    min_p: settings.minP,
    repeat_penalty: settings.repeatPenalty,
    ...(seed === '' ? {} : { seed: Number(seed) }),
    ignore_eos: settings.ignoreEos,
    reuse_prefix: settings.reusePrefix,
    level: settings.level,
    timing: settings.timing,
    ...(settings.level === 'verbose' && settings.statsPattern !== ''
      ? { stats_pattern: settings.statsPattern }
      : {}),
  });
}

type Prompt = Pick<GenerateRequest, 'prompt' | 'messages' | 'tokens'>;

function promptOf(draft: Draft): Result<Prompt, string> {
  switch (draft.mode) {
    case 'text':
      return draft.text === '' ? err('Write a prompt first.') : ok({ prompt: draft.text });
    case 'chat': {
      const messages = draft.messages.filter((message) => message.content.trim() !== '');
      return messages.length === 0 ? err('Write a message first.') : ok({ messages });
    }
    case 'tokens': {
      const words = draft.tokens.split(/[\s,]+/).filter((word) => word !== '');
      if (words.length === 0) return err('Write token ids first, for instance: 1 15043 3186');
      const wrong = words.find((word) => !wholeNumber.test(word));
      if (wrong !== undefined) return err(`“${wrong}” is not a token id: ids are whole numbers.`);
      return ok({ tokens: words.map(Number) });
    }
  }
}

// The mode that was chosen, where the model can take it. A model with a chat
// template was trained on conversations, so that is where it begins.
export function promptMode(
  chosen: PromptMode | null,
  model: Pick<Model, 'has_vocabulary' | 'has_chat_template'> | undefined,
): PromptMode {
  if (!model) return chosen ?? 'text';
  if (model.has_vocabulary === false) return 'tokens';
  const usual = model.has_chat_template ? 'chat' : 'text';
  return chosen === 'chat' ? usual : (chosen ?? usual);
}
