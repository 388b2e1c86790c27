// Latency of small REST requests during a generation, and their cost for it. Budget: p99 under
// 5 ms at 100 requests per second, generation at most 3 % slower. Generations with and without
// requests alternate. Requests start on schedule, without waiting for earlier responses.
import { Agent, get } from 'node:http';
import { generate, machine, median, options, quantile, sleep, startOurs } from './harness.mjs';

const o = options({
  model: 'tinyllama-1.1b',
  rounds: 10,
  rate: 100,
  threads: 1,
  context: 2048,
  tokens: 96,
});
const server = await startOurs(o);
const body = { prompt: 'Once upon a time', max_tokens: o.tokens, temperature: 0, ignore_eos: true, reuse_prefix: false };
const { session } = await generate(server.url, body);
const paths = [
  '/api/v1/health', '/api/v1/models', '/api/v1/sessions?limit=10', `/api/v1/sessions/${session}`,
  `/api/v1/sessions/${session}/tokens?limit=20`, `/api/v1/sessions/${session}/steps?limit=5`,
  `/api/v1/sessions/${session}/steps/1/ops?limit=20`,
];
const times = [];
let failed = 0;

// Keep-alive connections and a minimal client, because client time is part of the latency.
const agent = new Agent({ keepAlive: true });

function request(path) {
  const before = performance.now();
  return new Promise((resolve, reject) => {
    get(server.url + path, { agent }, (response) => {
      response.resume();
      response.once('end', () => {
        times.push(performance.now() - before);
        failed += response.statusCode === 200 ? 0 : 1;
        resolve();
      });
    }).once('error', reject);
  });
}

async function load(stop) {
  const pending = [];
  const started = performance.now();
  for (let i = 0; !stop.now; ++i) {
    pending.push(request(paths[i % paths.length]));
    await sleep(Math.max(0, started + ((i + 1) * 1000) / o.rate - performance.now()));
  }
  await Promise.all(pending);
}

const speeds = { without: [], with: [] };
for (let round = 0; round < o.rounds; ++round) {
  speeds.without.push((await generate(server.url, body)).tokensPerSecond);
  const stop = { now: false };
  const loading = load(stop);
  speeds.with.push((await generate(server.url, body)).tokensPerSecond);
  stop.now = true;
  await loading;
}
agent.destroy();
await server.stop();
const ratio = median(speeds.with) / median(speeds.without);
console.log(`${machine()}; ${o.model}, ${o.threads} inference thread, ${o.rounds} rounds at ${o.rate} requests per second`);
console.log(`responses: median ${median(times).toFixed(2)} ms, p95 ${quantile(times, 0.95).toFixed(2)} ms, p99 ${quantile(times, 0.99).toFixed(2)} ms (budget 5 ms), ${times.length} requests, ${failed} failed`);
console.log(`tokens per second: ${median(speeds.without).toFixed(2)} without, ${median(speeds.with).toFixed(2)} with requests: ratio ${ratio.toFixed(3)} (budget 0.97)`);
