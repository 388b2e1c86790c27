// Everything that the page shows, as one value, and the only function that
// changes it. What is large and grows (tokens, steps) stands in TraceData; here
// is only its version.
import type { ApiError } from '../net/api';
import type { LiveStatus } from '../net/live';
import type { Access, Health, Model, Op, Run, RunState, Session, SessionPage } from '../net/types';
import { idle, loading, settled, type Loadable, type Result } from '../result';

export type Metric = 'ns' | 'bytes';

export interface OpsOfStep {
  readonly step: number;
  readonly rows: readonly Op[];
}

export interface OpenSession {
  readonly id: string;
  readonly info: Loadable<Session, ApiError>;
  // The request as this server process knows it; null for a recorded session.
  readonly run: Run | null;
  readonly stopping: boolean;
  readonly version: number; // of its TraceData
  readonly lostFrames: number; // live events that did not reach this page
  readonly step: number | null; // selected
  readonly follow: boolean; // the selection moves with the newest step
  // The last ops that arrived stay in view while those of another step load.
  readonly ops: OpsOfStep | null;
  readonly opsLoading: boolean;
  readonly opsError: ApiError | null;
  readonly op: number | null; // selected in the table
  readonly accesses: Loadable<readonly Access[], ApiError>;
}

export interface State {
  readonly health: Health | null; // null until the server has answered
  readonly models: Loadable<readonly Model[], ApiError>;
  readonly live: LiveStatus;
  readonly fault: string | null; // the last message that could not be understood
  readonly sessions: Loadable<SessionPage, ApiError>;
  readonly submit: Loadable<null, ApiError>; // the request that starts a run
  readonly open: OpenSession | null;
}

export const initialState: State = {
  health: null,
  models: idle,
  live: { is: 'connecting' },
  fault: null,
  sessions: idle,
  submit: idle,
  open: null,
};

export type Action =
  | { type: 'healthArrived'; health: Health | null }
  | { type: 'modelsArrived'; result: Result<readonly Model[], ApiError> }
  | { type: 'liveChanged'; live: LiveStatus }
  | { type: 'faultSeen'; detail: string }
  | { type: 'sessionsAsked' }
  | { type: 'sessionsArrived'; result: Result<SessionPage, ApiError>; append: boolean }
  | { type: 'submitted' }
  | { type: 'submitSettled'; error: ApiError | null }
  | { type: 'opened'; id: string; run: Run | null; follow: boolean }
  | { type: 'closed' }
  // The rest is about one session and is ignored when another is open by then.
  | { type: 'infoArrived'; id: string; result: Result<Session, ApiError> }
  | { type: 'runArrived'; id: string; run: Run | null }
  | { type: 'runChanged'; id: string; change: Partial<Run> }
  | { type: 'stopAsked'; id: string }
  | { type: 'stopFailed'; id: string }
  | { type: 'dataArrived'; id: string }
  | { type: 'framesLost'; id: string; frames: number }
  | { type: 'followSet'; id: string; follow: boolean }
  | { type: 'stepSelected'; id: string; step: number | null }
  | { type: 'opsAsked'; id: string; step: number }
  | { type: 'opsArrived'; id: string; step: number; result: Result<readonly Op[], ApiError> }
  | { type: 'opSelected'; id: string; op: number | null }
  | {
      type: 'accessesArrived';
      id: string;
      op: number;
      result: Result<readonly Access[], ApiError>;
    };

export function isActive(state: RunState | undefined): boolean {
  return state === 'queued' || state === 'running';
}

export function reduce(state: State, action: Action): State {
  switch (action.type) {
    case 'healthArrived':
      return { ...state, health: action.health };
    case 'modelsArrived':
      // What is known of the model outlives a server that is away.
      return !action.result.ok && state.models.is === 'ready'
        ? state
        : { ...state, models: settled(action.result) };
    case 'liveChanged':
      return { ...state, live: action.live };
    case 'faultSeen':
      return { ...state, fault: action.detail };
    case 'sessionsAsked':
      return state.sessions.is === 'ready' ? state : { ...state, sessions: loading };
    case 'sessionsArrived':
      return { ...state, sessions: withPage(state.sessions, action.result, action.append) };
    case 'submitted':
      return { ...state, submit: loading };
    case 'submitSettled':
      return { ...state, submit: action.error ? { is: 'failed', error: action.error } : idle };
    case 'opened':
      return { ...state, open: opened(action.id, action.run, action.follow) };
    case 'closed':
      return { ...state, open: null };
    default:
      return state.open?.id === action.id
        ? { ...state, open: reduceOpen(state.open, action) }
        : state;
  }
}

function opened(id: string, run: Run | null, follow: boolean): OpenSession {
  return {
    id,
    info: loading,
    run,
    stopping: false,
    version: 0,
    lostFrames: 0,
    step: null,
    follow,
    ops: null,
    opsLoading: false,
    opsError: null,
    op: null,
    accesses: idle,
  };
}

type OpenAction = Extract<Action, { id: string }> & { type: Exclude<Action['type'], 'opened'> };

function reduceOpen(open: OpenSession, action: OpenAction): OpenSession {
  switch (action.type) {
    case 'infoArrived':
      // A refresh that fails does not take away what is shown.
      return !action.result.ok && open.info.is === 'ready'
        ? open
        : { ...open, info: settled(action.result) };
    case 'runArrived':
      return withRun(open, action.run);
    case 'runChanged':
      return open.run ? withRun(open, { ...open.run, ...action.change }) : open;
    case 'stopAsked':
      return { ...open, stopping: true };
    case 'stopFailed':
      return { ...open, stopping: false };
    case 'dataArrived':
      return { ...open, version: open.version + 1 };
    case 'framesLost':
      return { ...open, lostFrames: action.frames };
    case 'followSet':
      return { ...open, follow: action.follow };
    case 'stepSelected':
      return { ...open, step: action.step, op: null, accesses: idle };
    case 'opsAsked':
      return { ...open, opsLoading: true };
    case 'opsArrived':
      if (open.step !== action.step) return open; // the answer to an older selection
      return withOps({ ...open, opsLoading: false, opsError: null }, action.step, action.result);
    case 'opSelected':
      return { ...open, op: action.op, accesses: action.op === null ? idle : loading };
    case 'accessesArrived':
      return open.op === action.op ? { ...open, accesses: settled(action.result) } : open;
  }
}

function withRun(open: OpenSession, run: Run | null): OpenSession {
  return { ...open, run, stopping: open.stopping && isActive(run?.state) };
}

function withOps(
  open: OpenSession,
  step: number,
  result: Result<readonly Op[], ApiError>,
): OpenSession {
  if (result.ok) return { ...open, ops: { step, rows: result.value } };
  // While it follows a run, the table keeps what it has; the next step comes.
  return open.follow && open.ops ? open : { ...open, ops: null, opsError: result.error };
}

function withPage(
  before: State['sessions'],
  result: Result<SessionPage, ApiError>,
  append: boolean,
): State['sessions'] {
  if (before.is !== 'ready') return settled(result);
  if (!result.ok) return before;
  if (!append) return settled(result);
  const known = new Set(before.value.sessions.map((session) => session.id));
  const more = result.value.sessions.filter((session) => !known.has(session.id));
  return {
    is: 'ready',
    value: { total: result.value.total, sessions: [...before.value.sessions, ...more] },
  };
}
