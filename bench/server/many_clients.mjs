// What do many clients cost a generation, and is every heavy query answered in time? Budget: with
// 200 clients, half of the tokens per second without them; p99 of /health 10 ms meanwhile; of 48
// heavy queries at once, each has an answer or a 503 with Retry-After within 5 s, and who asks
// again as Retry-After says gets the answer.
//
// Generations with and without clients alternate. A client sends one request after the other, as
// fast as it is answered: the requests of the page for a session, and /health in between. All
// clients share a thread, and another one measures /health every 20 ms. Clients of a real server
// compute elsewhere, so the server with all threads is bound to --core and this process to
// --clientsCore (taskset), as in live_clients. /health is measured beside a server in another
// process that answers every request at once: what it takes, the machine takes. The heavy queries
// are asked of a session of --accesses accesses, with all processors.
import { execFileSync, spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';
import {
  bundledModel, generate, machine, median, options, program, quantile, sleep, startOurs,
} from './harness.mjs';

// The answer to a request: status, Retry-After in seconds, milliseconds.
function request(url, agent) {
  const before = performance.now();
  return new Promise((resolve, reject) => {
    get(url, { agent }, (response) => {
      response.resume();
      response.once('end', () =>
        resolve({
          status: response.statusCode,
          retryAfterS: Number(response.headers['retry-after'] ?? NaN),
          ms: performance.now() - before,
        }),
      );
    }).once('error', reject);
  });
}

// Worker threads: run until they get a message; then they send what they measured.
async function clients({ url, paths, count }) {
  const agent = new Agent({ keepAlive: true });
  const stop = untilMessage();
  const measured = { answers: {}, ms: [] };
  await Promise.all(
    Array.from({ length: count }, async (_, client) => {
      for (let i = client; !stop.now; ++i) {
        const { status, retryAfterS, ms } = await request(url + paths[i % paths.length], agent);
        measured.answers[status] = (measured.answers[status] ?? 0) + 1;
        measured.ms.push(ms);
        if (status === 503) await sleep(1000 * retryAfterS);
      }
    }),
  );
  agent.destroy();
  parentPort.postMessage(measured);
}

async function health({ url, bare }) {
  const agent = new Agent({ keepAlive: true });
  const stop = untilMessage();
  const ms = [];
  const bareMs = [];
  while (!stop.now) {
    ms.push((await request(`${url}/api/v1/health`, agent)).ms);
    await sleep(10);
    bareMs.push((await request(bare, agent)).ms);
    await sleep(10);
  }
  agent.destroy();
  parentPort.postMessage({ ms, bareMs });
}

// A process whose server answers every request at once: what the machine itself takes.
function startBare() {
  const child = spawn(process.execPath, ['-e', `
    const server = require('node:http').createServer((_, response) => response.end('{}'));
    server.listen(0, '127.0.0.1', () => console.log(server.address().port));`], { stdio: ['ignore', 'pipe', 'inherit'] });
  return new Promise((resolve) =>
    child.stdout.once('data', (port) =>
      resolve({ child, url: `http://127.0.0.1:${String(port).trim()}/`, stop: () => child.kill() }),
    ),
  );
}

// Binds all threads of a process to the processors of a taskset list.
function bind(pid, processors) {
  execFileSync('taskset', ['-acp', processors, String(pid)]);
}

function untilMessage() {
  const stop = { now: false };
  parentPort.once('message', () => (stop.now = true));
  return stop;
}

function start(role, data) {
  const worker = new Worker(new URL(import.meta.url), { workerData: { role, ...data } });
  return {
    stop: () =>
      new Promise((resolve, reject) => {
        worker.once('message', resolve).once('error', reject);
        worker.postMessage('stop');
      }),
  };
}

// 48 different queries of a session, which read all of it.
function heavyPaths(session) {
  const of = (path) => `/api/v1/sessions/${session}/${path}`;
  const paths = ['report', 'report?format=md', 'report?format=json', 'validation', 'pattern',
    'determinism', 'heads', `comparison/${session}`].map(of);
  for (let i = 0; paths.length < 48; ++i) paths.push(of(`reuse?sizes=${1000 + i}`));
  return paths;
}

async function main() {
  const o = options({
    model: bundledModel, rounds: 5, clients: 200, threads: 1, core: '0', clientsCore: '1', context: 2048, tokens: 1500,
    accesses: 20_000_000, seconds: 120,
  });
  bind(process.pid, o.clientsCore);
  const server = await startOurs(o);
  bind(server.child.pid, o.core);
  const bare = await startBare();
  bind(bare.child.pid, o.core);
  const body = {
    prompt: 'Once upon a time', max_tokens: o.tokens, temperature: 0, ignore_eos: true,
    reuse_prefix: false,
  };
  const { session } = await generate(server.url, body);
  const of = `/api/v1/sessions/${session}`;
  const paths = [
    '/api/v1/sessions?limit=100', of, `${of}/tokens?limit=100`, `${of}/steps?last=20`,
    '/api/v1/health', `${of}/heatmap?width=400&height=22`, `${of}/breakdown?by=layer`,
    `${of}/steps/1/ops?limit=50`, `${of}/accesses?limit=50`, '/api/v1/models', `${of}/hot`,
  ];
  const kinds = ['without', 'with'];
  const speeds = Object.fromEntries(kinds.map((kind) => [kind, []]));
  const healthMs = Object.fromEntries(kinds.map((kind) => [kind, []]));
  const bareMs = Object.fromEntries(kinds.map((kind) => [kind, []]));
  const answers = {};
  let ms = [];
  for (let round = 0; round < o.rounds; ++round) {
    for (const kind of kinds) {
      const load = kind === 'with' ? start('clients', { url: server.url, paths, count: o.clients }) : null;
      const probe = start('health', { url: server.url, bare: bare.url });
      await sleep(500);
      speeds[kind].push((await generate(server.url, body)).tokensPerSecond);
      const probed = await probe.stop();
      healthMs[kind].push(...probed.ms);
      bareMs[kind].push(...probed.bareMs);
      if (!load) continue;
      const measured = await load.stop();
      ms = ms.concat(measured.ms);
      for (const [status, n] of Object.entries(measured.answers)) answers[status] = (answers[status] ?? 0) + n;
    }
  }
  await server.stop();
  bare.stop();
  bind(process.pid, `0-${cpus().length - 1}`);
  const ratio = median(speeds.with.map((with_, i) => with_ / speeds.without[i])).toFixed(2);
  const p99 = (list) => quantile(list, 0.99).toFixed(1);
  console.log(`${machine()}; ${o.clients} clients, ${o.rounds} rounds`);
  console.log(`tokens per second: ${median(speeds.without).toFixed(0)} without, ${median(speeds.with).toFixed(0)} with clients: ratio ${ratio} (budget 0.5)`);
  console.log(`/health: p99 ${p99(healthMs.without)} ms without, ${p99(healthMs.with)} ms with clients (budget 10 ms), ${healthMs.with.length} requests`);
  console.log(`a server that does nothing else: p99 ${p99(bareMs.without)} ms without, ${p99(bareMs.with)} ms with clients`);
  console.log(`answers to the clients: ${JSON.stringify(answers)}, median ${median(ms).toFixed(0)} ms, p99 ${p99(ms)} ms`);
  if (o.accesses > 0) await heavy(o);
}

async function heavy(o) {
  const short = join(tmpdir(), 'tt-bench-many-short.ttrace');
  const server = await startOurs({ ...o, model: 'small' });
  const { session } = await generate(server.url, { prompt: 'Once', max_tokens: 200, temperature: 0, ignore_eos: true });
  execFileSync('cp', [join(server.data, `${session}.ttrace`), short]);
  execFileSync(program('make_big_session'), [short, join(server.data, 'big.ttrace'), String(o.accesses)]);
  rmSync(short);
  const first = [];
  const all = [];
  let unanswered = 0;
  const agent = new Agent();
  const deadline = performance.now() + 1000 * o.seconds;
  await Promise.all(
    heavyPaths('big').map(async (path) => {
      for (let i = 0; ; ++i) {
        const answer = await request(server.url + path, agent);
        (i === 0 ? first : all).push(answer);
        if (answer.status === 200) return;
        if (answer.status !== 503 || !(answer.retryAfterS > 0)) throw new Error(`${path}: ${answer.status}`);
        if (performance.now() > deadline) break;
        await sleep(1000 * answer.retryAfterS);
      }
      ++unanswered;
    }),
  );
  await server.stop();
  const slowest = Math.max(...first.concat(all).map(({ ms }) => ms));
  const at_once = first.filter(({ status }) => status === 200).length;
  console.log(`48 heavy queries at once, ${o.accesses} accesses: ${at_once} answered, ${48 - at_once} told to ask again, ${unanswered} without an answer after ${o.seconds} s; slowest response ${(slowest / 1000).toFixed(2)} s (budget 5 s)`);
}

if (isMainThread) await main();
else await { clients, health }[workerData.role](workerData);
