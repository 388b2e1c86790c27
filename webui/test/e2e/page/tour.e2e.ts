// The guided tour with the model that the server brings along: each step shows live data, with the
// keyboard alone; it can be left and resumed.
import { describe, expect, it } from 'vitest';
import { formatCount } from '../../../src/format';
import type { Findings } from '../../../src/net/types';
import { TOUR } from '../../../src/tour/steps';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use();
const tour = () => fixture.page.getByRole('region', { name: 'Guided tour' });
const heading = (title: string) => tour().getByRole('heading', { name: title, exact: true });

describe('the guided tour', () => {
  it('goes through all steps on a run of the model, with the keyboard', async () => {
    const { page } = fixture;
    await page.getByRole('button', { name: 'Take a guided tour' }).focus();
    await page.keyboard.press('Enter');
    await heading('Token').waitFor();
    await tour().getByRole('button', { name: /^Ask the model: / }).focus(); // prettier-ignore
    await page.keyboard.press('Enter');
    await fixture.waitDone();
    const { tokens } = await fixture.get<{ tokens: readonly { generated: boolean }[] }>('tokens?limit=1000'); // prettier-ignore
    const answer = tokens.filter(({ generated }) => generated).length;
    await tour().getByText(`${answer} tokens in the answer.`).waitFor();
    for (const [n, step] of TOUR.entries()) {
      await heading(step.title).waitFor();
      await tour()
        .getByText(`${n + 1} of ${TOUR.length}`)
        .waitFor();
      await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe(step.title); // prettier-ignore
      // Each step has a figure of this run.
      await expect.poll(() => tour().locator('.tour-live').innerText()).toMatch(/\S/);
      if (typeof step.live === 'string') {
        const { findings } = await fixture.get<Findings>('findings');
        const text = findings.find(
          ({ topic, role }) => topic === step.live && role === 'main',
        )?.text;
        expect(text).toMatch(/\d/);
        expect(await tour().locator('.tour-live').innerText()).toBe(text);
      }
      // The panel that the step is about has something to show.
      const panel = page.locator(`[data-panel=${step.panel}]`);
      await panel.waitFor();
      await expect.poll(() => panel.locator('canvas, .vgrid-row, .token-text, .empty').count()).toBeGreaterThan(0); // prettier-ignore
      if (step.id === 'token' || step.id === 'routing') expect(await fixture.axeViolations()).toEqual([]); // prettier-ignore
      if (n + 1 === TOUR.length) break;
      await tour().getByRole('button', { name: /^Next: / }).focus(); // prettier-ignore
      await page.keyboard.press('Enter');
    }
    await tour().getByText('Here: the model is dense').waitFor();
    await tour().getByRole('button', { name: 'End the tour' }).click();
    await expect.poll(() => tour().count()).toBe(0);
  });

  it('is left and resumed where it was, and its figures are those of REST', async () => {
    const { page } = fixture;
    const session = await fixture.recorded(8);
    await page.keyboard.press('Control+k');
    await page.keyboard.type('guided tour');
    await page.keyboard.press('Enter');
    await heading('Token').waitFor();
    await tour().getByRole('button', { name: 'Next: Op' }).click();
    const { steps } = await fixture.get<{ steps: readonly { accesses: number }[] }>(
      'steps?limit=100',
    );
    await tour().getByText(`read or wrote memory ${formatCount(steps.at(-1)?.accesses ?? 0)} times.`).waitFor(); // prettier-ignore
    await tour().getByRole('button', { name: 'Next: Layer' }).click();
    await tour().getByRole('button', { name: 'Leave the tour' }).click();
    await expect.poll(() => tour().count()).toBe(0);
    await fixture.fresh(`${fixture.server.url}/#1&session=${session}`);
    await page.locator('.status-id', { hasText: session }).waitFor();
    expect(await tour().count()).toBe(0);
    await page.keyboard.press('Control+k');
    await page.keyboard.type('guided tour');
    await page.keyboard.press('Enter');
    await heading('Layer').waitFor();
    await page.setViewportSize({ width: 390, height: 844 });
    const box = await tour().boundingBox();
    expect(box?.x).toBeGreaterThanOrEqual(0);
    expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(390);
  });
});
