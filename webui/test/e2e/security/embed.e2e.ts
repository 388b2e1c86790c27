// One panel in a frame of another page: link part embed=PANEL, server option --embed-origins. That a
// server without the option is shown in no frame is in foreign_origin.e2e.ts.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Browser, BrowserContext, FrameLocator, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { PATIENCE_MS } from '../../patience';
import { startBrowser, startServer, type Server } from '../support/harness';

// Maps host names of other sites to this machine.
const names = '--host-resolver-rules=MAP *.test 127.0.0.1';
const EXAMPLE = fileURLToPath(new URL('../../../public/example.ttrace', import.meta.url));
const KEY = '0123456789abcdef';

let browser: Browser;
let context: BrowserContext;
let page: Page; // of the other site
let open: Server;
let locked: Server; // requires a login
let port = 0; // of the other site
let session = '';
const otherSite = createServer((_, response) => {
  response.setHeader('Content-Type', 'text/html');
  response.end('<!doctype html><title>elsewhere</title><h1>A page about the run</h1>');
});

const wiki = () => `http://wiki.test:${port}`;
const neighbour = () => `http://127.0.0.1:${port}`; // the same site as the server, another origin

beforeAll(async () => {
  await new Promise<void>((resolve) => otherSite.listen(0, '127.0.0.1', resolve));
  port = (otherSite.address() as AddressInfo).port;
  const origins = ['--embed-origins', wiki(), '--embed-origins', neighbour()];
  [browser, open, locked] = await Promise.all([
    startBrowser([names, '--no-proxy-server']),
    startServer([EXAMPLE, ...origins]),
    startServer([EXAMPLE, ...origins, '--api-key', KEY]),
  ]);
  const list = (await (await fetch(`${open.url}/api/v1/sessions`)).json()) as {
    sessions: readonly { id: string }[];
  };
  session = list.sessions[0]?.id ?? '';
});
afterAll(async () => {
  await browser.close();
  await open.stop();
  await locked.stop();
  otherSite.closeAllConnections();
  otherSite.close();
});
beforeEach(async () => {
  await (context as BrowserContext | undefined)?.close();
  context = await browser.newContext({ viewport: { width: 1200, height: 800 } });
  page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
});

// Shows an address in a frame of a page. Returns when the frame has loaded something.
async function framed(around: string, source: string): Promise<FrameLocator> {
  await page.goto(around);
  await page.evaluate((src) => {
    const frame = document.createElement('iframe');
    frame.width = '900';
    frame.height = '500';
    frame.onload = () => {
      document.title = 'loaded';
    };
    frame.src = src;
    document.body.append(frame);
  }, source);
  await expect.poll(() => page.title()).toBe('loaded');
  return page.frameLocator('iframe');
}

const link = (server: Server, ...parts: readonly string[]) =>
  `${server.url}/#${['1', `session=${session}`, ...parts].join('&')}`;

describe('a panel in a frame of an origin in --embed-origins', () => {
  it('is shown without the shell, and opens in the whole page', async () => {
    const frame = await framed(wiki(), link(open, 'step=3', 'embed=map', 'p.map=y:layer,x:token'));
    await frame.getByRole('heading', { name: /Map$/ }).waitFor();
    for (const part of ['.top', '.strip', '.composer', '.status', '.dock', '.playback'])
      expect(await frame.locator(part).count(), part).toBe(0);
    // What is selected in the frame is in its link, and no entry of the history of the page around it.
    const entries = await page.evaluate(() => history.length);
    const whole = frame.getByRole('link', { name: 'Open in tensor-trace' });
    await frame.locator('.plane-input').click({ position: { x: 400, y: 150 } });
    await expect.poll(() => whole.getAttribute('href')).toContain('sel=');
    expect(await page.evaluate(() => history.length)).toBe(entries);
    const opened = context.waitForEvent('page');
    await whole.click();
    const tab = await opened;
    await tab.locator('.status-id', { hasText: session }).waitFor();
    const hash = new URLSearchParams(new URL(tab.url()).hash.slice(1));
    expect(hash.get('embed')).toBeNull();
    expect(hash.get('sel')).not.toBeNull();
    expect(hash.get('p.map')).toBe('y:layer,x:token');
    expect(await tab.getByRole('tab', { name: 'Map', exact: true }).getAttribute('aria-selected')).toBe('true'); // prettier-ignore
  });

  it('shows the answer without the form, and no panel that changes the server', async () => {
    const chat = await framed(wiki(), link(open, 'embed=chat'));
    await chat.locator('.token-text[data-part=answer]').getByText(/\w/).first().waitFor();
    expect(await chat.getByRole('textbox').count()).toBe(0);
    const list = await framed(wiki(), link(open, 'embed=sessions'));
    await list.getByText('Sessions changes the server').waitFor();
    const none = await framed(wiki(), `${open.url}/#1&embed=map`);
    await none.getByText('names no session').waitFor();
  });

  it('is not shown by other origins', async () => {
    for (const around of [`http://elsewhere.test:${port}`, `http://localhost:${port}`]) {
      await framed(around, link(open, 'embed=map'));
      expect(page.frames().some((frame) => frame.url().startsWith(open.url))).toBe(false);
    }
  });

  it('needs a login of the browser if the server has a key, which is sent within one site only', async () => {
    await page.goto(locked.link);
    await page.locator('.status-id').or(page.getByText('No session is open')).first().waitFor();
    const near = await framed(neighbour(), link(locked, 'embed=inspector'));
    await near.getByRole('heading', { name: /Inspector$/ }).waitFor();
    await near.getByText('tokens/s').first().waitFor();
    const far = await framed(wiki(), link(locked, 'embed=inspector'));
    await far.getByRole('heading', { name: 'Log in to tensor-trace' }).waitFor();
  });
});
