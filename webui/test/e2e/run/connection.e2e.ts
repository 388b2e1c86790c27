// A busy server, and a live socket that is slow, cut, or sends garbage.
import type { Locator } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { randomOf } from '../../unit/make';
import { proxyLive, typeOf, type LiveProxy, type Message } from '../support/live_proxy';
import { formatCount } from '../../../src/format';
import type { DebugState } from '../../../src/net/types';
import { fairShare, within } from '../support/fair_time';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use(() => Promise.resolve(['-c', '16384']));
const busy = () => fixture.page.getByText('The server is busy, retrying');

// The browser logs each response that is an error.
const forgive = (status: number): void => {
  fixture.errors = fixture.errors.filter((text) => !text.includes(` ${status} `));
};

describe('a busy server', () => {
  it('is asked again until it answers a statement', async () => {
    const { page } = fixture;
    await fixture.recorded();
    // All statements that may run at a time: endless ones.
    await page.evaluate((session) => {
      const control = new AbortController();
      Object.assign(globalThis, { free: control });
      const sql = 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c';
      // Again when the time limit has ended one: the test may take longer.
      const occupy = async (timeout_ms: number): Promise<void> => {
        while (!control.signal.aborted)
          await fetch(`api/v1/sessions/${session ?? ''}/query`, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: JSON.stringify({ sql, timeout_ms }),
            signal: control.signal,
          }).catch(() => null);
      };
      for (const timeout_ms of [60_000, 59_000]) void occupy(timeout_ms);
    }, fixture.session); // prettier-ignore
    // A statement of the test is rejected: both are running.
    await expect.poll(async () => (await fixture.query('SELECT 1')).status).toBe(503);
    await fixture.rows('Accesses');
    await page.getByRole('radio', { name: 'Session' }).check();
    await fixture.filter.fill('kind:weight');
    await busy().waitFor();
    await page.evaluate('free.abort()');
    const { total } = await fixture.get<{ total: number }>('steps?limit=1');
    expect(total).toBeGreaterThan(5);
    const grid = page.getByRole('grid', { name: 'Accesses of the session' });
    await expect.poll(async () => Number(await grid.getAttribute('aria-rowcount'))).toBeGreaterThan(total); // prettier-ignore
    await expect.poll(() => busy().count()).toBe(0);
    forgive(422); // of a time limit
  });

  it('is asked again for the pictures of the map and for graphs', async () => {
    const { page } = fixture;
    let isFree = false;
    const problem = { code: 'queries_busy', title: 'Too many concurrent queries', detail: '' };
    await page.route(
      /\/(heatmap\?.*y=component|templates\/\d+\/graph|layers\/1)/,
      async (route) => {
        if (isFree) await route.continue();
        else await route.fulfill({ status: 503, headers: { 'retry-after': '1' }, json: problem });
      },
    );
    const answered = async (shown: Locator): Promise<void> => {
      await busy().waitFor();
      isFree = true;
      await shown.waitFor();
      await expect.poll(() => busy().count()).toBe(0);
      isFree = false;
    };
    await fixture.recorded();
    const map = page.getByRole('tabpanel', { name: 'Map' });
    await map.getByRole('checkbox', { name: 'Totals' }).check();
    await map
      .getByRole('combobox', { name: 'Preset' })
      .selectOption({ label: 'Layer × component' });
    await answered(map.locator('.map-table').getByText('attention', { exact: true }));
    await fixture.tab('Graph').click();
    await page.getByRole('application', { name: /^Layer 0: / }).waitFor();
    await page.getByRole('radio', { name: 'Model', exact: true }).check();
    await answered(page.getByRole('application', { name: /^Model: / }));
    await page.getByRole('radio', { name: 'Layer', exact: true }).check();
    await page.getByRole('button', { name: 'Next layer' }).click();
    await answered(page.getByRole('application', { name: /^Layer 1: / }));
    expect(await page.getByText('cannot be shown').count()).toBe(0);
  });
});

// ---- The live socket --------------------------------------------------------------------

// A run that is stopped before its first op until the server has the subscription of the page.
async function runThrough(tokens: number, change: (proxy: LiveProxy) => void): Promise<LiveProxy> {
  const { page } = fixture;
  const proxy = await proxyLive(fixture);
  await page.reload();
  await page.route('**/api/v1/generate', (route) =>
    route.continue({
      postData: JSON.stringify({
        ...(route.request().postDataJSON() as object),
        stop_at_first_op: true,
      }),
    }),
  );
  await expect.poll(() => fixture.run.isEnabled()).toBe(true);
  change(proxy);
  await fixture.runText('Once upon a time', tokens);
  await expect.poll(() => fixture.session).not.toBeNull();
  await expect.poll(() => proxy.subscribedTo).toContain(fixture.session);
  // The debugger may ask for values while the run goes on.
  fixture.expectStatus(409);
  const debug = `generate/${fixture.session ?? ''}/debug`;
  await expect.poll(async () => (await fixture.rest<DebugState>(debug)).stop).not.toBeNull();
  await fixture.rest(debug, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ until: 'breakpoint' }),
  });
  return proxy;
}

// The page shows the run as REST has it.
async function expectComplete(): Promise<void> {
  await fixture.progress.getByText(/^(Done|Stopped)/).waitFor();
  const rest = await fixture.rest<{ text: string; generated: number }>(
    `generate/${fixture.session ?? ''}`,
  );
  const chunks = fixture.page.locator('.token-text[data-part=answer] > *');
  await expect.poll(async () => (await chunks.allTextContents()).join('')).toBe(rest.text);
  await expect.poll(() => fixture.shownTokens()).toBe(rest.generated);
  const { total } = await fixture.get<{ total: number }>('steps?limit=1');
  const status = fixture.page.locator('.status');
  await expect.poll(() => status.innerText()).toContain(`${formatCount(total)} steps`);
  await fixture.ops.waitFor();
}

// Later than the message after it, twice, late, or never.
function disorder(seed: number): LiveProxy['onMessage'] {
  const random = randomOf(seed);
  let held: Message | null = null;
  return (message, pass) => {
    const keeps = ['hello', 'subscribed', 'state'].includes(typeOf(message));
    const fate = keeps ? 1 : random();
    if (fate < 0.1) return;
    if (fate < 0.2 && held === null) {
      held = message;
      return;
    }
    pass(message);
    if (fate < 0.3) pass(message);
    if (held !== null) pass(held);
    held = null;
  };
}

const broken = (message: Message, random: () => number): Message => {
  if (typeof message !== 'string') {
    const bytes = Buffer.from(message);
    if (random() < 0.3) return bytes.subarray(0, Math.floor(random() * bytes.length));
    for (let i = 0; i < 4; i += 1) bytes[Math.floor(random() * 32)] = Math.floor(256 * random());
    return bytes;
  }
  const fate = random();
  if (fate < 0.3) return message.slice(0, Math.floor(random() * message.length));
  if (fate < 0.5) return message.replace(/"(index|step|token_id|token_count)":\d+/, '"$1":1e12');
  if (fate < 0.7) return message.replace(/:\d+/, ':null');
  if (fate < 0.8) return message.replace(/"type":"\w+"/, '"type":"nonsense"');
  return ['[]', 'null', '', '{"type":7}', '\u0000'][Math.floor(5 * random())] ?? '';
};

describe('the live socket', () => {
  it.each([1, 2])('may drop, repeat and reorder messages (seed %i)', async (seed) => {
    const proxy = await runThrough(400, (of) => {
      of.onMessage = disorder(seed);
    });
    await expectComplete();
    expect(proxy.messages).toBeGreaterThan(100);
  });

  it.each([3, 4])('may send garbage (seed %i)', async (seed) => {
    const random = randomOf(seed);
    await runThrough(400, (proxy) => {
      proxy.onMessage = (message, pass) => {
        pass(random() < 0.2 && typeOf(message) !== 'hello' ? broken(message, random) : message);
      };
    });
    // At any time of the run: the errors of a connection are gone after it is made again.
    const told = fixture.page
      .getByRole('region', { name: 'Messages' })
      .getByText(/live/)
      .first()
      .waitFor();
    await Promise.all([told, expectComplete()]);
    // A broken message may say that the run has stopped: the page asks for the values of that op.
    forgive(404);
  });

  it('may lose the answer to the subscription', async () => {
    await runThrough(40, (proxy) => {
      proxy.onMessage = (message, pass) => {
        if (typeOf(message) !== 'subscribed') pass(message);
      };
    });
    await expectComplete();
  });

  it('may be slow', async () => {
    await runThrough(400, (proxy) => {
      let last = Promise.resolve();
      proxy.onMessage = (message, pass) => {
        last = last
          .then(() => new Promise((done) => setTimeout(done, 5)))
          .then(() => {
            pass(message);
          });
      };
    });
    await expectComplete();
  });

  it('is connected again within two seconds, and the run continues', async () => {
    const proxy = await runThrough(12_000, () => undefined);
    const { connectedMs } = proxy;
    for (let cuts = 1; cuts <= 2; cuts += 1) {
      const shown = await fixture.shownTokens();
      await expect.poll(() => fixture.shownTokens(), { interval: 20 }).toBeGreaterThan(shown);
      const share = fairShare();
      const cutMs = performance.now();
      proxy.cut();
      await expect.poll(() => connectedMs.length, { interval: 20 }).toBe(cuts + 1);
      expect(((connectedMs.at(-1) ?? 0) - cutMs) * share()).toBeLessThan(2000);
      await fixture.page.locator('[data-reach=live]').waitFor();
    }
    await fixture.stop.click();
    await expectComplete();
  });

  it('is connected again within two seconds of the return of the server', async () => {
    const { page, server } = fixture;
    await fixture.recorded();
    await server.pause();
    await page.getByRole('alert').getByText('The server does not respond').waitFor();
    // Several attempts fail, so that the page waits as long as it ever does.
    await expect
      .poll(() => fixture.errors.filter((text) => text.includes('ERR_CONNECTION')).length)
      .toBeGreaterThan(6); // two per attempt, or one: Chromium does not log each failed socket
    await server.resume();
    await within(2000, () => page.locator('[data-reach=live]').isVisible());
    fixture.errors = fixture.errors.filter((text) => !text.includes('ERR_CONNECTION'));
    expect(fixture.errors).toEqual([]);
  });
});
