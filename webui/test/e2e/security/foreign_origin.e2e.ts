// Pages of other origins cannot use a server on this machine. A server on a non-loopback address
// requires a login: only a browser that opened the login link can use it.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { PATIENCE_MS } from '../../patience';
import { parse } from 'yaml';
import { startBrowser, startServer, type Server } from '../support/harness';

// Maps host names of other sites to this machine.
const names = '--host-resolver-rules=MAP *.test 127.0.0.1';

let server: Server;
let browser: Browser;
let context: BrowserContext;
let page: Page; // of all visits
let foreignPort: number;
const foreignSite = createServer((_, response) => {
  response.setHeader('Content-Type', 'text/html');
  response.end('<!doctype html><title>elsewhere</title><body></body>');
});

beforeAll(async () => {
  await new Promise<void>((resolve) => foreignSite.listen(0, '127.0.0.1', resolve));
  foreignPort = (foreignSite.address() as AddressInfo).port;
  browser = await startBrowser([names, '--no-proxy-server']);
  context = await browser.newContext();
  page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  server = await startServer();
  const loaded = async () =>
    ((await jsonOf(`${server.url}/api/v1/health`)) as { status: string }).status === 'ok';
  await vi.waitUntil(loaded, { timeout: PATIENCE_MS, interval: 100 });
});
afterAll(async () => {
  await browser.close();
  await server.stop();
  foreignSite.closeAllConnections();
  foreignSite.close();
});

const jsonOf = async (url: string): Promise<unknown> => (await fetch(url)).json();

// Number of sessions: each accepted request creates one. Sent by Node, without an Origin header.
async function sessionsOf(url: string): Promise<number> {
  return ((await jsonOf(`${url}/api/v1/sessions`)) as { total: number }).total;
}

// Visits an address without the cookies of an earlier visit.
async function inPage<T>(address: string, use: (page: Page) => Promise<T>): Promise<T> {
  await context.clearCookies();
  await page.goto('about:blank');
  if (address !== 'about:blank') await page.goto(address);
  return use(page);
}

// Run in the page. Each returns the text that the script can read, or 'nothing'.
const attacks = {
  read: (url: string) =>
    fetch(`${url}/api/v1/sessions`).then(
      (response) => response.text(),
      () => 'nothing',
    ),
  readOpaque: (url: string) =>
    fetch(`${url}/api/v1/sessions`, { mode: 'no-cors' }).then(
      (response) => response.text().then((text) => text || 'nothing'),
      () => 'nothing',
    ),
  post: (url: string) =>
    fetch(`${url}/api/v1/generate`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"prompt":"x","max_tokens":1}',
    }).then(
      (response) => response.text(),
      () => 'nothing',
    ),
  postOpaque: (url: string) =>
    fetch(`${url}/api/v1/generate`, {
      method: 'POST',
      mode: 'no-cors',
      headers: { 'Content-Type': 'text/plain' },
      body: '{"prompt":"x","max_tokens":1}',
    }).then(
      (response) => response.text().then((text) => text || 'nothing'),
      () => 'nothing',
    ),
  beacon: async (url: string) => {
    navigator.sendBeacon(`${url}/api/v1/generate`, '{"prompt":"x","max_tokens":1}');
    await new Promise((resolve) => setTimeout(resolve, 300));
    return 'nothing';
  },
  script: (url: string) =>
    new Promise<string>((resolve) => {
      const script = document.createElement('script');
      script.onload = () => {
        resolve('it ran');
      };
      script.onerror = () => {
        resolve('nothing');
      };
      script.src = `${url}/api/v1/sessions`;
      document.body.append(script);
    }),
  socket: (url: string) =>
    new Promise<string>((resolve) => {
      const socket = new WebSocket(`${url.replace('http', 'ws')}/api/v1/live`);
      socket.onmessage = (event) => {
        resolve(String(event.data));
      };
      socket.onerror = () => {
        resolve('nothing');
      };
    }),
};

// Submits a form without user interaction.
async function submitForm(page: Page, action: string, type: string): Promise<number> {
  const answered = page.waitForResponse((response) => response.url().startsWith(action));
  await page.evaluate(
    ([to, enctype]) => {
      const form = document.createElement('form');
      form.method = 'post';
      form.action = to ?? '';
      form.enctype = enctype ?? '';
      const field = document.createElement('input');
      field.name = '{"prompt":"x","max_tokens":1,"a":"';
      field.value = '"}';
      form.append(field);
      document.body.append(form);
      form.submit();
    },
    [action, type],
  );
  const status = (await answered).status();
  await page.waitForURL(`${action}**`); // the next visit would be interrupted by this one
  return status;
}

const ownPages = () => [`${server.url}/`];
const foreignPages = () => [
  `http://127.0.0.1:${foreignPort}/`, // another port is another origin
  `http://localhost:${foreignPort}/`,
  `http://elsewhere.test:${foreignPort}/`,
];

describe('a page of another origin', () => {
  it.each(Object.keys(attacks) as (keyof typeof attacks)[])(
    'cannot read anything by: %s',
    async (name) => {
      const before = await sessionsOf(server.url);
      for (const address of foreignPages()) {
        const got = await inPage(address, (page) => page.evaluate(attacks[name], server.url));
        expect(got, address).toBe('nothing');
      }
      expect(await sessionsOf(server.url)).toBe(before);
    },
  );

  it('cannot read anything from a sandboxed frame (origin null)', async () => {
    const got = await inPage(`http://elsewhere.test:${foreignPort}/`, async (page) => {
      await page.evaluate((url) => {
        const frame = document.createElement('iframe');
        frame.sandbox.add('allow-scripts');
        frame.srcdoc = `<script>
          fetch('${url}/api/v1/sessions').then(
            () => parent.postMessage('read', '*'), () => parent.postMessage('nothing', '*'));
        </script>`;
        addEventListener('message', (event: MessageEvent<string>) => {
          document.title = event.data;
        });
        document.body.append(frame);
      }, server.url);
      await expect.poll(() => page.title()).not.toBe('elsewhere');
      return page.title();
    });
    expect(got).toBe('nothing');
  });

  it('cannot post a form', async () => {
    const before = await sessionsOf(server.url);
    for (const address of foreignPages()) {
      for (const type of [
        'text/plain',
        'application/x-www-form-urlencoded',
        'multipart/form-data',
      ]) {
        const status = await inPage(address, (page) =>
          submitForm(page, `${server.url}/api/v1/generate`, type),
        );
        expect(status, `${address} ${type}`).toBe(403);
      }
    }
    expect(await sessionsOf(server.url)).toBe(before);
  });

  it('cannot show it in a frame', async () => {
    for (const address of foreignPages()) {
      const shown = await inPage(address, async (page) => {
        await page.evaluate((url) => {
          const frame = document.createElement('iframe');
          frame.onload = () => {
            document.title = 'loaded';
          };
          frame.src = url;
          document.body.append(frame);
        }, server.url);
        await expect.poll(() => page.title()).toBe('loaded');
        return page.frames().some((frame) => frame.url().startsWith(server.url));
      });
      expect(shown, address).toBe(false);
    }
  });

  it('can link to the server', async () => {
    await inPage(`http://elsewhere.test:${foreignPort}/`, async (page) => {
      await page.evaluate((url) => {
        const link = document.createElement('a');
        link.href = url;
        link.textContent = 'there';
        document.body.append(link);
      }, server.url);
      await page.getByText('there').click();
      await page.getByRole('button', { name: 'Run', exact: true }).waitFor();
    });
  });
});

// Without this test, the tests above would pass with a server that rejects all requests.
describe('a page of the server', () => {
  it('can read, post and open the socket', async () => {
    for (const address of ownPages()) {
      await inPage(address, async (page) => {
        for (const name of ['read', 'readOpaque'] as const) {
          expect(await page.evaluate(attacks[name], server.url)).toContain('"sessions"');
        }
        expect(await page.evaluate(attacks.socket, server.url)).toContain('"hello"');
        const before = await sessionsOf(server.url);
        expect(await page.evaluate(attacks.post, server.url)).toContain('"id"');
        await expect.poll(() => sessionsOf(server.url)).toBe(before + 1);
        // Except forms: with no-referrer the browser sends Origin: null.
        expect(await submitForm(page, `${server.url}/api/v1/generate`, 'text/plain')).toBe(403);
      });
    }
  });

  it('has no inline script or style', async () => {
    const html = await (await fetch(server.url)).text();
    expect(html).toContain('<script');
    expect(html).not.toMatch(/<script(?![^>]*\ssrc=)/);
    expect(html).not.toMatch(/<style|\sstyle=|\son[a-z]+=|javascript:/i);
  });
});

describe('DNS rebinding', () => {
  it('is rejected for every path', async () => {
    const port = new URL(server.url).port;
    for (const path of ['/', '/api/v1/sessions', '/api/v1/health']) {
      await inPage('about:blank', async (page) => {
        const response = await page.goto(`http://rebound.test:${port}${path}`);
        expect(response?.status(), path).toBe(403);
        expect(await response?.text()).toContain('"code":"refused"');
      });
    }
    // A page that was loaded from another server under the same name.
    const got = await inPage(`http://rebound.test:${foreignPort}/`, (page) =>
      page.evaluate(attacks.socket, `http://rebound.test:${port}`),
    );
    expect(got).toBe('nothing');
  });
});

describe('a page of an origin in --cors-origins', () => {
  it('can read, post and open the socket; other origins cannot', async () => {
    const friend = `http://friend.test:${foreignPort}`;
    const open = await startServer(['--cors-origins', friend]);
    try {
      const seen = await inPage(`${friend}/`, async (page) => [
        await page.evaluate(attacks.read, open.url),
        await page.evaluate(attacks.socket, open.url),
        await page.evaluate(attacks.post, open.url),
      ]);
      expect(seen[0]).toContain('"sessions"');
      expect(seen[1]).toContain('"hello"');
      expect(seen[2]).toMatch(/"id"|"model_loading"/);
      for (const address of foreignPages()) {
        const got = await inPage(address, (page) => page.evaluate(attacks.read, open.url));
        expect(got, address).toBe('nothing');
      }
    } finally {
      await open.stop();
    }
  });
});

describe('a server on a non-loopback address', () => {
  let lan: Server;
  beforeAll(async () => {
    lan = await startServer(['--host', '0.0.0.0']);
  });
  afterAll(() => lan.stop());

  // All IPv4 addresses of this machine.
  function addresses(): string[] {
    const own = Object.values(networkInterfaces())
      .flatMap((list) => list ?? [])
      .filter(({ family, internal }) => family === 'IPv4' && !internal)
      .map(({ address }) => `http://${address}:${new URL(lan.url).port}`);
    return [lan.url, ...own];
  }

  it('responds 401 to everything except health', async () => {
    const contract = parse(
      await readFile(new URL('../../../../api/openapi.yaml', import.meta.url), 'utf8'),
    ) as { paths: Record<string, Record<string, unknown>> };
    const routes = Object.entries(contract.paths).flatMap(([path, operations]) =>
      ['get', 'post', 'put', 'patch', 'delete']
        .filter((method) => method in operations)
        .map((method) => ({ method: method.toUpperCase(), path: path.replace(/\{\w+\}/g, '1') })),
    );
    expect(routes.length).toBeGreaterThan(20);
    routes.push({ method: 'GET', path: '/' }, { method: 'GET', path: '/api/v1/live' });
    for (const url of addresses()) {
      for (const { method, path } of routes) {
        const response = await fetch(url + path, { method });
        if (path === '/api/v1/health') {
          expect(response.status, url + path).toBe(200);
          expect(Object.keys((await response.json()) as object)).toEqual(['status']);
          continue;
        }
        expect(response.status, `${method} ${url}${path}`).toBe(401);
        expect(response.headers.get('www-authenticate')).toContain('Bearer');
        expect(((await response.json()) as { code: string }).code).toBe('unauthorized');
      }
      const socket = await inPage('about:blank', (page) => page.evaluate(attacks.socket, url));
      expect(socket).toBe('nothing');
    }
  });

  it('shows a browser how to log in', async () => {
    await inPage(lan.url, async (page) => {
      await page.getByRole('heading', { name: 'Log in to tensor-trace' }).waitFor();
      expect(await page.locator('body').innerText()).toContain('SIGUSR1');
    });
  });

  it('accepts the login link once', async () => {
    const path = lan.link.slice(lan.url.length);
    expect(path).toMatch(/^\/login\?code=[0-9a-f]{32}$/);
    // Another address of this machine if there is one; works without https.
    const url = addresses().at(-1) ?? lan.url;
    const context = await browser.newContext();
    try {
      const page = await context.newPage();
      const failed: string[] = [];
      page.on('response', (response) => {
        if (response.status() >= 400) failed.push(`${response.status()} ${response.url()}`);
      });
      await page.goto(url + path);
      await page.getByRole('button', { name: 'Run', exact: true }).waitFor();
      expect(new URL(page.url()).pathname).toBe('/');
      expect(await page.evaluate(() => document.cookie)).toBe('');
      const [cookie] = await context.cookies();
      expect(cookie).toMatchObject({ name: 'tt_session', httpOnly: true, sameSite: 'Strict' });
      expect(await page.evaluate(attacks.read, url)).toContain('"sessions"');
      expect(await page.evaluate(attacks.socket, url)).toContain('"hello"');
      expect(failed).toEqual([]);
      await page.reload();
      await page.getByRole('button', { name: 'Run', exact: true }).waitFor();
      // A navigation from another site does not send the SameSite=Strict cookie. The login page then
      // offers to try again.
      await page.goto(`http://elsewhere.test:${foreignPort}/`);
      await page.evaluate((to) => {
        location.href = to;
      }, `${url}/`);
      await (url === lan.url
        ? page.getByRole('button', { name: 'Run', exact: true }).waitFor()
        : page.getByText('Try this address again').click());
      await page.getByRole('button', { name: 'Run', exact: true }).waitFor();
    } finally {
      await context.close();
    }
    const second = await inPage('about:blank', async (page) => {
      const response = await page.goto(url + path);
      await page.getByText('has already been used').waitFor();
      return response?.status();
    });
    expect(second).toBe(401);
  });
});

describe('a login link on a page of another site', () => {
  it('works like a typed link', async () => {
    const lan = await startServer(['--host', '0.0.0.0']);
    try {
      await inPage(`http://elsewhere.test:${foreignPort}/`, async (page) => {
        await page.evaluate((link) => {
          const anchor = document.createElement('a');
          anchor.href = link;
          anchor.textContent = 'log in';
          document.body.append(anchor);
        }, lan.link);
        await page.getByText('log in').click();
        await page.getByRole('button', { name: 'Run', exact: true }).waitFor();
      });
    } finally {
      await lan.stop();
    }
  });
});
