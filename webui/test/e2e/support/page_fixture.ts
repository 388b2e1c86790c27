// Test fixture: one page and one server. Every test also checks that no request leaves the origin
// and that the console has no errors.
import axe from 'axe-core';
import { readFile } from 'node:fs/promises';
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import type { Node, Op, StepSummary, Tensor } from '../../../src/net/types';
import { PATIENCE_MS } from '../../patience';
import { startBrowser, startServer, type Server } from './harness';

const VIEWPORT = { width: 1440, height: 900 };
const MEDIA = {
  colorScheme: 'dark',
  contrast: 'no-preference',
  reducedMotion: 'no-preference',
} as const;

export class PageFixture {
  server!: Server;
  page!: Page;
  errors: string[] = [];
  foreignRequests: string[] = [];
  private browser!: Browser;
  private context: BrowserContext | null = null; // null: the next test gets a new one
  private isSpoiled = false;
  private expectedStatuses: readonly number[] = [];
  private readonly recordings = new Map<string, Promise<string>>(); // session ids

  // Registers the fixture for a test file; `args`: arguments of the server.
  static use(args: () => Promise<readonly string[]> = () => Promise.resolve([])): PageFixture {
    const fixture = new PageFixture();
    beforeAll(async () => {
      [fixture.server, fixture.browser] = await Promise.all([
        startServer(await args()),
        startBrowser(),
      ]);
    });
    afterAll(async () => {
      await fixture.browser.close();
      await fixture.server.stop();
    });
    beforeEach(() => fixture.open());
    afterEach(({ task }) => fixture.close(task.result?.state === 'fail'));
    return fixture;
  }

  // Opens a finished session, which the tests of a file share. `body`: of the request.
  async recorded(tokens = 12, body: Readonly<Record<string, unknown>> = {}): Promise<string> {
    const key = JSON.stringify([tokens, body]);
    const made = this.recordings.get(key) ?? this.generate({ max_tokens: tokens, ...body });
    this.recordings.set(key, made);
    return this.show(await made);
  }

  // Opens the session that is part of the page, whose values never change.
  async example(): Promise<string> {
    const made = this.recordings.get('example') ?? this.uploadExample();
    this.recordings.set('example', made);
    return this.show(await made);
  }

  // Opens a session in the page as it is, with further parts of a link.
  async show(session: string, ...parts: readonly string[]): Promise<string> {
    await this.page.evaluate(
      (hash) => {
        location.hash = hash;
      },
      ['#1', `session=${session}`, ...parts].join('&'),
    );
    await this.page.locator('.status-id', { hasText: session }).waitFor();
    await this.page.locator('.strip-chart[aria-label^="Memory of the model: "]').waitFor();
    return session;
  }

  // Runs a request without the page. Returns the session when it has ended.
  async generate(body: Readonly<Record<string, unknown>>): Promise<string> {
    const request = {
      prompt: 'Once upon a time',
      seed: 7,
      ignore_eos: true,
      reuse_prefix: false,
      ...body,
    };
    const { id } = await this.rest<{ id: string }>('generate', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(request),
    });
    await expect
      .poll(async () => (await this.rest<{ state: string }>(`generate/${id}`)).state, {
        interval: 20,
      })
      .toBe('done');
    return id;
  }

  private async uploadExample(): Promise<string> {
    const file = await readFile(new URL('../../../public/example.ttrace', import.meta.url));
    const headers = { 'content-type': 'application/octet-stream' };
    const init = { method: 'POST', headers, body: new Uint8Array(file) };
    return (await this.rest<{ id: string }>('sessions', init)).id;
  }

  // A REST route, without the page.
  async rest<T>(path: string, init?: RequestInit): Promise<T> {
    const answer = await fetch(`${this.server.url}/api/v1/${path}`, init);
    if (answer.status === 503) {
      // A busy server, of which every client asks again.
      await new Promise((done) =>
        setTimeout(done, 1000 * Number(answer.headers.get('retry-after') ?? 1)),
      );
      return this.rest<T>(path, init);
    }
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as T;
  }

  // Opens an address without the state of the page before.
  async fresh(url: string): Promise<void> {
    await this.page.goto('about:blank');
    await this.page.goto(url);
  }

  // Opens an address in a browser that has never seen the page.
  async newProfile(url: string): Promise<void> {
    await this.context?.close();
    await this.newPage();
    await this.page.goto(url);
  }

  // The test asks for what the server refuses: the browser reports it as an error.
  expectStatus(...statuses: readonly number[]): void {
    this.expectedStatuses = statuses;
  }

  // What the test installs in the page cannot be removed: the next test gets a new page.
  spoilPage(): void {
    this.isSpoiled = true;
  }

  // The tests of a file share a page, which is reset after each: a new browser context has no
  // cache, and loading the page takes most of the time of a short test.
  private async open(): Promise<void> {
    this.foreignRequests = [];
    this.errors = [];
    this.isSpoiled = false;
    this.expectedStatuses = [];
    if (!this.context) await this.newPage();
    await this.server.resume(); // a failed test may have left it paused
    await this.page.goto(this.server.url);
    await expect.poll(() => this.run.isEnabled()).toBe(true);
  }

  private async newPage(): Promise<void> {
    this.context = await this.browser.newContext({
      viewport: VIEWPORT,
      ...MEDIA,
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    const page = await this.context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    this.page = page;
    page.on('request', (request) => {
      const url = request.url();
      if (!url.startsWith(this.server.url) && !url.startsWith('blob:'))
        this.foreignRequests.push(url);
    });
    page.on('pageerror', (error) => this.errors.push(error.message));
    page.on('console', (message) => {
      if (message.type() !== 'error') return;
      const text = `${message.text()} ${message.location().url}`;
      // A busy server: the page asks again.
      if (text.includes(' 503 ')) return;
      if (!this.expectedStatuses.some((status) => text.includes(` ${status} `)))
        this.errors.push(text);
    });
  }

  private async close(hasFailed: boolean): Promise<void> {
    // Stop the run of a failed test, so that it does not affect the next test.
    const { session } = this;
    if (session) {
      const run = `${this.server.url}/api/v1/generate/${session}`;
      await fetch(run, { method: 'DELETE' }).catch(() => null);
    }
    const [foreignRequests, errors] = [[...this.foreignRequests], [...this.errors]];
    if (hasFailed || this.isSpoiled || !(await this.reset())) {
      await this.context?.close();
      this.context = null;
    }
    expect(foreignRequests).toEqual([]);
    expect(errors).toEqual([]);
  }

  // As in a new browser context. False: it did not work.
  private async reset(): Promise<boolean> {
    const { page } = this;
    try {
      await page.unrouteAll({ behavior: 'ignoreErrors' });
      await page.mouse.move(0, 0);
      await page.setViewportSize(VIEWPORT);
      await page.emulateMedia(MEDIA);
      // A page of this origin that is not the app, which would write its state again.
      await page.goto(`${this.server.url}/api/v1/health`);
      await page.evaluate(() => {
        localStorage.clear();
        sessionStorage.clear();
      });
      return true;
    } catch {
      return false;
    }
  }

  // ---- Elements of the page ---------------------------------------------------------

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
  // Stops the run, which may end by itself meanwhile.
  async stopRun(): Promise<void> {
    const ended = this.progress.getByText(/^(Stopped|Done)/);
    await this.stop.or(ended).first().waitFor();
    // A page that is busy does not take each click in time.
    const isEnded = async (): Promise<boolean> => {
      if (!(await ended.isVisible())) await this.stop.click({ timeout: 5000 }).catch(() => undefined); // prettier-ignore
      return ended.isVisible();
    };
    await expect.poll(isEnded).toBe(true);
  }
  get progress(): Locator {
    return this.page.getByRole('region', { name: 'Progress' });
  }
  get log(): Locator {
    return this.page.getByRole('log', { name: 'Prompt and answer' });
  }
  get answer(): Locator {
    return this.page.locator('.token-text[data-part=answer]');
  }
  get ops(): Locator {
    return this.page.getByRole('grid', { name: /Ops of step/ });
  }
  get filter(): Locator {
    return this.page.getByRole('combobox', { name: 'Filter', exact: true });
  }
  // The kinds of rows of the table.
  async rows(kind: 'Ops' | 'Steps' | 'Accesses'): Promise<void> {
    await this.page.getByRole('radio', { name: kind, exact: true }).check();
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

  // The name that identifies an op of a step in links.
  async outputOf(step: number, op: number): Promise<string> {
    const { ops } = await this.get<{ ops: Op[] }>(`steps/${step}/ops?limit=1000`);
    const name = ops.find((one) => one.op === op)?.tensor_name ?? '';
    const { steps } = await this.get<{ steps: StepSummary[] }>('steps');
    const template = steps[step]?.template ?? 0;
    const { tensors } = await this.get<{ tensors: Tensor[] }>(
      `templates/${template}/tensors?limit=10000`,
    );
    const same = tensors.filter(({ tensor_name }) => tensor_name === name);
    const { nodes } = await this.get<{ nodes: Node[] }>(`templates/${template}/nodes?limit=10000`);
    const tensor = nodes.findLast(({ executed_op }) => executed_op === op)?.tensor;
    const at = same.findIndex((one) => one.tensor === tensor);
    return at > 0 ? `${name}~${at + 1}` : name;
  }

  // A REST route of the open session.
  get<T>(path: string): Promise<T> {
    return this.page.evaluate(
      async (url) => {
        for (;;) {
          const answer = await fetch(url);
          if (answer.status !== 503) return (await answer.json()) as T;
          // A busy server, of which every client asks again.
          await new Promise((done) => setTimeout(done, 1000));
        }
      },
      `api/v1/sessions/${this.session ?? ''}${path === '' ? '' : `/${path}`}`,
    );
  }

  // Number of generated tokens on the page.
  async shownTokens(): Promise<number> {
    const shown = await this.answer.evaluateAll((all) =>
      all.map((one) => (one instanceof HTMLElement ? one.dataset.tokens : '')),
    );
    return Number(shown[0] ?? 0);
  }

  // The middle of a character of the answer, which is scrolled into view.
  pointInAnswer(offset: number): Promise<{ readonly x: number; readonly y: number }> {
    return this.answer.evaluate((answer, at) => {
      let left = at;
      for (const chunk of answer.children) {
        const text = chunk.firstChild;
        if (!(text instanceof Text)) continue;
        if (left < text.length) {
          const range = document.createRange();
          range.setStart(text, left);
          range.setEnd(text, left + 1);
          const box = answer.closest('.transcript');
          box?.scrollBy(
            0,
            range.getBoundingClientRect().top - box.getBoundingClientRect().top - 80,
          );
          const { x, y, width, height } = range.getBoundingClientRect();
          return { x: x + width / 2, y: y + height / 2 };
        }
        left -= text.length;
      }
      throw new Error(`the answer has no character ${at}`);
    }, offset);
  }

  // The text that the inspector copies.
  async copyAs(kind: 'Text' | 'JSON' | 'REST' | 'SQL' | 'CLI'): Promise<string> {
    await this.inspector.getByRole('button', { name: 'Copy as' }).click();
    await this.page.getByRole('button', { name: kind, exact: true }).click();
    await this.toasts.getByText(`${kind} copied.`).last().waitFor();
    return this.page.evaluate(() => navigator.clipboard.readText());
  }

  // The answer to an SQL statement over the open session. A busy server is asked again.
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the caller knows it
  async sql<Row extends readonly unknown[]>(
    sql: string,
  ): Promise<{ readonly columns: readonly string[]; readonly rows: readonly Row[] }> {
    for (;;) {
      const { status, text } = await this.query(sql);
      if (status === 200) return JSON.parse(text) as { columns: string[]; rows: Row[] };
      if (status !== 503) throw new Error(text);
      await this.page.waitForTimeout(200);
    }
  }

  // The server's answer to an SQL statement over the open session, whatever it is.
  query(sql: string): Promise<{ readonly status: number; readonly text: string }> {
    return this.page.evaluate(
      async ([id, statement]) => {
        const response = await fetch(`api/v1/sessions/${id ?? ''}/query`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ sql: statement }),
        });
        return { status: response.status, text: await response.text() };
      },
      [this.session ?? '', sql],
    );
  }

  // ---- User actions -----------------------------------------------------------------

  async runText(prompt: string, tokens: number, timing: 'fast' | 'exact' = 'fast'): Promise<void> {
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
    await this.page.getByRole('combobox', { name: 'Level' }).selectOption(level);
    await settings.click();
  }

  async waitDone(): Promise<void> {
    await this.progress.getByText(/^Done: /).waitFor();
  }

  async runTextToEnd(prompt: string, tokens: number): Promise<void> {
    await this.runText(prompt, tokens);
    await this.waitDone();
    await this.ops.waitFor();
  }

  // A checksum of the pixels of a canvas and of its position; 0: nothing is painted.
  pixels(selector: string): Promise<number> {
    return sumOfCanvas(this.page, selector);
  }

  // A colour of the theme, as "red,green,blue".
  async cssColour(name: string): Promise<string> {
    const hex = await this.page.evaluate(
      (property) => getComputedStyle(document.documentElement).getPropertyValue(property).trim(),
      name,
    );
    return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)).join();
  }

  // `forced`: with forced colours, whose contrast axe computes from the colours that they replace.
  async axeViolations(forced = false): Promise<readonly string[]> {
    // Not by a script tag: the content security policy forbids inline scripts.
    if (!(await this.page.evaluate(() => 'axe' in globalThis)))
      await this.page.evaluate(axe.source);
    const found = await this.page.evaluate(
      (contrast) =>
        (globalThis as unknown as { axe: typeof axe }).axe.run(document, {
          resultTypes: ['violations'], // without it axe also describes every node that passes
          rules: { 'color-contrast': { enabled: contrast } },
        }),
      !forced,
    );
    return found.violations.map(
      ({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' ')}`,
    );
  }
}

// A checksum of the pixels of a canvas and its place; 0: it is empty.
export function sumOfCanvas(page: Page, selector: string): Promise<number> {
  return page.locator(selector).evaluate((canvas) => {
    if (!(canvas instanceof HTMLCanvasElement)) return 0;
    const box = canvas.getContext('2d')?.getImageData(0, 0, canvas.width, canvas.height).data;
    const sum = box?.reduce((all, value, i) => (all * 31 + value * (i % 7)) % 1_000_003, 0) ?? 0;
    const { e: left, f: top } = new DOMMatrix(getComputedStyle(canvas).transform);
    return sum === 0 ? 0 : sum + left * 1e7 + top * 1e12;
  });
}
