// How surprised the model was by each token that it chose, as one of a few levels, to tint the text.
import type { LensRow } from '../../net/types';
import type { OpenSession } from '../../state/session/open_session';
import { askChosen, hasChosen } from './chosen_tokens';
import { COST_MARKS } from './token_cost';

// In bits: the upper ends of the levels, except the last one.
export const SURPRISE_BITS = [1, 2, 4, 7] as const;

// Whether the session may have captured how likely each token was.
export const hasSurprise = hasChosen;

// By token: 1..5; 0: not known.
export function levelsOf(rows: readonly LensRow[], tokens: number): Uint8Array {
  const levels = new Uint8Array(tokens);
  for (const { token, chosen } of rows) {
    const probability = chosen?.probability ?? 0;
    if (token >= tokens || probability <= 0) continue;
    const bits = -Math.log2(probability);
    const level = SURPRISE_BITS.findIndex((end) => bits < end);
    levels[token] = level < 0 ? COST_MARKS.length : level + 1;
  }
  return levels;
}

// null: the server did not answer.
export async function surpriseLevels(session: OpenSession): Promise<Uint8Array | null> {
  const answer = await askChosen(session);
  return answer.ok ? levelsOf(answer.value.rows, session.data.tokens.length) : null;
}
