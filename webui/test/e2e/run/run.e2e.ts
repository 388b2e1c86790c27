// Runs with the real server: streaming tokens, the growing heat map, stop, conversations, trace
// levels.
import { describe, expect, it } from 'vitest';
import { PageFixture } from '../support/page_fixture';

// A large context, so that the run lasts longer than the checks: a token takes 0.5 ms.
const fixture = PageFixture.use(() => Promise.resolve(['-c', '65536']));

describe('a run', () => {
  it('streams tokens, updates the heat map, and stops', async () => {
    await fixture.runText('Once upon a time', 60_000);
    await expect.poll(() => fixture.shownTokens()).toBeGreaterThan(3);
    for (let looks = 0; looks < 2; looks += 1) {
      const [text, heat] = [await fixture.log.innerText(), await fixture.pixels('.plane-base')];
      await expect
        .poll(async () => (await fixture.log.innerText()).length)
        .toBeGreaterThan(text.length);
      await expect.poll(() => fixture.pixels('.plane-base')).not.toBe(heat);
      expect(await fixture.stop.isVisible(), 'the run continues').toBe(true);
    }
    await fixture.stop.click();
    await fixture.progress.getByText(/^Stopped after/).waitFor();
    // A busy page may show tokens from before the stop with a delay; then none follow.
    await expect
      .poll(async () => {
        const count = await fixture.shownTokens();
        await fixture.page.waitForTimeout(300);
        return (await fixture.shownTokens()) - count;
      })
      .toBe(0);
    // The recorded part is kept, and the next run starts immediately.
    await fixture.row('Once upon a time').getByText('cancelled').first().waitFor();
    await fixture.runTextToEnd('And on', 4);
  });

  it('has the same text when it is opened later, with characters of several tokens', async () => {
    const sampling = { temperature: 5, top_k: 0, top_p: 1, min_p: 0, seed: 5 };
    const id = await fixture.recorded(60, { prompt: 'Hé 😀 € ok', ...sampling });
    const { text } = await fixture.rest<{ text: string }>(`generate/${id}`);
    const { tokens } = await fixture.get<{ tokens: { text: string; generated: boolean }[] }>(
      'tokens',
    );
    const recorded = tokens.map((token) => (token.generated ? token.text : '')).join('');
    expect(recorded).toContain('\ufffd');
    expect(recorded, 'each part of a character is one U+FFFD').not.toBe(text);
    await expect.poll(() => fixture.answer.evaluate((box) => box.textContent)).toBe(text);
  });

  it('shows the reused prompt tokens of a conversation', async () => {
    await fixture.settings(24);
    const message = fixture.page.getByRole('textbox', { name: 'Message' });
    await message.fill('Tell me a story about a frog.');
    await message.press('Enter');
    await fixture.waitDone();
    const first = fixture.session;
    await message.fill('What did the frog do then?');
    await message.press('Enter');
    await expect.poll(() => fixture.session).not.toBe(first);
    await fixture.waitDone();
    const second = fixture.page.getByRole('article', { name: 'Turn 2' });
    await second.getByText(/[1-9]\d* of \d+ prompt tokens reused/).waitFor();
    expect(decodeURIComponent(fixture.page.url())).not.toContain('frog');
    // The first turn is a separate session.
    await fixture.page
      .getByRole('article', { name: 'Turn 1' })
      .getByRole('button', { name: 'Open its session' })
      .click();
    await expect.poll(() => fixture.session).toBe(first);
    await fixture.page.reload();
    await second.waitFor();
    await fixture.page.getByRole('button', { name: 'New conversation' }).click();
    await expect.poll(() => second.count()).toBe(0);
    // The session that the other views show stays open.
    const { title } = await fixture.get<{ title: string }>('');
    await fixture.log.getByText(`${title} stays open in the other panels.`).waitFor();
    await fixture.log.getByRole('list', { name: 'Prompts to try' }).waitFor();
    expect(await fixture.answer.count()).toBe(0);
    expect(fixture.session).toBe(first);
    await fixture.ops.waitFor();
    await expect.poll(() => fixture.page.getByText(/^Continues after/).count()).toBe(0);
    await fixture.log.getByRole('button', { name: 'Back to its conversation' }).click();
    await second.waitFor();
    expect(fixture.session).toBe(first);
  });

  it('marks exact timing', async () => {
    await fixture.runText('A short one', 4, 'exact');
    await fixture.waitDone();
    await fixture.page
      .locator('.status')
      .getByText(/\d+ op by op/)
      .waitFor();
  });

  it('shows the effect of the level', async () => {
    fixture.expectStatus(404);
    const { page } = fixture;
    await fixture.level('minimal');
    await fixture.runText('Steps alone', 6);
    await fixture.waitDone();
    await page.getByText('No data per layer').waitFor();
    await page.getByText('The ops of this step were not recorded').waitFor();
    const note = page.locator('.note');
    await expect.poll(() => note.innerText()).toMatch(/0 ops/);
    expect(await note.innerText(), 'the step took time').not.toMatch(/\b0 ns/);
    await fixture.level('verbose');
    await fixture.runTextToEnd('Values, too', 6);
    await fixture.filter.fill('l_out-0');
    await fixture.ops.locator('.vgrid-row').first().click();
    await fixture.inspector.getByText('output values').waitFor();
    for (const name of ['min', 'max', 'mean', 'std', 'NaN', 'Inf'])
      await fixture.inspector.getByText(name, { exact: true }).waitFor();
  });

  it('that is not recorded keeps its answer on the page', async () => {
    fixture.expectStatus(404);
    const { page } = fixture;
    await fixture.level('off');
    // One run is stopped, one finishes. On a busy machine a run can end before the page shows it.
    const stopped = fixture.progress.getByText(/^Stopped after/);
    await expect
      .poll(async () => {
        await fixture.runText('Not recorded', 3000);
        const over = fixture.progress.getByText(/^(Done|Stopped)/);
        const waits = page.getByText('No step has arrived yet');
        while (!(await over.isVisible()) && (await waits.count()) < 2);
        await fixture.stopRun();
        return stopped.isVisible();
      })
      .toBe(true);
    await fixture.runText('Nor this', 12);
    await fixture.waitDone();
    await expect.poll(() => page.getByText('This session has no steps').count()).toBeGreaterThan(1);
    const answer = fixture.log.locator('[data-part=answer]');
    const text = await answer.innerText();
    expect(text).not.toBe('');
    expect(await page.getByText('cannot be shown').count()).toBe(0);
    expect(await page.getByText('could not be read').count()).toBe(0);
    await fixture.inspector.getByText('Details of the selection are shown here').waitFor();
    await page.reload();
    await expect.poll(() => answer.innerText()).toBe(text);
  });

  it('keeps typed text while the page is rendered', async () => {
    const { page } = fixture;
    const settings = page.getByText('Settings', { exact: true });
    await settings.click();
    const field = page.getByLabel('Max tokens');
    await field.press('Control+A');
    await field.pressSequentially('77');
    await page.getByLabel('Ignore end of text').dispatchEvent('click');
    expect(await page.getByLabel('Ignore end of text').isChecked(), 'it was rendered').toBe(true);
    expect(await field.inputValue()).toBe('77');
    await settings.click();
    await page.getByText(/^77 tokens/).waitFor();
  });

  it('rejects an empty prompt with a message', async () => {
    await fixture.run.click();
    await fixture.page.getByRole('alert').getByText('Write a message first').waitFor();
  });
});
