// The HTTP half of the one door to the server. Every call gives a Result;
// nothing here throws. An AbortSignal ends a call whose answer nobody wants any
// more; it then gives an error of kind 'aborted'.
import { err, ok, type Result } from '../result';
import { Mismatch, object, optional, str, type Check } from './check';
import * as wire from './types';

export type ApiError =
  | { readonly kind: 'offline'; readonly detail: string } // no answer at all
  | { readonly kind: 'aborted'; readonly detail: string }
  | {
      readonly kind: 'refused';
      readonly status: number;
      readonly title: string;
      readonly detail: string;
    }
  | { readonly kind: 'unexpected'; readonly detail: string }; // not the shape we know

export type Answer<T> = Promise<Result<T, ApiError>>;

const problem = object<{ title?: string; detail?: string }>({
  title: optional(str),
  detail: optional(str),
});

async function call<T>(
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  check: Check<T>,
  options: { body?: unknown; signal?: AbortSignal | undefined } = {},
): Answer<T> {
  try {
    const response = await fetch(`api/v1/${path}`, {
      method,
      signal: options.signal ?? null,
      ...(options.body === undefined
        ? {}
        : { body: JSON.stringify(options.body), headers: { 'content-type': 'application/json' } }),
    });
    const text = await response.text();
    if (!response.ok) return err(refusal(response.status, text));
    return ok(check(JSON.parse(text), ''));
  } catch (cause) {
    return err(failure(cause));
  }
}

function refusal(status: number, text: string): ApiError {
  try {
    const said = problem(JSON.parse(text), '');
    return {
      kind: 'refused',
      status,
      title: said.title ?? `HTTP ${status}`,
      detail: said.detail ?? '',
    };
  } catch {
    return { kind: 'refused', status, title: `HTTP ${status}`, detail: text.slice(0, 200) };
  }
}

function failure(cause: unknown): ApiError {
  if (cause instanceof DOMException && cause.name === 'AbortError') {
    return { kind: 'aborted', detail: 'no longer wanted' };
  }
  if (cause instanceof Mismatch || cause instanceof SyntaxError) {
    return {
      kind: 'unexpected',
      detail: `The server's answer is not understood: ${cause.message}`,
    };
  }
  return { kind: 'offline', detail: 'The server does not answer.' };
}

const id = encodeURIComponent;

export const api = {
  health: () => call('GET', 'health', wire.health),
  models: () => call('GET', 'models', wire.models),
  generate: (body: wire.GenerateRequest) => call('POST', 'generate', wire.run, { body }),
  run: (session: string) => call('GET', `generate/${id(session)}`, wire.run),
  cancel: (session: string) => call('DELETE', `generate/${id(session)}`, wire.run),
  sessions: (offset: number, limit: number) =>
    call('GET', `sessions?limit=${limit}&offset=${offset}`, wire.sessions),
  session: (session: string) => call('GET', `sessions/${id(session)}`, wire.session),
  tokens: (session: string, from: number, limit: number) =>
    call('GET', `sessions/${id(session)}/tokens?from=${from}&limit=${limit}`, wire.tokens),
  steps: (session: string, from: number, limit: number) =>
    call('GET', `sessions/${id(session)}/steps?from=${from}&limit=${limit}`, wire.steps),
  accesses: (session: string, step: number, op: number, signal?: AbortSignal) =>
    call(
      'GET',
      `sessions/${id(session)}/steps/${step}/accesses?op=${op}&limit=1000`,
      wire.accesses,
      {
        signal,
      },
    ),
  ops,
};
export type Api = typeof api;

const OPS_PER_PAGE = 1000;

// Every op of a step, page by page.
async function ops(session: string, step: number, signal?: AbortSignal): Answer<wire.Op[]> {
  const all: wire.Op[] = [];
  for (;;) {
    const path = `sessions/${id(session)}/steps/${step}/ops?from=${all.length}&limit=${OPS_PER_PAGE}`;
    const page = await call('GET', path, wire.ops, { signal });
    if (!page.ok) return page;
    all.push(...page.value.ops);
    if (all.length >= page.value.total || page.value.ops.length === 0) return ok(all);
  }
}

// One sentence for the person who reads the page.
export function sentence(error: ApiError): string {
  if (error.kind !== 'refused') return error.detail;
  return error.detail ? `${error.title}: ${error.detail}` : error.title;
}
