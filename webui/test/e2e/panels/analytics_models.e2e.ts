// Analytics of a mixture of experts, a state space model, an encoder and an encoder with a decoder.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Router, RouterMargins } from '../../../src/net/types';
import { PAGES } from '../../../src/panels/analytics/page_list';
import { AnalyticsPage, numbers } from '../support/analytics_page';
import { makeModel } from '../support/models';
import { PageFixture } from '../support/page_fixture';

function modelOf(shape: string, sizes?: readonly string[]): PageFixture {
  let folder = '';
  afterAll(() => rm(folder, { recursive: true, force: true }));
  return PageFixture.use(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tt-analytics-'));
    return ['-m', await makeModel(folder, shape, sizes)];
  });
}

// No chart of any page fails or stays blank. Returns what is empty.
async function allPages(analytics: AnalyticsPage, hasExperts: boolean): Promise<readonly string[]> {
  const empty: string[] = [];
  for (const page of PAGES) {
    if (page === 'experts' && !hasExperts) continue;
    await analytics.open(page);
    const states = await analytics.states(page);
    expect(states.filter((one) => /failed|blank/.test(one))).toEqual([]);
    empty.push(...states.flatMap((one) => (one.endsWith(' empty') ? [one.replace(' empty', '')] : []))); // prettier-ignore
  }
  return empty;
}

// What the page says is the answer's own sentence, in the chart or, null, on the page of experts.
async function saysWhyNot(
  analytics: AnalyticsPage,
  path: string,
  chart: string | null,
): Promise<void> {
  const { fixture } = analytics;
  const { missing } = await fixture.get<{ missing: string }>(path);
  expect(missing).toMatch(/\.$/);
  if (chart === null)
    await fixture.show(fixture.session ?? '', 'full=analytics', 'p.analytics=page:experts'); // prettier-ignore
  else await analytics.open('attention');
  const place = chart === null ? analytics.panel : analytics.card(chart);
  await expect.poll(() => place.getByRole('note').innerText()).toContain(missing);
}

describe('an encoder', () => {
  const fixture = modelOf('bert');
  const analytics = new AnalyticsPage(fixture);

  it('says why it has no cache, no generated tokens and no experts', async () => {
    await fixture.recorded(1);
    await allPages(analytics, false);
    await saysWhyNot(analytics, 'kv', 'kv_steps');
    await saysWhyNot(analytics, 'experts', null);
    for (const [path, chart] of [
      ['determinism', 'repeat'],
      ['pattern', 'prediction'],
    ] as const) {
      const { missing } = await fixture.get<{ missing: string }>(path);
      await analytics.open('checks');
      expect(await analytics.card(chart).getByRole('note').innerText()).toBe(missing);
    }
  });
});

describe('a mixture of experts', () => {
  const fixture = modelOf('moe', ['--layers', '4']);
  const analytics = new AnalyticsPage(fixture);

  it('shows load, entropy, turnover, caches and the experts of each token', async () => {
    await fixture.recorded(24);
    expect(await allPages(analytics, true)).not.toContain('expert_load');
    await analytics.open('experts', 'l=2');
    const { routers } = await fixture.get<{ routers: Router[] }>('experts');
    const load = await analytics.csv('expert_load');
    const use = await fixture.sql<[number, number, number]>('SELECT layer_id, expert_id, tokens FROM expert_use'); // prettier-ignore
    for (const [layer, expert, tokens] of use.rows)
      expect(Number(load[layer]?.[String(expert)])).toBe(tokens);
    expect(numbers(await analytics.csv('expert_entropy'), 'bits')).toEqual(
      routers.map((router) => router.entropy_bits),
    );
    expect(numbers(await analytics.csv('expert_turnover'), 'turnover (share)')).toEqual(
      routers.map(({ turnover }) => turnover),
    );
    expect(numbers(await analytics.csv('expert_coverage'), '90 %')).toEqual(
      routers.map((router) => router.experts_for_percent['90']),
    );
    const caches = await fixture.get<{ counted: number; rows: { slots: number; recorded: { layers: { lru: number } } }[] }>('experts/caches'); // prettier-ignore
    const rows = await analytics.csv('expert_caches');
    expect(numbers(rows, 'slots per layer')).toEqual(caches.rows.map(({ slots }) => slots));
    expect(numbers(rows, 'LRU (share)')).toEqual(
      caches.rows.map(({ recorded }) => recorded.layers.lru / caches.counted),
    );
    // Each prompt token is one column.
    const tokens = await analytics.csv('expert_tokens');
    const [count] = (await fixture.sql<[number]>('SELECT count(DISTINCT token_id) FROM expert WHERE layer_id = 2')).rows; // prettier-ignore
    expect(Object.keys(tokens[0] ?? {})).toHaveLength(1 + (count?.[0] ?? 0));
    const pairs = await analytics.csv('expert_pairs');
    const together = await fixture.get<{ pairs: { a: number; b: number; together: number }[] }>('experts/layers/2?pairs=10000'); // prettier-ignore
    for (const { a, b, together: n } of together.pairs) {
      expect(Number(pairs[a]?.[String(b)])).toBe(n);
      expect(Number(pairs[b]?.[String(a)])).toBe(n);
    }
    expect(await fixture.axeViolations()).toEqual([]);
  });

  it('shows how near the routers were to choosing other experts', async () => {
    const { page } = fixture;
    const settings = page.getByText('Settings', { exact: true });
    await settings.click();
    await page.getByLabel(/^Router scores/).check();
    await settings.click();
    await fixture.runText('the old sea', 6);
    await fixture.progress.getByText(/^Done: /).waitFor();
    const { routers } = await fixture.get<{ routers: RouterMargins[] }>('experts/margins');
    expect(routers).toHaveLength(4);
    await analytics.open('experts');
    const shown = await analytics.csv('expert_margins');
    expect(numbers(shown, 'near (share)')).toEqual(routers.map(({ near }) => near));
    expect(numbers(shown, 'median margin')).toEqual(routers.map(({ margin }) => margin));
    expect(numbers(shown, 'entropy (bits)')).toEqual(routers.map(({ entropy }) => entropy));
    expect(shown.map(({ scores }) => scores)).toEqual(routers.map(({ scores }) => scores));
  });

  it('a click on the load selects the expert, and the slider says what a cache serves', async () => {
    const { page } = fixture;
    await fixture.recorded(24);
    await analytics.open('experts');
    const box = await analytics.chart('expert_load').boundingBox();
    if (!box) throw new Error('no chart');
    await page.mouse.click(box.x + 0.9 * box.width, box.y + box.height / 2);
    await expect.poll(() => fixture.hash.get('sel') ?? '').toMatch(/^x:\d+\.\d+$/);
    const section = analytics.panel.getByRole('group', { name: 'What a cache of experts serves' });
    await section.getByRole('slider').focus();
    await page.keyboard.press('Home');
    await expect.poll(() => section.locator('output').innerText()).toBe('1 slots');
    const lru = section.locator('[data-policy=LRU] b');
    const one = await lru.innerText();
    await page.keyboard.press('End');
    await expect.poll(() => lru.innerText()).not.toBe(one);
  });
});

describe('a state space model', () => {
  const fixture = modelOf('mamba');
  const analytics = new AnalyticsPage(fixture);

  it('shows its recurrent state instead of a KV cache and heads', async () => {
    await fixture.recorded(12);
    const empty = await allPages(analytics, false);
    expect(empty).toEqual(expect.arrayContaining(['kv_steps', 'kv_layers', 'head_bytes']));
    expect(empty).not.toContain('state_steps');
    await saysWhyNot(analytics, 'heads', 'head_bytes');
    await analytics.open('attention');
    const rows = await analytics.csv('state_steps');
    const { steps } = await fixture.get<{ steps: { state_read: number }[] }>('kv?limit=1000');
    expect(numbers(rows, 'read (bytes)')).toEqual(steps.map((step) => step.state_read));
  });
});

describe('a model with an encoder', () => {
  const fixture = modelOf('t5');
  const analytics = new AnalyticsPage(fixture);

  it('has no chart that fails', async () => {
    await fixture.recorded(8);
    expect(await allPages(analytics, false)).not.toContain('step_time');
    await saysWhyNot(analytics, 'experts', null);
    await analytics.open('overview');
    const steps = await fixture.sql<[number]>('SELECT duration_ns FROM step ORDER BY step');
    expect(numbers(await analytics.csv('step_time'), 'time of a step (ns)')).toEqual(
      steps.rows.map(([time]) => time),
    );
  });
});
