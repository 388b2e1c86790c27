// Does a server with a quota lose anything that it has told, over kills, restarts, uploads, deletes,
// exports, readers and cancelled requests? Budget: no session lost, no 5xx except 503, no file in
// WAL mode after a clean stop, every remaining file valid.
//
//   ./tt bench storage_soak --minutes 30
//   systemd-run --scope -p MemoryMax=400M ./tt bench storage_soak --data DISK/FOLDER
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { bundledModel, machine, modelFile, options, program, sleep } from './harness.mjs';

const o = options({ model: bundledModel, minutes: 2, quota: '8M', data: '', restart: 15 });
const data = o.data || mkdtempSync(join(tmpdir(), 'tt-soak-'));
mkdirSync(data, { recursive: true });
const end = Date.now() + o.minutes * 60000;
const random = (n) => Math.floor(Math.random() * n);
const counts = { generations: 0, cancelled: 0, uploads: 0, deleted: 0, reads: 0, kills: 0, stops: 0 };
const failures = [];
const told = new Map(); // session -> number of tokens, of ended sessions
const gone = new Set(); // removed by us or by the quota
let url = '';
let memory = 0;

async function api(path, init) {
  try {
    const response = await fetch(`${url}/api/v1${path}`, init);
    const body = Buffer.from(await response.arrayBuffer());
    if (response.status >= 500 && response.status !== 503)
      failures.push(`${init?.method ?? 'GET'} ${path}: ${response.status} ${body.subarray(0, 300)}`);
    return { status: response.status, body };
  } catch {
    return { status: 0, body: Buffer.alloc(0) }; // killed or stopped
  }
}
const json = ({ body }) => JSON.parse(body.toString());
const post = (path, body) =>
  api(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });

async function start() {
  const child = spawn(program('tt-server'), ['-m', modelFile(o.model), '-t', '1', '-c', '1024', '--port', '0',
    '--data-dir', data, '--keep-bytes', o.quota, '--log-json'], { stdio: ['ignore', 'pipe', 'pipe'] });
  let log = '';
  child.stderr.on('data', (part) => {
    log += part;
    const lines = log.split('\n');
    log = lines.pop();
    for (const line of lines)
      if (line.includes('removed a session')) gone.add(JSON.parse(line).session);
  });
  child.ended = new Promise((resolve) => child.once('exit', (code, signal) => resolve(code ?? signal)));
  url = await new Promise((resolve, reject) => {
    child.stdout.once('data', (line) => resolve(String(line).trim().replace(/\/$/, '')));
    child.once('exit', () => reject(new Error('the server does not start')));
  });
  while (!(await api('/health')).body.includes('"loaded"')) await sleep(50);
  return child;
}

const sessions = async () => {
  const list = await api('/sessions?limit=1000');
  return list.status === 200 ? json(list).sessions : [];
};
async function generations() {
  while (Date.now() < end) {
    const accepted = await post('/generate', { prompt: 'Once', max_tokens: 1 + random(80), ignore_eos: true });
    if (accepted.status !== 202) { await sleep(50); continue; }
    const { id } = json(accepted);
    if (random(4) === 0) {
      await sleep(random(30));
      await api(`/generate/${id}`, { method: 'DELETE' });
      ++counts.cancelled;
    }
    for (;;) {
      const status = await api(`/generate/${id}`);
      if (status.status !== 200) break; // the server was restarted meanwhile
      const job = json(status);
      if (job.state === 'queued' || job.state === 'running') { await sleep(5); continue; }
      if (job.error) failures.push(`${id}: ${job.error}`);
      ++counts.generations;
      if (job.state === 'done') told.set(id, job.prompt_tokens + job.generated);
      break;
    }
  }
}
async function readers() {
  const kinds = ['', '/hot', '/steps?limit=20', '/validation', '/file', '/export?format=csv', '/export?format=folder', '/report?format=json'];
  while (Date.now() < end) {
    const list = await sessions();
    if (list.length === 0) { await sleep(20); continue; }
    const { id } = list[random(Math.min(4, list.length))];
    const answer = await api(`/sessions/${id}${kinds[random(kinds.length)]}`);
    ++counts.reads;
    if (random(10) === 0 && answer.status === 200) {
      const file = await api(`/sessions/${id}/file`);
      if (file.status === 200) {
        const taken = await api('/sessions', { method: 'POST', headers: { 'content-type': 'application/octet-stream' }, body: file.body });
        counts.uploads += taken.status < 300;
      }
    }
    if (random(12) === 0) {
      gone.add(id); // also if the answer is lost
      counts.deleted += (await api(`/sessions/${id}`, { method: 'DELETE' })).status === 200;
    }
  }
}
async function restarts() {
  let server = await start();
  started();
  while (Date.now() < end) {
    await sleep(Math.min(1000 * (o.restart / 2 + random(o.restart)), Math.max(0, end - Date.now())));
    memory = Math.max(memory, Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))[1]) / 1024);
    const kill = Date.now() < end && random(2) === 0;
    server.kill(kill ? 'SIGKILL' : 'SIGTERM');
    const code = await server.ended;
    ++counts[kill ? 'kills' : 'stops'];
    if (!kill) {
      if (code !== 0) failures.push(`the server ended with ${code}`);
      const left = readdirSync(data).filter((name) => /-(wal|shm|journal)$/.test(name));
      if (left.length > 0) failures.push(`after a clean stop: ${left.join(' ')}`);
    }
    if (Date.now() < end) server = await start();
  }
}
let started;
const ready = new Promise((resolve) => (started = resolve));
const restarting = restarts();
await ready;
await Promise.all([restarting, generations(), generations(), readers(), readers(), readers()]);

// What was told is there, unless it was removed.
const server = await start();
const listed = new Map((await sessions()).map((session) => [session.id, session]));
for (const [id, tokens] of told) {
  const session = listed.get(id);
  if (!session && !gone.has(id)) failures.push(`${id} is lost`);
  if (session && session.tokens !== tokens) failures.push(`${id} has ${session.tokens} tokens instead of ${tokens}`);
}
server.kill('SIGTERM');
await server.ended;
let valid = 0;
for (const name of readdirSync(data).filter((file) => file.endsWith('.ttrace'))) {
  try {
    execFileSync(program('tt'), ['parse', '--validate', join(data, name)]);
    ++valid;
  } catch (error) {
    failures.push(`${name} is not valid: ${error.stdout}`);
  }
}
if (!o.data) rmSync(data, { recursive: true, force: true });
console.log(`${machine()}; ${o.minutes} minutes: ${JSON.stringify(counts)}; ${valid} files valid, ${gone.size} sessions removed, ${memory.toFixed(0)} MiB of memory`);
for (const failure of failures.slice(0, 20)) console.error(failure);
console.log(`${failures.length} failures (budget: 0)`);
process.exit(failures.length === 0 ? 0 : 1);
