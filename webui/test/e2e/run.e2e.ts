// A run before the real server: prompt in, tokens stream, the heat map fills,
// stop works, a conversation goes on.
import { describe, expect, it } from 'vitest';
import { Stage } from './stage';

// Room for an answer that outlasts what is looked at meanwhile: a token takes half a millisecond.
const stage = Stage.use(() => Promise.resolve(['-c', '65536']));

describe('a run', () => {
  it('streams tokens and fills the heat map while it goes on, and stops', async () => {
    await stage.text('Once upon a time', 60_000);
    await stage.generated.nth(3).waitFor();
    for (let looks = 0; looks < 2; looks += 1) {
      const [text, heat] = [await stage.log.innerText(), await stage.pixels('.heatmap canvas')];
      await expect
        .poll(async () => (await stage.log.innerText()).length)
        .toBeGreaterThan(text.length);
      await expect.poll(() => stage.pixels('.heatmap canvas')).not.toBe(heat);
      expect(await stage.stop.isVisible(), 'the run goes on').toBe(true);
    }
    await stage.stop.click();
    await stage.progress.getByText(/^Stopped after/).waitFor();
    // A busy page shows later what came before the stop; then nothing more comes.
    await expect
      .poll(async () => {
        const count = await stage.generated.count();
        await stage.page.waitForTimeout(300);
        return (await stage.generated.count()) - count;
      })
      .toBe(0);
    // What was recorded until then stays, and the next run begins at once.
    await stage.row('Once upon a time').getByText('cancelled').first().waitFor();
    await stage.textToEnd('And on', 4);
  });

  it('is a conversation that says what it reused', async () => {
    await stage.settings(24);
    const message = stage.page.getByRole('textbox', { name: 'Message' });
    await message.fill('Tell me a story about a frog.');
    await message.press('Enter');
    await stage.done();
    const first = stage.session;
    await message.fill('What did the frog do then?');
    await message.press('Enter');
    await expect.poll(() => stage.session).not.toBe(first);
    await stage.done();
    const second = stage.page.getByRole('article', { name: 'Turn 2' });
    await second.getByText(/[1-9]\d* of \d+ prompt tokens reused/).waitFor();
    expect(decodeURIComponent(stage.page.url())).not.toContain('frog');
    // The first turn is a session of its own, one click away.
    await stage.page
      .getByRole('article', { name: 'Turn 1' })
      .getByRole('button', { name: 'Show its trace' })
      .click();
    await expect.poll(() => stage.session).toBe(first);
    await stage.page.reload();
    await second.waitFor();
    await stage.page.getByRole('button', { name: 'New conversation' }).click();
    await expect.poll(() => second.count()).toBe(0);
  });

  it('marks exact timing', async () => {
    await stage.text('A short one', 4, 'exact');
    await stage.done();
    await stage.page
      .locator('.status')
      .getByText(/\d+ exact/)
      .waitFor();
  });

  it('says what its level left out, and what it added', async () => {
    const { page } = stage;
    await stage.level('minimal');
    await stage.text('Steps alone', 6);
    await stage.done();
    await page.getByText('What the layers did is not known').waitFor();
    await page.getByText('The ops of this step were not recorded').waitFor();
    const note = page.locator('.note');
    await expect.poll(() => note.innerText()).toMatch(/0 ops/);
    expect(await note.innerText(), 'the step took time').not.toMatch(/\b0 ns/);
    await stage.level('verbose');
    await stage.textToEnd('Values, too', 6);
    await page.getByLabel('Filter the ops').fill('l_out-0');
    await stage.ops.locator('.vgrid-row').first().click();
    await stage.inspector.getByText('values of the output').waitFor();
    for (const name of ['min', 'max', 'mean', 'std', 'NaN', 'Inf'])
      await stage.inspector.getByText(name, { exact: true }).waitFor();
  });

  it('that is not recorded leaves its answer on the page', async () => {
    const { page } = stage;
    await stage.level('off');
    // One that is stopped, and one that ends by itself.
    await stage.text('Nobody writes this down', 3000);
    await expect.poll(() => page.getByText('No step has come').count()).toBeGreaterThan(1);
    await stage.stop.click();
    await stage.progress.getByText(/^Stopped after/).waitFor();
    await stage.text('Nor this', 12);
    await stage.done();
    await expect.poll(() => page.getByText('This session has no steps').count()).toBeGreaterThan(1);
    const answer = stage.log.locator('[data-part=answer]');
    const text = await answer.innerText();
    expect(text).not.toBe('');
    expect(await page.getByText('cannot be shown').count()).toBe(0);
    expect(await page.getByText('could not be read').count()).toBe(0);
    await stage.inspector.getByText('What you select is described here').waitFor();
    await page.reload();
    await expect.poll(() => answer.innerText()).toBe(text);
  });

  it('keeps what is being typed while the page is rendered', async () => {
    const { page } = stage;
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

  it('refuses an empty prompt in words', async () => {
    await stage.run.click();
    await stage.page.getByRole('alert').getByText('Write a message first').waitFor();
  });
});
