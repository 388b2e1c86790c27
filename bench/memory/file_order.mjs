// Is a model faster if its tensors are stored in the order in which a token reads them (tt gguf
// reorder)? Both files are run in turn, the first one alternating, after the pages of the model have
// been dropped from memory:
// - cold: a new process generates two tokens; the figure is its time from start to end, and its page
//   faults and bytes from the disk are those of its steps.
// - limit: in a memory group (cgroup) of `share` of the file; the figures are medians over the
//   generated tokens after the first ones.
// The result is the median over the rounds of the ratio reordered / original. There is no budget: the
// order of a file changes nothing but the order of the reads.
//
// Needs root. --folder: on the disk to be measured.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, rmdirSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { machine, median, now, options, program, quantile } from '../server/harness.mjs';

const o = options({
  folder: join(tmpdir(), 'tt-file-order-bench'), shapes: 'dense,moe', rounds: 5, tokens: 16, warmup: 3,
  share: 0.65, threads: 2, conditions: 'cold,limit',
});
const shapes = {
  dense: ['tinyllama-1.1b'],
  // 84 % of the file are experts.
  moe: ['moe', '--layers', '12', '--embd', '1536', '--heads', '12', '--kv-heads', '4', '--ff', '768',
    '--vocab', '32000', '--experts', '24', '--experts-used', '2'],
};

const tt = (...args) => execFileSync(program('tt'), args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
const session = join(o.folder, 's.ttrace');
const record = (model, tokens) => [
  'record', '-m', model, '--no-repack', '-p', 'Hello', '-n', String(tokens), '-t', String(o.threads),
  '--ignore-eos', '--temp', '0', '-q', '--force', '-o', session,
];

function modelsOf(shape) {
  const original = join(o.folder, `${shape}.gguf`), reordered = join(o.folder, `${shape}-by-use.gguf`);
  if (!existsSync(original)) tt('model', ...shapes[shape], '-q', '-o', original);
  tt(...record(original, 3));
  if (!existsSync(reordered)) tt('gguf', 'reorder', original, '--by-use', session, '-o', reordered);
  execFileSync('sync');
  const order = JSON.parse(tt('analyze', 'file-order', session, '--json'));
  return { original, reordered, order };
}

// posix_fadvise(POSIX_FADV_DONTNEED) of the whole file.
const dropPages = (file) => execFileSync('dd', [`if=${file}`, 'iflag=nocache', 'count=0'], { stdio: 'ignore' });

// A group with a limit; null: none.
function makeGroup(limit) {
  const unified = existsSync('/sys/fs/cgroup/cgroup.controllers');
  const folder = join('/sys/fs/cgroup', unified ? '' : 'memory', `tt-file-order-${process.pid}`);
  mkdirSync(folder);
  writeFileSync(join(folder, unified ? 'memory.max' : 'memory.limit_in_bytes'), String(limit));
  return folder;
}

const steps = (where) =>
  JSON.parse(tt('sql', session, '--json', `SELECT duration_ns, major_faults, disk_read_bytes FROM step ${where}`)).rows;
const sum = (values) => values.reduce((a, b) => a + b, 0);

const conditions = {
  cold(model) {
    const begin = now();
    tt(...record(model, 2));
    const ms = now() - begin;
    const rows = steps('');
    return { ms, faults: sum(rows.map((row) => row[1])), mb: sum(rows.map((row) => row[2])) / 1e6 };
  },
  limit(model) {
    const group = makeGroup(Math.round(statSync(model).size * o.share / 4096) * 4096);
    try {
      execFileSync('sh', ['-c', `echo $$ > ${group}/cgroup.procs; exec "$@"`, 'sh', program('tt'),
        ...record(model, o.warmup + o.tokens)], { stdio: ['ignore', 'ignore', 'pipe'] });
    } finally {
      rmdirSync(group);
    }
    const rows = steps("WHERE phase = 'generate'").slice(o.warmup);
    const middle = (i) => median(rows.map((row) => row[i]));
    return { ms: middle(0) / 1e6, faults: middle(1), mb: middle(2) / 1e6 };
  },
};

mkdirSync(o.folder, { recursive: true });
const device = execFileSync('findmnt', ['-no', 'SOURCE,FSTYPE', '-T', o.folder], { encoding: 'utf8' }).trim();
const readahead = execFileSync('sh', ['-c', `cat /sys/class/bdi/$(mountpoint -d "$(findmnt -no TARGET -T ${o.folder})")/read_ahead_kb`],
  { encoding: 'utf8' }).trim();
console.log(`${machine()}, ${o.threads} threads, ${o.rounds} rounds; ${device}, readahead ${readahead} KiB`);
for (const shape of o.shapes.split(',')) {
  const { original, reordered, order } = modelsOf(shape);
  for (const layout of order.layouts)
    console.log(`${shape}, ${layout.layout}: ${(100 * layout.sequential_bytes / layout.bytes).toFixed(1)} % of the bytes sequential, ` +
      `${(layout.jumps / order.steps).toFixed(0)} jumps per token of ${(layout.jump_bytes / layout.jumps / 1e6).toFixed(1)} MB on average, ` +
      `unneeded ${(100 * layout.page_unneeded / layout.needed).toFixed(2)} % (pages), ${(100 * layout.readahead_unneeded / layout.needed).toFixed(2)} % (128 KiB)`);
  for (const condition of o.conditions.split(',')) {
    const runs = { [original]: [], [reordered]: [] };
    for (let round = 0; round < o.rounds; ++round) {
      const models = round % 2 === 0 ? [original, reordered] : [reordered, original];
      for (const model of models) {
        dropPages(model);
        runs[model].push(conditions[condition](model));
        dropPages(model);
      }
    }
    const figure = (model, name) => runs[model].map((run) => run[name]);
    for (const model of [original, reordered])
      console.log(`${shape} ${condition} ${model === original ? 'original' : 'reordered'}: ` +
        `${median(figure(model, 'ms')).toFixed(0)} ms (${figure(model, 'ms').map((ms) => ms.toFixed(0)).join(' ')}), ` +
        `${median(figure(model, 'faults'))} major faults, ${median(figure(model, 'mb')).toFixed(0)} MB`);
    const ratios = (name) => figure(reordered, name).map((value, i) => value / figure(original, name)[i]);
    console.log(`${shape} ${condition}: reordered / original: ` + ['ms', 'faults', 'mb'].map((name) => {
      const of = ratios(name).filter(Number.isFinite);
      if (of.length === 0) return `${name} none`;
      return `${name} ${median(of).toFixed(3)} [${quantile(of, 0).toFixed(3)}, ${quantile(of, 1).toFixed(3)}]`;
    }).join(', '));
  }
}
rmSync(session, { force: true });
