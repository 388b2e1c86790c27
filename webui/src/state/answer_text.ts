// The answer as text. What streams in pieces may end with less than the whole:
// the server holds back what could become a stop string, and gives the rest
// with the run's text (and as a live event of its own, which is not needed then).
import type { Run, Token } from '../net/types';
import { isActive } from './open_session';

export function streamedText(tokens: readonly (Token | undefined)[]): string {
  return tokens.map((token) => (token?.generated ? token.text : '')).join('');
}

// What the ended run's text has beyond the pieces; empty where the pieces are
// no beginning of it (recorded tokens show what a stop string cut off).
export function tailOf(run: Run | null, tokens: readonly (Token | undefined)[]): string {
  if (!run || isActive(run.state)) return '';
  const streamed = streamedText(tokens);
  return run.text.startsWith(streamed) ? run.text.slice(streamed.length) : '';
}
