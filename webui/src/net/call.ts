// One call to the server, returned as a Result. Nothing here throws on a failed call. An aborted
// AbortSignal cancels the call, which then returns an error of kind 'aborted'.
import { err, ok, type Result } from '../result';
import { Mismatch, num, object, optional, str, type Check } from './check';
import type { ProblemCode } from './types';

export interface Rejection {
  readonly kind: 'rejected';
  readonly status: number;
  readonly code: ProblemCode | null; // null: the response is not from tt-server
  readonly title: string;
  readonly detail: string;
  readonly retryAfterMs?: number; // Retry-After
  readonly position?: number; // byte offset of the error in an SQL statement
  readonly progress?: ReadProgress; // of the computation that the server goes on with
}

// How far the server is with an answer that takes long.
export interface ReadProgress {
  readonly readBytes: number;
  readonly allBytes: number;
}

export type ApiError =
  | { readonly kind: 'offline'; readonly detail: string } // no response
  | { readonly kind: 'aborted'; readonly detail: string }
  | Rejection
  | { readonly kind: 'unexpected'; readonly detail: string }; // does not match the schema

export type ApiResult<T> = Promise<Result<T, ApiError>>;

export const OFFLINE: ApiError = { kind: 'offline', detail: 'The server does not respond.' };
export const ABORTED: ApiError = { kind: 'aborted', detail: 'Cancelled.' };

export interface CallOptions {
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown; // sent as JSON
  readonly signal?: AbortSignal | undefined;
  // Called while the server computes the answer, if it says how far it is.
  readonly progress?: ((progress: ReadProgress) => void) | undefined;
}

// A request as it is sent.
export interface Ask {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly target: string; // path and query below /api/v1/
  readonly body: string | null; // JSON
}

// Where the answers come from: the server, or the file that holds the page (file/held_session.ts).
// Rejects as fetch does.
export type Send = (ask: Ask, signal: AbortSignal | null) => Promise<Response>;

export const sendToServer: Send = ({ method, target, body }, signal) =>
  fetch(`api/v1/${target}`, {
    method,
    signal,
    ...(body === null ? {} : { body, headers: { 'content-type': 'application/json' } }),
  });

const sendTo = (
  send: Send,
  method: Ask['method'],
  path: string,
  { query = {}, body, signal }: CallOptions,
): Promise<Response> => {
  const text = body === undefined ? null : JSON.stringify(body);
  return send({ method, target: `${path}${queryText(query)}`, body: text }, signal ?? null);
};

export async function call<T>(
  send: Send,
  method: Ask['method'],
  path: string,
  check: Check<T>,
  options: CallOptions = {},
): ApiResult<T> {
  try {
    const response = await sendTo(send, method, path, options);
    const answer = parseResponse(response.status, await response.text(), check);
    return answer.ok ? answer : err(withRetryAfter(answer.error, response));
  } catch (cause) {
    return err(failureOf(cause));
  }
}

// A call whose response is a binary frame.
export async function callBinary<T>(
  send: Send,
  path: string,
  decode: (body: ArrayBuffer) => Result<T, string>,
  options: CallOptions = {},
): ApiResult<T> {
  try {
    const response = await sendTo(send, 'GET', path, options);
    if (!response.ok) {
      const problem = parseProblem(response.status, await response.text());
      return err(withRetryAfter(problem, response));
    }
    const decoded = decode(await response.arrayBuffer());
    return decoded.ok
      ? decoded
      : err({ kind: 'unexpected', detail: `Invalid server response: ${decoded.error}` });
  } catch (cause) {
    return err(failureOf(cause));
  }
}

function failureOf(cause: unknown): ApiError {
  return cause instanceof DOMException && cause.name === 'AbortError' ? ABORTED : OFFLINE;
}

function withRetryAfter(error: ApiError, response: Response): ApiError {
  const seconds = Number(response.headers.get('retry-after') ?? NaN);
  return error.kind === 'rejected' && seconds >= 0
    ? { ...error, retryAfterMs: 1000 * seconds }
    : error;
}

export function queryText(query: NonNullable<CallOptions['query']>): string {
  const fields = Object.entries(query).flatMap(([key, value]) =>
    value === undefined || value === '' ? [] : [[key, String(value)]],
  );
  return fields.length === 0 ? '' : `?${new URLSearchParams(fields).toString()}`;
}

export function parseResponse<T>(
  status: number,
  text: string,
  check: Check<T>,
): Result<T, ApiError> {
  if (status < 200 || status > 299) return err(parseProblem(status, text));
  try {
    return ok(check(JSON.parse(text), ''));
  } catch (cause) {
    if (!(cause instanceof Mismatch) && !(cause instanceof SyntaxError)) throw cause;
    const detail = `Invalid server response: ${cause.message}`;
    return err({ kind: 'unexpected', detail });
  }
}

const problem = object<{
  code?: string;
  title?: string;
  detail?: string;
  position?: number;
  progress?: { read_bytes: number; all_bytes: number };
}>({
  code: optional(str),
  title: optional(str),
  detail: optional(str),
  position: optional(num),
  progress: optional(object({ read_bytes: num, all_bytes: num })),
});

function parseProblem(status: number, text: string): ApiError {
  const title = `HTTP ${status}`;
  try {
    const parsed = problem(JSON.parse(text), '');
    const { progress } = parsed;
    return {
      kind: 'rejected',
      status,
      code: (parsed.code ?? null) as ProblemCode | null,
      title: parsed.title ?? title,
      detail: parsed.detail ?? '',
      ...(parsed.position === undefined ? {} : { position: parsed.position }),
      ...(progress
        ? { progress: { readBytes: progress.read_bytes, allBytes: progress.all_bytes } }
        : {}),
    };
  } catch {
    return { kind: 'rejected', status, code: null, title, detail: text.slice(0, 200) };
  }
}

export interface ServerFile {
  readonly name: string | null; // null: the server gave none
  readonly bytes: Blob;
}

// Bytes received so far, and all of them; null: the server does not know yet.
export type FileProgress = (received: number, all: number | null) => void;

// A call whose response is a file, which may be larger than the memory: the browser may keep a Blob
// on disk. The body is sent with POST. A response that ends before its last byte is an error.
export async function callFile(
  send: Send,
  path: string,
  options: CallOptions,
  progress: FileProgress,
): ApiResult<ServerFile> {
  let hasBegun = false;
  try {
    const method = options.body === undefined ? 'GET' : 'POST';
    const response = await sendTo(send, method, path, options);
    if (!response.ok) {
      const error = parseProblem(response.status, await response.text());
      return err(withRetryAfter(error, response));
    }
    hasBegun = true;
    const name = /filename="([^"]+)"/.exec(response.headers.get('content-disposition') ?? '');
    return ok({ name: name?.[1] ?? null, bytes: await readFile(response, progress) });
  } catch (cause) {
    const error = failureOf(cause);
    return err(hasBegun && error.kind === 'offline' ? CUT_OFF : error);
  }
}

const CUT_OFF: ApiError = {
  kind: 'unexpected',
  detail: 'The server ended the file before it was complete.',
};
const PART_BYTES = 16 << 20; // held in memory

async function readFile(response: Response, progress: FileProgress): Promise<Blob> {
  // The length of an encoded response is that of other bytes.
  const length = response.headers.has('content-encoding')
    ? null
    : response.headers.get('content-length');
  const all = length === null ? null : Number(length);
  const type = response.headers.get('content-type') ?? '';
  const parts: Blob[] = [];
  let latest: Uint8Array<ArrayBuffer>[] = [];
  let [received, inLatest] = [0, 0];
  const endPart = (): void => {
    parts.push(new Blob(latest));
    [latest, inLatest] = [[], 0];
  };
  const reader = response.body?.getReader();
  for (;;) {
    const chunk = await reader?.read();
    if (chunk?.value === undefined) break;
    latest.push(chunk.value);
    received += chunk.value.length;
    inLatest += chunk.value.length;
    if (inLatest >= PART_BYTES) endPart();
    progress(received, all);
  }
  endPart();
  return new Blob(parts, { type });
}

// A file of the page itself.
export async function pageFile(path: string): ApiResult<Blob> {
  try {
    const response = await fetch(path);
    if (!response.ok) return err(parseProblem(response.status, ''));
    return ok(await response.blob());
  } catch {
    return err(OFFLINE);
  }
}

// The error message shown to the user.
export function errorText(error: ApiError): string {
  if (error.kind !== 'rejected') return error.detail;
  return error.detail || error.title;
}

// The server rejects some requests while others of their kind run.
const BUSY: readonly (ProblemCode | null)[] = ['queries_busy', 'too_many_connections'];

export const isBusy = (error: ApiError): error is Rejection =>
  error.kind === 'rejected' && BUSY.includes(error.code);

// A file without a server has no answer to this question (file/held_session.ts): to ask again is no use.
export const NOT_HELD_STATUS = 501;
export const isNotHeld = (error: ApiError): boolean =>
  error.kind === 'rejected' && error.status === NOT_HELD_STATUS;

export const isNotFound = (error: ApiError): boolean =>
  error.kind === 'rejected' && error.status === 404;
