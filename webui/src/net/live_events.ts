// The messages of /api/v1/live (api/live.md) and the checks that admit them.
import { num, object, optional, str, type Check } from './check';
import { runState, stepSummary, token, type RunState, type StepSummary, type Token } from './types';

export type LiveKind = 'token' | 'step' | 'op' | 'progress';

interface OfSession {
  readonly session: string;
}
export type LiveEvent =
  | { readonly type: 'hello'; readonly protocol: number; readonly server?: string }
  | ({ readonly type: 'subscribed'; readonly number: number } & OfSession)
  | { readonly type: 'error'; readonly code?: string; readonly detail?: string }
  | ({
      readonly type: 'state';
      readonly state: RunState;
      readonly position?: number;
      readonly error?: string | null;
    } & OfSession)
  | ({
      readonly type: 'progress';
      readonly prompt_done: number;
      readonly prompt_tokens: number;
      readonly generated: number;
      readonly max_tokens: number;
    } & OfSession)
  | ({ readonly type: 'loss'; readonly frames: number } & OfSession)
  | ({ readonly type: 'token' } & Token & OfSession)
  | ({ readonly type: 'step' } & StepSummary & OfSession);

type Event<T extends LiveEvent['type']> = Extract<LiveEvent, { type: T }>;
const EVENTS: { readonly [T in LiveEvent['type']]: Check<Event<T>> } = {
  hello: object<Event<'hello'>>({ protocol: num }),
  subscribed: object<Event<'subscribed'>>({ session: str, number: num }),
  error: object<Event<'error'>>({ code: optional(str), detail: optional(str) }),
  state: object<Event<'state'>>({ session: str, state: runState, position: optional(num) }),
  progress: object<Event<'progress'>>({
    session: str,
    prompt_done: num,
    prompt_tokens: num,
    generated: num,
    max_tokens: num,
  }),
  loss: object<Event<'loss'>>({ session: str, frames: num }),
  token: (v, path) => ({ ...ofSession(v, path), ...token(v, path), type: 'token' }),
  step: (v, path) => ({ ...ofSession(v, path), ...stepSummary(v, path), type: 'step' }),
};
const ofSession = object<OfSession>({ session: str });
const typed = object<{ type: string }>({ type: str });

// Null for a type of message that this page does not know: a newer server may
// send more.
export const liveEvent: Check<LiveEvent | null> = (v, path) => {
  const { type } = typed(v, path);
  return type in EVENTS ? EVENTS[type as LiveEvent['type']](v, path) : null;
};
