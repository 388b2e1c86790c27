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

async function expectComparison(other: string): Promise<void> {
  const rest = await found(other);
  const causes = comparison().getByRole('list', { name: 'Causes of differences' });
  await expect.poll(() => causes.locator('li').allInnerTexts()).toEqual(rest.causes);
  const times = rest.step_ns.generate;
  const shown = comparison().getByRole('table', { name: 'Times of a step' });
  expect(await shown.getByRole('row', { name: /^generate, median/ }).locator('td').allInnerTexts())
    .toEqual([formatNs(times?.left?.median ?? 0), formatNs(times?.right?.median ?? 0)]); // prettier-ignore
  const total = rows().first().locator('td');
  expect((await total.allInnerTexts()).slice(0, 2)).toEqual([
    time(rest.total.left),
    time(rest.total.right),
  ]);
  const first = rest.by.op_kind[0];
  expect((await rows().nth(1).locator('th, td').allInnerTexts()).slice(0, 3)).toEqual([
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
    expect(rest.causes.join()).toMatch(/reused/);
    await comparison().getByRole('radio', { name: 'layers' }).check();
    await comparison().getByRole('radio', { name: 'bytes' }).check();
    await expect.poll(() => fixture.hash.get('p.inspector')).toBe('diff:bytes,by:layer');
    expect(fixture.hash.get('with')).toBe(first);
    const shown = await rows().allInnerTexts();
    await fixture.fresh(page.url());
    await expect.poll(() => rows().allInnerTexts()).toEqual(shown);
    expect(await fixture.axeViolations()).toEqual([]);
    await page.keyboard.press('Escape');
    await expect.poll(() => fixture.hash.get('with')).toBeNull();
    expect(await comparison().locator('.differences').count()).toBe(0);
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
