// The HTTP half of the one door to the server: each route of api/openapi.yaml
// that the page uses.
import { ok, type Result } from '../result';
import { call, type Answer, type ApiError } from './call';
import * as wire from './types';
import { upload } from './upload';

export type { Answer, ApiError } from './call';
export { isMissing, sentence } from './call';

const id = encodeURIComponent;
export const LONGEST_PAGE = 10_000; // that the server gives

export const api = {
  health: () => call('GET', 'health', wire.health),
  models: () => call('GET', 'models', wire.models),
  load: (model: string) => call('POST', `models/${id(model)}/load`, wire.model),
  unload: (model: string) => call('POST', `models/${id(model)}/unload`, wire.model),
  generate: (body: wire.GenerateRequest) => call('POST', 'generate', wire.run, { body }),
  run: (session: string) => call('GET', `generate/${id(session)}`, wire.run),
  cancel: (session: string) => call('DELETE', `generate/${id(session)}`, wire.run),
  sessions: (query: wire.SessionQuery, signal?: AbortSignal) =>
    call('GET', 'sessions', wire.sessions, { query, signal }),
  session: (session: string) => call('GET', `sessions/${id(session)}`, wire.session),
  rename: (session: string, title: string) =>
    call('PATCH', `sessions/${id(session)}`, wire.session, { body: { title } }),
  remove: (session: string) => call('DELETE', `sessions/${id(session)}`, wire.deleted),
  restore: (session: string) => call('POST', `sessions/${id(session)}/restore`, wire.session),
  upload: (file: Blob, progress: (share: number) => void, signal?: AbortSignal) =>
    upload('sessions', file, wire.session, progress, signal),
  tokens: (session: string, from: number, limit: number) =>
    call('GET', `sessions/${id(session)}/tokens`, wire.tokens, { query: { from, limit } }),
  steps: (session: string, from: number, limit: number) =>
    call('GET', `sessions/${id(session)}/steps`, wire.steps, { query: { from, limit } }),
  ops: (session: string, step: number, sort: wire.OpSort, signal?: AbortSignal) =>
    whole(
      (from) =>
        call('GET', `sessions/${id(session)}/steps/${step}/ops`, wire.ops, {
          query: { sort: sort === 'op' ? undefined : sort, from, limit: LONGEST_PAGE },
          signal,
        }),
      (page) => page.ops,
    ),
  accesses: (session: string, step: number, op: number, signal?: AbortSignal) =>
    call('GET', `sessions/${id(session)}/steps/${step}/accesses`, wire.accesses, {
      query: { op, limit: 1000 },
      signal,
    }),
  layer: (session: string, step: number, layer: number, signal?: AbortSignal) =>
    call('GET', `sessions/${id(session)}/steps/${step}/layers/${layer}`, wire.layerSubgraph, {
      signal,
    }),
  nodes: (session: string, template: number, signal?: AbortSignal) =>
    whole(
      (from) =>
        call('GET', `sessions/${id(session)}/templates/${template}/nodes`, wire.nodes, {
          query: { from, limit: LONGEST_PAGE },
          signal,
        }),
      (page) => page.nodes,
    ),
  tensors: (session: string, template: number, signal?: AbortSignal) =>
    whole(
      (from) =>
        call('GET', `sessions/${id(session)}/templates/${template}/tensors`, wire.tensors, {
          query: { from, limit: LONGEST_PAGE },
          signal,
        }),
      (page) => page.tensors,
    ),
};
export type Api = typeof api;

// Where the browser downloads a session's file from.
export const fileUrl = (session: string): string => `api/v1/sessions/${id(session)}/file`;
export const DOCS_URL = 'api/docs';

// Every row of a paged list.
async function whole<P extends { readonly total: number }, Row>(
  ask: (from: number) => Answer<P>,
  rowsOf: (page: P) => readonly Row[],
): Promise<Result<readonly Row[], ApiError>> {
  const all: Row[] = [];
  for (;;) {
    const page = await ask(all.length);
    if (!page.ok) return page;
    const rows = rowsOf(page.value);
    for (const row of rows) all.push(row);
    if (all.length >= page.value.total || rows.length === 0) return ok(all);
  }
}
