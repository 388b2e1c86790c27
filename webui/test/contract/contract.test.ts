// The real server before its contract, api/openapi.yaml: every route, parameter
// and response. What the contract documents and nothing here brings about fails
// the test, but for the table SHOWN_ELSEWHERE.
import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { startServer, type Server } from '../e2e/harness';
import { ask, jsonOf, type Answer } from './ask';
import { readContract, type Operation } from './document';
import { Judge } from './judge';
import { targetOf, type Given, type Values } from './probes';
import { bodyOf, prober, walk, type Body } from './walk';

const KEY = 'the-key-of-the-contract-test';
const DENSE = 'pocket';
const PLACE = {
  template: '1',
  step: '0',
  layer: '0',
  /** A session to compare with. */
  get other() {
    return finished;
  },
};
const PROMPT = { prompt: 'Once upon a time', max_tokens: 2 };
// Memory for more tokens than are made while a test looks at the session.
const CONTEXT = '32768';

const contract = readContract();
const judge = new Judge(contract);
let folder: string;
let server: Server;
let locked: Server; // asks for a key
let full: Server; // has no room for anything, and no model
let small: Server; // takes small files only, one live client, and has no model
let late: Promise<Answer>; // to a request whose body never came
let finished: string; // a session
let sparse: string; // one of a mixture of experts
let deleted: string;
let file: Buffer; // of the finished session
const probe = prober(judge, () => server.url);

function operation(id: string): Operation {
  const found = contract.operations.find((one) => one.id === id);
  if (!found) throw new Error(`there is no operation ${id}`);
  return found;
}

async function get(path: string): Promise<Record<string, unknown>> {
  return jsonOf(await ask(server.url, { method: 'GET', target: path })) as Record<string, unknown>;
}

/** Does what `id` names, and says what came of it. */
async function perform(id: string, path: Values, body?: Body): Promise<Answer> {
  const one = operation(id);
  const target = targetOf(one, path);
  return ask(server.url, { method: one.method, target, ...bodyOf(one, body) });
}

const sent = (id: string, body: Body | string) => bodyOf(operation(id), body);

/** Something that the operation names, or might, and the statuses it is refused with. */
async function refuse(id: string, path: Values, expected: readonly number[], at = server) {
  const one = operation(id);
  const query: Values = id === 'login' ? { code: 'any' } : {};
  const question = { target: targetOf(one, path, query), ...sent(id, bodies[id]?.()) };
  await probe(one, question, expected, at.url);
}

/** Everything that a session shows. */
async function look(id: string): Promise<void> {
  for (const one of contract.operations) {
    if (one.method !== 'GET' || !/[/]sessions[/]\{id\}/.test(one.path)) continue;
    if (one.id === 'expertLayer' && id !== sparse) continue;
    await probe(one, { target: targetOf(one, { ...PLACE, id }) }, [200]);
  }
}

async function generate(body: Body): Promise<string> {
  const answer = await perform('generate', {}, body);
  const { id } = jsonOf(answer) as { id?: string };
  if (id === undefined) throw new Error(`nothing is generated: ${answer.body.toString()}`);
  return id;
}

const stateOf = async (id: string) => (await get(`/api/v1/generate/${id}`)).state;
const until = (state: () => Promise<unknown>, wanted: unknown) =>
  vi.waitFor(
    async () => {
      expect(await state()).toBe(wanted);
    },
    { timeout: 20_000, interval: 20 },
  );

async function recorded(body: Body): Promise<string> {
  const id = await generate(body);
  await until(() => stateOf(id), 'done');
  return id;
}

async function loaded(model: string): Promise<void> {
  // Refused while another one is still being loaded, so asked again.
  await until(async () => (await perform('load', { model })).status.toString(), '202');
  await until(async () => (await get(`/api/v1/models/${model}`)).state, 'loaded');
}

// Also those before one that could not be started are stopped in the end.
const running: Server[] = [];
async function start(args: readonly string[]): Promise<Server> {
  const started = await startServer(args);
  running.push(started);
  return started;
}

beforeAll(async () => {
  const program = process.env.TT_PROGRAM;
  if (!program) throw new Error('TT_PROGRAM names no tt program');
  folder = await mkdtemp(join(tmpdir(), 'tt-contract-'));
  const bundled = new URL('../../../tracer/modelgen/bundled/pocket.gguf', import.meta.url);
  await promisify(execFile)(program, ['model', 'moe', '-q', '-o', join(folder, 'moe.gguf')]);
  await writeFile(join(folder, 'broken.gguf'), 'GGUF, but no more of it');
  [server, locked, full, small] = await Promise.all([
    start(['--models-dir', folder, '-m', fileURLToPath(bundled), '-c', CONTEXT]),
    start(['--no-model', '--api-key', KEY]),
    start(['--no-model', '--disk-reserve', '1000000G']),
    start(['--no-model', '--max-import', '1K', '--max-live-clients', '2']),
  ]);
  late = ask(small.url, {
    method: 'PATCH',
    target: '/api/v1/sessions/any',
    headers: { 'Content-Type': 'application/json', 'Content-Length': '1000' },
    body: '{',
  });
  await loaded('moe');
  sparse = await recorded(PROMPT);
  await loaded(DENSE);
  finished = await recorded(PROMPT);
  deleted = await recorded({ ...PROMPT, prompt: 'To be deleted' });
  await perform('delete', { id: deleted });
  file = await readFile(join(server.data, `${finished}.ttrace`));
});

afterAll(async () => {
  await Promise.all(running.map((one) => one.stop()));
  await rm(folder, { recursive: true, force: true });
});

// Where an operation can be done, again and again.
async function placeOf({ id }: Operation): Promise<Values> {
  // What one of the two does the other has undone before.
  if (id === 'delete') await perform('restore', { id: deleted });
  if (id === 'restore') await perform('delete', { id: deleted });
  return {
    id: id === 'delete' || id === 'restore' ? deleted : id === 'expertLayer' ? sparse : finished,
    // Loading exchanges models, so it is asked for the one that is there.
    model: id === 'unload' ? 'moe' : DENSE,
    ...PLACE,
  };
}

const bodies: Readonly<Record<string, () => Body>> = {
  generate: () => PROMPT,
  import: () => file,
  query: () => ({ sql: 'SELECT * FROM step' }),
  rename: () => ({ title: 'Another title' }),
};

const LAYERS = { layers: ['all', 'outside', '0', '1,0-1,outside'] };

// Fields of the body of `generate` that exclude each other stay out, and have a
// test of their own.
const GIVEN: Readonly<Record<string, Given>> = {
  accesses: { cursor: [], layer: [0, 'outside', 'none'] }, // cursors have a test of their own
  ...Object.fromEntries(
    ['heatmap', 'memoryMap', 'timeline', 'breakdown', 'hot', 'sequentiality'].map((id) => [
      id,
      LAYERS,
    ]),
  ),
  ...Object.fromEntries(
    ['tensors', 'ops', 'stepAccesses', 'expertTokens'].map((id) => [
      id,
      { layer: [0, 'outside', 'none'] },
    ]),
  ),
  export: { first_step: [0, 1] },
  generate: {
    model: [DENSE],
    prompt: ['a', 'ä\u0000 \u{1f600}'],
    messages: [],
    tokens: [],
    grammar: ['', 'root ::= "a" | "b"'],
    stop: [[], ['a', 'ä'], Array.from({ length: 32 }, (_, i) => `stop ${i}`)],
    stats_pattern: ['', 'attn.*'],
  },
  // The layer has one, and the session no other phases.
  expertLayer: { router: [0], phase: ['prompt', 'generate'] },
  stepGraph: LAYERS,
  templateGraph: LAYERS,
  reuse: { sizes: ['', '0', '1000,9007199254740991'] },
  query: {
    sql: ['SELECT 1', 'SELECT * FROM access', "SELECT 'ä' -- \u{1f600}"],
    timeout_ms: [60_000], // with less it depends on the machine what comes
  },
  rename: { title: ['x', 'x'.repeat(200), 'ä'.repeat(200), '%_\\"\''] },
};

// What cannot be brought about from outside, with the C++ test that shows it.
const SHOWN_ELSEWHERE: Readonly<Record<string, string>> = {
  'restore 500 application/problem+json':
    'takes a disk that cannot be written: NoRoom.AFolderThatCannotBeWrittenIsReadAndSaysSo',
};

describe('the walk', () => {
  walk(contract, probe, {
    url: () => server.url,
    path: placeOf,
    query: ({ id }): Values => (id === 'login' ? { code: 'any' } : {}),
    body: ({ id }) => bodies[id]?.(),
    given: ({ id }) => GIVEN[id] ?? {},
    success: ({ responses }) => [...responses.keys()].filter((status) => status < 300),
    undo: async ({ id }, { headers }) => {
      const queued = /generate\/(.*)$/.exec(headers.location ?? '')?.[1];
      if (id === 'generate' && queued) await perform('cancel', { id: queued });
    },
  });
});

describe('beside the walk', () => {
  it('the document is the one that the server shows', async () => {
    expect(await get('/api/openapi.json')).toEqual(contract.raw);
  });

  it('a prompt may come in three forms, in one at a time', async () => {
    const tell = (body: Body, expected: readonly number[]) =>
      probe(
        operation('generate'),
        { target: '/api/v1/generate', ...sent('generate', body) },
        expected,
      );
    const two = { max_tokens: 2 };
    await tell({ ...two, tokens: [1, 2, 3] }, [202]);
    for (const role of ['system', 'user', 'assistant']) {
      await tell({ ...two, messages: [{ role, content: 'Hello' }] }, [202]);
    }
    await tell(two, [400]);
    await tell({ ...PROMPT, tokens: [1] }, [400]);
    await tell({ ...PROMPT, messages: [{ role: 'user', content: 'Hello' }] }, [400]);
    await tell({ ...two, messages: [{ role: 'nobody', content: 'Hello' }] }, [400]);
    await tell({ ...two, tokens: [-1] }, [400]);
    await tell({ ...PROMPT, grammar: 'root ::= (' }, [422]);
    await tell({ ...PROMPT, model: 'moe' }, [409]);
    await tell({ prompt: 'many '.repeat(Number(CONTEXT)) }, [413]);
  });

  it('pages of accesses join by their cursor', async () => {
    const page = async (query: Values) => {
      const target = targetOf(operation('accesses'), { id: finished }, query);
      return jsonOf(await probe(operation('accesses'), { target }, [200])) as {
        next: string | null;
        accesses: unknown[];
      };
    };
    const whole = await page({ limit: '10000', last_step: '1' });
    const joined: unknown[] = [];
    let cursor: Values = {};
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

  it('a session of a mixture of experts is shown like any other', async () => {
    await look(sparse);
    const target = targetOf(operation('accesses'), { id: sparse }, { expert: '0', limit: '10000' });
    const answer = await probe(operation('accesses'), { target }, [200]);
    const { accesses } = jsonOf(answer) as { accesses: { expert: number | null }[] };
    expect(accesses.length).toBeGreaterThan(0);
    expect(accesses.every(({ expert }) => expert === 0)).toBe(true);
  });

  it('a statement is refused, stopped, or has to wait', async () => {
    const forever =
      'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n';
    const tell = (body: Body, expected: readonly number[]) => {
      const target = targetOf(operation('query'), { id: finished });
      return probe(operation('query'), { target, ...sent('query', body) }, expected);
    };
    await tell({ sql: 'SELECT nothing FROM access' }, [400]);
    await tell({ sql: "ATTACH '/tmp/other' AS other" }, [403]);
    await tell({ sql: forever, timeout_ms: 50 }, [422]);
    await tell({ sql: 'SELECT 1', timeout_ms: 1 }, [200, 422]);
    const answers = await Promise.all(
      [1, 2, 3, 4].map(() => tell({ sql: forever, timeout_ms: 2000 }, [422, 503])),
    );
    expect(answers.some(({ status }) => status === 503)).toBe(true);
    for (const format of ['json', 'ndjson', 'csv']) {
      await tell({ sql: 'SELECT * FROM access', format, limit: 20_000 }, [200]);
    }
  });

  it('a session that is being recorded is shown, and stays as it is', async () => {
    const long = { prompt: 'On and on', max_tokens: 2_000_000_000, ignore_eos: true };
    const id = await generate(long);
    await until(() => stateOf(id), 'running');
    const grown = async () => Number((await get(`/api/v1/sessions/${id}/steps`)).total) > 1;
    await until(grown, true);
    await look(id);
    await refuse('rename', { id }, [409]);
    await refuse('delete', { id }, [409]);
    await refuse('restore', { id }, [404]);
    await refuse('load', { model: 'moe' }, [409]);
    await refuse('unload', { model: DENSE }, [409]);
    // A file with changes that are not yet in it is sent as a copy, which needs room.
    const name = join(full.data, 'growing.ttrace');
    await copyFile(join(server.data, `${id}.ttrace-wal`), `${name}-wal`);
    await copyFile(join(server.data, `${id}.ttrace`), name);
    await refuse('download', { id: 'growing' }, [507], full);
    const target = targetOf(operation('export'), { id: 'growing' }, { format: 'folder' });
    await probe(operation('export'), { target }, [507], full.url);
    const limit = Number((await get('/api/v1/server')).queue_limit);
    const waiting: string[] = [];
    for (let i = 0; i < limit; i += 1) waiting.push(await generate(PROMPT));
    await refuse('generate', {}, [503]);
    for (const one of [...waiting, id]) {
      await probe(
        operation('cancel'),
        { target: targetOf(operation('cancel'), { id: one }) },
        [202],
      );
    }
    await until(() => stateOf(id), 'cancelled');
  });

  it('a file is sent in parts, and not at all to a client that has it', async () => {
    const target = targetOf(operation('download'), { id: finished });
    const part = (headers: Readonly<Record<string, string>>, expected: number) =>
      probe(operation('download'), { target, headers }, [expected]);
    const { body } = await part({ Range: 'bytes=0-15' }, 206);
    expect(body).toHaveLength(16);
    await part({ Range: 'bytes=99999999-' }, 416);
    const { headers } = await part({}, 200);
    await part({ 'If-None-Match': headers.etag ?? '' }, 304);
  });

  it('a file is taken once, and only if it is a session', async () => {
    const take = (body: Body, expected: number) =>
      probe(operation('import'), { target: '/api/v1/sessions', ...sent('import', body) }, [
        expected,
      ]);
    await perform('restore', { id: deleted });
    const own = await readFile(join(server.data, `${deleted}.ttrace`));
    await take(own, 200);
    await perform('delete', { id: deleted });
    await take(own, 201);
    // There is one of that id again.
    await refuse('restore', { id: deleted }, [409]);
    await take(own.subarray(0, 4096), 422);
    const log = targetOf(operation('export'), { id: finished }, { format: 'ndjson' });
    const { body: lines } = await probe(operation('export'), { target: log }, [200]);
    const tell = (body: Buffer, expected: number, type = 'application/x-ndjson; charset=utf-8') => {
      const headers = { 'Content-Type': type };
      const target = '/api/v1/sessions';
      return probe(operation('import'), { target, headers, body }, [expected]);
    };
    const { id: again } = jsonOf(await tell(lines, 201)) as { id: string };
    await perform('delete', { id: again });
    await tell(Buffer.from('no log'), 422);
    const run = targetOf(operation('export'), { id: finished }, { format: 'folder' });
    const { body: archive } = await probe(operation('export'), { target: run }, [200]);
    const tar = 'application/x-tar';
    const { id: third } = jsonOf(await tell(archive, 201, tar)) as { id: string };
    await perform('delete', { id: third });
    await tell(archive.subarray(0, 4096), 422, tar);
    await refuse('import', {}, [413], small);
  });

  it('what is damaged is said', async () => {
    // The head stays, so that it is a session; what it recorded is gone.
    const bad = Buffer.from(file).fill(0x5a, 4096);
    await writeFile(join(server.data, 'damaged.ttrace'), bad);
    await probe(operation('session'), { target: '/api/v1/sessions/damaged' }, [200]);
    await probe(operation('sessions'), { target: '/api/v1/sessions?state=unreadable' }, [200]);
    for (const { id, method, path, responses } of contract.operations) {
      if (!path.includes('/sessions/{id}/') || method !== 'GET' || !responses.has(500)) continue;
      if (id !== 'download') await refuse(id, { ...PLACE, id: 'damaged' }, [500]);
    }
    await refuse('rename', { id: 'damaged' }, [500]);
    await refuse('query', { id: 'damaged' }, [500]);
    // What is not yet in the file itself makes it one to copy; this is no database.
    await writeFile(join(server.data, 'junk.ttrace'), bad.subarray(4096));
    await writeFile(join(server.data, 'junk.ttrace-wal'), 'more');
    await refuse('download', { id: 'junk' }, [500]);
    await refuse('load', { model: 'broken' }, [503]);
    await refuse('gguf', { model: 'broken' }, [422]);
    await refuse('modelCompression', { model: 'broken' }, [422]);
  });

  it('where nothing can be stored that is said', async () => {
    await refuse('generate', {}, [507], full);
    await refuse('import', {}, [507], full);
    // Files where folders belong.
    await writeFile(join(small.data, `${finished}.ttrace`), file);
    await writeFile(join(small.data, '.deleted'), '');
    await refuse('delete', { id: finished }, [500], small);
    await rename(small.data, `${small.data}-gone`);
    await writeFile(small.data, '');
    await refuse('sessions', {}, [500], small);
    const little = sent('import', Buffer.from('little'));
    await probe(operation('import'), { target: '/api/v1/sessions', ...little }, [500], small.url);
    await rm(small.data);
    await rename(`${small.data}-gone`, small.data);
  });

  it('without the key nothing is answered but health', async () => {
    for (const one of contract.operations) {
      if (!one.open) await refuse(one.id, { ...PLACE, id: finished, model: DENSE }, [401], locked);
    }
    await probe(operation('health'), { target: '/api/v1/health' }, [200], locked.url);
    const headers = { Authorization: `Bearer ${KEY}` };
    await probe(operation('version'), { target: '/api/v1/version', headers }, [200], locked.url);
  });

  it('the login link is good once, and guesses have to wait', async () => {
    const login = (target: string, expected: number, method = 'GET') =>
      probe(operation('login'), { target, method }, [expected], locked.url);
    const target = locked.link.slice(locked.url.length);
    await login(target, 405, 'HEAD');
    const { headers } = await login(target, 200);
    expect(headers['set-cookie']).toHaveLength(1);
    expect(headers.refresh).toBeDefined();
    await login(target, 401);
    for (let i = 0; i < 20; i += 1) {
      await probe(operation('login'), { target: '/login?code=guess' }, [401, 429], locked.url);
    }
    await login('/login?code=guess', 429);
    const wrong = { Authorization: 'Bearer no-key-of-this-server' };
    await probe(
      operation('version'),
      { target: '/api/v1/version', headers: wrong },
      [429],
      locked.url,
    );
  });

  it('any request may be refused before its route is looked at', async () => {
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
    const body = JSON.stringify({ title: 'x'.repeat(20_000_000) });
    await probe(operation('rename'), { target, ...sent('rename', body) }, [413]);
  });

  it('a body that does not come is not waited for', async () => {
    const answer = await late; // half a minute after the first test
    expect(answer.status).toBe(408);
    expect(judge.complaints(operation('rename'), answer)).toEqual([]);
  });

  it('one client has so many sockets and no more', async () => {
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

  it('every response of the contract was seen, or cannot be here', () => {
    expect(judge.unseen().sort()).toEqual(Object.keys(SHOWN_ELSEWHERE).sort());
  });
});
