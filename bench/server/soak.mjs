// Memory and descriptors of a long-running server. Budget: after one hour, memory within 5 % of
// its value after ten minutes, and no additional descriptors.
//
// Runs continuous generations and live clients, some of which disappear without closing or never
// acknowledge. Sessions are read, deleted and restored.
import {
  LiveClient, bundledModel, generate, machine, median, options, sleep, startOurs, vanishingClient,
} from './harness.mjs';

const o = options({
  model: bundledModel,
  minutes: 60,
  warm: 10,
  threads: 1,
  context: 1024,
});
const server = await startOurs(o);
const started = Date.now();
const minutes = () => (Date.now() - started) / 60000;
const random = (n) => Math.floor(Math.random() * n);
const api = (path, init) => fetch(`${server.url}/api/v1${path}`, init);
const counts = { generations: 0, clients: 0, vanished: 0, deleted: 0, restored: 0, refused: 0 };

async function generations() {
  while (minutes() < o.minutes) {
    const result = await generate(server.url, {
      prompt: 'Once upon a time', max_tokens: 20 + random(200), temperature: 1, ignore_eos: true,
    });
    ++counts.generations;
    const list = await (await api('/sessions?limit=1000')).json();
    await (await api(`/sessions/${result.session}/steps?limit=50`)).arrayBuffer();
    for (const { id } of list.sessions.slice(10)) {
      counts.deleted += (await api(`/sessions/${id}`, { method: 'DELETE' })).ok;
      if (random(10) === 0) counts.restored += (await api(`/sessions/${id}/restore`, { method: 'POST' })).ok;
    }
  }
}

async function clients() {
  while (minutes() < o.minutes) {
    if (random(4) === 0) {
      await vanishingClient(server.url, random(3000));
      ++counts.vanished;
      continue;
    }
    const client = new LiveClient(server.url, { reads: random(4) !== 0 });
    try {
      await client.subscribe('*', ['token', 'step', 'op', 'routing', 'progress']);
      ++counts.clients;
      await sleep(random(5000));
      await client.close();
    } catch {
      ++counts.refused;
    }
  }
}

const samples = []; // { minute, bytes, descriptors }
async function watch() {
  while (minutes() < o.minutes) {
    samples.push({ minute: minutes(), bytes: server.memory(), descriptors: server.descriptors() });
    await sleep(5000);
  }
}
await Promise.all([generations(), clients(), clients(), clients(), watch()]);
await sleep(3000);
const ended = { bytes: server.memory(), descriptors: server.descriptors() };
await server.stop();

const within = (from, to) => samples.filter(({ minute }) => minute >= from && minute < to);
const warm = within(o.warm * 0.8, o.warm * 1.2);
const late = within(o.minutes * 0.9, o.minutes);
const mib = (list) => median(list.map(({ bytes }) => bytes)) / 2 ** 20;
console.log(`${machine()}; ${o.minutes} minutes: ${JSON.stringify(counts)}`);
console.log(`anonymous memory: ${mib(warm).toFixed(1)} MiB after ${o.warm} minutes, ${mib(late).toFixed(1)} MiB at the end: ${(100 * (mib(late) / mib(warm) - 1)).toFixed(1)} % (budget 5 %)`);
console.log(`descriptors: median ${median(warm.map((s) => s.descriptors))} then, ${median(late.map((s) => s.descriptors))} at the end, ${ended.descriptors} without clients`);
