// One page before one server, and what every test of the page demands of it: no
// request leaves the origin, no error reaches the console.
import axe from 'axe-core';
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { startBrowser, startServer, type Server } from './harness';

export class Stage {
  server!: Server;
  page!: Page;
  complaints: string[] = [];
  foreign: string[] = [];
  private browser!: Browser;
  private context!: BrowserContext;

  // Sets a file's tests up; `args` are the server's.
  static use(args: () => Promise<readonly string[]> = () => Promise.resolve([])): Stage {
    const stage = new Stage();
    beforeAll(async () => {
      [stage.server, stage.browser] = await Promise.all([
        startServer(await args()),
        startBrowser(),
      ]);
    });
    afterAll(async () => {
      await stage.browser.close();
      await stage.server.stop();
    });
    beforeEach(() => stage.open());
    afterEach(() => stage.close());
    return stage;
  }

  private async open(): Promise<void> {
    this.context = await this.browser.newContext({
      viewport: { width: 1440, height: 900 },
      colorScheme: 'dark',
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    const page = await this.context.newPage();
    page.setDefaultTimeout(20_000);
    this.page = page;
    this.foreign = [];
    this.complaints = [];
    page.on('request', (request) => {
      const url = request.url();
      if (!url.startsWith(this.server.url) && !url.startsWith('blob:')) this.foreign.push(url);
    });
    page.on('pageerror', (error) => this.complaints.push(error.message));
    page.on('console', (message) => {
      // What is not there (yet) is answered 404, which the browser logs by itself.
      if (message.type() === 'error' && !message.text().includes('404')) {
        this.complaints.push(message.text());
      }
    });
    await page.goto(this.server.url);
    await expect.poll(() => this.run.isEnabled(), { timeout: 60_000 }).toBe(true);
  }

  private async close(): Promise<void> {
    // A test that failed in the middle must not leave its run to the next one.
    const { session } = this;
    if (session) {
      await this.page
        .evaluate((id) => fetch(`api/v1/generate/${id}`, { method: 'DELETE' }), session)
        .catch(() => null);
    }
    const { foreign, complaints } = this;
    await this.context.close();
    expect(foreign).toEqual([]);
    expect(complaints).toEqual([]);
  }

  // ---- What is on the page --------------------------------------------------------

  get hash(): URLSearchParams {
    return new URLSearchParams(new URL(this.page.url()).hash.replace(/^#1&?/, ''));
  }
  get session(): string | null {
    return this.hash.get('session');
  }
  get run(): Locator {
    return this.page.locator('.composer button[type=submit]');
  }
  get stop(): Locator {
    return this.page.getByRole('button', { name: 'Stop', exact: true });
  }
  get progress(): Locator {
    return this.page.getByRole('region', { name: 'Progress' });
  }
  get log(): Locator {
    return this.page.getByRole('log', { name: 'Prompt and answer' });
  }
  get generated(): Locator {
    return this.page.locator('.token[data-origin=generated]');
  }
  get ops(): Locator {
    return this.page.getByRole('grid', { name: /Ops of step/ });
  }
  get inspector(): Locator {
    return this.page.getByRole('tabpanel', { name: 'Inspector' });
  }
  get toasts(): Locator {
    return this.page.getByRole('region', { name: 'Messages' });
  }
  tab(name: string): Locator {
    return this.page.getByRole('tab', { name, exact: true });
  }
  row(title: string): Locator {
    return this.page.locator('.session', { hasText: title });
  }

  // ---- What a person does -----------------------------------------------------------

  async text(prompt: string, tokens: number, timing: 'fast' | 'exact' = 'fast'): Promise<void> {
    const { page } = this;
    await page.getByRole('radio', { name: 'Text' }).check();
    await this.settings(tokens, timing);
    await page.getByRole('textbox', { name: 'Prompt' }).fill(prompt);
    await page.keyboard.press('Control+Enter');
  }

  async settings(tokens: number, timing: 'fast' | 'exact' = 'fast'): Promise<void> {
    const { page } = this;
    const summary = page.getByText('Settings', { exact: true });
    await summary.click();
    await page.getByLabel('Max tokens').fill(String(tokens));
    await page.getByLabel('Seed').fill('7');
    await page.getByLabel('Ignore end of text').check();
    await page.getByLabel('Timing').selectOption(timing);
    await summary.click();
  }

  async level(level: string): Promise<void> {
    const settings = this.page.getByText('Settings', { exact: true });
    await settings.click();
    await this.page.getByRole('combobox', { name: 'Trace' }).selectOption(level);
    await settings.click();
  }

  async done(): Promise<void> {
    await this.progress.getByText(/^Done: /).waitFor({ timeout: 40_000 });
  }

  async textToEnd(prompt: string, tokens: number): Promise<void> {
    await this.text(prompt, tokens);
    await this.done();
    await this.ops.waitFor();
  }

  // The painted pixels of a canvas, as one number.
  pixels(selector: string): Promise<number> {
    return this.page.locator(selector).evaluate((canvas) => {
      if (!(canvas instanceof HTMLCanvasElement)) return 0;
      const box = canvas.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height).data;
      return box?.reduce((sum, value, i) => (sum * 31 + value * (i % 7)) % 1_000_003, 0) ?? 0;
    });
  }

  async faults(): Promise<readonly string[]> {
    // Not by a script tag: the page's own policy forbids what is inline.
    await this.page.evaluate(axe.source);
    const found = await this.page.evaluate(() =>
      (globalThis as unknown as { axe: typeof axe }).axe.run(document),
    );
    return found.violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' ')}`);
  }
}
