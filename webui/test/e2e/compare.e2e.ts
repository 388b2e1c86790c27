// Two sessions beside each other, and sessions that the machine disturbed. All figures are compared
// with REST.
import { spawn } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { formatCount, formatNs } from '../../src/format';
import type { Breakdown, Conditions, SessionComparison } from '../../src/net/types';
import { PageFixture } from './page_fixture';

const fixture = PageFixture.use();
const comparison = () =>
  fixture.inspector.getByRole('region', { name: 'Comparison with a session' });
const rows = () => comparison().locator('.differences').last().locator('tbody tr');
const time = (figures: { readonly time_ns: number | null } | null) =>
  formatNs(figures?.time_ns ?? 0);

// The comparison of the open session with another one.
const found = (other: string) => fixture.get<SessionComparison>(`comparison/${other}?limit=0`);

// The sum of the op times of a generated step of a session.
async function medianOf(id: string): Promise<string> {
  const query = 'x=step&y=all&value=time&phase=generate&width=999&height=1';
  const { cells } = await fixture.rest<{ cells: number[][] }>(`sessions/${id}/heatmap?${query}`);
  const steps = (cells[0] ?? []).filter((ns) => ns > 0).toSorted((a, b) => a - b);
  return formatNs(Math.fround(steps[Math.ceil(steps.length / 2) - 1] ?? 0));
}

async function expectComparison(other: string): Promise<void> {
  const rest = await found(other);
  // The page shows the facts and the words of the server.
  const causes = comparison().getByRole('table', { name: 'Causes of differences' });
  await expect.poll(() => causes.locator('tbody').count()).toBe(rest.causes.length);
  expect(await causes.locator('th[scope=rowgroup]').allInnerTexts()).toEqual(
    rest.causes.map(({ title }) => title),
  );
  const facts = rest.causes.flatMap((cause) => cause.facts);
  expect(await causes.locator('th[scope=row]').allInnerTexts()).toEqual(
    facts.map(({ label }) => label),
  );
  const names = await comparison().locator('dd').allInnerTexts();
  expect(names).toEqual([
    `“${rest.left.title}”, ${rest.tokens.left} tokens`,
    `“${rest.right.title}”, ${rest.tokens.right} tokens`,
  ]);
  const times = rest.step_ns.generate;
  const shown = comparison().getByRole('table', { name: 'Times of a step' });
  expect(await shown.locator('thead th').allInnerTexts()).toEqual([
    'step time',
    'this session',
    'other session',
    'other − this',
  ]);
  const median = shown.getByRole('row', { name: /^generate, median/ });
  expect((await median.locator('td').allInnerTexts()).slice(0, 2)).toEqual([formatNs(times?.left?.median ?? 0), formatNs(times?.right?.median ?? 0)]); // prettier-ignore
  // The prompt is one step: it has no quantiles.
  expect(await shown.getByRole('row', { name: /^prompt, p/ }).count()).toBe(0);
  expect(await shown.getByRole('row', { name: /^prompt, median/ }).count()).toBe(
    rest.step_ns.prompt?.left && rest.step_ns.prompt.right ? 1 : 0,
  );
  const step = rows().filter({ hasText: 'generated step, median' }).locator('td');
  await expect.poll(async () => (await step.allInnerTexts()).slice(0, 2)).toEqual([
    await medianOf(rest.left.id),
    await medianOf(rest.right.id),
  ]); // prettier-ignore
  const total = rows().nth(1).locator('td');
  expect((await total.allInnerTexts()).slice(0, 2)).toEqual([
    time(rest.total.left),
    time(rest.total.right),
  ]);
  const first = rest.by.op_kind[0];
  expect((await rows().nth(2).locator('th, td').allInnerTexts()).slice(0, 3)).toEqual([
    first?.name,
    time(first?.left ?? null),
    time(first?.right ?? null),
  ]);
}

describe('another session', () => {
  it('is compared: causes, times of a step, totals; and the link restores it', async () => {
    const { page } = fixture;
    const prompt = { prompt: 'The model reads its weights from memory, layer by layer.' };
    const first = await fixture.generate({ ...prompt, max_tokens: 6 });
    const second = await fixture.generate({ ...prompt, max_tokens: 6, reuse_prefix: true });
    await fixture.show(second);
    await comparison().getByLabel('Compare with session').selectOption(first);
    await expectComparison(first);
    // The second of two equal requests reuses the prompt of the first.
    const rest = await found(first);
    const reuse = rest.causes.find(({ kind }) => kind === 'reuse');
    const reused = reuse?.facts.find(({ name }) => name === 'result.reused_tokens');
    expect(Number(reused?.left)).toBeGreaterThan(0);
    const row = comparison().getByRole('row', { name: /^reused tokens/ });
    expect(await row.locator('td').allInnerTexts()).toEqual([reused?.left, '0']);
    // The session that it came from, by its name on the page.
    expect(await comparison().getByRole('row', { name: /^from session/ }).locator('td').first().innerText()).toBe('other session'); // prettier-ignore
    // The end of the panel is scrolled to what was asked for.
    const panel = await fixture.inspector.locator('.inspection-body').boundingBox();
    const titles = await comparison().locator('dl').boundingBox();
    expect(titles?.y).toBeGreaterThan(panel?.y ?? 0);
    expect(titles?.y).toBeLessThan((panel?.y ?? 0) + (panel?.height ?? 0) / 2);
    const [close, label] = [
      await comparison().getByRole('button', { name: 'End the comparison' }).boundingBox(),
      await comparison().getByText('Compare with session').boundingBox(),
    ];
    expect(Math.abs((close?.y ?? 0) - (label?.y ?? 0))).toBeLessThan(12);
    await comparison().getByRole('radio', { name: 'layers' }).check();
    await comparison().getByRole('radio', { name: 'bytes' }).check();
    await expect.poll(() => fixture.hash.get('p.inspector')).toBe('diff:bytes,by:layer');
    expect(fixture.hash.get('with')).toBe(first);
    await expect.poll(() => rows().getByText('…').count()).toBe(0);
    const shown = await rows().allInnerTexts();
    await fixture.fresh(page.url());
    await expect.poll(() => rows().allInnerTexts()).toEqual(shown);
    expect(await fixture.axeViolations()).toEqual([]);
    await page.keyboard.press('Escape');
    await expect.poll(() => fixture.hash.get('with')).toBeNull();
    expect(await comparison().locator('.differences').count()).toBe(0);
  });

  it('is kept, folded, while an op is selected; its rows stay marked beside those of the table', async () => {
    const { page } = fixture;
    const other = await fixture.generate({ prompt: 'Kept beside a selection', max_tokens: 4 });
    await fixture.recorded(7);
    await fixture.show(fixture.session ?? '', `with=${other}`);
    const marked = comparison().getByRole('radio', { name: 'op types' });
    await comparison()
      .getByText(
        'The first row compares one generated step. The other rows are sums over all steps',
      )
      .waitFor();
    await page.getByLabel('Totals by', { exact: true }).selectOption('op_kind');
    await page
      .getByRole('grid', { name: 'Totals by op type' })
      .locator('.vgrid-row')
      .first()
      .dblclick();
    await page.getByRole('grid', { name: /^Accesses/ }).waitFor();
    expect(await page.getByRole('radio', { name: 'Accesses', exact: true }).isChecked()).toBe(true);
    expect(await marked.isChecked()).toBe(true);
    await fixture.rows('Ops');
    await fixture.ops.locator('.vgrid-row').first().click();
    await expect.poll(() => comparison().count()).toBe(0);
    await fixture.inspector.getByText('Comparison with another session').click();
    await rows().first().waitFor();
  });

  it('is chosen in the list of sessions', async () => {
    const other = await fixture.generate({ prompt: 'Chosen in the list', max_tokens: 4 });
    await fixture.recorded(6);
    const row = fixture.row('Chosen in the list');
    await row.hover();
    await row.getByRole('button', { name: /^Compare the open session with/ }).click();
    await expectComparison(other);
  });

  it('that was deleted gets a message', async () => {
    fixture.expect404();
    const session = await fixture.recorded(6);
    await fixture.show(session, 'with=20200101-000000-aaaaaa');
    await comparison().getByText('The comparison cannot be shown.').waitFor();
  });
});

describe('a session that the machine disturbed', () => {
  it('can be shown without the disturbed steps, and says how many these are', async () => {
    const busy = Array.from({ length: 6 }, () => spawn('sh', ['-c', 'while :; do :; done']));
    const session = await fixture
      .generate({ prompt: 'Beside other programs', max_tokens: 60 })
      .finally(() => {
        for (const one of busy) one.kill('SIGKILL');
      });
    await fixture.show(session);
    const machine = await fixture.get<Conditions>('conditions');
    const { clean, unknown, contended, throttled, disk } = machine.steps;
    const disturbed = contended + throttled + disk;
    expect(disturbed).toBeGreaterThan(0);
    const box = fixture.inspector.getByRole('checkbox', { name: /^Only clean steps/ });
    expect(await box.locator('..').innerText()).toBe(
      `Only clean steps: leaves out ${formatCount(disturbed)} of ${formatCount(disturbed + clean + unknown)}`,
    );
    await box.check();
    await expect.poll(() => fixture.filter.inputValue()).toBe('verdict:clean');
    await fixture.page.getByLabel('Totals by', { exact: true }).selectOption('phase');
    const rest = await fixture.get<Breakdown>('breakdown?by=phase&clean=true');
    expect(rest.left_out_steps).toBe(disturbed);
    const grid = fixture.page.getByRole('grid', { name: 'Totals by phase' });
    await expect.poll(() => grid.getAttribute('aria-rowcount')).toBe(String(rest.total + 1));
  });
});
