// The messages of /api/v1/live (api/live.md) and their checks.
import { count, nullable, num, object, optional, str, type Check } from './check';
import { runState, stepSummary, token, type RunState, type StepSummary, type Token } from './types';

export type LiveKind = 'token' | 'step' | 'op' | 'progress';

// Index of the next token, the next step, and the next op of that step. The protocol also counts
// routing rows; the page does not subscribe to them.
export interface LivePosition {
  readonly token: number;
  readonly step: number;
  readonly op: number;
}

export interface NewGraphOp {
  readonly step: number;
  readonly op: number;
  readonly operation_type: string;
  readonly tensor_name: string;
  readonly nodes_begun: number;
  readonly graph_nodes: number | null; // of the largest graph; null: unknown
}

interface SessionMessage {
  readonly session: string;
}
export type LiveEvent =
  | {
      readonly type: 'hello';
      readonly protocol: number;
      readonly server?: string;
      readonly window?: number; // maximum unacknowledged bytes
    }
  | ({
      readonly type: 'subscribed';
      readonly number: number;
      readonly from?: LivePosition; // absent for "*"
    } & SessionMessage)
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
      readonly stopped?: string | null; // where; null: it goes on; absent: it has never stopped
      readonly stopped_ahead?: string; // while it is queued: where the running one is
    } & SessionMessage)
  | ({
      readonly type: 'progress';
      readonly prompt_done: number;
      readonly prompt_tokens: number;
      readonly generated: number;
      readonly max_tokens: number;
    } & SessionMessage)
  // The op that runs, of a graph that is seen for the first time.
  | ({ readonly type: 'op' } & NewGraphOp & SessionMessage)
  // Messages skipped since the subscription. `ops` counts steps with skipped ops. `frames` is the
  // sum.
  | ({
      readonly type: 'loss';
      readonly tokens: number;
      readonly steps: number;
      readonly ops: number;
      readonly frames: number;
    } & SessionMessage)
  // Text after the last token of the answer. `index`: number of tokens.
  | ({ readonly type: 'text'; readonly index: number; readonly text: string } & SessionMessage)
  | { readonly type: 'list' } // of sessions: it has changed
  | ({ readonly type: 'token' } & Token & SessionMessage)
  | ({ readonly type: 'step' } & StepSummary & SessionMessage);

const sessionMessage = object<SessionMessage>({ session: str });
const messageType = object<{ type: string }>({ type: str });
const position = object<LivePosition>({ token: count, step: count, op: count });

// For "*" the message counts sessions; this page does not subscribe to "*".
const losses = object<SessionMessage & { [K in keyof LivePosition as `${K}s`]?: number }>({
  session: str,
  tokens: optional(num),
  steps: optional(num),
  ops: optional(num),
});

const liveState = object<Event<'state'>>({
  session: str,
  state: runState,
  position: optional(num),
  stopped: optional(nullable(str)),
  stopped_ahead: optional(str),
});
// The session of a server that was killed: its run counts as failed.
const recoveredAsFailed = (v: unknown): object => {
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
  state: (v, path) => liveState({ ...messageType(v, path), ...recoveredAsFailed(v) }, path),
  progress: object<Event<'progress'>>({
    session: str,
    prompt_done: num,
    prompt_tokens: num,
    generated: num,
    max_tokens: num,
  }),
  op: object<Event<'op'>>({
    session: str,
    step: count,
    op: count,
    operation_type: str,
    tensor_name: str,
    nodes_begun: count,
    graph_nodes: nullable(count),
  }),
  loss: (v, path) => {
    const { session, tokens = 0, steps = 0, ops = 0 } = losses(v, path);
    return { type: 'loss', session, tokens, steps, ops, frames: tokens + steps + ops };
  },
  text: object<Event<'text'>>({ session: str, index: count, text: str }),
  list: object<Event<'list'>>({}),
  token: (v, path) => ({ ...sessionMessage(v, path), ...token(v, path), type: 'token' }),
  step: (v, path) => ({ ...sessionMessage(v, path), ...stepSummary(v, path), type: 'step' }),
};

// Returns null for unknown message types, which a newer server may send.
export const liveEvent: Check<LiveEvent | null> = (v, path) => {
  const { type } = messageType(v, path);
  return type in EVENTS ? EVENTS[type as LiveEvent['type']](v, path) : null;
};
