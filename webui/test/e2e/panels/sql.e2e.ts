// The SQL editor: completion, parameters, errors at their place, rows that select, charts, files.
import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use();

const panel = () => fixture.page.getByRole('tabpanel', { name: 'SQL' });
const editor = () => panel().getByRole('textbox', { name: 'SQL statement' });
const rows = () => panel().getByRole('grid', { name: 'Rows of the statement' });
const status = () => panel().locator('.sql-status');

async function open(sql: string, ...parts: readonly string[]): Promise<void> {
  const statement = sql === '' ? [] : [`f.sql=${encodeURIComponent(sql)}`];
  await fixture.show(fixture.session ?? '', 'full=sql', ...statement, ...parts);
  await editor().waitFor();
}

async function type(sql: string): Promise<void> {
  await editor().click();
  await fixture.page.keyboard.press('Control+a');
  await fixture.page.keyboard.press('Delete');
  await fixture.page.keyboard.insertText(sql);
}

const cells = async (row: number): Promise<readonly string[]> =>
  rows().getByRole('row').nth(row).getByRole('gridcell').allInnerTexts();

describe('the SQL editor', () => {
  it('runs a statement of a link, and what is typed, and stays in the link', async () => {
    await fixture.recorded(12);
    await open('SELECT count(*) AS steps FROM step');
    const expected = await fixture.sql<[number]>('SELECT count(*) FROM step');
    await expect.poll(() => cells(1)).toEqual([String(expected.rows[0]?.[0])]);
    await type('SELECT step, duration_ns FROM step ORDER BY step');
    await fixture.page.keyboard.press('Control+Enter');
    await expect.poll(() => status().innerText()).toBe(`${expected.rows[0]?.[0] ?? 0} rows`);
    await expect.poll(() => fixture.hash.get('f.sql')).toBe('SELECT step, duration_ns FROM step ORDER BY step'); // prettier-ignore
    const [first] = (await fixture.sql<[number, number]>('SELECT step, duration_ns FROM step ORDER BY step')).rows; // prettier-ignore
    const title = await rows().getByRole('row').nth(1).getByRole('gridcell').nth(1).getAttribute('title'); // prettier-ignore
    expect((title ?? '').replace(/\D/g, '')).toBe(String(first?.[1]));
    await fixture.fresh(fixture.page.url());
    await expect.poll(() => status().innerText()).toBe(`${expected.rows[0]?.[0] ?? 0} rows`);
  });

  it('completes tables, columns of the tables and parameters', async () => {
    const { page } = fixture;
    await fixture.recorded(12);
    await open('');
    await type('SELECT operation_type FROM op_ti');
    const options = panel().getByRole('listbox').getByRole('option');
    await page.keyboard.press('Control+Space');
    await expect.poll(() => options.allInnerTexts()).toContainEqual(expect.stringMatching(/^op_time/)); // prettier-ignore
    await options.filter({ hasText: /^op_time/ }).click();
    await page.keyboard.insertText(' WHERE bytes_per');
    await page.keyboard.press('Control+Space');
    await expect.poll(() => options.allInnerTexts()).toContainEqual(expect.stringMatching(/^bytes_per_s/)); // prettier-ignore
    await page.keyboard.press('Escape');
    await type('SELECT * FROM op WHERE step = :');
    await page.keyboard.press('Control+Space');
    await expect.poll(() => options.allInnerTexts()).toContainEqual(expect.stringMatching(/^:step/)); // prettier-ignore
    // Letters in the editor are no shortcuts of the page.
    await page.keyboard.press('Escape');
    await page.keyboard.type('r');
    expect(await panel().isVisible()).toBe(true);
  });

  it('parameters have the values of the selection', async () => {
    await fixture.recorded(12);
    const sql = 'SELECT op, tensor_name FROM op WHERE step = :step AND op_layer_id = :layer ORDER BY op'; // prettier-ignore
    await open(sql, 'step=5', 'sel=l:2', 'l=2');
    const expected = await fixture.sql<[number, string]>(sql.replace(':step', '5').replace(':layer', '2')); // prettier-ignore
    await expect.poll(() => status().innerText()).toBe(`${expected.rows.length} rows`);
    expect(await panel().locator('.sql-values').innerText()).toContain(':step = 5, :layer = 2');
    // A click on a cell selects it in every view.
    const [op, name] = expected.rows[3] ?? [0, ''];
    await rows().getByRole('row').nth(4).getByRole('gridcell').nth(0).click();
    await expect.poll(() => fixture.hash.get('sel')).toBe(`o:${await fixture.outputOf(5, op)}`);
    expect(name).not.toBe('');
  });

  it('an error is marked at its place, and a full list says so', async () => {
    fixture.expectStatus(400);
    await fixture.recorded(12);
    await open('');
    await type("SELECT 'ä:step', :step, duration_nss FROM step");
    await panel().getByRole('button', { name: 'Run', exact: true }).click();
    await expect.poll(() => status().innerText()).toContain('no such column: duration_nss');
    expect(await panel().locator('.cm-wrong').innerText()).toBe('duration_nss');
    await type('WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10001) SELECT i FROM n'); // prettier-ignore
    await fixture.page.keyboard.press('Control+Enter');
    await expect.poll(() => status().innerText()).toMatch(/^10.000 rows There are more/);
  });

  it('runs again when the session ends, and says what was not recorded', async () => {
    const { page } = fixture;
    await fixture.runText('Once upon a time', 60);
    await expect.poll(() => fixture.shownTokens()).toBeGreaterThan(0);
    await fixture.tab('SQL').click();
    await type('SELECT count(*) AS steps FROM step');
    await page.keyboard.press('Control+Enter');
    await fixture.waitDone();
    const [all] = (await fixture.sql<[number]>('SELECT count(*) FROM step')).rows;
    await expect.poll(() => cells(1)).toEqual([String(all?.[0])]);
    const ask = async () => {
      await page.getByRole('button', { name: 'Questions' }).click();
      await page
        .getByRole('button', { name: 'Where does the first NaN come from?' })
        .last()
        .click();
    };
    await ask();
    await expect.poll(() => status().innerText()).toBe('0 rows');
    await panel()
      .getByText(/values of this session were not recorded \(level detailed\)/)
      .waitFor();
    const again = page.waitForResponse((answer) => answer.url().endsWith('/query'));
    await type('SELECT 1 AS other');
    await page.keyboard.press('Control+Enter');
    await again;
    await ask();
    await expect.poll(() => status().innerText()).toBe('0 rows');
    await panel().getByRole('button', { name: 'Turn on Level verbose' }).click();
    await panel().getByText('the setting Level verbose is on').waitFor();
    expect(await fixture.axeViolations()).toEqual([]);
    await panel()
      .getByRole('button', { name: /^Debugger:/ })
      .click();
    await page.getByRole('list', { name: 'Breakpoints' }).getByText('if nan').waitFor();
    await panel()
      .getByRole('button', { name: /^Weights:/ })
      .click();
    await expect.poll(() => fixture.hash.get('o.weights')).toBe('-not_finite');
  });

  it('each example has rows, and the rows are a chart', async () => {
    const { page } = fixture;
    await fixture.recorded(12);
    await open('', 'step=5', 'l=2');
    const menu = panel().getByRole('button', { name: 'Examples' });
    await menu.click();
    const names = await panel().getByRole('group', { name: 'Examples' }).getByRole('button').allInnerTexts(); // prettier-ignore
    expect(names.length).toBeGreaterThan(8);
    for (const name of names) {
      if (!(await panel().getByRole('group', { name: 'Examples' }).isVisible())) await menu.click();
      await panel().getByRole('button', { name, exact: true }).click();
      // No output of this session is NaN.
      const rows = name.includes('NaN') ? /^0 rows$/ : /^[1-9]\d* rows?$/;
      await expect.poll(() => status().innerText(), { message: name }).toMatch(rows);
    }
    await panel().getByRole('button', { name: 'History' }).click();
    await expect
      .poll(() => panel().getByRole('group', { name: 'History' }).getByRole('button').count())
      .toBe(names.length);
    await page.keyboard.press('Escape');
    await panel().getByRole('radio', { name: 'Chart' }).check();
    await panel().getByRole('application').waitFor();
    await expect.poll(() => fixture.hash.get('p.sql')).toBe('chart');
    await panel().getByRole('radio', { name: 'Pie' }).check();
    await expect.poll(() => fixture.hash.get('p.sql')).toBe('chart:pie');
    expect(await fixture.axeViolations()).toEqual([]);
    await page.setViewportSize({ width: 390, height: 800 });
    expect(await fixture.axeViolations()).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390); // prettier-ignore
  });

  it('saves all rows as CSV, and copies the command and the request', async () => {
    const { page } = fixture;
    await fixture.recorded(12);
    await open("SELECT step, phase FROM step WHERE phase = 'generate' ORDER BY step");
    await rows().waitFor();
    const menu = panel().getByRole('button', { name: 'Save or copy the rows' });
    await menu.click();
    const arrives = page.waitForEvent('download');
    await panel().getByRole('button', { name: 'Save all rows as CSV' }).click();
    const file = await readFile(await (await arrives).path(), 'utf8');
    const { rows: expected } = await fixture.sql<[number, string]>("SELECT step, phase FROM step WHERE phase = 'generate' ORDER BY step"); // prettier-ignore
    expect(file.trim().split(/\r?\n/)).toEqual(['step,phase', ...expected.map((row) => row.join())]); // prettier-ignore
    await menu.click();
    await panel().getByRole('button', { name: 'Copy the command: tt sql' }).click();
    await expect
      .poll(() => page.evaluate(() => navigator.clipboard.readText()))
      .toBe(`tt sql ${fixture.session ?? ''}.ttrace 'SELECT step, phase FROM step WHERE phase = '\\''generate'\\'' ORDER BY step'`); // prettier-ignore
  });

  it('saves all rows as Parquet', async () => {
    const { page } = fixture;
    const sql = 'SELECT step, phase FROM step ORDER BY step';
    await fixture.recorded(12);
    await open(sql);
    await rows().waitFor();
    await panel().getByRole('button', { name: 'Save or copy the rows' }).click();
    const arrives = page.waitForEvent('download');
    await panel().getByRole('button', { name: 'Save all rows as Parquet' }).click();
    const file = await arrives;
    expect(file.suggestedFilename()).toBe(`${fixture.session ?? ''}-rows.parquet`);
    // What is in it: tests/api/exchange/query_parquet_test.cpp.
    const answer = await fetch(`${fixture.server.url}/api/v1/sessions/${fixture.session ?? ''}/query`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ sql, format: 'parquet', limit: 1_000_000 }),
    }); // prettier-ignore
    expect(answer.headers.get('content-type')).toBe('application/vnd.apache.parquet');
    const bytes = await readFile(await file.path());
    expect(bytes.equals(Buffer.from(await answer.arrayBuffer()))).toBe(true);
    expect(bytes.subarray(0, 4).toString()).toBe('PAR1');
  });

  it('is beside the exports and the report, which are files', async () => {
    const { page } = fixture;
    await fixture.recorded(12);
    const menu = page.getByRole('contentinfo').getByRole('button', { name: 'Save session as' });
    for (const [name, suffix, begin] of [
      ['Export the session as Parquet', '.parquet', 'PAR1'],
      ['Report as Markdown', '-report.md', '# '],
    ] as const) {
      await menu.click();
      const arrives = page.waitForEvent('download');
      await page.getByRole('button', { name, exact: true }).click();
      const file = await arrives;
      expect(file.suggestedFilename()).toBe(`${fixture.session ?? ''}${suffix}`);
      expect((await readFile(await file.path(), 'latin1')).slice(0, begin.length)).toBe(begin);
    }
  });
});
