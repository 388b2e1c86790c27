// What a token is: of the prompt, of the answer, or of a draft that was not accepted.
import type { Token } from '../../net/types';

// Whether the token is part of an answer, as in_answer() of the server.
export const inAnswer = ({ generated, draft }: Token): boolean =>
  generated && (draft === null || draft === 'accepted');

// A draft that the model would not have written: shown struck through, and no part of the answer.
export const isRejected = ({ draft }: Token): boolean => draft === 'rejected';

// "prompt", "generated", and what became of a draft.
export function originOf({ generated, reused, draft }: Token): string {
  if (reused) return 'prompt, reused from the KV cache';
  if (draft === 'unknown') return 'generated, draft of unknown result';
  if (draft !== null) return `generated, ${draft} draft`;
  return generated ? 'generated' : 'prompt';
}
