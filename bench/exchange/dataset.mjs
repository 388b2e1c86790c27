// How long does DuckDB take for the questions of docs/exports.md (Partitioned exports) about a dataset
// of many sessions? 10^9 accesses in 1,000 sessions: --model small --tokens 1540 --accesses 1e9
//
// Recorded sessions (--seeds, at least 2) are exported and repeated under other session ids, spread
// over the days of 2026, until the dataset has --accesses. The copies are hard links (--files link), so
// that a large dataset needs little disk and is read from the page cache; --files copy writes them. The
// statements are those of the document. Counts and sums are compared with tt sql on the sessions. There
// is no budget.
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, linkSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundledModel, machine, median, modelFile, now, options, program } from '../server/harness.mjs';

const o = options({
  accesses: 1_000_000, model: bundledModel, tokens: 64, seeds: 4, rounds: 3, files: 'link', threads: 2,
  folder: tmpdir(),
});
const guide = readFileSync(join(dirname(fileURLToPath(import.meta.url)), '../../docs/exports.md'), 'utf8');
const section = guide.split('### Partitioned exports')[1];
const statements = /```sql\n([^]*?)```/.exec(section)[1].split(';').map((sql) => sql.trim()).filter(Boolean);

const folder = mkdtempSync(join(o.folder, 'tt-dataset-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
const tt = (...args) =>
  execFileSync(program('tt'), args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
// The rows, and the time and the processor time (user and system) of DuckDB in seconds: the second
// one does not depend on other work of the machine.
const duckdb = (sql) => {
  const begin = now();
  const { status, stdout, stderr } = spawnSync(
    'bash',
    ['-c', 'TIMEFORMAT="%U %S"; time "$@"', 'bash', 'duckdb', '-bail', '-json', '-c', `SET threads = ${o.threads}; ${sql};`],
    { cwd: folder, encoding: 'utf8', maxBuffer: 2 ** 28 });
  if (status !== 0) throw new Error(stderr);
  const [user, system] = stderr.trim().split('\n').at(-1).split(' ').map(Number);
  return { rows: JSON.parse(stdout || '[]'), seconds: (now() - begin) / 1e3, processor: user + system };
};

// --- sessions, and what tt sql says about them
tt('record', '-m', modelFile(o.model), '-p', 'Once upon a time', '-n', String(o.tokens), '-t', String(o.threads),
  '--ignore-eos', '-q', '--repeat', String(o.seeds), '-o', 'runs');
const seeds = readdirSync(join(folder, 'runs')).map((file) => {
  const sql = 'SELECT session, count(*), sum(size_bytes) FROM access GROUP BY session';
  const [[id, accesses, bytes]] = JSON.parse(tt('sql', join('runs', file), '--json', sql)).rows;
  return { id, accesses, bytes };
});
const exporting = now();
tt('export', 'runs', '-q', '-o', 'seeds', '--format', 'parquet', '--part-rows', '1000000');
const exported = now() - exporting;

// --- the dataset
const put = o.files === 'copy' ? copyFileSync : linkSync;
const expected = { sessions: 0, accesses: 0, bytes: 0 };
let size = 0;
while (expected.accesses < o.accesses) {
  const seed = seeds[expected.sessions % seeds.length];
  const day = new Date(Date.UTC(2026, 0, 1 + ((expected.sessions * 61) % 365))).toISOString().slice(0, 10).replaceAll('-', '');
  const id = `${day}-${String(expected.sessions).padStart(6, '0')}`;
  const from = join(folder, 'seeds', `session=${seed.id}`);
  for (const steps of readdirSync(from)) {
    const to = join(folder, 'lake', `session=${id}`, steps);
    mkdirSync(to, { recursive: true });
    const part = join(from, steps, 'part.parquet');
    put(part, join(to, 'part.parquet'));
    size += statSync(part).size;
  }
  expected.sessions += 1;
  expected.accesses += seed.accesses;
  expected.bytes += seed.bytes;
}
const total = seeds.reduce((sum, seed) => sum + seed.accesses, 0);
console.log(machine());
console.log(`export    ${(total / exported / 1e3).toPrecision(3)} M accesses/s, with starting the program`);
console.log(`dataset   ${expected.sessions} sessions, ${expected.accesses} accesses, ${(size / 1e6).toFixed(1)} MB, ` +
  `${(size / expected.accesses).toFixed(2)} bytes per access`);

// --- the questions; starting DuckDB is a part of the times
let failed = false;
for (const [number, sql] of statements.entries()) {
  const runs = Array.from({ length: o.rounds }, () => duckdb(sql));
  const { rows } = runs[0];
  const of = (name) => median(runs.map((run) => run[name])).toFixed(2).padStart(7);
  console.log(`${of('seconds')} s ${of('processor')} s of processors  ${rows.length} rows  ${sql.replaceAll(/\s+/g, ' ')}`);
  if (number > 0) continue;
  // The first one has the totals.
  const found = { sessions: Number(rows[0].sessions), accesses: Number(rows[0].accesses), bytes: Number(rows[0].bytes) };
  for (const name of Object.keys(expected)) {
    if (found[name] === expected[name]) continue;
    console.error(`${name}: DuckDB has ${found[name]}, tt sql ${expected[name]}`);
    failed = true;
  }
}
process.exitCode = failed ? 1 : 0;
