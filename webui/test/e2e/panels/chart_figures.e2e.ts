// Every row of the table of a chart, computed in another way: SQL where the chart asks REST, sums of single
// accesses where it asks for sums. Every chart is either here, or its file is compared in another test.
import { readFile, readdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { componentName, layerName, tokenText } from '../../../src/format';
import type { AccessPattern, Conditions, Determinism, Roofline } from '../../../src/net/types';
import { CHARTS } from '../../../src/panels/analytics/all_charts';
import { isDisturbed } from '../../../src/state/view/answer';
import { AnalyticsPage } from '../support/analytics_page';
import { makeModel } from '../support/models';
import { PageFixture } from '../support/page_fixture';

type Cell = string | number | null;
type Expected = readonly Readonly<Record<string, Cell>>[];

interface Figures {
  readonly of: 'dense' | 'moe';
  readonly link?: readonly string[]; // further parts of the link
  readonly sorted?: true; // in another order: rows are compared by their key
  readonly first?: number; // the chart has only as many rows
  readonly rows: (fixture: PageFixture) => Promise<Expected>;
}

const TOKENS = 24;
const LAYER = 1;
const STEP = 9;

// Rows of a statement as records.
async function sql(fixture: PageFixture, statement: string): Promise<Expected> {
  const { columns, rows } = await fixture.sql<Cell[]>(statement);
  return rows.map((row) => Object.fromEntries(columns.map((name, i) => [name, row[i] ?? null])));
}

// All rows of a statement in a fixed order: an answer has at most 1000.
async function allRows(fixture: PageFixture, statement: string): Promise<Expected> {
  const rows: Record<string, Cell>[] = [];
  for (let more = true; more;) {
    const some = await sql(fixture, `${statement} LIMIT 1000 OFFSET ${rows.length}`);
    rows.push(...some);
    more = some.length === 1000;
  }
  return rows;
}

const number = (cell: Cell | undefined): number => Number(cell ?? 0);

// ---- The roofline: the times of ops, step by step ----------------------------------------

// By type, or by the name of the output without its layer. Bounds are those of REST.
async function costs(fixture: PageFixture, by: 'op' | 'op_kind'): Promise<Expected> {
  const clean = "(s.verdict = 'clean' OR s.verdict IS NULL)";
  const timed = "s.phase = 'generate' AND s.timing = 'fast' AND s.step > 0";
  const [counted] = await sql(
    fixture,
    `SELECT count(*) AS n FROM step s WHERE ${timed} AND ${clean}`,
  );
  const only = number(counted?.n) > 0 ? `AND ${clean}` : ''; // disturbed steps only where there are no others
  const ops = await allRows(
    fixture,
    `SELECT o.step AS step, o.tensor_name AS name, o.operation_type AS kind, o.component AS component, sum(o.duration_ns) AS ns
     FROM op o JOIN step s ON s.step = o.step WHERE ${timed} ${only}
     GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4`,
  );
  const groups = new Map<string, { op: string; kind: string; steps: Map<Cell, number> }>();
  for (const { step = null, name: output, kind: type, component, ns } of ops) {
    const [key, kind] = [String(output), String(type)];
    // An op of all layers is one row.
    const all = key.startsWith('node_') ? kind.toLowerCase() : key.startsWith('cache_') ? key.slice(0, 7) : key.replace(/-.*/, ''); // prettier-ignore
    const op = by === 'op' ? all : kind;
    const id = by === 'op' ? `${op} ${kind} ${component ?? ''}` : op;
    const group = groups.get(id) ?? { op, kind, steps: new Map<Cell, number>() };
    groups.set(id, group);
    group.steps.set(step, (group.steps.get(step) ?? 0) + number(ns));
  }
  const { rows } = await fixture.get<Roofline>(`roofline?by=${by}&limit=10000`);
  expect(rows).toHaveLength(groups.size);
  return rows.map(({ name, op_kind: kind, component, above_bound_ns: above, text }) => {
    const own = groups.get(by === 'op' ? `${name} ${kind} ${component ?? ''}` : name);
    const times = [...(own?.steps.values() ?? [])].filter((ns) => ns > 0).toSorted((a, b) => a - b);
    return {
      op: name,
      'time of a step (ns)': times[Math.ceil(times.length / 2) - 1] ?? null,
      'above the bound (ns)': above,
      limit: text,
    };
  });
}

// ---- Distances of reuse: a walk over the reads --------------------------------------------

async function distances(fixture: PageFixture): Promise<Expected> {
  const reads = await allRows(
    fixture,
    `SELECT file_offset AS at, size_bytes AS size FROM access
     WHERE tensor_kind = 'weight' AND write = 0 AND file_offset IS NOT NULL AND size_bytes > 0
     ORDER BY step, op, access, part`,
  );
  const buckets = new Map<number, { reads: number; bytes: number }>();
  reads.forEach(({ at: place, size }, at) => {
    const before = reads.findLastIndex((one, i) => i < at && one.at === place);
    if (before < 0) return;
    const between = new Map(reads.slice(before, at).map((one) => [one.at, number(one.size)]));
    const distance = [...between.values()].reduce((a, b) => a + b, 0);
    const from = 2 ** Math.floor(Math.log2(distance));
    const bucket = buckets.get(from) ?? { reads: 0, bytes: 0 };
    buckets.set(from, { reads: bucket.reads + 1, bytes: bucket.bytes + number(size) });
  });
  return [...buckets].map(([from, { reads: n, bytes }]) => ({ distance: from, reads: n, 'bytes (bytes)': bytes })).toSorted((a, b) => a.distance - b.distance);
} // prettier-ignore

// ---- Size of the weights by a column of `tensor` -----------------------------------------

const compressed = (fixture: PageFixture, column: string): Promise<Expected> =>
  sql(
    fixture,
    `SELECT ${column} AS part, sum(tensor_bytes) AS size, 8.0 * sum(tensor_bytes) / sum(elements) AS bits
     FROM (SELECT DISTINCT tensor_name, ${column}, tensor_bytes, ne0 * ne1 * ne2 * ne3 AS elements
       FROM tensor WHERE tensor_kind = 'weight' AND view_of IS NULL) GROUP BY ${column} ORDER BY ${column} IS NOT NULL, ${column}`,
  );

const QKV = "tensor_kind = 'weight' AND component = 'attention' AND role IN ('Q', 'K', 'V', 'O') AND write = 0"; // prettier-ignore

const FIGURES: Readonly<Record<string, Figures>> = {
  above_bound_kind: { of: 'dense', rows: (f) => costs(f, 'op_kind') },
  above_bound: { of: 'dense', first: 24, rows: (f) => costs(f, 'op') },
  distances: { of: 'dense', rows: distances },
  hot_tensors: {
    of: 'dense',
    sorted: true,
    first: 24,
    rows: async (f) =>
      (
        await sql(
          f,
          "SELECT tensor_name, count(*) AS reads, sum(size_bytes) AS bytes FROM access WHERE tensor_kind = 'weight' AND write = 0 GROUP BY tensor_name",
        )
      ).map(({ tensor_name: name = '', reads = 0, bytes = 0 }) => ({ weight: name, 'bytes read (bytes)': bytes, reads })), // prettier-ignore
  },
  buffers: {
    of: 'dense',
    rows: async (f) =>
      (
        await sql(
          f,
          'SELECT memory_source, count(*) AS n, sum(size_bytes * write) AS written, sum(size_bytes * (1 - write)) AS read FROM access GROUP BY memory_source ORDER BY sum(size_bytes) DESC',
        )
      ).map(({ memory_source: name = '', n = 0, written = 0, read = 0 }) => ({
        memory: name,
        'bytes (bytes)': number(written) + number(read),
        'read (bytes)': read,
        'written (bytes)': written,
        accesses: n,
      })),
  },
  bytes_parts: {
    of: 'dense',
    rows: async (f) => {
      const sums = await sql(f, 'SELECT phase, component, sum(bytes_read + bytes_written) AS bytes FROM op GROUP BY phase, component'); // prettier-ignore
      return ['prompt', 'generate'].map((phase) => ({
        phase,
        ...Object.fromEntries(
          sums.filter((one) => one.phase === phase).map(({ component, bytes = 0 }) => [`${componentName(String(component))} (bytes)`, bytes]),
        ),
      })); // prettier-ignore
    },
  },
  layer_parts: {
    of: 'dense',
    rows: async (f) => {
      const machine = await f.get<Conditions>('conditions');
      const clean = isDisturbed(machine) ? ((await sql(f, "SELECT count(*) AS n FROM step WHERE phase = 'generate' AND verdict = 'clean'"))[0]?.n ?? 0) : 0; // prettier-ignore
      const only = number(clean) > 0 ? "AND (s.verdict = 'clean' OR s.verdict IS NULL)" : '';
      const cells = await sql(
        f,
        `SELECT o.op_layer_id AS layer, o.component AS component, 1.0 * sum(o.duration_ns) / (SELECT count(*) FROM step s WHERE s.phase = 'generate' ${only}) AS ns
         FROM op o JOIN step s ON s.step = o.step WHERE s.phase = 'generate' ${only} GROUP BY o.op_layer_id, o.component`,
      );
      const parts = [...new Set(cells.map(({ component }) => String(component)))];
      return parts.map((component) => ({
        component,
        ...Object.fromEntries(cells.filter((one) => one.component === component).map(({ layer = null, ns = 0 }) => [`${layerName(String(layer ?? 'none'))} (ns)`, ns])), // prettier-ignore
      }));
    },
    sorted: true,
  },
  kv_layers: {
    of: 'dense',
    link: [`step=${STEP}`],
    rows: async (f) =>
      (
        await sql(
          f,
          `SELECT layer_id, sum(size_bytes * (1 - write)) AS read, sum(size_bytes * write) AS written FROM access WHERE step = ${STEP} AND tensor_kind = 'kv' GROUP BY layer_id ORDER BY layer_id`,
        )
      ).map(({ layer_id: layer = null, read = 0, written = 0 }) => ({ layer, '=read': read, 'written (bytes)': written })), // prettier-ignore
  },
  head_bytes: {
    of: 'dense',
    rows: async (f) =>
      (await sql(f, `SELECT layer_id, sum(size_bytes) AS read FROM access WHERE ${QKV} GROUP BY layer_id ORDER BY layer_id`)) // prettier-ignore
        .map(({ layer_id: layer = null, read = 0 }) => ({ layer, '=read': read })),
  },
  head_ranges: {
    of: 'dense',
    link: [`l=${LAYER}`],
    rows: async (f) => {
      const weights = await sql(
        f,
        `SELECT tensor_name, role, sum(size_bytes) AS read, count(*) AS reads, max(tensor_bytes) AS size, min(tensor_file_offset) AS at FROM access WHERE ${QKV} AND layer_id = ${LAYER} GROUP BY tensor_name`,
      );
      const heads = await f.get<{ n_heads: number; n_heads_kv: number }>('');
      // Each head of a weight has an equal part of it. The parts of O are columns: its ranges overlap.
      return weights.flatMap(
        ({ tensor_name: name = '', role = '', read = 0, size = 0, at = 0 }) => {
          const count = role === 'Q' || role === 'O' ? heads.n_heads : heads.n_heads_kv;
          return Array.from({ length: count }, (_, head) => ({
            head: `${role} ${head}`,
            weight: name,
            'bytes read (bytes)': number(read) / count,
            'size (bytes)': number(size) / count,
            ...(role === 'O' ? {} : { 'file offset': number(at) + (head * number(size)) / count }),
          }));
        },
      );
    },
    sorted: true,
  },
  differences: {
    of: 'dense',
    rows: async (f) => {
      const CAUSES: Record<string, string> = { token: 'other row of a weight', 'kv-window': 'longer KV cache' }; // prettier-ignore
      const { differing, first_differences: first } = await f.get<Determinism>('determinism');
      const names = Object.entries(differing).filter(([, count]) => count > 0);
      return Promise.all(
        names.map(async ([cause, accesses]) => {
          const one = first.find((of) => of.cause === cause);
          const where = `step = ${one?.step ?? -1} AND op = ${one?.op ?? -1}`;
          const tensors = await sql(f, `SELECT tensor_name FROM access WHERE ${where}`);
          // The named op of this step accesses the tensor.
          expect(tensors.map(({ tensor_name: name }) => name)).toContain(one?.tensor_name);
          return { cause: CAUSES[cause] ?? cause, accesses, 'first in step': one?.step ?? null, op: one?.op ?? null, tensor: one?.tensor_name ?? '' }; // prettier-ignore
        }),
      );
    },
  },
  machine: {
    of: 'dense',
    rows: async (f) => {
      const counts = await sql(f, "SELECT coalesce(verdict, 'unknown') AS verdict, count(*) AS n FROM step GROUP BY 1"); // prettier-ignore
      return ['clean', 'contended', 'throttled', 'disk', 'unknown'].map((verdict) => ({
        verdict,
        steps: counts.find((one) => one.verdict === verdict)?.n ?? 0,
      }));
    },
  },
  spent: {
    of: 'dense',
    rows: async (f) => {
      const { spent } = await f.get<Conditions>('conditions');
      const parts = [
        ['running the graphs', spent?.evaluate_ns],
        ['choosing tokens', spent?.sample_ns],
        ['converting tokens to text', spent?.detokenize_ns],
        ['building graphs', spent?.build_ns],
        ['everything else', spent?.other_ns],
      ] as const;
      // Without overlap.
      expect(parts.reduce((sum, [, ns]) => sum + (ns ?? 0), 0)).toBe(spent?.total_ns);
      return parts.map(([part, ns]) => ({ part, 'time (ns)': ns ?? null }));
    },
  },
  prediction: {
    of: 'dense',
    rows: async (f) => {
      const { prediction } = await f.get<AccessPattern>('pattern');
      const { reads, right, bytes, right_bytes: read } = prediction;
      return [
        { prediction: 'right', reads: right, 'bytes (bytes)': read, 'share (share)': right / reads },
        { prediction: 'wrong', reads: reads - right, 'bytes (bytes)': bytes - read, 'share (share)': 1 - right / reads },
      ]; // prettier-ignore
    },
  },
  compressed_layers: {
    of: 'dense',
    rows: async (f) =>
      (await compressed(f, 'layer_id')).map(({ part = null, size = 0, bits = 0 }) => ({ layer: part ?? 'outside', bits, 'size (bytes)': size })), // prettier-ignore
  },
  compressed_parts: {
    of: 'dense',
    sorted: true,
    rows: async (f) =>
      (await compressed(f, 'component')).map(({ part = null, size = 0, bits = 0 }) => ({ component: part, 'size (bytes)': size, 'bits per weight': bits })), // prettier-ignore
  },
  expert_answers: {
    of: 'moe',
    link: ['l=0'],
    sorted: true,
    rows: async (f) => {
      const found = await sql(
        f,
        `WITH routed AS (SELECT DISTINCT token_id FROM expert WHERE layer_id = 0),
         named AS (SELECT r.token_id, t.vocabulary_id, t.text FROM routed r JOIN token t ON t.token_id = r.token_id),
         often AS (SELECT vocabulary_id, max(text) AS text, count(*) AS times FROM named GROUP BY vocabulary_id HAVING count(*) >= 5)
         SELECT e.expert_id AS expert, o.text AS text, count(*) AS choices, o.times AS times,
           (1.0 * count(*) / o.times) / (1.0 * (SELECT count(*) FROM expert u WHERE u.layer_id = 0 AND u.expert_id = e.expert_id) / (SELECT count(*) FROM routed)) AS lift
         FROM expert e JOIN named n ON n.token_id = e.token_id JOIN often o ON o.vocabulary_id = n.vocabulary_id
         WHERE e.layer_id = 0 GROUP BY e.expert_id, o.vocabulary_id HAVING lift > 1 ORDER BY lift DESC LIMIT 24`,
      );
      return found.map(({ expert, text, choices = 0, times = 0, lift = 0 }) => ({
        'expert and token': `${expert ?? ''}: ${tokenText({ text: String(text) })}`,
        lift,
        chosen: choices,
        routed: times,
      }));
    },
  },
};

// ---- The comparison ----------------------------------------------------------------------

const close = (seen: string, expected: Cell): boolean => {
  if (expected === null) return seen === '';
  if (typeof expected === 'string') return seen === expected;
  return Math.abs(Number(seen) - expected) <= 1e-6 * Math.abs(expected) + (Number.isInteger(expected) ? 0 : 1e-9); // prettier-ignore
};

async function compare(analytics: AnalyticsPage, id: string, figures: Figures): Promise<void> {
  const spec = CHARTS.find((one) => one.id === id);
  if (!spec) throw new Error(`no chart ${id}`);
  const { fixture } = analytics;
  await analytics.open(spec.page, ...(figures.link ?? []));
  await analytics.card(id).getByRole('radio', { name: 'Table' }).check();
  const grid = analytics.card(id).getByRole('grid');
  const [rows, seen] = [await figures.rows(fixture), await analytics.csv(id)];
  expect(rows.length, id).toBeGreaterThan(0);
  await expect.poll(() => grid.getAttribute('aria-rowcount'), { message: id }).toBe(String(seen.length + 1)); // prettier-ignore
  expect(seen.length, id).toBe(Math.min(rows.length, figures.first ?? Infinity));
  const key = Object.keys(rows[0] ?? {})[0] ?? '';
  seen.forEach((own, at) => {
    const row = figures.sorted ? rows.find((one) => close(own[key] ?? '', one[key] ?? null)) : rows[at];
    expect(row, `${id}, ${own[key] ?? ''}`).toBeDefined();
    for (const [name, value] of Object.entries(row ?? {})) {
      // "=read": the sum of the columns that are drawn.
      const cell = name === '=read' ? String(drawn(own)) : (own[name] ?? 'missing');
      expect(close(cell, value) ? value : cell, `${id}, row ${at}, ${name}`).toBe(value);
    }
  });
} // prettier-ignore

const drawn = (row: Readonly<Record<string, string>>): number =>
  Object.entries(row).reduce((sum, [name, text]) => sum + (/^(fresh|cached|other|\d+ )/.test(name) ? Number(text) : 0), 0); // prettier-ignore

describe('a dense model', () => {
  const fixture = PageFixture.use();
  const analytics = new AnalyticsPage(fixture);
  const ids = (of: Figures['of']) => Object.entries(FIGURES).filter(([, one]) => one.of === of);

  it.each(ids('dense'))('has in the table of %s the figures of SQL', async (id, figures) => {
    await fixture.recorded(TOKENS);
    await compare(analytics, id, figures);
  });
});

describe('a mixture of experts', () => {
  let folder = '';
  afterAll(() => rm(folder, { recursive: true, force: true }));
  const fixture = PageFixture.use(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tt-figures-'));
    return ['-m', await makeModel(folder, 'moe', ['--layers', '2'])];
  });
  const analytics = new AnalyticsPage(fixture);

  it.each(Object.entries(FIGURES).filter(([, one]) => one.of === 'moe'))(
    'has in the table of %s the figures of SQL',
    async (id, figures) => {
      await fixture.recorded(TOKENS, { prompt: 'the sea and '.repeat(12) });
      await compare(analytics, id, figures);
    },
  );
});

it('each chart is compared, here or in a test that asks for its file', async () => {
  const folder = new URL('.', import.meta.url);
  const files = (await readdir(folder)).filter((name) => name.endsWith('.e2e.ts'));
  const texts = await Promise.all(files.map((name) => readFile(new URL(name, folder), 'utf8')));
  // csv('layers'), or a list of ids whose loop asks for csv(id).
  const asks = (text: string, id: string) => text.includes(`csv('${id}')`) || (/csv\([a-z]+\)/.test(text) && new RegExp(`'${id}'[,\\]]`).test(text)); // prettier-ignore
  const missing = CHARTS.filter(({ id }) => !(id in FIGURES) && !texts.some((text) => asks(text, id))); // prettier-ignore
  expect(missing.map(({ id }) => id)).toEqual([]);
}); // prettier-ignore
