// Tests the real server against its contract, api/openapi.yaml: every route, parameter and
// response. A documented response that no request here produces fails the test, except those in
// the table COVERED_ELSEWHERE.
import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { startServer, type Server } from '../e2e/support/harness';
import { PATIENCE_MS } from '../patience';
import { sendRequest, jsonOf, type HttpResponse } from './http_client';
import { readContract, type Operation } from './document';
import { ContractValidator } from './contract_validator';
import { targetOf, type TextByName } from './probes';
import { bodyOf, prober, testOperations, type Body } from './operation_tests';
import { CAPTURE, COVERED_ELSEWHERE, DENSE, PROMPT, QUERIES, VALUES } from './operation_values';
import type { JsonObject } from './probes';

const KEY = 'the-key-of-the-contract-test';
const PATH_PARAMETERS = {
  template: '1',
  step: '0',
  op: '0',
  layer: '0',
  /** The session to compare with. */
  get other() {
    return finished;
  },
};
// A context for more tokens than are generated while a test reads the running session.
const CONTEXT = '32768';

const contract = readContract();
const validator = new ContractValidator(contract);
let folder: string;
let server: Server;
let locked: Server; // requires an API key
let full: Server; // has no disk space left and no model
let stops: Server; // whose request is stopped: it would hold up those of another server
let stopped: string; // this request, after its first op
let small: Server; // accepts small files only and one live client; has no model
let late: Promise<HttpResponse>; // response to a request without its body
let finished: string; // id of a finished session
let sparse: string; // id of a session of a mixture-of-experts model
let deleted: string; // id of a deleted session
let file: Buffer; // file of the finished session
let pattern: Body; // of the finished session
const isDebugged = ({ id }: Operation) => id.startsWith('debug');
const probe = prober(validator, (one) => (isDebugged(one) ? stops : server).url);

function operation(id: string): Operation {
  const found = contract.operations.find((one) => one.id === id);
  if (!found) throw new Error(`operation ${id} does not exist`);
  return found;
}

async function get(path: string): Promise<Record<string, unknown>> {
  return jsonOf(await sendRequest(server.url, { method: 'GET', target: path })) as Record<
    string,
    unknown
  >;
}

/** Executes the operation `id` and returns the response. */
async function execute(id: string, path: TextByName, body?: Body): Promise<HttpResponse> {
  return executeAt(server, id, path, body);
}

async function executeAt(at: Server, id: string, path: TextByName, body?: Body) {
  const one = operation(id);
  const target = targetOf(one, path);
  return sendRequest(at.url, { method: one.method, target, ...bodyOf(one, body) });
}

const debug = (body: Body, expected: readonly number[], id = stopped) =>
  probe(
    operation('debug'),
    { target: targetOf(operation('debug'), { id }), ...sent('debug', body) },
    expected,
  );

const askSet = (id: string, body: Body, expected: readonly number[]) =>
  probe(operation(id), { target: operation(id).path, ...sent(id, body) }, expected);

async function stopNumber(): Promise<number | undefined> {
  const answer = await executeAt(stops, 'debugState', { id: stopped });
  return (jsonOf(answer) as { stop: { number: number } | null }).stop?.number;
}

const sent = (id: string, body: Body | string) => bodyOf(operation(id), body);

/** Executes an operation that must fail with one of the expected statuses. */
async function expectRejected(
  id: string,
  path: TextByName,
  expected: readonly number[],
  at = server,
) {
  const one = operation(id);
  const question = { target: targetOf(one, path, QUERIES[id]), ...sent(id, bodies[id]?.()) };
  await probe(one, question, expected, at.url);
}

/** Reads every GET route of a session. */
async function readAllRoutes(id: string): Promise<void> {
  for (const one of contract.operations) {
    if (one.method !== 'GET' || !/[/]sessions[/]\{id\}/.test(one.path)) continue;
    if (one.id === 'expertLayer' && id !== sparse) continue;
    await probe(one, { target: targetOf(one, { ...PATH_PARAMETERS, id }, QUERIES[one.id]) }, [200]);
  }
}

async function generate(body: Body): Promise<string> {
  const answer = await execute('generate', {}, body);
  const { id } = jsonOf(answer) as { id?: string };
  if (id === undefined) throw new Error(`generate failed: ${answer.body.toString()}`);
  return id;
}

const stateOf = async (id: string) => (await get(`/api/v1/generate/${id}`)).state;
const until = (state: () => Promise<unknown>, expected: unknown) =>
  vi.waitFor(
    async () => {
      expect(await state()).toBe(expected);
    },
    { interval: 20, timeout: PATIENCE_MS },
  );

async function recordSession(body: Body): Promise<string> {
  const id = await generate(body);
  await until(() => stateOf(id), 'done');
  return id;
}

async function loadModel(model: string): Promise<void> {
  // Rejected while another model is loading, so it is retried.
  await until(async () => (await execute('load', { model })).status.toString(), '202');
  await until(async () => (await get(`/api/v1/models/${model}`)).state, 'loaded');
}

// All started servers are stopped at the end, even if another one fails to start.
const running: Server[] = [];
async function start(args: readonly string[]): Promise<Server> {
  const started = await startServer(args);
  running.push(started);
  return started;
}

beforeAll(async () => {
  const program = process.env.TT_PROGRAM;
  if (!program) throw new Error('set TT_PROGRAM to the tt program');
  folder = await mkdtemp(join(tmpdir(), 'tt-contract-'));
  const bundled = new URL('../../../tracer/modelgen/bundled/pocket.gguf', import.meta.url);
  await promisify(execFile)(program, ['model', 'moe', '-q', '-o', join(folder, 'moe.gguf')]);
  await writeFile(join(folder, 'broken.gguf'), 'GGUF, but no more of it');
  [server, stops, locked, full, small] = await Promise.all([
    start(['--models-dir', folder, '-m', fileURLToPath(bundled), '-c', CONTEXT]),
    start(['-m', fileURLToPath(bundled), '-c', '512']),
    start(['--no-model', '--api-key', KEY]),
    start(['--no-model', '--disk-reserve', '1000000G']),
    start(['--no-model', '--max-import', '1K', '--max-live-clients', '2']),
  ]);
  late = sendRequest(small.url, {
    method: 'PATCH',
    target: '/api/v1/sessions/any',
    headers: { 'Content-Type': 'application/json', 'Content-Length': '1000' },
    body: '{',
  });
  await loadModel('moe');
  sparse = await recordSession({ ...PROMPT, ...CAPTURE });
  await loadModel(DENSE);
  finished = await recordSession({ ...PROMPT, ...CAPTURE });
  deleted = await recordSession({ ...PROMPT, prompt: 'To be deleted' });
  await execute('delete', { id: deleted });
  file = await readFile(join(server.data, `${finished}.ttrace`));
  await until(async () => {
    const body = { ...PROMPT, stop_at_first_op: true, hold_ms: 3_600_000 };
    const { status, body: answer } = await executeAt(stops, 'generate', {}, body);
    if (status === 202) stopped = (JSON.parse(answer.toString()) as { id: string }).id;
    return status;
  }, 202);
  await until(stopNumber, 1);
  await debug({ until: 'op' }, [200]);
  await until(stopNumber, 2);
  pattern = (await get(`/api/v1/sessions/${finished}/pattern`)) as JsonObject;
});

afterAll(async () => {
  await Promise.all(running.map((one) => one.stop()));
  await rm(folder, { recursive: true, force: true });
});

// Path parameters with which an operation succeeds repeatedly.
async function pathParametersOf(one: Operation): Promise<TextByName> {
  const { id } = one;
  if (isDebugged(one)) return { id: stopped };
  // Undo the previous delete or restore.
  if (id === 'delete') await execute('restore', { id: deleted });
  if (id === 'restore') await execute('delete', { id: deleted });
  return {
    id: id === 'delete' || id === 'restore' ? deleted : id === 'expertLayer' ? sparse : finished,
    // Load the model that is loaded already, because loading replaces the model.
    model: id === 'unload' ? 'moe' : DENSE,
    ...PATH_PARAMETERS,
  };
}

const bodies: Readonly<Record<string, () => Body>> = {
  debug: () => ({ stop: true }),
  generate: () => PROMPT,
  import: () => file,
  query: () => ({ sql: 'SELECT * FROM step' }),
  setQuery: () => ({ sessions: { model: 'moe.gguf' }, sql: 'SELECT session FROM step' }),
  setComparison: () => ({ left: { model: 'moe.gguf' }, right: { model: 'moe.gguf' } }),
  generality: () => ({ sessions: { q: PROMPT.prompt, state: 'done' } }),
  setTrend: () => ({ sessions: { model: 'moe.gguf' }, by: 'session' }),
  rename: () => ({ title: 'Another title' }),
  setMemory: () => ({ budget: 'off' }),
  setAccessPattern: () => pattern,
};

describe('all operations', () => {
  testOperations(contract, probe, {
    url: () => server.url,
    path: pathParametersOf,
    query: ({ id }) => QUERIES[id] ?? {},
    body: ({ id }) => bodies[id]?.(),
    values: ({ id }) => VALUES[id] ?? {},
    success: ({ responses }) => [...responses.keys()].filter((status) => status < 300),
    undo: async ({ id }, { headers }) => {
      const queued = /generate\/(.*)$/.exec(headers.location ?? '')?.[1];
      if (id === 'generate' && queued) await execute('cancel', { id: queued });
    },
  });
});

describe('further responses', () => {
  it('a comparison has exactly one pair', async () => {
    const compare = (query: TextByName, expected: readonly number[]) =>
      probe(
        operation('comparisonWithin'),
        { target: targetOf(operation('comparisonWithin'), { id: finished }, query) },
        expected,
      );
    await compare({ left_step: '0', right_step: '1' }, [200]);
    await compare({ left_layer: '0', right_layer: '1' }, [200]);
    await compare({}, [400]);
    await compare({ left_step: '0' }, [400]);
    await compare({ left_step: '0', right_step: '1', left_layer: '0', right_layer: '1' }, [400]);
    await compare({ left_token: '0', right_token: '4294967295' }, [404]);
  });

  it('a set has sessions that exist', async () => {
    const none = ['no-such-session'];
    const sql = 'SELECT session FROM step';
    await askSet('setQuery', { sessions: none, sql }, [404]);
    await askSet('setComparison', { left: none, right: none }, [404]);
    await askSet('generality', { sessions: none }, [404]);
    await askSet('setTrend', { sessions: none }, [404]);
    await askSet('setTrend', { sessions: [finished], by: 'week' }, [400]);
    await askSet('setQuery', { sessions: { model: 'none.gguf' }, sql }, [404]);
    await askSet('setQuery', { sessions: [], sql }, [400]);
    await askSet('setQuery', { sessions: [finished], sql: 'PRAGMA user_version' }, [403]);
    const forever =
      'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT * FROM n';
    const endless = { sessions: [finished], sql: `SELECT count(*) FROM (${forever})` };
    await askSet('setQuery', { ...endless, timeout_ms: 50 }, [422]);
    for (const format of ['json', 'ndjson', 'csv', 'parquet'])
      await askSet('setQuery', { sessions: [finished, sparse], sql, format }, [200]);
  });

  it('a stopped request takes one command at a time', async () => {
    await debug({ break: 'l_out layer 1' }, [200]);
    await debug({ break: 'layer x' }, [400]);
    await debug({ delete: 1 }, [200]);
    await debug({ delete: 1 }, [400]);
    await debug({ change: 'scale 1' }, [200]);
    await debug({ change: 'zero head 99' }, [400]);
    await debug({ change: 'scale 1', keep: true }, [200]);
    await debug({ release: 1 }, [200]);
    await debug({ release: 1 }, [400]);
    await debug({ delete: 1, keep: true }, [400]);
    await debug({ until: 'op', count: 0 }, [400]);
    await debug({ count: 1 }, [400]);
    await debug({}, [400]);
    await debug({ stop: true, delete: 1 }, [400]);
    const before = (await stopNumber()) ?? 0;
    await debug({ until: 'op', count: 3 }, [200]);
    await until(stopNumber, before + 1); // an earlier "stop" is before the next op
    const { body } = await executeAt(stops, 'generate', {}, { ...PROMPT, breakpoints: ['l_out'] });
    const { id: waiting } = JSON.parse(body.toString()) as { id: string };
    await debug({ until: 'op' }, [409], waiting);
    const target = targetOf(operation('debugValues'), { id: waiting });
    await probe(operation('debugValues'), { target }, [409]);
    const unknown = targetOf(operation('debugValues'), { id: stopped }, { tensor: 'none' });
    await probe(operation('debugValues'), { target: unknown }, [400]);
  });

  it('a memory budget needs a loaded model, and loads it again without repacking', async () => {
    const change = (model: string, budget: string | number, expected: readonly number[]) =>
      probe(
        operation('setMemory'),
        {
          target: targetOf(operation('setMemory'), { model }),
          ...sent('setMemory', { budget }),
        },
        expected,
      );
    for (const id of ['memory', 'memoryPlan', 'setMemory'])
      await expectRejected(id, { model: 'moe' }, [409]);
    await change(DENSE, 'auto', [200]);
    await change(DENSE, 1 << 20, [503]);
    await until(async () => (await get(`/api/v1/models/${DENSE}`)).state, 'loaded');
    await change(DENSE, 1 << 20, [200]);
    await change(DENSE, 'off', [200]);
  });

  it('the server returns the API document', async () => {
    expect(await get('/api/openapi.json')).toEqual(contract.raw);
  });

  it('a prompt has exactly one of three forms', async () => {
    const post = (body: Body, expected: readonly number[]) =>
      probe(
        operation('generate'),
        { target: '/api/v1/generate', ...sent('generate', body) },
        expected,
      );
    const two = { max_tokens: 2 };
    await post({ ...two, tokens: [1, 2, 3] }, [202]);
    for (const role of ['system', 'user', 'assistant']) {
      await post({ ...two, messages: [{ role, content: 'Hello' }] }, [202]);
    }
    await post(two, [400]);
    await post({ ...PROMPT, tokens: [1] }, [400]);
    await post({ ...PROMPT, messages: [{ role: 'user', content: 'Hello' }] }, [400]);
    await post({ ...two, messages: [{ role: 'nobody', content: 'Hello' }] }, [400]);
    await post({ ...two, tokens: [-1] }, [400]);
    await post({ ...PROMPT, grammar: 'root ::= (' }, [422]);
    await post({ ...PROMPT, model: 'moe' }, [409]);
    await post({ prompt: 'many '.repeat(Number(CONTEXT)) }, [413]);
  });

  it('pages of accesses are continued by their cursor', async () => {
    const page = async (query: TextByName) => {
      const target = targetOf(operation('accesses'), { id: finished }, query);
      return jsonOf(await probe(operation('accesses'), { target }, [200])) as {
        next: string | null;
        accesses: unknown[];
      };
    };
    const whole = await page({ limit: '10000', last_step: '1' });
    const joined: unknown[] = [];
    let cursor: TextByName = {};
    for (let more = true; more;) {
      const { next, accesses } = await page({ limit: '100', last_step: '1', ...cursor });
      joined.push(...accesses);
      more = next !== null;
      cursor = { cursor: next ?? '' };
    }
    expect(joined).toEqual(whole.accesses);
    const target = targetOf(operation('accesses'), { id: finished }, { cursor: 'none of yours' });
    await probe(operation('accesses'), { target }, [400]);
  });

  it('all routes work for a session of a mixture-of-experts model', async () => {
    await readAllRoutes(sparse);
    const target = targetOf(operation('accesses'), { id: sparse }, { expert: '0', limit: '10000' });
    const answer = await probe(operation('accesses'), { target }, [200]);
    const { accesses } = jsonOf(answer) as { accesses: { expert_id: number | null }[] };
    expect(accesses.length).toBeGreaterThan(0);
    expect(accesses.every(({ expert_id }) => expert_id === 0)).toBe(true);
  });

  it('an SQL statement is rejected, times out, or has to wait', async () => {
    const forever =
      'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n';
    const runQuery = (body: Body, expected: readonly number[]) => {
      const target = targetOf(operation('query'), { id: finished });
      return probe(operation('query'), { target, ...sent('query', body) }, expected);
    };
    await runQuery({ sql: 'SELECT nothing FROM access' }, [400]);
    await runQuery({ sql: "ATTACH '/tmp/other' AS other" }, [403]);
    await runQuery({ sql: forever, timeout_ms: 50 }, [422]);
    await runQuery({ sql: 'SELECT 1', timeout_ms: 1 }, [200, 422]);
    const answers = await Promise.all(
      [1, 2, 3, 4].map(() => runQuery({ sql: forever, timeout_ms: 2000 }, [422, 503])),
    );
    expect(answers.some(({ status }) => status === 503)).toBe(true);
    for (const format of ['json', 'ndjson', 'csv']) {
      await runQuery({ sql: 'SELECT * FROM access', format, limit: 20_000 }, [200]);
    }
  });

  it('a session that is being recorded can be read but not changed', async () => {
    // It stops at a step: a busy machine reads more slowly than a run grows.
    const long = {
      ...PROMPT,
      ...CAPTURE,
      prompt: 'On and on',
      max_tokens: 2_000_000_000,
      ignore_eos: true,
      breakpoints: ['^l_out layer 0 step 60'],
      hold_ms: 600_000,
    };
    const id = await generate(long);
    await until(() => stateOf(id), 'running');
    const grown = async () => Number((await get(`/api/v1/sessions/${id}/steps`)).total) > 1;
    await until(grown, true);
    await readAllRoutes(id);
    await expectRejected('rename', { id }, [409]);
    await expectRejected('delete', { id }, [409]);
    await expectRejected('restore', { id }, [404]);
    await expectRejected('load', { model: 'moe' }, [409]);
    await expectRejected('unload', { model: DENSE }, [409]);
    // A file with a write-ahead log is sent as a copy, which needs disk space.
    const name = join(full.data, 'growing.ttrace');
    await copyFile(join(server.data, `${id}.ttrace-wal`), `${name}-wal`);
    await copyFile(join(server.data, `${id}.ttrace`), name);
    await expectRejected('download', { id: 'growing' }, [507], full);
    const target = targetOf(operation('export'), { id: 'growing' }, { format: 'folder' });
    await probe(operation('export'), { target }, [507], full.url);
    const limit = Number((await get('/api/v1/server')).queue_limit);
    const waiting: string[] = [];
    for (let i = 0; i < limit; i += 1) waiting.push(await generate(PROMPT));
    await expectRejected('generate', {}, [503]);
    for (const one of [...waiting, id]) {
      await probe(
        operation('cancel'),
        { target: targetOf(operation('cancel'), { id: one }) },
        [202],
      );
    }
    await until(() => stateOf(id), 'cancelled');
  });

  it('a download supports ranges and ETags', async () => {
    const target = targetOf(operation('download'), { id: finished });
    const part = (headers: Readonly<Record<string, string>>, expected: number) =>
      probe(operation('download'), { target, headers }, [expected]);
    const { body } = await part({ Range: 'bytes=0-15' }, 206);
    expect(body).toHaveLength(16);
    await part({ Range: 'bytes=99999999-' }, 416);
    const { headers } = await part({}, 200);
    await part({ 'If-None-Match': headers.etag ?? '' }, 304);
  });

  it('an import is accepted once, and only if it is a session', async () => {
    const take = (body: Body, expected: number) =>
      probe(operation('import'), { target: '/api/v1/sessions', ...sent('import', body) }, [
        expected,
      ]);
    await execute('restore', { id: deleted });
    const own = await readFile(join(server.data, `${deleted}.ttrace`));
    await take(own, 200);
    await execute('delete', { id: deleted });
    await take(own, 201);
    // The id is in use again.
    await expectRejected('restore', { id: deleted }, [409]);
    await take(own.subarray(0, 4096), 422);
    const log = targetOf(operation('export'), { id: finished }, { format: 'ndjson' });
    const { body: lines } = await probe(operation('export'), { target: log }, [200]);
    const importBody = (
      body: Buffer,
      expected: number,
      type = 'application/x-ndjson; charset=utf-8',
    ) => {
      const headers = { 'Content-Type': type };
      const target = '/api/v1/sessions';
      return probe(operation('import'), { target, headers, body }, [expected]);
    };
    const { id: again } = jsonOf(await importBody(lines, 201)) as { id: string };
    await execute('delete', { id: again });
    await importBody(Buffer.from('no log'), 422);
    const run = targetOf(operation('export'), { id: finished }, { format: 'folder' });
    const { body: archive } = await probe(operation('export'), { target: run }, [200]);
    const tar = 'application/x-tar';
    const { id: third } = jsonOf(await importBody(archive, 201, tar)) as { id: string };
    await execute('delete', { id: third });
    await importBody(archive.subarray(0, 4096), 422, tar);
    await expectRejected('import', {}, [413], small);
  });

  it('damaged files are reported', async () => {
    // The header is kept, so that it is recognized as a session; the recorded data is overwritten.
    const bad = Buffer.from(file).fill(0x5a, 4096);
    await writeFile(join(server.data, 'damaged.ttrace'), bad);
    await probe(operation('session'), { target: '/api/v1/sessions/damaged' }, [200]);
    await probe(operation('sessions'), { target: '/api/v1/sessions?state=unreadable' }, [200]);
    for (const { id, method, path, responses } of contract.operations) {
      if (!path.includes('/sessions/{id}/') || method !== 'GET' || !responses.has(500)) continue;
      if (id !== 'download') await expectRejected(id, { ...PATH_PARAMETERS, id: 'damaged' }, [500]);
    }
    await expectRejected('rename', { id: 'damaged' }, [500]);
    await expectRejected('query', { id: 'damaged' }, [500]);
    const broken = { sessions: ['damaged'], sql: 'SELECT * FROM step' };
    await askSet('setQuery', broken, [500]);
    await askSet('setComparison', { left: [finished], right: ['damaged'] }, [500]);
    await askSet('generality', { sessions: [finished, 'damaged'] }, [500]);
    await askSet('setTrend', { sessions: [finished, 'damaged'] }, [500]);
    // A file with a write-ahead log is copied; this one is not a database.
    await writeFile(join(server.data, 'junk.ttrace'), bad.subarray(4096));
    await writeFile(join(server.data, 'junk.ttrace-wal'), 'more');
    await expectRejected('download', { id: 'junk' }, [500]);
    await expectRejected('load', { model: 'broken' }, [422]);
    await expectRejected('gguf', { model: 'broken' }, [422]);
    await expectRejected('setAccessPattern', { model: 'broken' }, [422]);
    await expectRejected('modelCompression', { model: 'broken' }, [422]);
    for (const { id, path, method } of contract.operations)
      if (path.startsWith('/api/v1/models/{model}/weights') && method === 'GET')
        await expectRejected(id, { model: 'broken' }, [422]);
  });

  it('storage errors are reported', async () => {
    await expectRejected('generate', {}, [507], full);
    await expectRejected('import', {}, [507], full);
    // Files instead of folders.
    await rm(join(server.data, 'access-patterns'), { recursive: true, force: true });
    await writeFile(join(server.data, 'access-patterns'), '');
    await expectRejected('setAccessPattern', { model: DENSE }, [500]);
    await writeFile(join(small.data, `${finished}.ttrace`), file);
    await writeFile(join(small.data, '.deleted'), '');
    await expectRejected('delete', { id: finished }, [500], small);
    await rename(small.data, `${small.data}-gone`);
    await writeFile(small.data, '');
    await expectRejected('sessions', {}, [500], small);
    const little = sent('import', Buffer.from('little'));
    await probe(operation('import'), { target: '/api/v1/sessions', ...little }, [500], small.url);
    await rm(small.data);
    await rename(`${small.data}-gone`, small.data);
  });

  it('without an API key only health responds', async () => {
    for (const one of contract.operations) {
      if (!one.open)
        await expectRejected(
          one.id,
          { ...PATH_PARAMETERS, id: finished, model: DENSE },
          [401],
          locked,
        );
    }
    await probe(operation('health'), { target: '/api/v1/health' }, [200], locked.url);
    const headers = { Authorization: `Bearer ${KEY}` };
    await probe(operation('version'), { target: '/api/v1/version', headers }, [200], locked.url);
  });

  it('the login link works once, and wrong keys are rate-limited', async () => {
    const login = (target: string, expected: number, method = 'GET') =>
      probe(operation('login'), { target, method }, [expected], locked.url);
    const target = locked.link.slice(locked.url.length);
    await login(target, 405, 'HEAD');
    const { headers } = await login(target, 200);
    expect(headers['set-cookie']).toHaveLength(1);
    expect(headers.refresh).toBeDefined();
    await login(target, 401);
    const version = (key: string, expected: readonly number[]) =>
      probe(
        operation('version'),
        { target: '/api/v1/version', headers: { Authorization: `Bearer ${key}` } },
        expected,
        locked.url,
      );
    // Any page can make a browser open login links: they do not lock out the key.
    for (let i = 0; i < 20; i += 1) await login('/login?code=guess', 401);
    await version(KEY, [200]);
    for (let i = 0; i < 20; i += 1) await version('no-key-of-this-server', [401, 429]);
    await version('no-key-of-this-server', [429]);
  });

  it('a request may be rejected before routing', async () => {
    const version = (target: string, headers: Readonly<Record<string, string>>, expected: number) =>
      probe(operation('version'), { target, headers }, [expected]);
    await version('/api/v1/version', { Host: 'elsewhere.example' }, 403);
    await version('/api/v1/version', { 'X-Much': 'x'.repeat(20_000) }, 431);
    await version(`/api/v1/version?${'x'.repeat(9000)}`, {}, 414);
    const upgrade = { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '1' };
    await version(
      '/api/v1/live',
      { ...upgrade, 'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==' },
      426,
    );
    const target = targetOf(operation('rename'), { id: finished });
    const headers = { 'Content-Type': 'text/plain' };
    await probe(operation('rename'), { target, headers, body: '{"title":"x"}' }, [415]);
    const memory = { target: targetOf(operation('setMemory'), { model: DENSE }), headers };
    await probe(operation('setMemory'), { ...memory, body: '{"budget":"off"}' }, [415]);
    const body = JSON.stringify({ title: 'x'.repeat(20_000_000) });
    await probe(operation('rename'), { target, ...sent('rename', body) }, [413]);
  });

  it('a missing body times out', async () => {
    const answer = await late; // 30 s after the first test
    expect(answer.status).toBe(408);
    expect(validator.violations(operation('rename'), answer)).toEqual([]);
  });

  it('the number of sockets of a client is limited', async () => {
    const socket = new WebSocket(`${small.url.replace('http', 'ws')}/api/v1/live`);
    await new Promise((resolve) => {
      socket.onopen = resolve;
    });
    const headers = {
      Connection: 'Upgrade',
      Upgrade: 'websocket',
      'Sec-WebSocket-Version': '13',
      'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==',
    };
    await probe(operation('version'), { target: '/api/v1/live', headers }, [503], small.url);
    socket.close();
  });

  it('every response of the contract was seen or is covered elsewhere', () => {
    expect(validator.unseen().sort()).toEqual(Object.keys(COVERED_ELSEWHERE).sort());
  });
});
