// From what stands in the form to a request, or to the sentence that says what
// is wrong with it. Pure.
import type { GenerateRequest, Message, Model } from '../net/types';
import { err, ok, type Result } from '../result';
import type { Settings } from './settings';

export type PromptMode = 'chat' | 'text' | 'tokens';

export interface Draft {
  readonly message: string; // next one of the conversation
  readonly system: string; // said before the conversation; empty: nothing
  readonly text: string;
  readonly tokens: string;
}

export const emptyDraft: Draft = { message: '', system: '', text: '', tokens: '' };

const wholeNumber = /^\d{1,9}$/;

export type Prompt = Pick<GenerateRequest, 'prompt' | 'messages' | 'tokens'>;

// `said` is the conversation before the draft.
export function promptOf(
  mode: PromptMode,
  draft: Draft,
  said: readonly Message[],
  model: Pick<Model, 'n_vocab'> | null,
): Result<Prompt, string> {
  switch (mode) {
    case 'text':
      return draft.text === '' ? err('Write a prompt first.') : ok({ prompt: draft.text });
    case 'chat': {
      if (draft.message.trim() === '') return err('Write a message first.');
      const system: readonly Message[] =
        draft.system.trim() === '' ? [] : [{ role: 'system', content: draft.system }];
      return ok({ messages: [...system, ...said, { role: 'user', content: draft.message }] });
    }
    case 'tokens': {
      const words = draft.tokens.split(/[\s,]+/).filter((word) => word !== '');
      if (words.length === 0) return err('Write token ids first, for instance: 1 15043 3186');
      const wrong = words.find((word) => !wholeNumber.test(word));
      if (wrong !== undefined) return err(`“${wrong}” is not a token id: ids are whole numbers.`);
      const ids = words.map(Number);
      const most = (model?.n_vocab ?? 0) - 1;
      const outside = most < 0 ? undefined : ids.find((id) => id > most);
      if (outside !== undefined) {
        return err(`${outside} is no token of this model: its ids end at ${most}.`);
      }
      return ok({ tokens: ids });
    }
  }
}

export function requestOf(prompt: Prompt, settings: Settings): Result<GenerateRequest, string> {
  const seed = settings.seed.trim();
  if (seed !== '' && !wholeNumber.test(seed)) {
    return err('The seed is a whole number below a billion, or empty for a random one.');
  }
  const stop = settings.stop
    .split('\n')
    .map((line) => line.replaceAll('\\n', '\n'))
    .filter((line) => line !== '');
  return ok({
    ...prompt,
    max_tokens: settings.maxTokens,
    temperature: settings.temperature,
    top_k: settings.topK,
    top_p: settings.topP,
    min_p: settings.minP,
    repeat_penalty: settings.repeatPenalty,
    repeat_last_n: settings.repeatLastN,
    ...(seed === '' ? {} : { seed: Number(seed) }),
    ...(stop.length === 0 ? {} : { stop }),
    ignore_eos: settings.ignoreEos,
    reuse_prefix: settings.reusePrefix,
    level: settings.level,
    timing: settings.timing,
    ...(settings.level === 'verbose' && settings.statsPattern !== ''
      ? { stats_pattern: settings.statsPattern }
      : {}),
  });
}

// The mode that was chosen, where the model can take it. A model with a chat
// template was trained on conversations, so that is where it begins.
export function promptMode(
  chosen: PromptMode | null,
  model: Pick<Model, 'has_vocabulary' | 'has_chat_template'> | null,
): PromptMode {
  if (!model) return chosen ?? 'text';
  if (model.has_vocabulary === false) return 'tokens';
  const usual = model.has_chat_template ? 'chat' : 'text';
  return chosen === 'chat' ? usual : (chosen ?? usual);
}
