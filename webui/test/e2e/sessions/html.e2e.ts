// One file that holds the page and a session: opened from disk, offline, in a browser that has never
// seen the page. It shows what the page of the server shows, and REST answers.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { formatValue } from '../../../src/charts/table';
import type {
  Breakdown,
  CapturedOutputs,
  CapturedOutputValues,
  Findings,
  MeanAttention,
  Op,
} from '../../../src/net/types';
import { startBrowser } from '../support/harness';
import { settled } from '../support/map_panel';
import { PageFixture, sumOfCanvas } from '../support/page_fixture';

const fixture = PageFixture.use();
const folder = mkdtempSync(join(tmpdir(), 'tt-html-'));
const file = join(folder, 'session.html');

// What the browser does with the file.
interface Opened {
  readonly page: Page;
  readonly requests: string[]; // all but the file itself
  readonly errors: string[];
}
let browser: Awaited<ReturnType<typeof startBrowser>>;
let session = '';

beforeAll(async () => {
  browser = await startBrowser();
});
afterAll(async () => {
  await browser.close();
  rmSync(folder, { recursive: true });
});

// The program beside the server writes the file, once.
async function exported(): Promise<void> {
  session = await fixture.recorded(12);
  if (!existsSync(file)) write(session, file);
}

function write(id: string, to: string): void {
  const program = join(dirname(process.env.TT_SERVER ?? ''), 'tt');
  execFileSync(program, ['export', '-q', join(fixture.server.data, `${id}.ttrace`), '-o', to]);
}

async function open(parts: readonly string[] = [], of = file): Promise<Opened> {
  const context = await browser.newContext({
    viewport: { width: 1440, height: 900 },
    colorScheme: 'dark',
    offline: true,
  });
  const page = await context.newPage();
  const opened: Opened = { page, requests: [], errors: [] };
  page.on('request', (request) => {
    if (!request.url().startsWith('file:') && !request.url().startsWith('blob:'))
      opened.requests.push(request.url());
  });
  page.on('pageerror', (error) => opened.errors.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error') opened.errors.push(message.text());
  });
  await page.goto(`${pathToFileURL(of).href}#${['1', ...parts].join('&')}`);
  await page.locator('.status-id').waitFor();
  await page.locator('.strip-chart[aria-label^="Memory of the model: "]').waitFor();
  return opened;
}

async function closed({ page, requests, errors }: Opened): Promise<void> {
  await page.context().close();
  expect(requests).toEqual([]);
  expect(errors).toEqual([]);
}

describe('a file with the page and a session', () => {
  it('shows headline, answer, tables and graph of the session without any request', async () => {
    await exported();
    expect(statSync(file).size).toBeLessThan(50e6);
    const opened = await open();
    const { page } = opened;
    // The headline and the sentences are those of REST.
    const { headline, findings } = await fixture.get<Findings>('findings');
    const inspector = page.getByRole('tabpanel', { name: 'Inspector' });
    await expect
      .poll(() => inspector.getByLabel('Headline').locator('dd').allInnerTexts())
      .toEqual(headline.map(({ value }) => value));
    const told = findings.filter(({ role }) => role === 'main').map(({ text }) => text);
    const sentences = inspector.getByLabel('Summary').locator('.sentence');
    expect(await sentences.allInnerTexts()).toEqual(told);
    // The answer is that of the page of the server.
    await expect
      .poll(() => page.locator('.token-text[data-part=answer]').innerText())
      .toBe(await fixture.answer.innerText());
    // The ops of the last step, with their names.
    const ops = page.getByRole('grid', { name: /Ops of step/ });
    const step = Number((await ops.getAttribute('aria-label'))?.match(/\d+/)?.[0]);
    const { ops: expected, total } = await fixture.get<{ ops: Op[]; total: number }>(
      `steps/${step}/ops?limit=10000`,
    );
    expect(await ops.getAttribute('aria-rowcount')).toBe(String(total + 1));
    await ops
      .getByText(expected[0]?.tensor_name ?? '')
      .first()
      .waitFor();
    // Totals: another route, and an order that the file does not hold.
    await page.evaluate(() => {
      location.hash += '&p.table=all,by:tensor&o.table=-bytes';
    });
    const totals = page.getByRole('grid', { name: /^Totals by/ });
    const { rows } = await fixture.get<Breakdown>('breakdown?by=tensor&sort=-bytes&limit=1');
    await totals
      .getByText(rows[0]?.name ?? '')
      .first()
      .waitFor();
    // The graph of a layer has its nodes.
    await page.getByRole('tab', { name: 'Graph', exact: true }).click();
    const { nodes } = await fixture.get<{ nodes: unknown[] }>(`steps/${step}/layers/0`);
    await page.getByLabel(new RegExp(`^Layer 0: ${nodes.length} node`)).waitFor();
    // Nothing that needs a server is there.
    for (const name of ['Sessions', 'SQL', 'Compare', 'Weights', 'Debugger', 'Memory budget'])
      expect(await page.getByRole('tab', { name, exact: true }).count()).toBe(0);
    expect(await page.locator('.composer').count()).toBe(0);
    await closed(opened);
  });

  it('draws the same map as the page of the server, also of a link with a selection', async () => {
    await exported();
    const links = ['p.map=y:tensor,v:bytes', 'p.map=y:layer,x:token,v:time&step=3&sel=l:1'];
    for (const link of links) {
      await fixture.show(session, link);
      const live = await settled(() => fixture.pixels('.plane-base'));
      const opened = await open([`session=${session}`, link]);
      expect(await settled(() => sumOfCanvas(opened.page, '.plane-base'))).toBe(live);
      const title = '.inspection header h2';
      expect(await opened.page.locator(title).innerText()).toBe(
        await fixture.page.locator(title).innerText(),
      );
      await closed(opened);
    }
  });

  it('has in the table of the map the figures of the server, of a part only the sums', async () => {
    await exported();
    const cells = (page: Page) =>
      page
        .locator('.map-table .vgrid-row:not([hidden])')
        .evaluateAll((all) =>
          all
            .map((row) => [...row.children].map((cell) => cell.textContent).slice(0, 5))
            .sort((a, b) => String(a[0]).localeCompare(String(b[0]))),
        );
    for (const part of ['', ',cx:3:9']) {
      const link = `p.map=table${part}`;
      await fixture.show(session, link);
      const median = fixture.page
        .locator('.map-table')
        .getByRole('columnheader', { name: /^median/ });
      await median.waitFor();
      const opened = await open([`session=${session}`, link]);
      const has = part === '' ? 5 : 2;
      const shown = async (page: Page) =>
        JSON.stringify((await cells(page)).map((row) => row.slice(0, has)));
      await expect
        .poll(async () => (await shown(opened.page)) === (await shown(fixture.page)))
        .toBe(true);
      expect((await cells(opened.page)).length).toBeGreaterThan(3);
      const held = opened.page.locator('.map-table').getByRole('columnheader', { name: /^median/ });
      expect(await held.count()).toBe(part === '' ? 1 : 0);
      await closed(opened);
    }
  });

  it('plays the run', async () => {
    await exported();
    const opened = await open(['step=2']);
    const bar = opened.page.getByRole('region', { name: 'Playback' });
    const position = (): Promise<string> => bar.locator('.playback-position').innerText();
    const before = await position();
    await opened.page.keyboard.press(' ');
    await expect.poll(position).not.toBe(before);
    await closed(opened);
  });

  it('has the captured values of a session: list, histograms, and lines of attention', async () => {
    const captured = await fixture.recorded(4, { prompt: 'a b c', capture: ['^l_out', 'attention', 'lens'] }); // prettier-ignore
    const own = join(folder, 'captured.html');
    write(captured, own);
    const { rows, total } = await fixture.get<CapturedOutputs>('values?limit=10000');
    const opened = await open(['full=values'], own);
    const { page } = opened;
    const panel = page.getByRole('tabpanel', { name: 'Values' });
    await panel.getByText('The values themselves are not in this file').waitFor();
    const grid = panel.getByRole('grid', { name: 'Captured values' });
    expect(await grid.getAttribute('aria-rowcount')).toBe(String(total + 1));
    expect(await panel.getByRole('radio', { name: 'Picture' }).count()).toBe(0);
    // The histogram of the last output.
    const at = rows.findLastIndex(({ part }) => part === 'output');
    const { step = 0, op = 0, output = '' } = rows[at] ?? {};
    const query = `steps/${step}/ops/${op}/values?output=${encodeURIComponent(output)}&limit=0`;
    const { nan, histogram } = await fixture.get<CapturedOutputValues>(query);
    await page.evaluate((hash) => {
      location.hash = hash;
    }, `#1&full=values&p.values=of:${step}:${op},n:${encodeURIComponent(output)},show:histogram`); // prettier-ignore
    await panel.getByText(`${output} `).first().waitFor();
    await panel.getByText(`${nan} NaN`).waitFor();
    await panel.getByLabel(new RegExp(`: histogram of ${histogram.length} bins`)).waitFor();
    // What a token looks at, as the mean of all heads.
    const token = 4;
    const means = await fixture.get<{ rows: MeanAttention[] }>(`attention/tokens?from_token=${token}&to_token=${token + 1}`); // prettier-ignore
    const most = [...(means.rows[0]?.weights ?? [])].sort((a, b) => b - a);
    await page.evaluate((hash) => {
      location.hash = hash;
    }, `#1&sel=k:${token}&p.chat=attention`); // prettier-ignore
    const lines = page.locator('.attention-lines g');
    await expect.poll(() => lines.evaluateAll((all) => all.map((one) => Number((one as SVGElement).dataset.weight)))).toEqual(most.slice(0, 8)); // prettier-ignore
    const said = page.getByRole('group', { name: 'Attention of a token' });
    expect(await said.innerText()).toContain(formatValue('share', most[0] ?? NaN));
    // Of one layer alone it is not held, and the page says so.
    await page.locator('.looked-at').getByLabel('Layer').selectOption('1');
    await said.getByText('open the session with tt-server').waitFor();
    await expect.poll(() => lines.count()).toBe(0);
    await closed(opened);
  });

  it('says in its place what it does not hold', async () => {
    await exported();
    const opened = await open(['q=tensor:ffn', 'p.table=all,by:layer']);
    await opened.page.getByRole('tabpanel', { name: 'Table' }).getByText('open the session with tt-server').waitFor(); // prettier-ignore
    await closed(opened);
  });
});
