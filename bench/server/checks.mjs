// What do child processes cost that check models and evaluate chat templates and grammars? Budget:
// time to load a model and time to the first token at most 1.05 of those without.
// - Load: with a check, and of a model that passed it before (--data-dir/checked-models).
// - First token: of a conversation, and of the same text without template; with a grammar that
//   allows everything, and without.
// --baseline FOLDER: programs of another build, for example of an earlier version, with the same
// requests in turn. TT_BIN: the programs that are measured.
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Server, generate, machine, median, modelFile, now, options, program, sleep } from './harness.mjs';

const o = options({ model: 'tinyllama-1.1b', rounds: 9, words: 40, threads: 2, context: 2048, baseline: '' });
const folder = mkdtempSync(join(tmpdir(), 'tt-checks-'));
copyFileSync(modelFile(o.model), join(folder, 'model.gguf'));

async function start(binary) {
  const server = new Server(binary, [
    '--models-dir', folder, '--no-model', '-t', String(o.threads), '-c', String(o.context), '--port', '0',
    '--data-dir', '{data}',
  ]);
  await server.ready(
    (output) => /http:\/\/127\.0\.0\.1:\d+/.exec(output)?.[0],
    async (url) => (await fetch(`${url}/api/v1/health`)).ok,
  );
  return server;
}

async function comesTo(server, state) {
  for (;;) {
    const model = await (await fetch(`${server.url}/api/v1/models/model`)).json();
    if (model.state === state) return;
    if (model.state === 'failed') throw new Error(model.error);
    await sleep(1);
  }
}
const post = (server, action) => fetch(`${server.url}/api/v1/models/model/${action}`, { method: 'POST' });

// Milliseconds. `checked`: as if the model had not been checked before.
async function load(server, checked) {
  const known = join(server.data, 'checked-models');
  if (checked && existsSync(known)) rmSync(known);
  const before = now();
  await post(server, 'load');
  await comesTo(server, 'loaded');
  const took = now() - before;
  await post(server, 'unload');
  await comesTo(server, 'available');
  return took;
}

const text = Array.from({ length: o.words }, (_, i) => ['time', 'tree', 'house', 'water'][i % 4]).join(' ');
const once = { max_tokens: 1, temperature: 0, ignore_eos: true, reuse_prefix: false };
const requests = {
  'text': { ...once, prompt: text },
  'conversation': { ...once, messages: [{ role: 'user', content: text }] },
  'text with grammar': { ...once, prompt: text, grammar: 'root ::= [^\\x00]*' },
};
const firstToken = async (server, request) => (await generate(server.url, { model: 'model', ...request })).firstMs;

const servers = { ours: await start(program('tt-server')) };
if (o.baseline) servers.baseline = await start(join(o.baseline, 'tt-server'));
const times = {};
const add = (what, who, ms) => ((times[what] ??= {})[who] ??= []).push(ms);

// The first round is not counted.
for (let round = 0; round <= o.rounds; ++round) {
  for (const [who, server] of Object.entries(servers)) {
    const checked = await load(server, true);
    const again = await load(server, false);
    if (round === 0) continue;
    add('load, with check', who, checked);
    add('load, checked before', who, again);
  }
}
for (const server of Object.values(servers)) {
  await post(server, 'load');
  await comesTo(server, 'loaded');
}
for (let round = 0; round <= o.rounds; ++round) {
  for (const [what, request] of Object.entries(requests)) {
    for (const [who, server] of Object.entries(servers)) {
      const ms = await firstToken(server, request);
      if (round > 0) add(`first token, ${what}`, who, ms);
    }
  }
}
for (const server of Object.values(servers)) await server.stop();
rmSync(folder, { recursive: true });

console.log(`${machine()}; ${o.model}, ${o.threads} threads, ${o.rounds} rounds, median (least) in ms`);
const figure = (values) => `${median(values).toFixed(1)} (${Math.min(...values).toFixed(1)})`;
for (const [what, { ours, baseline }] of Object.entries(times)) {
  const ratio = baseline ? `, baseline ${figure(baseline)}: ratio ${(median(ours) / median(baseline)).toFixed(3)}` : '';
  console.log(`${what}: ${figure(ours)}${ratio}`);
}
