// How many tokens a run can generate. Pure functions.
import type { Model, Run } from '../../net/types';
import type { Store } from '../store';

export interface RunLimit {
  readonly tokens: number;
  readonly isContext: boolean; // the context is full before the token limit of the request
}

type Known = Pick<Run, 'max_tokens' | 'prompt_tokens'>;

// The last token needs no room in the context: it is not evaluated. The prompt of an encoder is not
// in the context of the decoder.
export function runLimit(
  { max_tokens: wanted, prompt_tokens: prompt }: Known,
  model: Pick<Model, 'context' | 'has_encoder'> | null,
): RunLimit {
  const { context = 0, has_encoder: hasEncoder = false } = model ?? {};
  const room = context > 0 && prompt > 0 && !hasEncoder ? context - prompt + 1 : Infinity;
  return room < wanted
    ? { tokens: Math.max(0, room), isContext: true }
    : { tokens: wanted, isContext: false };
}

// Of a run of a model that the server has.
export function limitOf({ models }: Pick<Store, 'models'>, run: Run): RunLimit {
  const list = models.list.value;
  const known = list.is === 'ready' ? list.value.models : [];
  return runLimit(run, known.find(({ id }) => id === run.model) ?? null);
}
