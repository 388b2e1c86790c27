// What charts and views ask of a session: routes and SQL statements. An answer that was just read is not read
// again.
import type { ApiResult } from '../../net/api';
import type { Check } from '../../net/check';
import type { Findings, QueryRows } from '../../net/types';
import type { OpenSession } from '../../state/session/open_session';

export type RouteQuery = Readonly<Record<string, string | number | boolean | undefined>>;

export const requestText = (path: string, query: RouteQuery): string => {
  const fields = Object.entries(query).flatMap(([key, value]) =>
    value === undefined ? [] : [`${key}=${encodeURIComponent(value)}`],
  );
  return `${path}${fields.length > 0 ? `?${fields.join('&')}` : ''}`;
};

// An answer of the server; one that was just read is not read again.
export const askRoute = <T>(session: OpenSession, path: string, query: RouteQuery, check: Check<T>): ApiResult<T> =>
  shared(session, requestText(path, query), () =>
    session.context.api.analysis(session.id, path, check, query),
  ); // prettier-ignore

export const askFindings = (session: OpenSession): ApiResult<Findings> =>
  shared(session, 'findings', () => session.context.api.findings(session.id));

export const MAX_ROWS = 10_000;

// A statement's rows; those that were just read are not read again.
export const askRows = (session: OpenSession, sql: string): ApiResult<QueryRows> =>
  shared(session, sql, () => inTurn(() => session.context.api.query(session.id, sql, MAX_ROWS)));

// One statement after the other: the server runs two at a time, and rejects a third.
let last: Promise<unknown> = Promise.resolve();

function inTurn<T>(ask: () => Promise<T>): Promise<T> {
  const turn = last.then(ask);
  last = turn;
  return turn;
}

// Several charts draw parts of one answer. The answers of a session that grows are of its steps so far:
// when it has ended, the server may have more of the same steps.
const answers = new WeakMap<OpenSession, Map<string, { state: string; answer: unknown }>>();
const MAX_ANSWERS = 80;

async function shared<T>(session: OpenSession, key: string, ask: () => ApiResult<T>): ApiResult<T> {
  const known = answers.get(session) ?? new Map<string, { state: string; answer: unknown }>();
  answers.set(session, known);
  const state = `${session.active.peek()} ${session.answeredSteps.peek()}`;
  const before = known.get(key);
  if (before?.state === state) return before.answer as ApiResult<T>;
  const answer = ask();
  known.set(key, { state, answer });
  const oldest = known.keys().next();
  if (known.size > MAX_ANSWERS && !oldest.done) known.delete(oldest.value);
  const result = await answer;
  if (!result.ok) known.delete(key);
  return result;
}
