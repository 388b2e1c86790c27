// The wire types of the server's HTTP and live interface, as checks: each type
// is derived from the check that admits it. Times (`_ns`) are nanoseconds since
// the session's start (exact in a double for 104 days), sizes are bytes.
import {
  anything,
  bool,
  list,
  map,
  nullable,
  num,
  object,
  oneOf,
  or,
  str,
  type Check,
  type Checked,
} from './check';

export const health = object({
  status: oneOf('ok', 'loading'),
  version: str,
  model: nullable(str),
  load_progress: or(0, num),
});
export type Health = Checked<typeof health>;

export const model = object({
  name: str,
  path: str,
  size_bytes: num,
  state: oneOf('available', 'loading', 'loaded', 'failed'),
  load_progress: or(0, num),
  error: nullable(str),
  description: or('', str),
  architecture: or('', str),
  n_layers: or(0, num),
  n_embd: or(0, num),
  n_heads: or(0, num),
  n_heads_kv: or(0, num),
  n_experts: or(0, num),
  n_experts_used: or(0, num),
  n_vocab: or(0, num),
  context: or(0, num),
  has_vocabulary: or(true, bool),
  has_chat_template: or(false, bool),
  has_encoder: or(false, bool),
  embedding_only: or(false, bool),
  recurrent: or(false, bool),
  hybrid: or(false, bool),
  threads: or(0, num),
});
export type Model = Checked<typeof model>;
export const models = object({ models: list(model) });

const runState = oneOf('queued', 'running', 'done', 'cancelled', 'failed');
export type RunState = Checked<typeof runState>;

export const accepted = object({ id: str, state: runState, position: or(0, num) });
export type Accepted = Checked<typeof accepted>;

export const run = object({
  id: str,
  state: runState,
  position: or(0, num),
  prompt_tokens: or(0, num),
  prompt_done: or(0, num),
  generated: or(0, num),
  max_tokens: or(0, num),
  text: or('', str),
  stop_reason: nullable(str),
  error: nullable(str),
});
export type Run = Checked<typeof run>;

export const session = object({
  id: str,
  title: or('', str),
  state: str,
  error: nullable(str),
  start_utc_ns: num,
  level: or('', str),
  exact_timing: or(false, bool),
  n_layers: or(0, num),
  steps: or(0, num),
  tokens: or(0, num),
  file_bytes: or(0, num),
  losses: or({}, map(num)),
  facts: or({}, map(anything)),
});
export type Session = Checked<typeof session>;
export const sessions = object({ total: num, sessions: list(session) });
export type SessionPage = Checked<typeof sessions>;

export const token = object({
  index: num,
  id: num,
  position: or(0, num),
  generated: or(false, bool),
  reused: or(false, bool),
  text: or('', str),
});
export type Token = Checked<typeof token>;
export const tokens = object({ total: num, tokens: list(token) });
export type TokenPage = Checked<typeof tokens>;

// `layers` has one entry per layer and a last one for ops outside of any layer.
export const stepSummary = object({
  step: num,
  phase: str,
  timing: str,
  template: or(0, num),
  begin_ns: num,
  end_ns: num,
  first_token: num,
  n_tokens: num,
  ops: or(0, num),
  accesses: or(0, num),
  bytes_read: or(0, num),
  bytes_written: or(0, num),
  dropped: or(false, bool),
  aborted: or(false, bool),
  layers: object({ ns: list(num), bytes: list(num) }),
});
export type StepSummary = Checked<typeof stepSummary>;
export const steps = object({ total: num, steps: list(stepSummary) });
export type StepPage = Checked<typeof steps>;

const opSource = object({
  tensor: str,
  type: or('', str),
  shape: or([], list(num)),
  kind: or('', str),
  source: or('', str),
});
export type OpSource = Checked<typeof opSource>;

export const op = object({
  op: num,
  name: str,
  tensor: or('', str),
  type: or('', str),
  shape: or([], list(num)),
  layer: nullable(num),
  component: or('', str),
  role: or('', str),
  device: or('', str),
  begin_ns: num,
  end_ns: num,
  nodes: or(1, num),
  bytes_read: or(0, num),
  bytes_written: or(0, num),
  sources: or([], list(opSource)),
});
export type Op = Checked<typeof op>;
export const ops = object({ total: num, ops: list(op) });
export type OpPage = Checked<typeof ops>;

const fileRange = object({ index: num, offset: num, length: num });
export const access = object({
  op: num,
  tensor: str,
  kind: or('', str),
  write: or(false, bool),
  bytes: or(0, num),
  source: or('', str),
  file: nullable(fileRange),
  address: nullable(str),
  component: or('', str),
  role: or('', str),
  category: or('', str),
  expert: nullable(num),
  rank: nullable(num),
  score: nullable(num),
});
export type Access = Checked<typeof access>;
export const accesses = object({ total: num, accesses: list(access) });
export type AccessPage = Checked<typeof accesses>;

// What the page asks the server to do.
export type Level = 'off' | 'minimal' | 'detailed' | 'verbose';
export type TimingMode = 'fast' | 'exact';
export interface Message {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: string;
}
export interface GenerateRequest {
  readonly prompt?: string;
  readonly messages?: readonly Message[];
  readonly tokens?: readonly number[];
  readonly max_tokens: number;
  readonly temperature: number;
  readonly top_k: number;
  readonly top_p: number;
  readonly min_p: number;
  readonly repeat_penalty: number;
  readonly seed?: number;
  readonly ignore_eos: boolean;
  readonly reuse_prefix: boolean;
  readonly level: Level;
  readonly timing: TimingMode;
  readonly stats_pattern?: string;
}

// What the server says over /api/v1/live.
export type LiveKind = 'token' | 'step' | 'op' | 'progress';

const ofSession = { session: str };
const helloEvent = object({ type: oneOf('hello'), protocol: num, server: or('', str) });
const subscribedEvent = object({ type: oneOf('subscribed'), ...ofSession, number: num });
const errorEvent = object({ type: oneOf('error'), code: or('', str), detail: or('', str) });
const stateEvent = object({
  type: oneOf('state'),
  ...ofSession,
  state: runState,
  position: or(0, num),
  error: nullable(str),
});
const progressEvent = object({
  type: oneOf('progress'),
  ...ofSession,
  prompt_done: num,
  prompt_tokens: num,
  generated: num,
  max_tokens: num,
});
const lossEvent = object({ type: oneOf('loss'), ...ofSession, frames: num });
const eventType = object({ type: str });

export type LiveEvent =
  | Checked<typeof helloEvent>
  | Checked<typeof subscribedEvent>
  | Checked<typeof errorEvent>
  | Checked<typeof stateEvent>
  | Checked<typeof progressEvent>
  | Checked<typeof lossEvent>
  | { readonly type: 'token'; readonly session: string; readonly token: Token }
  | { readonly type: 'step'; readonly session: string; readonly step: StepSummary };

const sessionField = object(ofSession);

// Null for a kind of event that this page does not know: a newer server may
// send more.
export const liveEvent: Check<LiveEvent | null> = (v, path) => {
  switch (eventType(v, path).type) {
    case 'hello':
      return helloEvent(v, path);
    case 'subscribed':
      return subscribedEvent(v, path);
    case 'error':
      return errorEvent(v, path);
    case 'state':
      return stateEvent(v, path);
    case 'progress':
      return progressEvent(v, path);
    case 'loss':
      return lossEvent(v, path);
    case 'token':
      return { type: 'token', ...sessionField(v, path), token: token(v, path) };
    case 'step':
      return { type: 'step', ...sessionField(v, path), step: stepSummary(v, path) };
    default:
      return null;
  }
};
