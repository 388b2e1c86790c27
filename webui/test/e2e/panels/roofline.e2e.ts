// The roofline of a machine whose rates are known: they were stored, as a measurement stores them. The
// bounds are those of the shapes and of these rates, computed here from SQL.
import { mkdtemp, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import type { Roofline } from '../../../src/net/types';
import { AnalyticsPage } from '../support/analytics_page';
import { PageFixture } from '../support/page_fixture';

const PEAK = 2e9; // operations per second
const cache = process.env.XDG_CACHE_HOME;
let folder = '';

const firstLine = (text: string): string => text.split('\n')[0] ?? '';

// The line of tracer/engine/machine_rate.cpp, for one thread.
async function storeRate(name: string, perSecond: number): Promise<void> {
  const machine = firstLine(await readFile('/etc/machine-id', 'utf8').catch(() => ''));
  const cpu = /^model name[^:]*: (.*)$/m.exec(await readFile('/proc/cpuinfo', 'utf8'))?.[1] ?? '';
  await mkdir(join(folder, 'tensor-trace'), { recursive: true });
  await writeFile(join(folder, 'tensor-trace', name), `${machine} ${cpu} 1 threads\t${perSecond}\n`); // prettier-ignore
}

const fixture = PageFixture.use(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tt-rates-'));
  await storeRate('compute_peak', PEAK);
  process.env.XDG_CACHE_HOME = folder;
  return [];
});
const analytics = new AnalyticsPage(fixture);

afterAll(async () => {
  if (cache === undefined) delete process.env.XDG_CACHE_HOME;
  else process.env.XDG_CACHE_HOME = cache;
  await rm(folder, { recursive: true, force: true });
});

it('has the bound of the operations, the time above it, and what limits each op', async () => {
  await fixture.recorded(24);
  const found = await fixture.get<Roofline>('roofline?by=op_kind');
  expect(found.compute_peak).toBe(PEAK);
  // The model that the server brings along fits into the cache of any processor.
  expect(found.read_bandwidth).toBeNull();
  expect(found.text).toContain(
    'the read bandwidth is not known: the model is not larger than the last cache',
  );
  const { rows: kinds } = await fixture.sql<[string, number]>(
    "SELECT operation_type, sum(operations) / (SELECT count(*) FROM step WHERE phase = 'generate') FROM op_total WHERE phase = 'generate' GROUP BY operation_type",
  );
  expect(kinds.length).toBeGreaterThan(5);
  for (const row of found.rows) {
    const operations = kinds.find(([kind]) => kind === row.name)?.[1] ?? NaN;
    const bound = (operations * 1e9) / PEAK;
    expect(Math.abs((row.operations ?? NaN) - operations), row.name).toBeLessThanOrEqual(1e-9 * operations); // prettier-ignore
    expect(Math.abs((row.bound_ns ?? NaN) - bound), row.name).toBeLessThanOrEqual(1e-6 * bound);
    expect(row.above_bound_ns, row.name).toBe(Math.round(Math.max(0, row.step_ns.median - bound)));
    // At the threshold of docs/findings.md.
    expect(row.limit === 'compute_bound', row.name).toBe(bound >= 0.7 * row.step_ns.median);
  }
  const above = found.rows.map(({ above_bound_ns: ns }) => ns ?? 0);
  expect(above).toEqual(above.toSorted((a, b) => b - a));

  // The page says the same, in the same order.
  await analytics.open('roofline');
  const shown = await analytics.csv('above_bound_kind');
  expect(shown.map(({ op }) => op)).toEqual(found.rows.map(({ name }) => name));
  expect(shown.map((row) => Number(row['above the bound (ns)']))).toEqual(above);
  expect(shown.map(({ limit }) => limit)).toEqual(found.rows.map(({ text }) => text));
  for (const id of ['roofline', 'above_bound_kind', 'above_bound', 'op_rate'])
    expect(await analytics.card(id).innerText(), id).toContain(found.text);
  expect(found.text).toContain('computing 2 billion operations per second');
});
