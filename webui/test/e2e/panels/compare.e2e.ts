// Two sessions beside each other, and sessions that the machine disturbed. All figures are compared
// with REST.
import { spawn } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { formatCount, formatNs } from '../../../src/format';
import type { Breakdown, Conditions, SessionComparison } from '../../../src/net/types';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use();
const panel = () => fixture.page.getByRole('tabpanel', { name: 'Compare' });
const comparison = () => panel().getByRole('region', { name: 'The sessions' });
const head = () => panel().getByRole('region', { name: 'Compared sessions' });
const choice = () => fixture.inspector.getByLabel('Compare with session');

// The comparison of the open session with another one.
const found = (other: string) => fixture.get<SessionComparison>(`comparison/${other}?limit=0`);

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
  const names = await head().locator('dd').allInnerTexts();
  // Two sessions of one title have their ids.
  const isSame = rest.left.title === rest.right.title;
  // With the model and the settings that differ.
  const settings = rest.causes.find(({ kind }) => kind === 'settings')?.facts ?? [];
  const named = (side: 'left' | 'right') => {
    const { title, id, model } = rest[side];
    const set = settings.map((fact) => `, ${fact.label} ${fact[side] ?? 'none'}`).join('');
    return `“${title}”${isSame ? `, ${id}` : ''}, ${rest.tokens[side]} tokens, ${model?.split('/').at(-1) ?? ''}${set}`;
  };
  expect(names).toEqual([named('left'), named('right')]);
  // What differs is in the first lines, with both values.
  expect(await head().getByRole('list', { name: 'What differs' }).getByRole('listitem').allInnerTexts()).toEqual(rest.causes.map(({ text }) => text)); // prettier-ignore
  const times = rest.step_ns.generate;
  const shown = comparison().getByRole('table', { name: 'Times of a step' });
  const median = shown.getByRole('row', { name: /^generate, median/ });
  const shownNs = (side: { readonly median: number } | null | undefined) => side ? formatNs(side.median) : 'not measured'; // prettier-ignore
  const cells = await median.locator('td').allInnerTexts();
  expect(cells.slice(0, 2)).toEqual([shownNs(times?.left), shownNs(times?.right)]);
  // The difference of what is not comparable is marked; and how many steps each time is of.
  if (times?.left && times.right) expect(cells[2]?.endsWith(' *')).toBe(!times.comparable);
  else expect(cells[2]).toBe('not measured');
  for (const text of [times?.left_text, times?.right_text])
    if (text) await comparison().getByText(text).first().waitFor();
  // The prompt is one step: it has no quantiles.
  expect(await shown.getByRole('row', { name: /^prompt, p/ }).count()).toBe(0);
  expect(await shown.getByRole('row', { name: /^prompt, median/ }).count()).toBe(
    (rest.step_ns.prompt?.left ?? rest.step_ns.prompt?.right) ? 1 : 0,
  );
}

describe('another session', () => {
  it('is compared: causes, times of a step; and Escape ends it', async () => {
    const { page } = fixture;
    const prompt = { prompt: 'The model reads its weights from memory, layer by layer.' };
    const first = await fixture.generate({ ...prompt, max_tokens: 6 });
    const second = await fixture.generate({ ...prompt, max_tokens: 6, reuse_prefix: true });
    await fixture.generate({ ...prompt, max_tokens: 6 });
    await fixture.show(second);
    // Three sessions of one title, of the same minute.
    const texts = async () => choice().locator('option').allInnerTexts();
    await expect.poll(async () => (await texts()).filter((text) => text.includes(first)).length).toBe(1); // prettier-ignore
    expect(new Set(await texts()).size).toBe((await texts()).length);
    await choice().selectOption(first);
    await expectComparison(first);
    // The second of two equal requests reuses the prompt of the first.
    const rest = await found(first);
    const reuse = rest.causes.find(({ kind }) => kind === 'reuse');
    const reused = reuse?.facts.find(({ name }) => name === 'result.reused_tokens');
    expect(Number(reused?.left)).toBeGreaterThan(0);
    const row = comparison().getByRole('row', { name: /^reused tokens/ });
    expect(await row.locator('td').allInnerTexts()).toEqual([reused?.left, '0']);
    // The session that it came from, by its name on the page.
    expect(await comparison().getByRole('row', { name: /^reused from session/ }).locator('td').first().innerText()).toBe('other session'); // prettier-ignore
    expect(fixture.hash.get('with')).toBe(first);
    expect(await fixture.axeViolations()).toEqual([]);
    await page.keyboard.press('Escape');
    await expect.poll(() => fixture.hash.get('with')).toBeNull();
    expect(await comparison().count()).toBe(0);
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
    fixture.expectStatus(404);
    const session = await fixture.recorded(6);
    await fixture.show(session, 'with=20200101-000000-aaaaaa', 'tab=compare');
    await panel().getByText('The comparison cannot be shown.').waitFor();
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
