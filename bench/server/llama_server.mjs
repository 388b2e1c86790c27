// tt-server, recording everything to disk, against Debian's llama-server with the same model,
// prompt and settings. Budget, as ratios of llama-server's speed: for the time to first token at least
// 0.97 (1 / 1.03, tinyllama-1.1b) and 0.87 (1 / 1.15, small), also of prompts of lengths that the
// server has not seen before, whose graphs are new; for tokens per second at least 0.985 and 0.95.
//
// Each round runs both servers one after the other, in alternating order: wait until the model
// is loaded, one warm-up request, then `requests` requests, then `lengths` prompts of new lengths,
// the same for both; ours once more without recording (level off), with lengths in between.
// Ratios are of medians over all rounds. At the end: what the time between two tokens was spent on.
import { readFileSync, readdirSync } from 'node:fs';
import { Server, generate, machine, median, modelFile, now, options, pace, startOurs, stream } from './harness.mjs';

const o = options({
  theirs: 'llama-server',
  model: 'tinyllama-1.1b',
  rounds: 5,
  requests: 3,
  threads: 2,
  context: 2048,
  tokens: 96,
  lengths: 10,
});
const prompt = 'The model reads its weights from memory, layer by layer. '.repeat(12);
// Words of prompts with new lengths: ours recorded and theirs, and ours not recorded.
const longest = 60 + 6 * o.lengths;
const ofLength = (i, shift = 0) => prompt.repeat(1 + longest / 120).split(' ').slice(0, 60 + 6 * i + shift).join(' ');

async function ours() {
  const server = await startOurs(o);
  const one = (text = prompt, tokens = o.tokens, level = 'detailed') =>
    generate(server.url, {
      prompt: text, max_tokens: tokens, temperature: 0, ignore_eos: true, reuse_prefix: false, level,
    });
  return { server, one };
}

// ---------------------------------------------------------------- where the time goes

const hertz = 100; // clock ticks per second of /proc/PID/task/TID/stat
// CPU seconds of the threads of a process by name.
function threadSeconds(pid) {
  const seconds = new Map();
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const [, name, rest] = /\((.*)\) (.*)/.exec(readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8'));
    const [user, system] = rest.split(' ').slice(11, 13).map(Number);
    seconds.set(name, (seconds.get(name) ?? 0) + (user + system) / hertz);
  }
  return seconds;
}

// Microseconds between two tokens, by what they were spent on: medians over the steps of a session.
// The rest is between the steps: output and recording.
async function spent(url, session) {
  const sql = `WITH s AS (SELECT *, lead(begin_ns) OVER (ORDER BY "index") - begin_ns AS period FROM step
    WHERE phase = 'generate') SELECT period, build_ns, evaluate_ns, sample_ns, detokenize_ns,
    period - build_ns - evaluate_ns - sample_ns - detokenize_ns FROM s WHERE period IS NOT NULL`;
  const answer = await fetch(`${url}/api/v1/sessions/${session}/query`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ sql, limit: 10000 }),
  });
  const { rows } = await answer.json();
  const columns = ['between two tokens', 'finding the graph again, inputs', 'evaluating', 'sampling', 'text of the token',
                   'the rest: output, recorder, checks'];
  return columns.map((name, i) => [name, median(rows.map((row) => row[i])) / 1000]);
}

async function theirs() {
  const port = 20000 + Math.floor(Math.random() * 20000);
  const server = new Server(o.theirs, [
    '-m', modelFile(o.model), '-t', String(o.threads), '-c', String(o.context), '--host', '127.0.0.1',
    '--port', String(port), '-np', '1', '-ngl', '0', '--no-webui',
  ]);
  server.loadMs = await server.ready(
    `http://127.0.0.1:${port}`,
    async (url) => (await fetch(`${url}/health`)).status === 200,
  );
  const one = async (text = prompt, tokens = o.tokens) => {
    const started = now();
    const times = [];
    await stream(
      `${server.url}/completion`,
      {
        prompt: text, n_predict: tokens, temperature: 0, ignore_eos: true, cache_prompt: false, stream: true,
      },
      (_, data) => {
        if (!data.stop) times.push(now());
      },
    );
    return pace(started, times);
  };
  return { server, one };
}

const figures = { ours: [], theirs: [] };
const threads = {}; // CPU time in microseconds per token by name, of the last round
let parts = [];
const newLengths = { ours: [], theirs: [], off: [] }; // ms to the first token
for (let round = 0; round < o.rounds; ++round) {
  const order = round % 2 ? ['theirs', 'ours'] : ['ours', 'theirs'];
  for (const who of order) {
    const { server, one } = await (who === 'ours' ? ours() : theirs());
    await one();
    const before = threadSeconds(server.child.pid);
    let last;
    for (let i = 0; i < o.requests; ++i) {
      last = await one();
      figures[who].push({ loadMs: server.loadMs, ...last });
    }
    const after = threadSeconds(server.child.pid);
    threads[who] = [...after].map(([name, s]) => [name, ((s - (before.get(name) ?? 0)) * 1e6) / (o.requests * o.tokens)]);
    if (who === 'ours') parts = await spent(server.url, last.session);
    for (let i = 0; i < o.lengths; ++i) {
      newLengths[who].push((await one(ofLength(i), 2)).firstMs);
      if (who === 'ours') newLengths.off.push((await one(ofLength(i, 3), 2, 'off')).firstMs);
    }
    await server.stop();
  }
  console.error(`round ${round + 1} of ${o.rounds}`);
}
const of = (who, what) => median(figures[who].map((figure) => figure[what]));
console.log(`${machine()}; ${o.model}, ${o.threads} threads, ${o.rounds} rounds of ${o.requests} requests`);
console.log('                         tt-server  llama-server  ratio (1: equal, above 1: tt-server is faster)');
for (const [what, unit, less] of [['loadMs', 'ms to load', true], ['firstMs', 'ms to first token', true],
                                  ['tokensPerSecond', 'tokens per second', false]]) {
  const a = of('ours', what);
  const b = of('theirs', what);
  console.log(`${unit.padEnd(22)} ${a.toFixed(1).padStart(11)} ${b.toFixed(1).padStart(13)} ${(less ? b / a : a / b).toFixed(3).padStart(6)}`);
}
const [a, b, off] = [newLengths.ours, newLengths.theirs, newLengths.off].map(median);
console.log(`${'ms, new length'.padEnd(22)} ${a.toFixed(1).padStart(11)} ${b.toFixed(1).padStart(13)} ${(b / a).toFixed(3).padStart(6)}`);
console.log(`tt-server without recording: ${off.toFixed(1)} ms to first token of a new length; recording takes ${(a / off).toFixed(3)} times as long`);
console.log('\nmicroseconds between two tokens of tt-server, medians of the last session');
for (const [name, us] of parts) console.log(`${name.padEnd(36)} ${us.toFixed(1).padStart(9)}`);
for (const who of ['ours', 'theirs']) {
  console.log(`\nCPU time of the threads of ${who === 'ours' ? 'tt-server' : 'llama-server'}, microseconds per token, prompt included`);
  for (const [name, us] of threads[who].sort((x, y) => y[1] - x[1])) {
    if (us > 0) console.log(`${name.padEnd(36)} ${us.toFixed(1).padStart(9)}`);
  }
}
