// Every view on a dense model, a mixture of experts, a recurrent one, one with attention and recurrent layers,
// and one that only embeds a text: nothing fails or stays blank, and the figures are those of REST and SQL.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { formatBytes } from '../../../src/format';
import type { Breakdown } from '../../../src/net/types';
import { PAGES } from '../../../src/panels/analytics/page_list';
import { PRESETS } from '../../../src/panels/map/map_options';
import { AnalyticsPage, numbers } from '../support/analytics_page';
import { makeArchModel, makeModel } from '../support/models';
import { mapPanel } from '../support/map_panel';
import { PageFixture } from '../support/page_fixture';

function use(make: (folder: string) => Promise<string>): PageFixture {
  let folder = '';
  afterAll(() => rm(folder, { recursive: true, force: true }));
  return PageFixture.use(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tt-views-'));
    return ['-m', await make(folder)];
  });
}

// No chart of any page fails or stays blank. Returns the charts that are empty.
async function emptyCharts(
  analytics: AnalyticsPage,
  hasExperts = false,
): Promise<readonly string[]> {
  const empty: string[] = [];
  for (const page of PAGES.filter((one) => hasExperts || one !== 'experts')) {
    await analytics.open(page);
    const states = await analytics.states(page);
    expect(states.filter((one) => /failed|blank/.test(one))).toEqual([]);
    empty.push(...states.filter((one) => one.endsWith(' empty')).map((one) => one.slice(0, -6)));
  }
  return empty;
}

async function everyView(fixture: PageFixture, session: string, hasExperts = false): Promise<void> {
  const { page } = fixture;
  // The map: each preset shows something, and its table what the raster of the server has.
  const { map, preset, heatmap, tableRows } = mapPanel(fixture);
  for (const { title, experts } of PRESETS) {
    if (experts === true && !hasExperts) continue;
    await fixture.show(session, 'full=map');
    await preset(title);
    await expect.poll(() => fixture.pixels('.plane-base')).not.toBe(0);
  }
  await fixture.show(session, 'full=map', 'p.map=y:component,x:all,v:bytes');
  await map().getByRole('checkbox', { name: 'Totals' }).check();
  const picture = await heatmap('x=all&y=component&value=bytes&height=4096');
  const sums = picture.cells.map((row) => formatBytes(row[0] ?? 0));
  // At first, the table may still have what the map showed before.
  const others = async (): Promise<readonly string[] | null> => {
    const texts = [...(await tableRows()).values()];
    return texts.length === 0 ? null : texts.filter((text) => !sums.includes(text));
  };
  await expect.poll(others).toEqual([]);
  // The graph of a layer.
  await fixture.show(session, 'full=graph', 'l=1');
  await page.getByRole('application', { name: /^Layer 1: / }).waitFor();
  // The table has the ops of the step, and totals that are those of SQL.
  await fixture.show(session, 'full=table', 'step=0');
  await fixture.ops.waitFor();
  const ops = await fixture.sql<[number]>('SELECT count(*) FROM op WHERE step = 0');
  await expect.poll(async () => Number(await fixture.ops.getAttribute('aria-rowcount')) - 1).toBe(ops.rows[0]?.[0]); // prettier-ignore
  await fixture.show(session, 'full=table', 'p.table=by:component,all');
  const totals = page.getByRole('grid', { name: /^Totals by component/ });
  await totals.waitFor();
  const { rows } = await fixture.get<Breakdown>('breakdown?by=component');
  for (const { all } of rows.filter((row) => row.all.bytes_read > 0))
    await totals.getByText(formatBytes(all.bytes_read), { exact: true }).first().waitFor();
  // The inspector has the bytes of the session, those of SQL.
  await fixture.show(session);
  const read = await fixture.sql<[number]>('SELECT sum(bytes_read) FROM step');
  const figure = fixture.inspector.locator('.figure[data-figure="read"] b');
  await expect.poll(() => figure.innerText()).toBe(formatBytes(read.rows[0]?.[0] ?? 0));
  // The strip has the memory of the model.
  await page.locator('.strip-chart[aria-label^="Memory of the model: "]').waitFor();
  // The weights: all tensors of the file.
  await fixture.show(session, 'full=weights');
  const { models } = await fixture.rest<{ models: { id: string; state: string }[] }>('models');
  const model = models.find(({ state }) => state === 'loaded')?.id ?? '';
  const { tensors } = await fixture.rest<{ tensors: unknown[] }>(`models/${model}/weights`);
  await page.getByRole('tabpanel', { name: 'Weights' }).getByText(`${tensors.length} tensors`).waitFor(); // prettier-ignore
  // SQL: what was asked for.
  const sql = 'SELECT count(*) AS ops FROM op';
  await fixture.show(session, 'full=sql', `f.sql=${encodeURIComponent(sql)}`);
  const all = await fixture.sql<[number]>(sql);
  const cell = page.getByRole('grid', { name: 'Rows of the statement' }).getByRole('gridcell').first(); // prettier-ignore
  await expect.poll(async () => (await cell.getAttribute('title'))?.replace(/\D/g, '')).toBe(String(all.rows[0]?.[0])); // prettier-ignore
  // The budget and the captured values say what they have, or why they have none.
  for (const [id, name] of [
    ['budget', 'Memory budget'],
    ['values', 'Values'],
    ['debug', 'Debugger'],
  ] as const) {
    await fixture.show(session, `full=${id}`);
    const panel = page.getByRole('tabpanel', { name, exact: true });
    await expect.poll(async () => (await panel.innerText()).length).toBeGreaterThan(40);
    expect(await panel.locator('.empty-error').count(), name).toBe(0);
  }
  // Compare with itself: no difference.
  await fixture.show(session, `with=${session}`, 'full=compare');
  const compare = page.getByRole('tabpanel', { name: 'Compare' });
  await compare.getByText(/^(No difference: |Neither side has )/).waitFor();
}

describe('a dense model', () => {
  const fixture = use((folder) => makeModel(folder, 'small'));

  it('has every view', async () => {
    await everyView(fixture, await fixture.recorded(8));
    expect(await emptyCharts(new AnalyticsPage(fixture))).not.toContain('step_time');
  });
});

describe('a mixture of experts', () => {
  const fixture = use((folder) => makeModel(folder, 'moe'));

  it('has every view, with its experts', async () => {
    const { page } = fixture;
    const session = await fixture.recorded(8);
    await everyView(fixture, session, true);
    const empty = await emptyCharts(new AnalyticsPage(fixture), true);
    for (const chart of ['expert_load', 'kv_steps', 'step_time']) expect(empty).not.toContain(chart); // prettier-ignore
    // The accesses of an expert in the table are those of SQL.
    const of = await fixture.sql<[number, number, number]>('SELECT layer_id, expert_id, count(*) FROM access WHERE expert_id IS NOT NULL GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 1'); // prettier-ignore
    const [layer = 0, expert = 0, accesses = 0] = of.rows[0] ?? [];
    await fixture.show(session, 'full=table', 'p.table=rows:accesses,all', `q=layer:${layer} expert:${expert}`); // prettier-ignore
    const grid = page.getByRole('grid', { name: 'Accesses of the session' });
    await expect.poll(async () => Number(await grid.getAttribute('aria-rowcount')) - 1).toBe(accesses); // prettier-ignore
  });
});

describe('a recurrent model', () => {
  const fixture = use((folder) => makeModel(folder, 'mamba'));

  it('has every view, with its state instead of a KV cache', async () => {
    await everyView(fixture, await fixture.recorded(8));
    const empty = await emptyCharts(new AnalyticsPage(fixture));
    expect(empty).toEqual(expect.arrayContaining(['kv_steps', 'kv_layers', 'head_bytes']));
    for (const chart of ['state_steps', 'step_time']) expect(empty).not.toContain(chart);
  });
});

describe('a model with attention and recurrent layers', () => {
  const fixture = use((folder) => makeArchModel(folder, 'jamba'));
  const analytics = new AnalyticsPage(fixture);

  it('shows its KV cache and its recurrent state', async () => {
    const request = { prompt: undefined, tokens: [1, 2, 3, 4, 5] };
    const session = await fixture.recorded(8, request);
    await everyView(fixture, session);
    const empty = await emptyCharts(analytics);
    for (const chart of ['kv_steps', 'kv_layers', 'state_steps', 'head_bytes', 'step_time'])
      expect(empty).not.toContain(chart);
    await analytics.open('attention');
    const { steps } = await fixture.get<{ steps: { state_read: number; state_written: number }[] }>('kv?limit=1000'); // prettier-ignore
    expect(steps.some(({ state_read }) => state_read > 0)).toBe(true);
    expect(numbers(await analytics.csv('state_steps'), 'read (bytes)')).toEqual(steps.map((one) => one.state_read)); // prettier-ignore
    expect(await fixture.axeViolations()).toEqual([]);
  });
});

describe('a model that only embeds', () => {
  const fixture = use((folder) => makeModel(folder, 'bert'));
  const analytics = new AnalyticsPage(fixture);

  it('has every view of its one step', async () => {
    const { page } = fixture;
    await page.getByRole('textbox', { name: 'Prompt' }).fill('embed me');
    await page.keyboard.press('Control+Enter');
    await fixture.progress.getByText(/^Done: embedding of \d+ tokens/).waitFor();
    const session = fixture.session ?? '';
    await everyView(fixture, session);
    const empty = await emptyCharts(analytics);
    expect(empty).toEqual(expect.arrayContaining(['kv_steps', 'state_steps']));
    expect(empty).not.toContain('step_time');
    await analytics.open('overview');
    const { rows } = await fixture.sql<[number]>('SELECT duration_ns FROM step ORDER BY step');
    expect(numbers(await analytics.csv('step_time'), 'time of a step (ns)')).toEqual(rows.map(([time]) => time)); // prettier-ignore
    expect(await fixture.axeViolations()).toEqual([]);
  });
});
