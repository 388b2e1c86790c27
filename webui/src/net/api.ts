// The client: one function per route of api/openapi.yaml that the page uses.
import { ok, type Result } from '../result';
import type { WhileBusy } from './busy';
import type { Check } from './check';
import {
  call,
  callBinary,
  callFile,
  pageFile,
  type ApiError,
  type ApiResult,
  type CallOptions,
  type FileProgress,
  type Send,
} from './call';
import { decodePicture, decodeWeightsPicture } from './frames';
import { decodeSteps } from './step_columns';
import * as wire from './types';
import { upload } from './upload';

export type { ApiResult, ApiError, FileProgress, ReadProgress } from './call';
export { isNotFound, isNotHeld, errorText } from './call';

// What errors of weights are weighed by; null: nothing.
export interface Weighing {
  readonly imatrix: string | null; // a file of llama-imatrix
  readonly session: string | null; // how often it read each row
}
const weighedBy = ({ imatrix, session }: Weighing) => ({
  ...(imatrix === null ? {} : { imatrix }),
  ...(session === null ? {} : { session }),
});

// Of a request that reads much.
export type LoadOptions = Pick<CallOptions, 'signal' | 'progress'>;

const id = encodeURIComponent;
export const MAX_PAGE_ROWS = 10_000; // maximum `limit` of the server
export const MAX_QUERY_ROWS = 1_000_000; // of a statement

// So many steps from `from`, or the last ones of the session.
export type StepPart =
  { readonly from: number; readonly limit: number } | { readonly last: number };

// `whileBusy` repeats requests that only read.
export function createApi(send: Send, whileBusy: WhileBusy) {
  const get = <T>(path: string, check: Check<T>, options: CallOptions = {}): ApiResult<T> =>
    whileBusy(() => call(send, 'GET', path, check, options), options.signal, options.progress);
  return {
    health: () => get('health', wire.health),
    server: () => get('server', wire.server),
    models: () => get('models', wire.models),
    load: (model: string) => call(send, 'POST', `models/${id(model)}/load`, wire.model),
    unload: (model: string) => call(send, 'POST', `models/${id(model)}/unload`, wire.model),
    gguf: (model: string, signal?: AbortSignal) =>
      get(`models/${id(model)}/gguf`, wire.gguf, { signal }),
    weights: (model: string, load: LoadOptions = {}) =>
      get(`models/${id(model)}/weights`, wire.weights, load),
    tensorWeights: (model: string, name: string, load: LoadOptions = {}) =>
      get(`models/${id(model)}/weights/tensor`, wire.tensorWeights, { query: { name }, ...load }),
    weightsErrors: (model: string, reference: string, weighing: Weighing, load: LoadOptions = {}) =>
      get(`models/${id(model)}/weights/errors`, wire.weightsErrors, {
        query: { reference, ...weighedBy(weighing) },
        ...load,
      }),
    tensorErrors: (
      model: string,
      reference: string,
      weighing: Weighing,
      name: string,
      load: LoadOptions = {},
    ) =>
      get(`models/${id(model)}/weights/errors/tensor`, wire.tensorErrors, {
        query: { reference, name, ...weighedBy(weighing) },
        ...load,
      }),
    weightsMix: (model: string, bytes: number, weighing: Weighing, load: LoadOptions = {}) =>
      get(`models/${id(model)}/weights/mix`, wire.weightsMix, {
        query: { bytes, ...weighedBy(weighing) },
        ...load,
      }),
    weightsPicture: (model: string, query: wire.WeightsPictureQuery, signal?: AbortSignal) =>
      whileBusy(
        () =>
          callBinary(send, `models/${id(model)}/weights/picture`, decodeWeightsPicture, {
            query: { ...query, format: 'columns' },
            signal,
          }),
        signal,
      ),
    weightsValue: (
      model: string,
      name: string,
      row: number,
      column: number,
      signal?: AbortSignal,
    ) =>
      get(`models/${id(model)}/weights/value`, wire.weightsValue, {
        query: { name, row, column },
        signal,
      }),
    memory: (model: string) => get(`models/${id(model)}/memory`, wire.memory),
    setMemory: (model: string, options: wire.MemoryOptions) =>
      call(send, 'PATCH', `models/${id(model)}/memory`, wire.memory, { body: options }),
    memoryPlan: (model: string) => get(`models/${id(model)}/memory/plan`, wire.memoryPlan),
    generate: (body: wire.GenerateRequest) => call(send, 'POST', 'generate', wire.run, { body }),
    run: (session: string) => get(`generate/${id(session)}`, wire.run),
    runs: () => get('generate', wire.runs),
    debug: (session: string) => get(`generate/${id(session)}/debug`, wire.debugState),
    debugCommand: (session: string, body: wire.DebugCommand) =>
      call(send, 'POST', `generate/${id(session)}/debug`, wire.debugState, { body }),
    // Of an output or a source of the op at which the run is stopped.
    debugValues: (session: string, query: wire.DebugQuery, signal?: AbortSignal) =>
      get(`generate/${id(session)}/debug/values`, wire.debugValues, { query, signal }),
    cancel: (session: string) => call(send, 'DELETE', `generate/${id(session)}`, wire.run),
    sessions: (query: wire.SessionQuery, signal?: AbortSignal) =>
      get('sessions', wire.sessions, { query, signal }),
    session: (session: string) => get(`sessions/${id(session)}`, wire.session),
    rename: (session: string, title: string) =>
      call(send, 'PATCH', `sessions/${id(session)}`, wire.session, { body: { title } }),
    remove: (session: string) => call(send, 'DELETE', `sessions/${id(session)}`, wire.deleted),
    restore: (session: string) =>
      call(send, 'POST', `sessions/${id(session)}/restore`, wire.session),
    upload: (file: Blob, progress: (share: number) => void, signal?: AbortSignal) =>
      upload('sessions', file, wire.session, progress, signal),
    example: () => pageFile('example.ttrace'),
    tokens: (session: string, from: number, limit: number) =>
      get(`sessions/${id(session)}/tokens`, wire.tokens, { query: { from, limit } }),
    steps: (session: string, part: StepPart) =>
      whileBusy(() =>
        callBinary(send, `sessions/${id(session)}/steps`, decodeSteps, {
          query: { ...part, format: 'columns' },
        }),
      ),
    residency: (session: string, step: number, signal?: AbortSignal) =>
      get(`sessions/${id(session)}/steps/${step}/residency`, wire.residency, { signal }),
    ops: (session: string, step: number, signal?: AbortSignal) =>
      fetchAllPages(
        (from) =>
          get(`sessions/${id(session)}/steps/${step}/ops`, wire.ops, {
            query: { from, limit: MAX_PAGE_ROWS },
            signal,
          }),
        (page) => page.ops,
      ),
    accesses: (session: string, step: number, op: number, signal?: AbortSignal) =>
      get(`sessions/${id(session)}/steps/${step}/accesses`, wire.accesses, {
        query: { op, limit: 1000 },
        signal,
      }),
    // Of all ops: as many as a page has.
    accessesOfStep: (session: string, step: number) =>
      get(`sessions/${id(session)}/steps/${step}/accesses`, wire.accesses, {
        query: { limit: MAX_PAGE_ROWS },
      }),
    layer: (session: string, step: number, layer: number, signal?: AbortSignal) =>
      get(`sessions/${id(session)}/steps/${step}/layers/${layer}`, wire.layerSubgraph, {
        signal,
      }),
    graph: (session: string, template: number, signal?: AbortSignal) =>
      get(`sessions/${id(session)}/templates/${template}/graph`, wire.wholeGraph, { signal }),
    nodes: (session: string, template: number, signal?: AbortSignal) =>
      fetchAllPages(
        (from) =>
          get(`sessions/${id(session)}/templates/${template}/nodes`, wire.nodes, {
            query: { from, limit: MAX_PAGE_ROWS },
            signal,
          }),
        (page) => page.nodes,
      ),
    tensors: (session: string, template: number, signal?: AbortSignal) =>
      fetchAllPages(
        (from) =>
          get(`sessions/${id(session)}/templates/${template}/tensors`, wire.tensors, {
            query: { from, limit: MAX_PAGE_ROWS },
            signal,
          }),
        (page) => page.tensors,
      ),
    heatmap: (session: string, query: wire.PictureQuery, signal?: AbortSignal) =>
      whileBusy(
        () =>
          callBinary(send, `sessions/${id(session)}/heatmap`, decodePicture, {
            query: { ...query, format: 'columns' },
            signal,
          }),
        signal,
      ),
    query: (session: string, sql: string, limit: number, signal?: AbortSignal) =>
      whileBusy(
        () =>
          call(send, 'POST', `sessions/${id(session)}/query`, wire.queryRows, {
            body: { sql, limit, timeout_ms: 60_000 },
            signal,
          }),
        signal,
      ),
    // A file that the server makes while it is sent.
    file: ({ path, query = {}, body }: FileRequest, progress: FileProgress, signal: AbortSignal) =>
      whileBusy(() => callFile(send, path, { query, body, signal }, progress), signal),
    breakdown: (session: string, query: wire.BreakdownQuery, signal?: AbortSignal) =>
      get(`sessions/${id(session)}/breakdown`, wire.breakdown, { query, signal }),
    comparisonWithin: (session: string, query: wire.WithinQuery, signal?: AbortSignal) =>
      get(`sessions/${id(session)}/comparison`, wire.comparisonWithin, { query, signal }),
    comparison: (session: string, other: string, signal?: AbortSignal) =>
      get(`sessions/${id(session)}/comparison/${id(other)}`, wire.comparison, {
        query: { limit: 0 },
        signal,
      }),
    comparedValues: (session: string, other: string, tolerance: number, signal?: AbortSignal) =>
      get(`sessions/${id(session)}/comparison/${id(other)}/values`, wire.comparedValues, {
        query: { tolerance, limit: MAX_PAGE_ROWS },
        signal,
      }),
    comparedValuesPicture: (session: string, other: string, query: wire.ValuesPictureQuery) =>
      get(
        `sessions/${id(session)}/comparison/${id(other)}/values/picture`,
        wire.comparedValuesPicture,
        { query },
      ),
    // Captured values of an op.
    capturedPicture: (
      session: string,
      step: number,
      op: number,
      query: wire.CapturedPictureQuery,
      signal?: AbortSignal,
    ) =>
      whileBusy(
        () =>
          callBinary(
            send,
            `sessions/${id(session)}/steps/${step}/ops/${op}/values/picture`,
            decodeWeightsPicture,
            { query: { ...query, format: 'columns' }, signal },
          ),
        signal,
      ),
    conditions: (session: string, signal?: AbortSignal) =>
      get(`sessions/${id(session)}/conditions`, wire.conditions, { signal }),
    // An analysis of a session: `path` below its address.
    analysis: <T>(
      session: string,
      path: string,
      check: Check<T>,
      query: CallOptions['query'] = {},
    ) => get(`sessions/${id(session)}/${path}`, check, { query }),
    findings: (session: string, signal?: AbortSignal) =>
      get(`sessions/${id(session)}/findings`, wire.findings, { signal }),
    sequentiality: (session: string, query: wire.SequentialityQuery, signal?: AbortSignal) =>
      get(`sessions/${id(session)}/sequentiality`, wire.sequentiality, { query, signal }),
    validation: (session: string, signal?: AbortSignal) =>
      get(`sessions/${id(session)}/validation`, wire.validation, { signal }),
  };
}
export type Api = ReturnType<typeof createApi>;

// The URL of a session's file.
export const fileUrl = (session: string): string => `api/v1/sessions/${id(session)}/file`;
export const DOCS_URL = 'api/docs';

// What `file` asks for.
export interface FileRequest {
  readonly path: string;
  readonly query?: CallOptions['query'];
  readonly body?: unknown;
}
export type ExportFormat = NonNullable<wire.ExportQuery['format']>;
// What gets rows of its own in an export.
export interface ExportRows {
  readonly perHead: boolean;
  readonly perToken: boolean;
}
// `steps`: the first and the last one; without them all.
export const exportOf = (
  session: string,
  format: ExportFormat,
  steps: readonly [number, number] | null,
  { perHead, perToken }: ExportRows,
): FileRequest => ({
  path: `sessions/${id(session)}/export`,
  query: {
    format,
    ...(perHead ? { per_head: true } : {}),
    ...(perToken ? { per_token: true } : {}),
    ...(steps === null ? {} : { first_step: steps[0], last_step: steps[1] }),
  },
});
export type ReportFormat = NonNullable<wire.ReportQuery['format']>;
// `other`: a session that it is compared with; null: none.
export const reportOf = (
  session: string,
  format: ReportFormat,
  other: string | null,
): FileRequest => ({
  path: `sessions/${id(session)}/report`,
  query: { format, ...(other === null ? {} : { compare: other }) },
});
// All rows of a statement, up to the maximum of the server.
export const rowsOf = (session: string, sql: string, format: 'csv' | 'parquet'): FileRequest => ({
  path: `sessions/${id(session)}/query`,
  body: { sql, limit: MAX_QUERY_ROWS, timeout_ms: 60_000, format },
});

// All rows of a paged list. Stops at the first page that fails.
async function fetchAllPages<P extends { readonly total: number }, Row>(
  fetchPage: (from: number) => ApiResult<P>,
  rowsOf: (page: P) => readonly Row[],
): Promise<Result<readonly Row[], ApiError>> {
  const all: Row[] = [];
  for (;;) {
    const page = await fetchPage(all.length);
    if (!page.ok) return page;
    const rows = rowsOf(page.value);
    for (const row of rows) all.push(row);
    if (all.length >= page.value.total || rows.length === 0) return ok(all);
  }
}
