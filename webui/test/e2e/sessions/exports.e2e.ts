// Exports and reports are files that the server makes: the page shows how far they are, and stops them.
import { copyFile, readFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import type { Breakdown, Report, SessionComparison } from '../../../src/net/types';
import { startBrowser } from '../support/harness';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use();

const open = async (): Promise<void> => {
  const { page } = fixture;
  await page.getByRole('contentinfo').getByRole('button', { name: 'Save session as' }).click();
};
const item = (name: string) => fixture.page.getByRole('button', { name, exact: true });
const downloads = () => fixture.page.getByRole('region', { name: 'Downloads' });

async function saved(name: string): Promise<{ readonly name: string; readonly bytes: Buffer }> {
  await open();
  const arrives = fixture.page.waitForEvent('download', { timeout: 0 }); // as long as a test may take
  await item(name).click();
  const file = await arrives;
  return { name: file.suggestedFilename(), bytes: await readFile(await file.path()) };
}

async function fromServer(path: string): Promise<Buffer> {
  const answer = await fetch(`${fixture.server.url}/api/v1/sessions/${fixture.session ?? ''}/${path}`); // prettier-ignore
  expect(answer.status).toBe(200);
  return Buffer.from(await answer.arrayBuffer());
}

// Of a connection with so many bytes per second; 0: the fastest.
async function connection(bytesPerSecond: number): Promise<void> {
  const devtools = await fixture.page.context().newCDPSession(fixture.page);
  await devtools.send('Network.emulateNetworkConditions', {
    offline: false,
    latency: 0,
    downloadThroughput: bytesPerSecond || -1,
    uploadThroughput: -1,
  });
}

// What the report writes as "1.25 MiB", with three digits.
function reportBytes(text: string): number {
  const [number = '', unit = ''] = text.split(' ');
  return Number(number) * 1024 ** ['B', 'KiB', 'MiB', 'GiB'].indexOf(unit);
}

const FORMATS = {
  CSV: ['csv', '.csv'],
  JSON: ['json', '.json'],
  'NDJSON log': ['ndjson', '.ndjson'],
  Parquet: ['parquet', '.parquet'],
  'Arrow stream': ['arrow', '.arrows'],
  'Arrow file': ['arrow-file', '.arrow'],
  'Chrome trace': ['chrome', '.trace.json.gz'],
  'Perfetto trace': ['perfetto', '.pftrace'],
  'Graphviz graph': ['dot', '.dot'],
  'run folder': ['folder', '.tar'],
  'HTML with the page': ['html', '.html'],
} as const;

describe('files of a session', () => {
  it('each export is the file of the server, with its name', async () => {
    const session = await fixture.recorded(3);
    for (const [name, [format, end]] of Object.entries(FORMATS)) {
      const file = await saved(`Export the session as ${name}`);
      expect(file.name).toBe(session + end);
      expect(file.bytes.equals(await fromServer(`export?format=${format}`)), format).toBe(true);
    }
    // The menu has no others, and none is missing of those that the server has.
    const { paths } = await fixture.page.evaluate(
      async () =>
        (await (await fetch('api/openapi.json')).json()) as {
          paths: Record<string, { parameters: { name?: string; schema?: { enum?: string[] } }[] }>;
        },
    );
    const known = paths['/api/v1/sessions/{id}/export']?.parameters.find(({ name }) => name === 'format'); // prettier-ignore
    expect(Object.values(FORMATS).map(([format]) => format).sort()).toEqual([...(known?.schema?.enum ?? [])].sort()); // prettier-ignore
  });

  it('has a row per head and per token in the formats that the server has them in', async () => {
    const { page } = fixture;
    await fixture.recorded(3);
    const check = (name: string) => page.getByRole('checkbox', { name, exact: true });
    const plain = await fromServer('export?format=csv');
    await open();
    await check('A row per head').check();
    await page.keyboard.press('Escape');
    const heads = await saved('Export the session as CSV');
    expect(heads.bytes.equals(await fromServer('export?format=csv&per_head=true'))).toBe(true);
    expect(heads.bytes.length).toBeGreaterThan(plain.length);
    await open();
    await check('A row per head').uncheck();
    await check('A row per token').check();
    // The other formats are refused by the server, and not offered.
    for (const [name, [format]] of Object.entries(FORMATS)) {
      const answer = await fetch(`${fixture.server.url}/api/v1/sessions/${fixture.session ?? ''}/export?format=${format}&per_token=true`);
      await answer.arrayBuffer(); // an answer that nobody reads would keep the others waiting
      expect([200, 400], format).toContain(answer.status);
      expect(await item(`Export the session as ${name}`).count(), format).toBe(answer.status === 200 ? 1 : 0);
    }
    const copies = page.getByRole('button', { name: 'Copy the command: tt export' });
    await copies.click();
    await fixture.toasts.getByText('.parquet --per-token').waitFor();
    const tokens = await saved('Export the session as CSV');
    expect(tokens.bytes.equals(await fromServer('export?format=csv&per_token=true'))).toBe(true);
    // A row for each token of the prompt.
    const count = (file: Buffer) => file.toString().trimEnd().split('\n').length;
    expect(count(tokens.bytes)).toBeGreaterThan(count(plain));
    await open();
    await check('A row per token').uncheck();
  }); // prettier-ignore

  it('the report is a file in three formats', async () => {
    const session = await fixture.recorded(3);
    for (const [name, format] of [['HTML', 'html'], ['Markdown', 'md'], ['JSON', 'json']] as const) {
      const file = await saved(`Report as ${name}`);
      expect(file.name).toBe(`${session}-report.${format}`);
      expect(file.bytes.equals(await fromServer(`report?format=${format}`)), format).toBe(true);
    } // prettier-ignore
  });

  it('the report sorts and filters its tables, from disk and offline, and is paged for print', async () => {
    await fixture.recorded(3);
    await open();
    const arrives = fixture.page.waitForEvent('download', { timeout: 0 });
    await item('Report as HTML').click();
    const file = `${await (await arrives).path()}.html`;
    await copyFile(file.slice(0, -5), file);
    const browser = await startBrowser();
    const report = await (await browser.newContext({ offline: true })).newPage();
    const outside: string[] = [];
    report.on('request', (request) => outside.push(request.url()));
    report.on('pageerror', (error) => outside.push(error.message));
    report.on('console', (message) => outside.push(message.text())); // a blocked script is one
    await report.goto(pathToFileURL(file).href);
    expect(outside.splice(0)).toEqual([pathToFileURL(file).href]);
    const table = report.locator('h2:text-is("By layer") ~ table').first();
    const bytes = async (): Promise<readonly number[]> => {
      const at = await table.locator('th').evaluateAll((all) => all.findIndex((one) => one.textContent === 'generation: read')); // prettier-ignore
      const texts = await table.locator(`tbody td:nth-child(${at + 1})`).allTextContents();
      return texts.map(reportBytes);
    };
    const whole = await bytes();
    expect(new Set(whole).size).toBeGreaterThan(1);
    await table.getByRole('button', { name: 'generation: read' }).click();
    expect(await bytes()).toEqual([...whole].sort((a, b) => b - a));
    await table.getByRole('button', { name: 'generation: read' }).click();
    expect(await bytes()).toEqual([...whole].sort((a, b) => a - b));
    await report.getByRole('searchbox').fill('mul_mat');
    const shown = await report.locator('tbody tr:visible').allTextContents();
    expect(shown.length).toBeGreaterThan(0);
    for (const row of shown) expect(row).toMatch(/mul_mat/i);
    await report.getByRole('searchbox').fill('');
    await report.emulateMedia({ media: 'print', colorScheme: 'dark' });
    expect(await report.getByRole('searchbox').isVisible()).toBe(false);
    const pdf = (await report.pdf({ preferCSSPageSize: true })).toString('latin1');
    expect([...pdf.matchAll(/\/Type \/Page\b/g)].length).toBeGreaterThan(1);
    expect(outside).toEqual([]);
    await browser.close();
  });

  it('the report on two sessions has what the comparison says', async () => {
    const { page } = fixture;
    const other = await fixture.generate({ prompt: 'A hill', max_tokens: 6 });
    const session = await fixture.recorded(3);
    await fixture.show(session, `with=${other}`, 'full=compare');
    const panel = page.getByRole('tabpanel', { name: 'Compare' });
    const sentence = await panel.locator('.compare-change').innerText();
    const { change } = await fixture.get<SessionComparison>(`comparison/${other}?limit=0`);
    expect(sentence).toBe(change.text);
    const arrives = page.waitForEvent('download');
    await panel.getByRole('button', { name: 'Report on both sessions' }).click();
    const file = await arrives;
    expect(file.suggestedFilename()).toBe(`${session}-compared.html`);
    const html = await readFile(await file.path(), 'utf8');
    expect(html).toContain(sentence);
    const { bytes } = await saved('Report with the comparison as JSON');
    const report = JSON.parse(bytes.toString()) as Report;
    expect(report.compared?.change).toBe(sentence);
    expect(report.compared?.with).toContain(other);
    // Each phase is apart, and per token.
    const compared = report.sections.find(({ title }) => title === 'Compared by component');
    const phases = report.sections.find(({ title }) => title === 'Prompt and generation');
    expect(phases?.rows.map(([name]) => name)).toEqual(['prompt', 'generation']);
    const { rows } = await fixture.get<Breakdown>('breakdown?by=component&limit=1000');
    const { rows: tokens } = await fixture.sql<[number]>("SELECT sum(token_count) FROM step WHERE phase = 'generate'"); // prettier-ignore
    const at = compared?.columns.findIndex(({ name }) => name === 'generation: read') ?? -1;
    expect(rows.length).toBeGreaterThan(3);
    for (const { name, generate } of rows) {
      const cell = compared?.rows.find(([one]) => one === name)?.[at] ?? '';
      const exact = generate.bytes_read / (tokens[0]?.[0] ?? 0);
      expect(Math.abs(reportBytes(cell) - exact), name).toBeLessThanOrEqual(0.0051 * exact);
    }
  });

  it('a range of steps is what is exported', async () => {
    const session = await fixture.recorded(12);
    await fixture.show(session, 'r=step:4:7');
    const file = await saved('Export steps 4 to 6 as CSV');
    const [head = '', ...lines] = file.bytes.toString().trimEnd().split('\n');
    const at = head.split(',').indexOf('step');
    expect(new Set(lines.map((line) => line.split(',')[at]))).toEqual(new Set(['4', '5', '6']));
    const { rows } = await fixture.sql<[number]>('SELECT count(*) FROM access WHERE step BETWEEN 4 AND 6'); // prettier-ignore
    expect(lines.length).toBe(rows[0]?.[0]);
  });

  it('shows the progress of a long export, which can be cancelled', async () => {
    const { page } = fixture;
    fixture.spoilPage();
    await fixture.recorded(64);
    await connection(200_000);
    await open();
    await item('Export the session as CSV').click();
    await downloads().getByRole('progressbar', { name: 'Saving CSV' }).waitFor();
    await expect.poll(() => downloads().innerText()).toMatch(/\d [KM]iB/);
    const files: string[] = [];
    page.on('download', (file) => files.push(file.suggestedFilename()));
    await downloads().getByRole('button', { name: 'Cancel CSV' }).click();
    await downloads().waitFor({ state: 'detached' });
    await connection(0);
    // Another one arrives, and nothing of the cancelled one.
    await open();
    await item('Report as Markdown').click();
    await expect.poll(() => files).toEqual([`${fixture.session ?? ''}-report.md`]);
    expect(await fixture.toasts.innerText()).not.toContain('CSV');
  });

  it('a file that the server does not end is not saved', async () => {
    const { server } = fixture;
    fixture.spoilPage();
    // Larger than the buffers of the connection: the server cannot have sent the end.
    await fixture.recorded(400);
    await connection(200_000);
    await open();
    await item('Export the session as CSV').click();
    await expect.poll(() => downloads().innerText()).toMatch(/\d [KM]iB/);
    await server.pause('SIGKILL');
    await connection(0);
    await fixture.toasts.getByText('CSV was not saved: The server ended the file before it was complete.').waitFor(); // prettier-ignore
    await server.resume();
    await expect.poll(() => fixture.run.isEnabled()).toBe(true);
    fixture.errors = fixture.errors.filter((text) => !/net::ERR_|WebSocket/.test(text));
  });
});
