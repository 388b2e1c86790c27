// The answer as text. What streams in pieces may end with less than the whole:
// the server holds back what could become a stop string, and gives the rest
// with the run's text (and as a live event of its own, which is not needed then).
import type { Run, Token } from '../net/types';
import { isActive } from './open_session';

export function streamedText(tokens: readonly (Token | undefined)[]): string {
  return tokens.map((token) => (token?.generated ? token.text : '')).join('');
}

// Whether the pieces are no beginning of the ended run's text: live events did not arrive, or
// recorded tokens show what a stop string cut off.
export function piecesDiffer(run: Run | null, tokens: readonly (Token | undefined)[]): boolean {
  return run !== null && !isActive(run.state) && !run.text.startsWith(streamedText(tokens));
}

// What the ended run's text has beyond the pieces; empty where they differ.
export function tailOf(run: Run | null, tokens: readonly (Token | undefined)[]): string {
  if (!run || isActive(run.state) || piecesDiffer(run, tokens)) return '';
  return run.text.slice(streamedText(tokens).length);
}
