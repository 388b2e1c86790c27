// Does a server give back the memory of models that it unloaded? Budget: after
// any number of exchanges at most 64 MB above a server that loaded none.
import { mkdirSync, copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Server, generate, machine, modelFile, options, program, sleep } from './harness.mjs';

const o = options({ models: 'small,moe,mamba', rounds: 15, tokens: 200, threads: 2, context: 1024 });
const models = o.models.split(',');
const folder = mkdtempSync(join(tmpdir(), 'tt-models-'));
for (const model of models) copyFileSync(modelFile(model), join(folder, `${model}.gguf`));
const server = new Server(program('tt-server'), [
  '--models-dir', folder, '-t', String(o.threads), '-c', String(o.context), '--port', '0',
  '--data-dir', '{data}',
]);
await server.ready(
  (said) => /http:\/\/127\.0\.0\.1:\d+/.exec(said)?.[0],
  async (url) => (await fetch(`${url}/api/v1/health`)).ok,
);
const api = async (path, init) => (await fetch(`${server.url}/api/v1/${path}`, init)).json();
async function comesTo(model, state) {
  for (;;) {
    const is = await api(`models/${model}`);
    if (is.state === state) return;
    if (is.state === 'failed') throw new Error(is.error);
    await sleep(5);
  }
}
const mb = (bytes) => (bytes / 1e6).toFixed(1);

const before = server.memory();
let most = 0;
console.log(`${machine()}; before the first model ${mb(before)} MB`);
for (let round = 1; round <= o.rounds; ++round) {
  let line = `exchange ${round}:`;
  for (const model of models) {
    await api(`models/${model}/load`, { method: 'POST' });
    await comesTo(model, 'loaded');
    const request = { model, tokens: Array.from({ length: 300 }, (_, i) => 3 + i % 200), max_tokens: o.tokens, ignore_eos: true };
    await Promise.all([1, 2].map(() => generate(server.url, request)));
    const loaded = server.memory();
    await api(`models/${model}/unload`, { method: 'POST' });
    await comesTo(model, 'available');
    const above = server.memory() - before;
    most = Math.max(most, above);
    line += `  ${model} ${mb(loaded)} loaded, ${mb(above)} kept`;
  }
  console.log(line);
}
console.log(`most kept ${mb(most)} MB (at most 64): ${most <= 64e6 ? 'kept' : 'MISSED'}`);
if (most > 64e6) process.exitCode = 1;
await server.stop();
rmSync(folder, { recursive: true });
