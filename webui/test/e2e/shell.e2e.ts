// The shell: links, Back and Forward, keys, palette, full screen, themes, and
// what it says while the server is away.
import { describe, expect, it } from 'vitest';
import { Stage } from './stage';

const stage = Stage.use();
const press = (...keys: readonly string[]) =>
  keys.reduce(
    (before, key) => before.then(() => stage.page.keyboard.press(key)),
    Promise.resolve(),
  );
// Where no text field has the focus.
const leaveFields = () => stage.page.getByRole('tab', { name: 'Ops' }).click();
const chosen = () => stage.inspector.locator('.inspection h3');

describe('the address', () => {
  it('brings the view back after a reload, and through Back and Forward', async () => {
    const { page } = stage;
    await stage.textToEnd('Remember me', 8);
    await stage.ops.locator('.vgrid-row').nth(2).click();
    const op = await chosen().innerText();
    await page.getByRole('radio', { name: 'Generate' }).check();
    await leaveFields();
    await press('}', 'f');
    await expect.poll(() => stage.hash.get('full')).toBe('ops');
    const { hash } = new URL(page.url());
    expect(Object.fromEntries(stage.hash)).toMatchObject({ sel: 'o:2', ph: 'g', l: '1' });

    await page.reload();
    await stage.ops.waitFor();
    expect(new URL(page.url()).hash).toBe(hash);
    await expect.poll(() => page.locator('.dock[data-full=true]').count()).toBe(1);
    expect(await stage.ops.locator('[aria-selected=true]').getAttribute('aria-rowindex')).toBe('4');
    await press('Escape');
    await expect.poll(() => chosen().innerText()).toBe(op);

    // Escape and each choice before it were entries.
    await page.goBack();
    await expect.poll(() => stage.hash.get('full')).toBe('ops');
    for (const key of ['full', 'l', 'ph', 'sel']) {
      await page.goBack();
      await expect.poll(() => stage.hash.has(key)).toBe(false);
    }
    await page.goForward();
    await expect.poll(() => chosen().innerText()).toBe(op);
  });

  it('says which of its parts mean nothing', async () => {
    await stage.page.goto(`${stage.server.url}/#1&step=x&full=nowhere`);
    await stage.toasts.getByText('step=x, full=nowhere').waitFor();
    await expect.poll(() => new URL(stage.page.url()).hash).toBe('');
  });

  it('of a session that is not there says so', async () => {
    await stage.page.goto(`${stage.server.url}/#1&session=20200101-000000-000000`);
    await stage.page.getByText('This session cannot be shown.').first().waitFor();
  });
});

describe('keys', () => {
  it('move, fill the page and unwind one level at a time', async () => {
    const { page } = stage;
    await stage.textToEnd('By key', 6);
    await stage.ops.locator('.vgrid-row').first().click();
    await press('f');
    await expect.poll(() => page.locator('.dock[data-full=true]').count()).toBe(1);
    await press('Control+k');
    await page.getByRole('dialog', { name: 'Search and commands' }).waitFor();
    await press('Escape');
    await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
    expect(stage.hash.get('full')).toBe('ops');
    await press('Escape');
    await expect.poll(() => stage.hash.get('full')).toBeNull();
    expect(stage.hash.get('sel')).toBe('o:0');
    await press('Escape');
    await expect.poll(() => stage.hash.get('sel')).toBeNull();
    await press('[');
    await page.getByRole('grid', { name: 'Ops of step 4' }).waitFor();
    await press(']', '}', '}', '{');
    await page.getByRole('grid', { name: 'Ops of step 5' }).waitFor();
    await expect.poll(() => stage.hash.get('l')).toBe('1');
  });

  it('are listed, and single letters can be switched off', async () => {
    const { page } = stage;
    await leaveFields();
    await press('?');
    const help = page.getByRole('dialog', { name: 'Keys' });
    await help.getByText('Next layer').waitFor();
    await help.getByLabel('Single letters and signs are keys').uncheck();
    await press('Escape');
    await leaveFields();
    await press('f', '?');
    expect(stage.hash.get('full')).toBeNull();
    expect(await page.getByRole('dialog').count()).toBe(0);
  });

  it('leave text fields alone', async () => {
    const field = stage.page.getByRole('textbox', { name: 'Message' });
    await field.focus();
    await press('f', '?', '[');
    expect(await field.inputValue()).toBe('f?[');
    expect(await stage.page.getByRole('dialog').count()).toBe(0);
  });
});

describe('the palette', () => {
  it('finds a command by a few letters, and shows its key', async () => {
    const { page } = stage;
    await press('Control+Shift+p');
    await page.keyboard.type('light th');
    const list = page.getByRole('listbox', { name: 'Commands' });
    await expect.poll(() => list.getByRole('option').first().innerText()).toContain('Light theme');
    expect(await stage.faults()).toEqual([]);
    await press('Enter');
    await expect.poll(() => page.locator('html').getAttribute('data-theme')).toBe('light');
    await page.reload();
    await expect.poll(() => page.locator('html').getAttribute('data-theme')).toBe('light');
    await press('Control+k');
    await page.keyboard.type('xqz');
    await page.getByText('Nothing is called like that').waitFor();
  });

  it('goes to a step by its number', async () => {
    const { page } = stage;
    await stage.textToEnd('By number', 6);
    await press('Control+k');
    await page.keyboard.type('2');
    await press('Enter');
    await page.getByRole('grid', { name: 'Ops of step 2' }).waitFor();
  });
});

describe('everyone', () => {
  it.each(['dark', 'light'] as const)('can read the %s theme', async (theme) => {
    const { page } = stage;
    await page.emulateMedia({ colorScheme: theme });
    await expect.poll(() => page.locator('html').getAttribute('data-theme')).toBe(theme);
    await stage.textToEnd('For all', 4);
    await stage.ops.locator('.vgrid-row').first().click();
    await stage.inspector.getByText('Accesses').waitFor();
    expect(await stage.faults()).toEqual([]);
    await press('?');
    expect(await stage.faults()).toEqual([]);
  });

  it('reads the heat map by key', async () => {
    const { page } = stage;
    await stage.textToEnd('By key', 4);
    await page.locator('.heatmap canvas').focus();
    await press('Home', 'ArrowDown');
    const tip = page.locator('.tip');
    await tip.getByText('token 0').waitFor();
    expect(await tip.innerText()).toMatch(/layer\s+1/);
    await press('Enter');
    await page.getByRole('grid', { name: 'Ops of step 0' }).waitFor();
    await expect.poll(() => Object.fromEntries(stage.hash)).toMatchObject({ sel: 'k:0', l: '1' });
  });
});
