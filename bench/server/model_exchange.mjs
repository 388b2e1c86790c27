// Memory after models are unloaded. Budget: after any number of model exchanges at most 64 MB
// above a server that has loaded no model.
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
  (output) => /http:\/\/127\.0\.0\.1:\d+/.exec(output)?.[0],
  async (url) => (await fetch(`${url}/api/v1/health`)).ok,
);
const api = async (path, init) => (await fetch(`${server.url}/api/v1/${path}`, init)).json();
async function waitForState(model, state) {
  for (;;) {
    const is = await api(`models/${model}`);
    if (is.state === state) return;
    if (is.state === 'failed') throw new Error(is.error);
    await sleep(5);
  }
}
const mb = (bytes) => (bytes / 1e6).toFixed(1);

const before = server.memory();
let maximum = 0;
console.log(`${machine()}; before the first model ${mb(before)} MB`);
for (let round = 1; round <= o.rounds; ++round) {
  let line = `exchange ${round}:`;
  for (const model of models) {
    await api(`models/${model}/load`, { method: 'POST' });
    await waitForState(model, 'loaded');
    const request = { model, tokens: Array.from({ length: 300 }, (_, i) => 3 + i % 200), max_tokens: o.tokens, ignore_eos: true };
    await Promise.all([1, 2].map(() => generate(server.url, request)));
    const loaded = server.memory();
    await api(`models/${model}/unload`, { method: 'POST' });
    await waitForState(model, 'available');
    const above = server.memory() - before;
    maximum = Math.max(maximum, above);
    line += `  ${model} ${mb(loaded)} loaded, ${mb(above)} retained`;
  }
  console.log(line);
}
console.log(`maximum retained ${mb(maximum)} MB (at most 64): ${maximum <= 64e6 ? 'kept' : 'MISSED'}`);
if (maximum > 64e6) process.exitCode = 1;
await server.stop();
rmSync(folder, { recursive: true });
