// One call to the server, as a Result; nothing here throws. An AbortSignal ends
// a call whose answer nobody wants any more; it then gives an error of kind
// 'aborted'.
import { err, ok, type Result } from '../result';
import { Mismatch, object, optional, str, type Check } from './check';
import type { ProblemCode } from './types';

export type ApiError =
  | { readonly kind: 'offline'; readonly detail: string } // no answer at all
  | { readonly kind: 'aborted'; readonly detail: string }
  | {
      readonly kind: 'refused';
      readonly status: number;
      readonly code: ProblemCode | null; // null: not said by the server itself
      readonly title: string;
      readonly detail: string;
    }
  | { readonly kind: 'unexpected'; readonly detail: string }; // not the shape we know

export type Answer<T> = Promise<Result<T, ApiError>>;

export const OFFLINE: ApiError = { kind: 'offline', detail: 'The server does not answer.' };

export interface CallOptions {
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: unknown; // sent as JSON
  readonly signal?: AbortSignal | undefined;
}

export async function call<T>(
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
  path: string,
  check: Check<T>,
  { query = {}, body, signal }: CallOptions = {},
): Answer<T> {
  try {
    const response = await fetch(`api/v1/${path}${queryText(query)}`, {
      method,
      signal: signal ?? null,
      ...(body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    });
    return answered(response.status, await response.text(), check);
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === 'AbortError') {
      return err({ kind: 'aborted', detail: 'No longer wanted.' });
    }
    return err(OFFLINE);
  }
}

export function queryText(query: NonNullable<CallOptions['query']>): string {
  const fields = Object.entries(query).flatMap(([key, value]) =>
    value === undefined || value === '' ? [] : [[key, String(value)]],
  );
  return fields.length === 0 ? '' : `?${new URLSearchParams(fields).toString()}`;
}

export function answered<T>(status: number, text: string, check: Check<T>): Result<T, ApiError> {
  if (status < 200 || status > 299) return err(refusal(status, text));
  try {
    return ok(check(JSON.parse(text), ''));
  } catch (cause) {
    if (!(cause instanceof Mismatch) && !(cause instanceof SyntaxError)) throw cause;
    const detail = `The server’s answer is not understood: ${cause.message}`;
    return err({ kind: 'unexpected', detail });
  }
}

const problem = object<{ code?: string; title?: string; detail?: string }>({
  code: optional(str),
  title: optional(str),
  detail: optional(str),
});

function refusal(status: number, text: string): ApiError {
  const title = `HTTP ${status}`;
  try {
    const said = problem(JSON.parse(text), '');
    return {
      kind: 'refused',
      status,
      code: (said.code ?? null) as ProblemCode | null,
      title: said.title ?? title,
      detail: said.detail ?? '',
    };
  } catch {
    return { kind: 'refused', status, code: null, title, detail: text.slice(0, 200) };
  }
}

// One sentence for the person who reads the page.
export function sentence(error: ApiError): string {
  if (error.kind !== 'refused') return error.detail;
  return error.detail || error.title;
}

export const isMissing = (error: ApiError): boolean =>
  error.kind === 'refused' && error.status === 404;
