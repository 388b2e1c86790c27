// The messages of /api/v1/live (api/live.md) and the checks that admit them.
import { num, object, optional, str, type Check } from './check';
import type { LivePosition } from './live_position';
import { runState, stepSummary, token, type RunState, type StepSummary, type Token } from './types';

export type LiveKind = 'token' | 'step' | 'op' | 'progress';

interface OfSession {
  readonly session: string;
}
export type LiveEvent =
  | {
      readonly type: 'hello';
      readonly protocol: number;
      readonly server?: string;
      readonly window?: number; // bytes that may be on the way unacknowledged
    }
  | ({
      readonly type: 'subscribed';
      readonly number: number;
      readonly from?: LivePosition; // not of "*"
    } & OfSession)
  | {
      readonly type: 'error';
      readonly code?: string;
      readonly session?: string;
      readonly detail?: string;
    }
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
  // What did not come since the subscription: ops by steps that lack some.
  // `frames`: all of it.
  | ({
      readonly type: 'loss';
      readonly tokens: number;
      readonly steps: number;
      readonly ops: number;
      readonly frames: number;
    } & OfSession)
  // The rest of the answer, which belongs to no token; `index`: how many there are.
  | ({ readonly type: 'text'; readonly index: number; readonly text: string } & OfSession)
  | ({ readonly type: 'token' } & Token & OfSession)
  | ({ readonly type: 'step' } & StepSummary & OfSession);

const ofSession = object<OfSession>({ session: str });
const typed = object<{ type: string }>({ type: str });
const position = object<LivePosition>({ token: num, step: num, op: num });

// Of "*" it counts sessions, which this page does not ask for.
const losses = object<OfSession & { [K in keyof LivePosition as `${K}s`]?: number }>({
  session: str,
  tokens: optional(num),
  steps: optional(num),
  ops: optional(num),
});

const liveState = object<Event<'state'>>({
  session: str,
  state: runState,
  position: optional(num),
});
// A session that a killed server left behind: for its run, that is a failure.
const unrecovered = (v: unknown): object => {
  const from = v as { readonly state?: unknown };
  return from.state === 'recovered' ? { ...from, state: 'failed' } : from;
};

type Event<T extends LiveEvent['type']> = Extract<LiveEvent, { type: T }>;
const EVENTS: { readonly [T in LiveEvent['type']]: Check<Event<T>> } = {
  hello: object<Event<'hello'>>({ protocol: num, window: optional(num) }),
  subscribed: object<Event<'subscribed'>>({ session: str, number: num, from: optional(position) }),
  error: object<Event<'error'>>({
    code: optional(str),
    session: optional(str),
    detail: optional(str),
  }),
  state: (v, path) => liveState({ ...typed(v, path), ...unrecovered(v) }, path),
  progress: object<Event<'progress'>>({
    session: str,
    prompt_done: num,
    prompt_tokens: num,
    generated: num,
    max_tokens: num,
  }),
  loss: (v, path) => {
    const { session, tokens = 0, steps = 0, ops = 0 } = losses(v, path);
    return { type: 'loss', session, tokens, steps, ops, frames: tokens + steps + ops };
  },
  text: object<Event<'text'>>({ session: str, index: num, text: str }),
  token: (v, path) => ({ ...ofSession(v, path), ...token(v, path), type: 'token' }),
  step: (v, path) => ({ ...ofSession(v, path), ...stepSummary(v, path), type: 'step' }),
};

// Null for a type of message that this page does not know: a newer server may
// send more.
export const liveEvent: Check<LiveEvent | null> = (v, path) => {
  const { type } = typed(v, path);
  return type in EVENTS ? EVENTS[type as LiveEvent['type']](v, path) : null;
};
