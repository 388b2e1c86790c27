// What does a server hold after it has read many sessions, each with questions that fill all caches? Budget:
// the caches stay below their limit (an eighth of the memory limit), and the rest does not grow with
// the number of sessions: at the end at most 10 % above half of them.
//
//   ./tt bench many_sessions --sessions 900
//
// For a memory group, start it from a shell in one; the server reads the limit.
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { bundledModel, machine, modelFile, options, program, startOurs } from './harness.mjs';

const o = options({ model: bundledModel, sessions: 300, tokens: 60, threads: 1, context: 1024, quiet: 0 });
const folder = mkdtempSync(join(tmpdir(), 'tt-bench-'));
const one = join(folder, 'one.ttrace');
execFileSync(program('tt'), ['record', '-m', modelFile(o.model), '-p', 'Once upon a time', '-n', String(o.tokens),
  '--ignore-eos', '-o', one], { stdio: 'ignore' });
const all = join(folder, 'all');
mkdirSync(all);
for (let i = 0; i < o.sessions; ++i) copyFileSync(one, join(all, `s${i}.ttrace`));
const bytes = statSync(one).size;

const server = await startOurs(o, [all]);
const mib = (value) => (value / 2 ** 20).toFixed(0);
const post = (sql) => ({ method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ sql }) });
async function ask(path, init) {
  const response = await fetch(server.url + path, init);
  const text = await response.text();
  // 422, 503: the machine is busy.
  if (!response.ok && ![422, 503].includes(response.status)) throw new Error(`${path}: ${response.status} ${text}`);
  return text;
}
const caches = async (name) => Number(new RegExp(`^${name} (\\S+)`, 'm').exec(await ask('/metrics'))[1]);
// The first builds the index, the second the index without disturbed steps, the SQL totals of both
// kinds.
const kQuestions = ['/heatmap?width=64&height=16', '/heatmap?width=64&height=16&clean=true', '/hot', '/reuse'];
const begin = server.memory();
let half = 0;
for (let i = 0; i < o.sessions; ++i) {
  const session = `/api/v1/sessions/s${i}`;
  for (const kind of kQuestions) await ask(session + kind);
  await ask(`${session}/query`, post('SELECT op, sum(size_bytes) FROM access_total GROUP BY op'));
  if (i === Math.floor(o.sessions / 2)) half = server.memory();
  if (!o.quiet && (i + 1) % 100 === 0) console.log(`${i + 1} sessions: ${mib(server.memory())} MiB, of which the caches ${mib(await caches('tt_cache_bytes'))}`);
}
const end = server.memory();
console.log(`${machine()}; ${o.sessions} sessions of ${(bytes / 1024).toFixed(0)} KiB: ${mib(begin)} MiB at the begin, ${mib(half)} after half of them, ${mib(end)} at the end`);
console.log(`caches: ${mib(await caches('tt_cache_bytes'))} of at most ${mib(await caches('tt_cache_limit_bytes'))} MiB in ${await caches('tt_cache_entries')} entries`);
console.log(`${(100 * (end / half - 1)).toFixed(1)} % more than after half of them (budget 10 %)`);
await server.stop();
rmSync(folder, { recursive: true, force: true });
