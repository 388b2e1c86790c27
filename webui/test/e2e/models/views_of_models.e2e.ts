// Every view on a model with attention and recurrent layers, and on one that only embeds a text: nothing
// fails or stays blank, and the figures are those of REST and SQL.
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
async function emptyCharts(analytics: AnalyticsPage): Promise<readonly string[]> {
  const empty: string[] = [];
  for (const page of PAGES.filter((one) => one !== 'experts')) {
    await analytics.open(page);
    const states = await analytics.states(page);
    expect(states.filter((one) => /failed|blank/.test(one))).toEqual([]);
    empty.push(...states.filter((one) => one.endsWith(' empty')).map((one) => one.slice(0, -6)));
  }
  return empty;
}

async function everyView(fixture: PageFixture, session: string): Promise<void> {
  const { page } = fixture;
  // The map: each preset shows what the raster of the server has.
  for (const { title, experts } of PRESETS) {
    if (experts === true) continue;
    await fixture.show(session, 'full=map');
    await mapPanel(fixture).preset(title);
    await expect.poll(() => fixture.pixels('.plane-base')).not.toBe(0);
  }
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
  // Compare with itself: no difference.
  await fixture.show(session, `with=${session}`, 'full=compare');
  const compare = page.getByRole('tabpanel', { name: 'Compare' });
  await compare.getByText(/^(No difference: |Neither side has )/).waitFor();
}

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
