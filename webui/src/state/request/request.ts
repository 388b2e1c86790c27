// Converts the form into a request, or returns an error message. Pure functions.
import type { GenerateRequest, Message, Model } from '../../net/types';
import { err, ok, type Result } from '../../result';
import type { Settings } from './settings';

export type PromptMode = 'chat' | 'text' | 'tokens';

export interface Draft {
  readonly message: string; // next message of the conversation
  readonly system: string; // system message; empty: none
  readonly text: string;
  readonly tokens: string;
}

export const emptyDraft: Draft = { message: '', system: '', text: '', tokens: '' };

const RESIDENCY_INTERVAL_MS = 1000;

const wholeNumber = /^\d{1,9}$/;

export type Prompt = Pick<GenerateRequest, 'prompt' | 'messages' | 'tokens'>;

// `history`: the earlier messages of the conversation.
export function promptOf(
  mode: PromptMode,
  draft: Draft,
  history: readonly Message[],
  model: Pick<Model, 'n_vocab'> | null,
): Result<Prompt, string> {
  switch (mode) {
    case 'text':
      return draft.text === '' ? err('Write a prompt first.') : ok({ prompt: draft.text });
    case 'chat': {
      if (draft.message.trim() === '') return err('Write a message first.');
      const system: readonly Message[] =
        draft.system.trim() === '' ? [] : [{ role: 'system', content: draft.system }];
      return ok({ messages: [...system, ...history, { role: 'user', content: draft.message }] });
    }
    case 'tokens': {
      const words = draft.tokens.split(/[\s,]+/).filter((word) => word !== '');
      if (words.length === 0) return err('Write token IDs first, for example: 1 15043 3186');
      const wrong = words.find((word) => !wholeNumber.test(word));
      if (wrong !== undefined) return err(`“${wrong}” is not a token ID: IDs are whole numbers.`);
      const ids = words.map(Number);
      const maxId = (model?.n_vocab ?? 0) - 1;
      const outside = maxId < 0 ? undefined : ids.find((id) => id > maxId);
      if (outside !== undefined) {
        return err(`${outside} is not a token ID of this model; the maximum is ${maxId}.`);
      }
      return ok({ tokens: ids });
    }
  }
}

// Further fields of a request, as JSON. The server checks their names and values.
function moreSampling(text: string): Result<object, string> {
  const wrong = err(
    'More samplers must be a JSON object with fields of a request, for example {"dry_multiplier": 0.8, "mirostat": 2}.',
  );
  if (text.trim() === '') return ok({});
  try {
    const fields: unknown = JSON.parse(text);
    return typeof fields === 'object' && fields !== null && !Array.isArray(fields)
      ? ok(fields)
      : wrong;
  } catch {
    return wrong;
  }
}

// What a run captures for charts, each a setting, and the rule of the request.
export const CAPTURES = ['attention', 'lens', 'residual', 'router'] as const;
export type Capture = (typeof CAPTURES)[number];
// The beginning of what each setting is called.
export const CAPTURE_TITLES: Readonly<Record<Capture, string>> = {
  attention: 'Attention weights',
  lens: 'Logit lens',
  residual: 'Residual stream',
  router: 'Router scores',
};
const CAPTURE_RULES: Readonly<Record<Capture, string>> = {
  attention: 'attention',
  lens: 'lens',
  residual: 'l_out|ffn_inp|embd',
  router: 'router',
};

// Whether the request of a session captures it, by the facts of the session.
export const isCaptured = (facts: Readonly<Record<string, string>> | undefined, what: Capture): boolean =>
  Object.entries(facts ?? {}).some(
    ([name, rule]) =>
      name.startsWith('request.capture.') &&
      (rule === CAPTURE_RULES[what] || rule.startsWith(`${CAPTURE_RULES[what]}@`)),
  ); // prettier-ignore

// Recordings of the level minimal have no values.
export const hasValues = ({ level }: Pick<Settings, 'level'>): boolean =>
  level === 'detailed' || level === 'verbose';
// The settings with which the next run captures it.
export const withCapture = (settings: Pick<Settings, 'level'>, what: Capture): Partial<Settings> => ({
  [what]: true,
  ...(hasValues(settings) ? {} : { level: 'detailed' as const }),
}); // prettier-ignore
export const capturesOf = (settings: Settings): readonly Capture[] =>
  hasValues(settings) ? CAPTURES.filter((capture) => settings[capture]) : [];
// The rules that the user wrote.
export const ownRulesOf = (settings: Settings): readonly string[] =>
  hasValues(settings) ? settings.captureRules.split(/\s+/).filter((rule) => rule !== '') : [];

export function requestOf(prompt: Prompt, settings: Settings): Result<GenerateRequest, string> {
  const seed = settings.seed.trim();
  if (seed !== '' && !wholeNumber.test(seed)) {
    return err('The seed must be a whole number below 1,000,000,000, or empty for a random seed.');
  }
  const more = moreSampling(settings.moreSampling);
  if (!more.ok) return more;
  const stop = settings.stop
    .split('\n')
    .map((line) => line.replaceAll('\\n', '\n'))
    .filter((line) => line !== '');
  const capture = [
    ...capturesOf(settings).map((chosen) => CAPTURE_RULES[chosen]),
    ...ownRulesOf(settings),
  ];
  return ok({
    ...prompt,
    max_tokens: settings.maxTokens,
    temperature: settings.temperature,
    top_k: settings.topK,
    top_p: settings.topP,
    min_p: settings.minP,
    repeat_penalty: settings.repeatPenalty,
    repeat_last_n: settings.repeatLastN,
    ...more.value,
    ...(seed === '' ? {} : { seed: Number(seed) }),
    ...(stop.length === 0 ? {} : { stop }),
    ignore_eos: settings.ignoreEos,
    reuse_prefix: settings.reusePrefix,
    level: settings.level,
    timing: settings.timing,
    ...(settings.minorFaults ? { minor_faults: true } : {}),
    ...(settings.residency ? { residency_interval_ms: RESIDENCY_INTERVAL_MS } : {}),
    ...(capture.length > 0 ? { capture } : {}),
    ...(settings.level === 'verbose' && settings.statsPattern !== ''
      ? { stats_pattern: settings.statsPattern }
      : {}),
  });
}

// The selected mode if the model supports it. The default is chat for models with a chat template.
export function promptMode(
  chosen: PromptMode | null,
  model: Pick<Model, 'has_vocabulary' | 'has_chat_template' | 'can_chat'> | null,
): PromptMode {
  if (!model) return chosen ?? 'text';
  if (model.has_vocabulary === false) return 'tokens';
  const defaultMode = model.has_chat_template ? 'chat' : 'text';
  return chosen === 'chat' && !model.can_chat ? defaultMode : (chosen ?? defaultMode);
}
