// Cost of 16 live clients for the generation, and their latency. Budget: tokens per second at
// least 0.97 of the value without clients; 95 % of ops received within 100 ms. Also prints the
// server CPU time per client and second.
//
// One inference thread. The server with all threads is bound to one core and this process, which
// runs all clients, to another (taskset), so that work for clients slows down the generation. The
// clients subscribe to all kinds; one of them never acknowledges. Generations with and without
// clients alternate. --nuisances 1: in addition, one client floods the server with commands and
// others disappear.
import { execFileSync } from 'node:child_process';
import {
  LiveClient, generate, machine, median, options, quantile, sleep, startOurs, vanishingClient,
} from './harness.mjs';

const o = options({
  model: 'tinyllama-1.1b',
  rounds: 10,
  clients: 16,
  threads: 1,
  context: 2048,
  tokens: 96,
  core: '0', // taskset list: '0-1' is two cores
  clientsCore: 1,
  nuisances: 0,
});
execFileSync('taskset', ['-acp', String(o.clientsCore), String(process.pid)]);
const server = await startOurs(o);
execFileSync('taskset', ['-acp', String(o.core), String(server.child.pid)]);
const body = { prompt: 'Once upon a time', max_tokens: o.tokens, temperature: 0, ignore_eos: true, reuse_prefix: false };
await generate(server.url, body);

const speeds = { without: [], with: [] };
const lags = [];
let lost = 0;

async function measured(kind) {
  const result = await generate(server.url, body);
  speeds[kind].push(result.tokensPerSecond);
  return result.session;
}

let floods = 0;
let commands = 0;
let vanished = 0;

// Sends a command every 1 ms; reconnects if the server closes the connection.
async function flood(stop) {
  while (!stop.now) {
    const client = new LiveClient(server.url);
    await client.open;
    const timer = setInterval(() => {
      client.socket.send('{"type":"unsubscribe","session":"x"}');
      ++commands;
    }, 1);
    const over = (async () => { while (!stop.now) await sleep(50); })();
    await Promise.race([client.closed, over]);
    clearInterval(timer);
    ++floods;
    // Not awaited, because the close handshake may never complete.
    void client.close();
  }
}

async function vanish(stop) {
  while (!stop.now) {
    await vanishingClient(server.url, 500);
    ++vanished;
  }
}

for (let round = 0; round < o.rounds; ++round) {
  await measured('without');
  const seen = []; // wall clock of arrival (ms), ends (ns since the session's start)
  const clients = Array.from(
    { length: o.clients },
    (_, i) =>
      new LiveClient(server.url, {
        reads: i !== 0,
        onFrame: (data) => {
          const head = new DataView(data);
          if (head.getUint16(4, true) !== 1) return;
          const rows = head.getUint32(20, true);
          const ends = new Float64Array(data, 32 + Math.ceil((rows * 4) / 8) * 8 + rows * 8, rows);
          seen.push({ at: Date.now(), ends: Float64Array.from(ends) });
        },
      }),
  );
  for (const client of clients) await client.subscribe('*', ['token', 'step', 'op', 'routing', 'progress']);
  const stop = { now: false };
  const disturbing = o.nuisances ? Promise.all([flood(stop), vanish(stop)]) : null;
  const id = await measured('with');
  stop.now = true;
  await disturbing;
  const { start_utc_ns } = await (await fetch(`${server.url}/api/v1/sessions/${id}`)).json();
  for (const { at, ends } of seen) for (const end of ends) lags.push(at - (start_utc_ns + end) / 1e6);
  lost += clients.slice(1).reduce((sum, client) => sum + client.lost, 0);
  for (const client of clients) await client.close();
}
await server.stop();

const without = median(speeds.without);
const with_ = median(speeds.with);
// The core is never idle, so the loss of the generation is the cost of the clients.
const share = 1 - with_ / without;
console.log(`${machine()}; ${o.model}, ${o.threads} inference thread, ${o.clients} clients, ${o.rounds} rounds`);
console.log(`tokens per second: ${without.toFixed(2)} without, ${with_.toFixed(2)} with clients: ratio ${(with_ / without).toFixed(3)} (budget 0.97)`);
console.log(`op latency: median ${median(lags).toFixed(1)} ms, 95 % within ${quantile(lags, 0.95).toFixed(1)} ms (budget 100 ms), ${lags.length} samples`);
console.log(`server CPU per client and second: ${((share / o.clients) * 1000).toFixed(2)} ms; losses reported to reading clients: ${lost}; ${floods} floods of ${commands} commands, ${vanished} disappeared`);
