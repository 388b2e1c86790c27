// The API documentation page: it shows all operations, can execute requests, and makes no requests
// to other servers.
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { PATIENCE_MS } from '../../patience';
import { startBrowser, startServer, type Server } from '../support/harness';

let server: Server;
let browser: Browser;
let page: Page;
const foreignRequests: string[] = []; // requests that left the origin
let errors: string[] = []; // errors of the page, including CSP violations

// The tests share a page: it takes seconds to show all operations.
beforeAll(async () => {
  server = await startServer();
  browser = await startBrowser();
  page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  page.setDefaultTimeout(PATIENCE_MS);
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(server.url) && !url.startsWith('data:image/')) foreignRequests.push(url);
  });
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text());
  });
  await page.goto(`${server.url}/api/docs`);
  await page.locator('.opblock').first().waitFor();
});
afterAll(async () => {
  await browser.close();
  await server.stop();
});
afterEach(() => {
  expect(foreignRequests.splice(0)).toEqual([]);
  expect(errors.splice(0)).toEqual([]);
});

interface Contract {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

describe('the API documentation', () => {
  it('lists every operation', async () => {
    const contract = (await (await fetch(`${server.url}/api/openapi.json`)).json()) as Contract;
    const operations = Object.entries(contract.paths).flatMap(([path, item]) =>
      Object.keys(item)
        .filter((key) => key !== 'parameters')
        .map((method) => `${method.toUpperCase()} ${path}`),
    );
    const shown = await page.locator('.opblock-summary').evaluateAll((rows) =>
      rows.map((row) => {
        const method = row.querySelector('.opblock-summary-method')?.textContent ?? '';
        const path = row.querySelector('[data-path]')?.getAttribute('data-path') ?? '';
        return `${method} ${path}`;
      }),
    );
    expect(shown.sort()).toEqual(operations.sort());
  });

  it('executes a request', async () => {
    const health = page.locator('#operations-server-health');
    await health.locator('.opblock-summary-control').click();
    await health.getByRole('button', { name: 'Execute' }).click();
    const answer = health.locator('.live-responses-table');
    await answer.locator('.response-col_status', { hasText: '200' }).waitFor();
    await answer.getByText('"status"').first().waitFor();
  });

  it.each(['dark', 'light'] as const)('is readable in the %s theme', async (theme) => {
    await page.emulateMedia({ colorScheme: theme });
    await expect.poll(() => page.locator('html').getAttribute('data-theme')).toBe(theme);
    const operation = page.locator('#operations-generate-generate');
    const body = operation.locator('.opblock-body');
    if ((await body.count()) === 0) await operation.locator('.opblock-summary-control').click();
    await body.waitFor();
    const [text, back] = await page.evaluate(() =>
      [
        getComputedStyle(document.querySelector('.opblock-summary-path') ?? document.body).color,
        getComputedStyle(document.documentElement).backgroundColor,
      ].map((colour) => Math.max(...(colour.match(/\d+/g) ?? []).slice(0, 3).map(Number))),
    );
    expect({ text, back }).toSatisfy((light: { text: number; back: number }) =>
      theme === 'dark' ? light.text > 180 && light.back < 60 : light.text < 90,
    );
    expect(await page.locator('.errors-wrapper').count(), 'errors in the document').toBe(0);
    if (process.env.TT_SHOTS) {
      await page.screenshot({ path: `${process.env.TT_SHOTS}/docs-${theme}.png` });
    }
  });

  // The last test: it leaves the page.
  it('does not load another document', async () => {
    const address = `${server.url}/api/docs?url=https://example.org/evil.json`;
    const answer = await page.goto(address);
    // The server rejects the parameter; the page would ignore it.
    expect(answer?.status()).toBe(400);
    errors = errors.filter((text) => !/ 4\d\d /.test(text));
  });
});
