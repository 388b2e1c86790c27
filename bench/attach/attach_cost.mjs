// What does `tt attach` cost the traced program? Budget, in tokens per second of llama-bench without
// and with it: 1.02 on the shape of tinyllama, 1.05 on `small` while it records, and 1.00 on both
// while it does not (--paused).
//
// Blocks alternate: without, recording, paused, in an order that turns by one in each round. A block
// is one run of llama-bench, and its speed that of its fastest repetition, which other programs
// disturbed least. The result is the median of the ratios of blocks of the same round.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { machine, median, modelFile, options, program, quantile } from '../server/harness.mjs';

const o = options({ models: 'small,tinyllama-1.1b', rounds: 7, threads: 1 });
const budgets = { small: { recording: 1.05, paused: 1.0 }, default: { recording: 1.02, paused: 1.0 } };
// Both take some seconds per block.
const workOf = (model) => (model === 'small' ? ['-n', '128', '-r', '16'] : ['-n', '16', '-r', '3']);

const kinds = {
  without: () => [],
  recording: (folder) => [program('tt'), 'attach', '-o', folder, '--'],
  paused: (folder) => [program('tt'), 'attach', '--paused', '-o', folder, '--'],
};

function tokensPerSecond(kind, model) {
  const folder = mkdtempSync(join(tmpdir(), 'tt-bench-attach-'));
  const command = [
    ...kinds[kind](folder), 'llama-bench', '-m', modelFile(model), '-t', String(o.threads),
    '-p', '0', ...workOf(model), '-o', 'json',
  ];
  try {
    const output = execFileSync(command[0], command.slice(1), {
      encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'],
    });
    return Math.max(...JSON.parse(output.slice(output.indexOf('[')))[0].samples_ts);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

console.log(`${machine()}; ${o.threads} threads, ${o.rounds} rounds`);
let missed = false;
for (const model of o.models.split(',')) {
  const names = Object.keys(kinds);
  const speeds = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = 0; round < o.rounds; ++round)
    for (let i = 0; i < names.length; ++i) {
      const kind = names[(round + i) % names.length];
      speeds[kind].push(tokensPerSecond(kind, model));
    }
  const range = quantile(speeds.without, 1) / quantile(speeds.without, 0);
  console.log(`${model}: ${median(speeds.without).toFixed(2)} tokens/s without (largest / smallest ${range.toFixed(2)})`);
  for (const kind of ['recording', 'paused']) {
    const cost = median(speeds.without.map((speed, i) => speed / speeds[kind][i]));
    const budget = (budgets[model] ?? budgets.default)[kind];
    // The noise of the runs without is that of the ratio, too.
    const verdict = cost <= budget * 1.01 ? 'met' : 'NOT met';
    missed ||= verdict !== 'met';
    console.log(`  ${kind}: ${cost.toFixed(3)} (budget ${budget.toFixed(2)}): ${verdict}`);
  }
}
process.exit(missed ? 1 : 0);
