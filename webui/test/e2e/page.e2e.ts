// The page before the real server: prompt in, tokens stream, the heat map
// fills, stop works, and a reload finds everything again.
import axe from 'axe-core';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startBrowser, startServer, type Server } from './harness';

let server: Server;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let foreign: string[]; // requests that left the origin
let complaints: string[]; // errors in the page

beforeAll(async () => {
  server = await startServer();
  browser = await startBrowser();
});
afterAll(async () => {
  await browser.close();
  await server.stop();
});

beforeEach(async () => {
  context = await browser.newContext({
    viewport: { width: 1440, height: 900 },
    colorScheme: 'dark',
  });
  page = await context.newPage();
  page.setDefaultTimeout(15_000);
  foreign = [];
  complaints = [];
  page.on('request', (request) => {
    if (!request.url().startsWith(server.url)) foreign.push(request.url());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    // A missing session is answered 404, which the browser logs by itself.
    if (message.type() === 'error' && !message.text().includes('404')) {
      complaints.push(message.text());
    }
  });
  await page.goto(server.url);
  await expect.poll(() => runButton().isEnabled(), { timeout: 60_000 }).toBe(true);
});
afterEach(async () => {
  // A test that failed in the middle must not leave its run to the next one.
  const session = sessionOf(page.url());
  if (session) {
    await page.evaluate((id) => fetch(`api/v1/generate/${id}`, { method: 'DELETE' }), session);
  }
  expect(foreign).toEqual([]);
  expect(complaints).toEqual([]);
  await context.close();
});

const promptBox = () => page.getByRole('textbox', { name: 'Prompt' });
const runButton = () => page.getByRole('button', { name: 'Run', exact: true });
const stopButton = () => page.getByRole('button', { name: 'Stop', exact: true });
const answer = () => page.getByRole('log', { name: 'Prompt and answer' });
const generated = () => page.locator('.token[data-origin=generated]');
const opGrid = () => page.getByRole('grid', { name: /Ops of step/ });
const progress = () => page.getByRole('region', { name: 'Progress' });

const sessionOf = (url: string) => new URLSearchParams(new URL(url).hash).get('session');

interface Wish {
  readonly tokens: number;
  readonly timing?: 'fast' | 'exact';
}

async function run(prompt: string, { tokens, timing = 'fast' }: Wish): Promise<void> {
  await page.getByRole('radio', { name: 'Text' }).check();
  await page.getByText('Settings').click();
  await page.getByLabel('Max tokens').fill(String(tokens));
  await page.getByLabel('Seed').fill('7');
  await page.getByLabel('Ignore end of text').check();
  await page.getByLabel('Timing').selectOption(timing);
  await promptBox().fill(prompt);
  await promptBox().press('Control+Enter');
}

async function runToEnd(prompt: string, tokens: number): Promise<void> {
  await run(prompt, { tokens });
  await progress()
    .getByText(/^Done: /)
    .waitFor();
}

// The painted pixels of the heat map, as one number.
function heatPixels(): Promise<number> {
  return page.locator('.heatmap canvas').evaluate((canvas) => {
    if (!(canvas instanceof HTMLCanvasElement)) return 0;
    const pixels = canvas.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height).data;
    return pixels?.reduce((sum, value, i) => (sum * 31 + value * (i % 7)) % 1_000_003, 0) ?? 0;
  });
}

const seriousFaults = async (): Promise<string[]> => {
  // Not by a script tag: the page's own policy forbids what is inline.
  await page.evaluate(axe.source);
  const found = await page.evaluate(() =>
    (globalThis as unknown as { axe: typeof axe }).axe.run(document),
  );
  return found.violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' ')}`);
};

describe('a run', () => {
  it('streams tokens and fills the heat map while it goes on', async () => {
    await run('Once upon a time', { tokens: 3500 });
    await generated().nth(3).waitFor();
    for (let looks = 0; looks < 3; looks += 1) {
      const [text, heat] = [await answer().innerText(), await heatPixels()];
      await expect
        .poll(async () => (await answer().innerText()).length)
        .toBeGreaterThan(text.length);
      await expect.poll(heatPixels).not.toBe(heat);
      expect(await stopButton().isVisible(), 'the run goes on').toBe(true);
    }
    await stopButton().click();
    await progress()
      .getByText(/^Stopped after/)
      .waitFor();
  });

  it('stops within a second', async () => {
    await run('Count for ever:', { tokens: 100_000 });
    await generated().nth(5).waitFor();
    const begin = Date.now();
    await stopButton().click();
    await progress()
      .getByText(/^Stopped after/)
      .waitFor({ timeout: 1000 });
    expect(Date.now() - begin).toBeLessThan(1000);
    const count = await generated().count();
    await page.waitForTimeout(300);
    expect(await generated().count()).toBe(count);
    // What was recorded until then stays, and the next run begins at once.
    const listed = page.locator('.session[aria-current]');
    await expect.poll(() => listed.innerText()).toContain('cancelled');
    await promptBox().fill('And on');
    await page.getByLabel('Max tokens').fill('4');
    await runButton().click();
    await progress()
      .getByText(/^Done: 4/)
      .waitFor({ timeout: 5000 });
  });

  it('takes messages, and goes on after the answer', async () => {
    await page.getByLabel('Message 1', { exact: true }).fill('Tell me a story about a frog.');
    await runButton().click();
    await progress()
      .getByText(/^Done: /)
      .waitFor();
    await page.getByRole('button', { name: 'Continue after the answer' }).click();
    const reply = page.getByLabel('Message 2', { exact: true });
    expect((await reply.inputValue()).trim()).not.toBe('');
    expect(await page.getByLabel('Role of message 2').inputValue()).toBe('assistant');
    expect(await page.getByLabel('Role of message 3').inputValue()).toBe('user');
  });

  it('marks exact timing', async () => {
    await run('A short one', { tokens: 4, timing: 'exact' });
    await progress()
      .getByText(/^Done: /)
      .waitFor();
    await page
      .locator('.status')
      .getByText(/\d+ exact/)
      .waitFor();
  });

  it('refuses an empty prompt in words', async () => {
    await runButton().click();
    await page.getByRole('alert').getByText('Write a message first').waitFor();
  });
});

describe('the op table', () => {
  it('shows the ops of the column that is clicked, and their accesses', async () => {
    await runToEnd('The model reads', 12);
    const map = page.locator('.heatmap canvas');
    const box = await map.boundingBox();
    if (!box) throw new Error('the heat map is not there');
    // The first column belongs to the prompt.
    await map.click({ position: { x: 70, y: 100 } });
    await page.getByRole('grid', { name: 'Ops of step 0' }).waitFor();
    expect(new URL(page.url()).hash).toMatch(/&step=0$/);
    await page.getByLabel('Filter the ops').fill('op:mul_mat source:attn_q.weight layer:0');
    const row = opGrid().locator('.vgrid-row').first();
    await row.getByText('MUL_MAT').waitFor();
    await row.click();
    const detail = page.getByRole('complementary', { name: 'Accesses of the op' });
    await detail.getByText('blk.0.attn_q.weight').waitFor();
  });

  it('sorts by duration and moves by key', async () => {
    await runToEnd('Sort them', 6);
    await opGrid().waitFor();
    await opGrid().getByRole('button', { name: 'duration' }).click();
    const header = opGrid().getByRole('columnheader', { name: 'duration' });
    await expect.poll(() => header.getAttribute('aria-sort')).toBe('descending');
    const durations = await opGrid()
      .locator('.vgrid-row .vgrid-cell:nth-child(10)')
      .evaluateAll((cells) =>
        cells.map((cell) => Number((cell as HTMLElement).title.replace(/\D/g, ''))),
      );
    expect(durations.length).toBeGreaterThan(5);
    expect(durations).toEqual([...durations].sort((a, b) => b - a));
    await opGrid().focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    const active = opGrid().locator('[aria-selected=true]');
    await expect.poll(() => active.getAttribute('aria-rowindex')).toBe('3');
  });

  it('offers the steps as a table too', async () => {
    await runToEnd('In numbers', 6);
    await page.getByRole('radio', { name: 'Steps' }).check();
    const steps = page.getByRole('grid', { name: 'Steps of the session' });
    expect(Number(await steps.getAttribute('aria-rowcount'))).toBeGreaterThan(6);
    await steps.locator('.vgrid-row').nth(1).click();
    await page.getByRole('grid', { name: 'Ops of step 1' }).waitFor();
  });
});

describe('a session', () => {
  it('is found again by its address', async () => {
    await runToEnd('Remember me', 10);
    await generated().nth(9).waitFor();
    await expect.poll(() => answer().innerText()).toContain('Remember me');
    const text = await answer().innerText();
    await page.reload();
    await expect.poll(() => answer().innerText()).toBe(text);
    await page.locator('.heatmap canvas').waitFor();
    await opGrid().waitFor();
  });

  it('opens from the list', async () => {
    await runToEnd('First of two', 6);
    const first = sessionOf(page.url());
    await promptBox().fill('Second of two');
    await runButton().click();
    await expect.poll(() => sessionOf(page.url())).not.toBe(first);
    await progress()
      .getByText(/^Done: /)
      .waitFor();
    await page.locator('.session', { hasText: 'First of two' }).click();
    await answer().getByText('First').first().waitFor();
    await page.goBack();
    await answer().getByText('Second').first().waitFor();
  });
});

describe('everyone', () => {
  it.each(['dark', 'light'] as const)('can read the %s theme', async (theme) => {
    await page.emulateMedia({ colorScheme: theme });
    await expect.poll(() => page.locator('html').getAttribute('data-theme')).toBe(theme);
    await runToEnd('For all', 6);
    await opGrid().locator('.vgrid-row').first().click();
    expect(await seriousFaults()).toEqual([]);
  });

  it('can choose the theme, and finds it again', async () => {
    await page.getByRole('button', { name: 'Change to the light theme' }).click();
    await page.reload();
    expect(await page.locator('html').getAttribute('data-theme')).toBe('light');
  });

  it('reads the heat map by key', async () => {
    await runToEnd('By key', 6);
    await page.locator('.heatmap canvas').focus();
    await page.keyboard.press('Home');
    await page.keyboard.press('ArrowDown');
    const tip = page.locator('.tip');
    await tip.getByText('token 0').waitFor();
    expect(await tip.innerText()).toMatch(/layer\s+1/);
    await page.keyboard.press('Enter');
    await page.getByRole('grid', { name: 'Ops of step 0' }).waitFor();
  });
});
