// The text of the answer. The streamed tokens may end before the full text: the server holds back
// text that could become a stop string and sends the rest with the run's text (and as a live
// event, which the page does not need).
import type { Run, Token } from '../../net/types';
import { isActive } from '../session/open_session';
import { inAnswer } from '../session/token_origin';

export function streamedText(tokens: readonly (Token | undefined)[]): string {
  return tokens.map((token) => (token && inAnswer(token) ? token.text : '')).join('');
}

// Whether the streamed text is not a prefix of the finished run's text: live events are missing,
// or the recorded tokens include text that a stop string removed.
export function streamDiffers(run: Run | null, tokens: readonly (Token | undefined)[]): boolean {
  return run !== null && !isActive(run.state) && !run.text.startsWith(streamedText(tokens));
}

// The part of the finished run's text after the streamed text; empty if they differ.
export function unstreamedText(run: Run | null, tokens: readonly (Token | undefined)[]): string {
  if (!run || isActive(run.state) || streamDiffers(run, tokens)) return '';
  return run.text.slice(streamedText(tokens).length);
}
