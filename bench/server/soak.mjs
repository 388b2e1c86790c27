// What does a server lose in half an hour of everything at once, and does its memory stay level?
//
// Requests that end, that are cancelled and whose clients vanish; uploads, deletes, restores,
// renames, exports, SQL, live clients and readers of every kind, with a quota, in a memory group
// and on a small disk. In the first third the server is killed (SIGKILL) or stopped (SIGTERM) again
// and again; then one server runs to the end.
//
// Budget: what was told is there, unless it was removed (a session whose request was answered as
// finished, an upload that was answered 201, steps that were listed); no status 5xx except 503; the
// memory is level: at the end within 10 % of that after 5 minutes of the last server; after a clean
// stop no file of SQLite beside the sessions and none in WAL mode; every file is valid.
//
//   ./tt bench soak                  30 minutes
//   ./tt bench soak --minutes 60
//   ./tt test soak                   the short form: the same events in a minute, without the verdict
//                                    on the memory
//   ./tt bench soak --data FOLDER    on a disk of yours instead of one of `--disk` bytes; the build
//                                    environment has no mkfs.ext4, so make it outside
//
// The memory group and the disk need root; without it, a line says what is missing.
import { execFileSync, spawn } from 'node:child_process';
import {
  existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, readSync, readdirSync, rmSync,
  rmdirSync, closeSync, statSync, writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

import {
  LiveClient, bundledModel, machine, median, modelFile, options, program, sleep, vanishingClient,
} from './harness.mjs';

const o = options({
  model: bundledModel,
  minutes: 30,
  quota: '64M',
  memory: 400, // MiB
  disk: 2048, // MiB
  data: '',
  restart: 20, // seconds between two kills or stops, on average
  longest: 900, // tokens of each twentieth generation
  pause: 0, // ms between two requests of a client
});
const kMinute = 60_000;
const begin = Date.now();
const end = begin + o.minutes * kMinute;
const restartsEnd = begin + (o.minutes * kMinute) / 3;
const random = (n) => Math.floor(Math.random() * n);
const pick = (list) => list[random(list.length)];
const root = process.getuid() === 0;

// ---------------------------------------------------------------------------
// The disk and the memory group

// An ext4 image, mounted for this process and its children: the process runs itself again with
// mounts of its own, so nothing stays mounted, however it ends.
function enterOwnMounts() {
  const args = ['--mount', '--propagation', 'private', process.execPath, ...process.argv.slice(1)];
  const child = spawn('unshare', args, { stdio: 'inherit', env: { ...process.env, TT_SOAK_MOUNTS: '1' } });
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
  return new Promise((resolve) => {
    child.once('error', () => resolve(null));
    child.once('exit', (code) => resolve(code ?? 1));
  });
}

function makeDisk(folder) {
  const data = join(folder, 'disk');
  const image = join(folder, 'image');
  mkdirSync(data);
  const path = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` };
  const quiet = { stdio: 'ignore', env: path };
  try {
    execFileSync('truncate', ['-s', `${o.disk}M`, image], quiet);
    execFileSync('mkfs.ext4', ['-q', '-F', image], quiet);
    execFileSync('mount', ['-o', 'loop', image, data], quiet);
    return { data, kind: `an ext4 disk of ${o.disk} MiB` };
  } catch {
    // no mkfs.ext4, or no loop device
  }
  // Not a tmpfs: its files count as memory of the group, and an NDJSON export of a long session has
  // 200 MB.
  return { data, kind: 'the disk of the temporary folder (a disk of its own needs root, mkfs.ext4 and a loop device)' };
}

// cgroup v1 or v2; null if this process may not.
function makeGroup() {
  for (const [parent, limit] of [['/sys/fs/cgroup/memory', 'memory.limit_in_bytes'], ['/sys/fs/cgroup', 'memory.max']]) {
    const folder = join(parent, `tt-soak-${process.pid}`);
    try {
      mkdirSync(folder);
      writeFileSync(join(folder, limit), String(o.memory * 2 ** 20));
      return { folder, v2: limit === 'memory.max' };
    } catch {
      if (existsSync(folder)) rmdirSync(folder);
    }
  }
  return null;
}
const field = (text, name) => Number(new RegExp(`^${name}:?\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0);
const inGroup = (name) => readFileSync(join(group.folder, name), 'utf8');
const groupAnonymous = () =>
  group ? field(inGroup('memory.stat'), group.v2 ? 'anon' : 'total_rss') : 0;
const killedForMemory = () =>
  group ? field(inGroup(group.v2 ? 'memory.events' : 'memory.oom_control'), 'oom_kill') : 0;

if (root && !o.data && !process.env.TT_SOAK_MOUNTS) {
  const code = await enterOwnMounts();
  if (code !== null) process.exit(code);
}
const temporary = mkdtempSync(join(tmpdir(), 'tt-soak-'));
const disk = o.data ? { data: o.data, kind: o.data } : makeDisk(temporary);
const data = join(disk.data, 'sessions');
mkdirSync(data, { recursive: true });
const group = makeGroup();
console.log(`${machine()}; ${o.minutes} minutes on ${disk.kind}, quota ${o.quota}, ${
  group ? `memory group of ${o.memory} MiB` : 'no memory group (it needs root and cgroup v1 or v2)'}`);

// ---------------------------------------------------------------------------
// What the server has said

const counts = {
  generations: 0, cancelled: 0, vanished: 0, reads: 0, exports: 0, uploads: 0, deleted: 0,
  restored: 0, renamed: 0, evicted: 0, kills: 0, stops: 0, busy: 0,
};
const failures = [];
function fail(text) {
  failures.push(text);
  if (failures.length <= 20) console.error(`${((Date.now() - begin) / 1000).toFixed(1)} s: ${text}`);
}
const told = new Map(); // session -> number of tokens, as its ended request or its upload was answered
const listed = new Map(); // session -> most steps in a list
const gone = new Set(); // deleted by us, also if the answer was lost, or removed by the quota
let unlogged = 0; // a kill can come between a removal and its line in the log
let url = '';

async function api(path, init) {
  if (o.pause > 0) await sleep(random(2 * o.pause));
  try {
    const response = await fetch(`${url}/api/v1${path}`, init);
    const body = Buffer.from(await response.arrayBuffer());
    const { status } = response;
    const busy = status === 503;
    counts.busy += busy;
    // 404: removed meanwhile. 409: still being recorded, or there is one of this name.
    if (status >= 400 && ![404, 409].includes(status) && !busy)
      fail(`${init?.method ?? 'GET'} ${path}: ${status} ${body.subarray(0, 300)}`);
    return { status, body };
  } catch {
    await sleep(20);
    return { status: 0, body: Buffer.alloc(0) }; // killed or stopped
  }
}
const json = ({ body }) => JSON.parse(body.toString());
const send = (method, path, body) =>
  api(path, { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });

async function sessions() {
  const list = await api('/sessions?limit=1000');
  if (list.status !== 200) return [];
  const { sessions: all } = json(list);
  for (const { id, steps } of all) listed.set(id, Math.max(steps ?? 0, listed.get(id) ?? 0));
  return all;
}

// For a server that has just been started, or at the end.
async function checkNothingLost() {
  const before = { listed: new Map(listed), told: new Map(told) };
  const all = await api('/sessions?limit=1000');
  if (all.status !== 200) return fail(`the list of sessions: ${all.status}`);
  const there = new Map(json(all).sessions.map((session) => [session.id, session]));
  for (const [id, steps] of before.listed) {
    const session = there.get(id);
    if (session && session.steps < steps) fail(`${id} has ${session.steps} steps; ${steps} were listed`);
    if (!session && !gone.has(id)) {
      gone.add(id);
      if (--unlogged < 0) fail(`${id} was listed and is lost`);
    }
  }
  for (const [id, tokens] of before.told) {
    const session = there.get(id);
    if (session && session.tokens !== tokens) fail(`${id} has ${session.tokens} tokens instead of ${tokens}`);
    if (!session && !gone.has(id)) {
      gone.add(id);
      if (--unlogged < 0) fail(`${id} was told and is lost`);
    }
  }
  for (const [id, session] of there)
    if (session.error || session.state === 'unreadable') fail(`${id}: ${session.error}`);
}

// ---------------------------------------------------------------------------
// The server

async function start() {
  const args = ['-m', modelFile(o.model), '-t', '1', '-c', '1024', '--port', '0', '--data-dir', data,
    '--keep-bytes', o.quota, '--log-json'];
  const child = group
    ? spawn('sh', ['-c', 'echo $$ >"$0" && exec "$@"', join(group.folder, 'cgroup.procs'), program('tt-server'), ...args],
      { stdio: ['ignore', 'pipe', 'pipe'] })
    : spawn(program('tt-server'), args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let log = '';
  child.stderr.on('data', (part) => {
    log += part;
    const lines = log.split('\n');
    log = lines.pop();
    child.told = lines.at(-1) ?? child.told;
    for (const line of lines) {
      if (line.includes('"removed a session"')) {
        gone.add(JSON.parse(line).session);
        ++counts.evicted;
      } else if (/"level":\s*"(error|critical)"/.test(line)) {
        fail(`log: ${line}`);
      }
    }
  });
  // Also waits for the last line of the log.
  child.ended = new Promise((resolve) => child.once('close', (code, signal) => resolve(code ?? signal)));
  url = await new Promise((resolve, reject) => {
    child.stdout.once('data', (line) => resolve(String(line).trim().replace(/\/$/, '')));
    child.once('exit', (code, signal) => reject(new Error(`the server does not start: ${code ?? signal}`)));
  });
  child.expected = false;
  child.began = Date.now();
  void child.ended.then((code) => {
    if (!child.expected) fail(`the server ended by itself: ${code}`);
  });
  while (!(await api('/health')).body.includes('"loaded"') && child.exitCode === null) await sleep(50);
  return child;
}

function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? filesBelow(join(folder, entry.name)) : [join(folder, entry.name)]);
}
// Bytes 18 and 19 of an SQLite file: 2 in WAL mode.
function inWalMode(file) {
  const bytes = Buffer.alloc(2);
  const fd = openSync(file);
  readSync(fd, bytes, 0, 2, 18);
  closeSync(fd);
  return bytes[0] !== 1 || bytes[1] !== 1;
}
function checkFilesOfStoppedServer(server) {
  for (const file of filesBelow(data)) {
    // Left by a kill less than a minute before this server began: it could have been the file of
    // another program. The next one that begins removes it.
    if (file.endsWith('.ttrace-new') && server.began - statSync(file).mtimeMs < kMinute) continue;
    if (/-(wal|shm|journal|reserve|new)$/.test(file) || file.includes('/.work/'))
      fail(`after a clean stop there is ${basename(file)}`);
    else if (file.endsWith('.ttrace') && inWalMode(file)) fail(`after a clean stop ${basename(file)} is in WAL mode`);
  }
}

async function stop(server, signal) {
  server.expected = true;
  server.kill(signal);
  const code = await server.ended;
  ++counts[signal === 'SIGKILL' ? 'kills' : 'stops'];
  if (signal === 'SIGKILL') return void ++unlogged;
  if (code !== 0) return fail(`the server ended with ${code}: ${server.told}`);
  checkFilesOfStoppedServer(server);
}

// ---------------------------------------------------------------------------
// The clients

const goesOn = () => Date.now() < end;

async function generations() {
  while (goesOn()) {
    const length = random(20) === 0 ? o.longest : 1 + random(120);
    const body = { prompt: 'Once upon a time'.repeat(1 + random(8)), max_tokens: length, temperature: 1, ignore_eos: true };
    const accepted = await send('POST', '/generate', body);
    if (accepted.status !== 202) { await sleep(50); continue; }
    const { id } = json(accepted);
    if (random(4) === 0) {
      await sleep(random(60));
      await api(`/generate/${id}`, { method: 'DELETE' });
      ++counts.cancelled;
    }
    for (;;) {
      const status = await api(`/generate/${id}`);
      if (status.status !== 200) break; // the server was killed meanwhile
      const job = json(status);
      if (job.state === 'queued' || job.state === 'running') { await sleep(10); continue; }
      if (job.error) fail(`${id}: ${job.error}`);
      ++counts.generations;
      if (job.state === 'done') told.set(id, job.prompt_tokens + job.generated);
      break;
    }
  }
}

// Clients that disappear while they receive a stream.
async function vanishing() {
  while (goesOn()) {
    await sleep(500 + random(3000));
    try {
      if (random(2) === 0) {
        await vanishingClient(url, random(500));
      } else {
        const abort = new AbortController();
        setTimeout(() => abort.abort(), random(300));
        const response = await fetch(`${url}/api/v1/generate`, {
          method: 'POST', signal: abort.signal, headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ prompt: 'Once', max_tokens: 400, ignore_eos: true, stream: true }),
        });
        await response.arrayBuffer();
      }
    } catch {
      // aborted, killed or stopped
    }
    ++counts.vanished;
  }
}

async function liveClient() {
  while (goesOn()) {
    const client = new LiveClient(url, { reads: random(4) !== 0 });
    client.open.catch(() => {});
    try {
      await client.subscribe('*', ['token', 'step', 'op', 'progress']);
      await sleep(random(4000));
      await client.close();
    } catch {
      await sleep(200); // killed or stopped
    }
  }
}

const kReads = ['', '/hot', '/steps?limit=20', '/validation', '/breakdown?by=layer', '/experts', '/reuse', '/report',
  '/pattern', '/conditions', '/memory-map?width=64', '/heatmap?width=64&height=16', '/timeline?width=64'];
const kExports = ['csv', 'folder', 'parquet', 'ndjson', 'json', 'perfetto'];
async function readers() {
  while (goesOn()) {
    const list = await sessions();
    if (list.length === 0) { await sleep(20); continue; }
    for (let i = 0; i < 10 && goesOn(); ++i) {
      // The first are the newest, which are being recorded or have just ended.
      const { id } = list[random(random(2) === 0 ? Math.min(4, list.length) : list.length)];
      const path = `/sessions/${id}`;
      switch (counts.reads++ % 12) {
        case 0:
          await api(`${path}/export?format=${pick(kExports)}`);
          ++counts.exports;
          break;
        case 1: {
          const query = { sql: 'SELECT op, sum(bytes) FROM access GROUP BY op' };
          await send('POST', `${path}/query`, query);
          break;
        }
        case 2:
          await upload(path);
          break;
        case 3:
          gone.add(id); // also if the answer is lost
          if ((await api(path, { method: 'DELETE' })).status === 200) ++counts.deleted;
          if (random(3) === 0) counts.restored += (await api(`${path}/restore`, { method: 'POST' })).status === 200;
          break;
        case 4:
          counts.renamed += (await send('PATCH', path, { title: `title ${random(100)}` })).status === 200;
          break;
        case 5:
          await api(`/sessions/${id}/comparison/${pick(list).id}`);
          break;
        default:
          await api(path + pick(kReads));
      }
    }
  }
}

async function upload(path) {
  const [from, type] = pick([['/file', 'application/octet-stream'], ['/export?format=ndjson', 'application/x-ndjson'],
    ['/export?format=folder', 'application/x-tar']]);
  const file = await api(path + from);
  if (file.status !== 200) return;
  const taken = await api('/sessions', { method: 'POST', headers: { 'content-type': type }, body: file.body });
  if (taken.status !== 201) return;
  ++counts.uploads;
  const { id, tokens, steps } = json(taken);
  told.set(id, tokens);
  listed.set(id, steps); // of a copy made during the recording: fewer than the list had of the whole
}

// ---------------------------------------------------------------------------

const samples = []; // of the last server
async function serverLife() {
  let server = await start();
  ready();
  while (Date.now() < restartsEnd) {
    await sleep(Math.max(0, Math.min(1000 * (o.restart / 2 + random(o.restart)), restartsEnd - Date.now())));
    await stop(server, counts.kills <= counts.stops ? 'SIGKILL' : 'SIGTERM');
    server = await start();
    await checkNothingLost();
  }
  const since = Date.now();
  while (goesOn()) {
    const status = readFileSync(`/proc/${server.pid}/status`, 'utf8');
    samples.push({
      minute: (Date.now() - since) / kMinute,
      anonymous: field(status, 'RssAnon') * 1024,
      group: groupAnonymous(),
      descriptors: readdirSync(`/proc/${server.pid}/fd`).length,
    });
    await sleep(Math.min(5000, Math.max(0, end - Date.now())));
  }
  return server;
}

let ready;
const started = new Promise((resolve) => (ready = resolve));
const life = serverLife();
await Promise.race([started, life]); // the second only if the server does not start
const clients = [generations(), generations(), readers(), readers(), readers(), vanishing(), liveClient()];
const server = await life;
await Promise.all(clients);
await checkNothingLost();
const cacheBytes = /^tt_cache_bytes (\d+)/m.exec(await (await fetch(`${url}/metrics`)).text())?.[1];
await stop(server, 'SIGTERM');

let valid = 0;
for (const file of filesBelow(data).filter((name) => name.endsWith('.ttrace'))) {
  try {
    execFileSync(program('tt'), ['parse', '--validate', file], { stdio: 'pipe' });
    const said = execFileSync('sqlite3', [file, 'PRAGMA integrity_check'], { encoding: 'utf8' }).trim();
    if (said === 'ok') ++valid;
    else fail(`${basename(file)}: sqlite3 says ${said}`);
  } catch (error) {
    fail(`${basename(file)} is not valid: ${error.stdout}${error.stderr}`);
  }
}

for (const what of ['generations', 'cancelled', 'vanished', 'exports', 'uploads', 'deleted', 'renamed', 'evicted', 'kills', 'stops'])
  if (counts[what] === 0) fail(`${what}: none, so nothing is shown`);
const mib = (bytes) => (bytes / 2 ** 20).toFixed(1);
const within = (from, to, name) => median(samples.filter(({ minute }) => minute >= from && minute <= to).map((s) => s[name]));
const last = samples.at(-1)?.minute ?? 0;
const killed = killedForMemory();
if (killed > 0) fail(`the kernel ended ${killed} processes of the memory group`);
console.log(`${JSON.stringify(counts)}; ${valid} files valid`);
for (const [name, what] of [['anonymous', 'anonymous memory of the server'], ['group', 'of the group, with child processes']]) {
  const late = within(last * 0.9, last, name);
  const most = Math.max(...samples.map((sample) => sample[name]));
  console.log(`${what}: ${mib(late)} MiB at the end, at most ${mib(most)} MiB`);
  if (last < 10 || name === 'group') continue; // too short for a verdict
  const early = within(4.5, 5.5, name);
  console.log(`  ${mib(early)} MiB after 5 minutes: ${(100 * (late / early - 1)).toFixed(1)} % (budget 10 %)`);
  if (late > 1.1 * early) fail(`the memory grew from ${mib(early)} to ${mib(late)} MiB`);
}
console.log(`caches: ${mib(Number(cacheBytes))} MiB; descriptors: ${within(0, last / 2, 'descriptors')} in the first half, ${within(last / 2, last, 'descriptors')} in the second`);
console.log(`${failures.length} failures (budget: 0)`);
if (!o.data) {
  if (root) try { execFileSync('umount', [disk.data], { stdio: 'ignore' }); } catch { /* not mounted */ }
  rmSync(temporary, { recursive: true, force: true });
}
if (group) rmdirSync(group.folder);
process.exit(failures.length === 0 ? 0 : 1);
