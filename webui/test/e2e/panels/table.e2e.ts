// The table: accesses of a step and of the session, totals, columns, copying. Its rows are compared
// with REST.
import { describe, expect, it } from 'vitest';
import {
  componentName,
  exactNs,
  formatBytes,
  layerName,
  plural,
  sourceName,
  visibleText,
} from '../../../src/format';
import type {
  Access,
  Breakdown,
  Op,
  Sequentiality,
  StepSummary,
  Token,
} from '../../../src/net/types';
import { PageFixture } from '../support/page_fixture';
import { luminance } from '../../../src/plane/colours';

const fixture = PageFixture.use();
const grid = (name: RegExp | string) => fixture.page.getByRole('grid', { name });
const cells = (name: RegExp | string, row: number) =>
  grid(name).locator(`.vgrid-row[data-index="${row}"] .vgrid-cell`).allInnerTexts();
const clipboard = () => fixture.page.evaluate(() => navigator.clipboard.readText());
const count = async (name: RegExp | string) =>
  Number(await grid(name).getAttribute('aria-rowcount')) - 1;

async function menu(label: string, item: string): Promise<void> {
  await fixture.page.locator('.table-tools').getByRole('button', { name: label }).click();
  await fixture.page.getByRole('button', { name: item, exact: true }).click();
}

const steps = async (): Promise<readonly StepSummary[]> =>
  (await fixture.get<{ steps: StepSummary[] }>('steps?limit=1000')).steps;

describe('the accesses', () => {
  it('of a step are those of REST', async () => {
    await fixture.recorded(6);
    await fixture.rows('Accesses');
    const name = /Accesses of step \d+/;
    await grid(name).waitFor();
    const step = Number((await grid(name).getAttribute('aria-label'))?.split(' ').at(-1));
    const { total, accesses } = await fixture.get<{ total: number; accesses: Access[] }>(
      `steps/${step}/accesses?limit=20`,
    );
    expect(await count(name)).toBe(total);
    const { sums } = await fixture.get<Sequentiality>(
      `sequentiality?from_step=${step}&to_step=${step + 1}`,
    );
    const sequential = ((100 * sums.sequential_bytes) / sums.bytes).toFixed(1);
    await fixture.page.getByText(`sequential ${sequential} % (gap 128 KiB)`).waitFor();
    await expect.poll(async () => (await cells(name, 3))[5]).toBe(accesses[3]?.tensor_name);
    const { tokens } = await fixture.get<{ tokens: Token[] }>(
      `tokens?from=${(await steps())[step]?.token_id ?? 0}&limit=1`,
    );
    for (const row of [0, 1, 2]) {
      const one = accesses[row];
      expect((await cells(name, row)).slice(0, 6)).toEqual([
        String(step),
        visibleText(tokens[0]?.text ?? ''),
        String(one?.op),
        one?.operation_type,
        one?.write ? 'write' : 'read',
        one?.tensor_name,
      ]);
    }
    expect(await fixture.axeViolations()).toEqual([]);
  });

  it('of the session are read only in view, and the last row is reachable', async () => {
    const { page } = fixture;
    await fixture.recorded(24);
    const asked: string[] = [];
    page.on('request', (request) => {
      if (request.url().endsWith('/query')) asked.push(request.postData() ?? '');
    });
    await fixture.rows('Accesses');
    await page.getByRole('radio', { name: 'Session' }).check();
    const name = 'Accesses of the session';
    await grid(name).waitFor();
    const all = await steps();
    const total = all.reduce((sum, step) => sum + step.accesses, 0);
    expect(await count(name)).toBe(total);
    await grid(name).focus();
    await page.keyboard.press('End');
    const last = all.at(-1);
    const { accesses } = await fixture.get<{ accesses: Access[] }>(
      `steps/${last?.step ?? 0}/accesses?from=${(last?.accesses ?? 0) - 1}&limit=1`,
    );
    await expect
      .poll(async () => (await cells(name, total - 1)).toSpliced(1, 1).slice(0, 5))
      .toEqual([
        String(last?.step),
        String(accesses[0]?.op),
        accesses[0]?.operation_type,
        accesses[0]?.write ? 'write' : 'read',
        accesses[0]?.tensor_name,
      ]);
    // Two pages of 200 rows, of the statements of this table.
    const pages = asked.filter((text) => text.includes('OFFSET'));
    expect(pages.length).toBeGreaterThan(0);
    expect(pages.length).toBeLessThan(6);
    expect(await grid(name).locator('.vgrid-row').count()).toBeLessThan(60);
  });

  it('of a filter are counted and shown', async () => {
    const { page } = fixture;
    await fixture.recorded(6);
    await fixture.rows('Accesses');
    await page.getByRole('radio', { name: 'Session' }).check();
    await fixture.filter.fill('kind:weight layer:1 -tensor:norm');
    const name = 'Accesses of the session';
    const sql =
      "SELECT count(*) FROM access WHERE tensor_kind = 'weight' AND op_layer_id = 1 AND tensor_name NOT LIKE '%norm%'";
    const answer = await fixture.sql<readonly number[]>(sql);
    const expected = answer.rows[0]?.[0] ?? 0;
    expect(expected).toBeGreaterThan(6);
    await expect.poll(() => count(name)).toBe(expected);
    await expect.poll(async () => (await cells(name, 0))[5]).toMatch(/^blk\.1\.(?!.*norm)/);
    // A row selects its access, in the step of the row.
    await grid(name).locator('.vgrid-row').first().click();
    await expect.poll(() => fixture.hash.get('sel')).toMatch(/^a:\d+\.\d+\.\d+$/);
    await expect.poll(() => fixture.hash.get('step')).toBe('0');
    await fixture.inspector
      .getByText(/^blk\.1\./)
      .first()
      .waitFor();
  });

  it('are sorted by the server', async () => {
    await fixture.recorded(6);
    await fixture.rows('Accesses');
    const name = /Accesses of step \d+/;
    await grid(name).getByRole('button', { name: 'bytes' }).click();
    await expect.poll(() => fixture.hash.get('o.table')).toBe('-size_bytes');
    const step = Number((await grid(name).getAttribute('aria-label'))?.split(' ').at(-1));
    const { accesses } = await fixture.get<{ accesses: Access[] }>(
      `steps/${step}/accesses?sort=-bytes&limit=1`,
    );
    const bytes = grid(name).locator('.vgrid-row').first().locator('.vgrid-cell').nth(6);
    await expect
      .poll(async () => (await bytes.getAttribute('title'))?.replace(/\D/g, ''))
      .toBe(String(accesses[0]?.size_bytes));
  });
});

const shownName = (by: string, name: string): string =>
  by === 'memory source'
    ? sourceName(name)
    : by === 'component'
      ? componentName(name)
      : by === 'layer'
        ? layerName(name)
        : name;

describe('totals', () => {
  it('by anything are those of REST', async () => {
    const { page } = fixture;
    await fixture.recorded(6);
    for (const by of ['tensor', 'layer', 'op type', 'kernel', 'component', 'memory source', 'phase']) {
      await page.getByLabel('Totals by', { exact: true }).selectOption({ label: by });
      expect(await page.getByRole('radio', { name: 'Session' }).isChecked(), by).toBe(true);
      const axis = { 'op type': 'op_kind', 'memory source': 'source' }[by] ?? by;
      const name = `Totals by ${by}`;
      const rest = await fixture.get<Breakdown>(`breakdown?by=${axis}&sort=-time&limit=5&step_times=true`);
      await expect.poll(() => count(name), { message: by }).toBe(rest.total);
      await expect
        .poll(async () => (await cells(name, 0))[0], { message: by })
        .toBe(shownName(by, rest.rows[0]?.name ?? ''));
      const first = grid(name).locator('.vgrid-row').first().locator('.vgrid-cell');
      expect((await first.nth(7).getAttribute('title'))?.replace(/\D/g, ''), by).toBe(
        String(rest.rows[0]?.all.bytes_read),
      );
      // Median, p5 and p95 of the time in one step, and of how many steps.
      for (const [i, quantile] of (['median', 'p5', 'p95'] as const).entries()) {
        const { step_ns: times } = rest.rows[0] ?? {};
        expect((await first.nth(1 + i).getAttribute('title')) ?? '', `${by} ${quantile}`).toBe(
          times ? `${exactNs(times[quantile])}, of ${plural(times.steps, 'step')}` : '',
        );
      }
      expect(await fixture.axeViolations(), by).toEqual([]);
    }
  }); // prettier-ignore

  it('of a layer and of a range are those of REST by token, and so are the accesses', async () => {
    await fixture.recorded(8);
    for (const [link, query] of [
      ['q=layer:2', 'layers=2'],
      ['q=layer:none', 'layers=outside'],
      ['r=token:5:8,layer:4:7', 'from_token=5&to_token=8&layers=4-5,outside'],
    ] as const) {
      const { sums } = await fixture.get<Breakdown>(`breakdown?by=token&${query}`);
      const accesses = sums.all.reads + sums.all.writes;
      const name = plural(accesses, 'access', 'accesses');
      await fixture.show(fixture.session ?? '', link, 'p.table=all,by:token');
      await grid('Totals by token').waitFor();
      const note = fixture.page.locator('.table-note');
      await expect.poll(() => note.innerText(), { message: link }).toContain(name);
      expect(await note.innerText()).toContain(formatBytes(sums.all.bytes_read));
      await fixture.show(fixture.session ?? '', link, 'p.table=rows:accesses,all');
      await expect.poll(() => count('Accesses of the session'), { message: link }).toBe(accesses);
    }
  });

  it('say which words of the filter they ignore, and lead to the accesses', async () => {
    const { page } = fixture;
    await fixture.recorded(6);
    await page.getByLabel('Totals by').selectOption('layer');
    await fixture.filter.fill('kind:weight access:read');
    await page.locator('.table-note').getByText('ignores access:read').waitFor();
    await grid('Totals by layer').locator('.vgrid-row').first().dblclick();
    await expect.poll(() => fixture.hash.get('q')).toMatch(/layer:(\d+|none)$/);
    await grid(/Accesses of the session/).waitFor();
  });

  it('by token show the token that is selected elsewhere', async () => {
    const session = await fixture.recorded(24);
    await fixture.show(session, 'p.table=by:token');
    const totals = grid('Totals by token');
    await totals.locator('.vgrid-row[data-index="0"]').waitFor();
    expect(await totals.evaluate((one) => one.scrollTop)).toBe(0);
    const last = (await steps()).at(-2);
    await fixture.show(session, 'p.table=by:token', `step=${last?.step ?? 0}`);
    const row = totals.locator('.vgrid-row[aria-selected=true]');
    await expect.poll(() => row.locator('.vgrid-cell').nth(2).innerText()).toBe(String(last?.step));
    const [inner, outer] = await Promise.all([row.boundingBox(), totals.boundingBox()]);
    const bottom = (inner?.y ?? 0) + (inner?.height ?? 0);
    expect(bottom).toBeLessThanOrEqual((outer?.y ?? 0) + (outer?.height ?? 0));
  });

  it('can be those of the clean steps', async () => {
    const { page } = fixture;
    await fixture.recorded(6);
    await page.getByLabel('Totals by').selectOption('phase');
    await fixture.filter.fill('verdict:clean');
    await page.keyboard.press('Enter');
    const clean = await fixture.get<Breakdown>('breakdown?by=phase&sort=-time&clean=true');
    const steps = await fixture.sql<[string, number]>(
      "SELECT phase, sum(mapped_bytes) FROM step WHERE verdict = 'clean' GROUP BY 1",
    );
    expect(clean.total).toBe(steps.rows.length);
    if (clean.total > 0) {
      await expect.poll(() => count('Totals by phase')).toBe(clean.total);
      const read = grid('Totals by phase').locator('.vgrid-row').first().locator('.vgrid-cell').nth(7); // prettier-ignore
      await expect
        .poll(async () => (await read.getAttribute('title'))?.replace(/\D/g, ''))
        .toBe(String(clean.rows[0]?.all.bytes_read));
    }
    expect(await page.locator('.table-note').getByText('ignores').count()).toBe(0);
  });
});

describe('totals by kernel', () => {
  it('lead to their accesses', async () => {
    const { page } = fixture;
    await fixture.recorded(6);
    await page.getByLabel('Totals by').selectOption('kernel');
    await grid('Totals by kernel').locator('.vgrid-row').first().dblclick();
    await expect.poll(() => fixture.hash.get('q')).toMatch(/^kernel:[a-z]+$/);
    await grid(/Accesses of the session/).waitFor();
  });
});

describe('the ops', () => {
  it('show their first rows when they are sorted, and a later selection', async () => {
    const { page, ops } = fixture;
    await fixture.show(await fixture.recorded(6), 'step=3');
    const rest = await fixture.get<{ ops: Op[] }>('steps/3/ops?limit=1000');
    const last = rest.ops.at(-1)?.op ?? 0;
    await ops.focus();
    await page.keyboard.press('End');
    const end = ops.locator(`.vgrid-row[data-index="${last}"]`);
    await end.waitFor();
    await ops.getByRole('button', { name: 'duration' }).click();
    const longest = Math.max(...rest.ops.map((op) => op.duration_ns ?? 0));
    const first = ops.locator('.vgrid-row[data-index="0"] .vgrid-cell').nth(5);
    await expect.poll(() => first.getAttribute('title')).toContain(exactNs(longest));
    expect(await ops.evaluate((one) => one.scrollTop)).toBe(0);
    // Selected elsewhere.
    await ops.getByRole('button', { name: '#' }).click();
    await end.waitFor({ state: 'detached' });
    await page.keyboard.press(',');
    await ops.locator(`.vgrid-row[aria-selected=true][data-index="${last - 1}"]`).waitFor();
  });
});

describe('columns', () => {
  it('are chosen and moved, and a link restores them', async () => {
    const { page } = fixture;
    await fixture.recorded(6);
    const titles = () => fixture.ops.getByRole('columnheader').allInnerTexts();
    expect((await titles()).slice(0, 3)).toEqual(['#', 'op', 'output']);
    await page.getByRole('button', { name: 'Columns', exact: true }).click();
    await page.getByLabel('rate', { exact: true }).check();
    await page.getByLabel('output', { exact: true }).uncheck();
    await page.keyboard.press('Escape');
    await expect.poll(titles).toContain('rate');
    expect(await titles()).not.toContain('output');
    await fixture.ops.getByRole('button', { name: '#' }).focus();
    await page.keyboard.press('Alt+ArrowRight');
    await expect.poll(async () => (await titles()).slice(0, 2)).toEqual(['op', '#']);
    const from = fixture.ops.getByRole('columnheader', { name: 'layer' });
    await from.dragTo(fixture.ops.getByRole('columnheader').first(), {
      targetPosition: { x: 4, y: 8 },
    });
    await expect.poll(async () => (await titles())[0]).toBe('layer');
    const before = await titles();
    await page.reload();
    await expect.poll(titles).toEqual(before);
  });

  it('of totals are chosen, too; the sorted one and the names are in view', async () => {
    const { page } = fixture;
    await page.setViewportSize({ width: 1440, height: 900 });
    await fixture.show(await fixture.recorded(6), 'p.table=all,by:tensor', 'o.table=-faults');
    const totals = grid('Totals by tensor');
    const sorted = totals.locator('[aria-sort=descending]');
    expect(await sorted.innerText()).toBe('disk waits');
    const name = totals.locator('.vgrid-row .vgrid-cell').first();
    await expect
      .poll(async () => {
        const [box, head, cell] = await Promise.all(
          [totals, sorted, name].map((one) => one.boundingBox()),
        );
        if (!box || !head || !cell) return false;
        const isIn = ({ x, width }: typeof box): boolean =>
          x >= box.x - 1 && x + width <= box.x + box.width + 1;
        return isIn(head) && isIn(cell) && head.x >= cell.x + cell.width - 1;
      })
      .toBe(true);
    // The names cover no part of another column.
    const halves = await totals.getByRole('columnheader').evaluateAll(([first, ...others]) => {
      const edge = first?.getBoundingClientRect().right ?? 0;
      const boxes = others.map((one) => one.getBoundingClientRect());
      return boxes.filter(({ left, right }) => left < edge - 1 && right > edge + 1).length;
    });
    expect(halves).toBe(0);
    await page.getByRole('button', { name: 'Columns', exact: true }).click();
    await page.getByLabel('p95', { exact: true }).uncheck();
    await page.keyboard.press('Escape');
    const titles = () => totals.getByRole('columnheader').allInnerTexts();
    await expect.poll(titles).not.toContain('p95');
    await page.getByLabel('Totals by', { exact: true }).selectOption('layer');
    await grid('Totals by layer').waitFor();
    expect(await grid('Totals by layer').getByRole('columnheader').allInnerTexts()).not.toContain(
      'p95',
    );
  });
});

describe('more columns', () => {
  it('are announced by a fading edge, until the last one is in view', async () => {
    const { page, ops } = fixture;
    await page.setViewportSize({ width: 1440, height: 900 });
    await fixture.recorded(6);
    const edge = () =>
      ops.locator('.vgrid-top').evaluate((top) => {
        const { content, width } = getComputedStyle(top, '::after');
        return content === 'none' ? null : width;
      });
    await expect.poll(edge).toBe('40px');
    // It covers the rows, and moves none.
    const [head, row] = await Promise.all(
      ['.vgrid-head', '.vgrid-row[data-index="0"]'].map((one) => ops.locator(one).boundingBox()),
    );
    expect((row?.y ?? 0) - (head?.y ?? 0)).toBeLessThan(26);
    const count = Number(await ops.getAttribute('aria-rowcount')) - 1;
    expect((await ops.evaluate((one) => one.scrollHeight)) - 24 * count).toBeLessThan(30);
    await ops.evaluate((one) => {
      one.scrollLeft = one.scrollWidth;
    });
    await expect.poll(edge).toBeNull();
  });
});

describe('texts', () => {
  it('have room in their columns, and bars are readable behind them', async () => {
    const { page } = fixture;
    await fixture.example();
    await fixture.tab('Graph').click();
    for (const rows of ['Nodes', 'Accesses', 'Ops'] as const) {
      await page.getByRole('radio', { name: rows, exact: true }).check();
      const shown = grid(new RegExp(`${rows} of (step|layer)`)).locator('.vgrid-row .vgrid-cell');
      await shown.nth(40).waitFor();
      // The sources of an op are a list of any length.
      const cut = await shown.evaluateAll((all) =>
        all
          .filter((cell) => !cell.textContent.includes(', '))
          .flatMap((cell) => (cell.scrollWidth > cell.clientWidth ? [cell.textContent] : [])),
      );
      expect(cut, rows).toEqual([]);
    }
    // Bars are behind the numbers, which stay readable on them.
    const of = async (name: string): Promise<number> => {
      const [r = 0, g = 0, b = 0] = (await fixture.cssColour(name)).split(',').map(Number);
      return luminance([r, g, b]);
    };
    const [text, bar] = [await of('--text'), await of('--cell-bar')];
    expect((text + 0.05) / (bar + 0.05)).toBeGreaterThan(4.5);
    const size = page.locator('.vgrid-cell[style*="--share"]').first();
    const height = await size.evaluate((one) =>
      getComputedStyle(one).backgroundSize.split(' ').at(-1),
    );
    expect(parseFloat(height ?? '')).toBeGreaterThan(10);
  });

  it('above the totals are complete at 1440 x 900', async () => {
    const { page } = fixture;
    await fixture.example();
    for (const by of ['tensor', 'token']) {
      await page.getByLabel('Totals by', { exact: true }).selectOption(by);
      await grid(`Totals by ${by}`).waitFor();
      const hint = page.getByText(/Double click lists the accesses of a row\.$/);
      expect(await hint.evaluate((one) => one.scrollWidth > one.clientWidth)).toBe(false);
      const [inner, outer] = await Promise.all([
        hint.boundingBox(),
        page.locator('.table-note').boundingBox(),
      ]);
      expect((inner?.x ?? 0) + (inner?.width ?? 0)).toBeLessThan(
        (outer?.x ?? 0) + (outer?.width ?? 0),
      );
    }
  });
});

describe('copying', () => {
  it('gives the rows as TSV, CSV, JSON and SQL', async () => {
    const { page } = fixture;
    await fixture.recorded(6);
    const step = (await fixture.ops.getAttribute('aria-label'))?.split(' ').at(-1) ?? '';
    const { ops } = await fixture.get<{ ops: Op[] }>(`steps/${step}/ops`);
    await fixture.ops.locator('.vgrid-row').first().click();
    await fixture.ops.focus();
    await page.keyboard.press('Shift+ArrowDown');
    await page.keyboard.press('Shift+ArrowDown');
    expect(await fixture.ops.locator('[aria-selected=true]').count()).toBe(3);
    await page.keyboard.press('Control+c');
    await fixture.toasts.getByText('3 rows copied.').waitFor();
    const lines = (await clipboard()).trimEnd().split('\n');
    expect(lines).toHaveLength(4);
    expect(lines[0]?.split('\t').slice(0, 3)).toEqual(['op', 'operation_type', 'tensor_name']);
    await menu('Copy', 'Rows as CSV');
    await fixture.toasts.getByText('3 rows copied as CSV.').waitFor();
    expect((await clipboard()).split('\n')[1]).toMatch(/^0,GET_ROWS,/);
    await page.keyboard.press('Escape');
    await fixture.ops.locator('.vgrid-row').first().click();
    await menu('Copy', 'Rows as JSON');
    await fixture.toasts.getByText(/^\d+ rows copied as JSON/).waitFor();
    const rows = JSON.parse(await clipboard()) as Record<string, unknown>[];
    expect(rows.map((row) => [row.op, row.duration_ns])).toEqual(
      ops.map((op) => [op.op, op.duration_ns]),
    );
    await menu('Copy', 'SQL');
    await fixture.toasts.getByText('SQL copied.').waitFor();
    const sql = await clipboard();
    const answer = await fixture.sql<readonly number[]>(sql);
    expect(answer.rows).toHaveLength(ops.length);
    expect(answer.rows.map((row) => row[answer.columns.indexOf('duration_ns')])).toEqual(
      ops.map((op) => op.duration_ns),
    );
  });
});

describe('the filter', () => {
  it('completes keys and the session’s own names', async () => {
    const { page } = fixture;
    await fixture.recorded(6);
    await fixture.filter.focus();
    await page.keyboard.type('tens');
    const options = page.getByRole('listbox', { name: 'Completions' });
    await options.getByRole('option', { name: 'tensor:' }).waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.keyboard.type('ffn_up');
    await options.getByRole('option', { name: 'tensor:blk.0.ffn_up.weight' }).click();
    await expect.poll(() => fixture.filter.inputValue()).toBe('tensor:blk.0.ffn_up.weight ');
    await expect.poll(() => fixture.ops.locator('.vgrid-row').count()).toBe(1);
    expect(await fixture.axeViolations()).toEqual([]);
    await page.getByRole('button', { name: 'Clear the filter' }).click();
    await expect.poll(() => fixture.ops.locator('.vgrid-row').count()).toBeGreaterThan(5);
    // A key that does not exist is reported once, with the one that was meant.
    await page.getByLabel('Totals by').selectOption('layer');
    await fixture.filter.fill('layr:1');
    await page.getByText('No key layr; do you mean layer:?').waitFor();
    await grid('Totals by layer').waitFor();
    expect(await page.getByText('ignores').count()).toBe(0);
    expect(await fixture.axeViolations()).toEqual([]);
    await page.getByRole('button', { name: 'layer:', exact: true }).click();
    await expect.poll(() => fixture.filter.inputValue()).toBe('layer:1');
    await expect.poll(() => count('Totals by layer')).toBe(1);
  });
});

// A list of steps (api/step_format.md) whose column has the same value in every step.
function withColumn(body: Buffer, name: string, value: number): Buffer {
  const [steps, columns, layers] = [8, 12, 16].map((at) => body.readUInt32LE(at)) as [number, number, number]; // prettier-ignore
  const text = body.subarray(32 + 8 * steps * (columns + 2 * layers)).toString();
  const told = JSON.parse(text) as { columns: { name: string }[] };
  const index = told.columns.findIndex((one) => one.name === name);
  const changed = Buffer.from(body);
  for (let i = 0; i < steps; i += 1) changed.writeDoubleLE(value, 32 + 8 * (index * steps + i));
  return changed;
}

describe('a table of a million rows, and of a hundred millions', () => {
  // The steps of the session say that they have five million accesses each; a row is its index.
  const EACH = 5_000_000;
  async function hugeSession(): Promise<number> {
    const { page } = fixture;
    await fixture.recorded(24);
    const asked: number[] = [];
    await page.route(/\/steps\?.*format=columns/, async (route) => {
      const response = await route.fetch();
      await route.fulfill({ body: withColumn(await response.body(), 'accesses', EACH) });
    });
    await page.route(/\/query$/, async (route) => {
      const sql = (route.request().postDataJSON() as { sql: string }).sql;
      const [, step = '0', limit = '0', offset = '0'] =
        /step (?:=|BETWEEN) (\d+).* LIMIT (\d+) OFFSET (\d+)$/.exec(sql) ?? [];
      asked.push(Number(limit));
      const columns = ['step', 'op', 'access', 'part', 'tensor_name'];
      const rows = Array.from({ length: Number(limit) }, (_, i) => {
        const at = Number(step) * EACH + Number(offset) + i;
        return [Math.floor(at / EACH), at % EACH, 0, 0, `row ${at}`];
      });
      await route.fulfill({ json: { columns, rows, more: false, error: null } });
    });
    await page.evaluate(() => {
      location.hash += '&p.table=rows:accesses,all,cols:step.op.tensor_name';
    });
    await page.reload();
    await grid('Accesses of the session').waitFor();
    return (await steps()).length * EACH;
  }

  it('are scrolled by row, by page and by the bar, and the last one is reachable', async () => {
    const { page } = fixture;
    const total = await hugeSession();
    expect(total).toBeGreaterThan(100_000_000);
    const name = 'Accesses of the session';
    await expect.poll(() => count(name)).toBe(total);
    const first = () =>
      grid(name)
        .locator('.vgrid-row')
        .evaluateAll((rows) =>
          Math.min(...rows.map((row) => Number((row as HTMLElement).dataset.index))),
        );
    const shows = async (row: number) =>
      expect.poll(async () => (await cells(name, row))[2]).toBe(`row ${row}`);
    await shows(0);
    await grid(name).focus();
    await page.keyboard.press('End');
    await shows(total - 1);
    await page.keyboard.press('ArrowUp');
    await expect
      .poll(() => grid(name).locator('[aria-selected=true]').getAttribute('aria-rowindex'))
      .toBe(String(total));
    await page.keyboard.press('Home');
    await shows(0);
    // The same with Ctrl, also when the browser scrolls smoothly.
    await page.keyboard.press('Control+End');
    await shows(total - 1);
    await page.keyboard.press('Control+Home');
    await shows(0);
    // The scroll bar: half of the height is half of the rows.
    await grid(name).evaluate((host) => {
      host.scrollTop = (host.scrollHeight - host.clientHeight) / 2;
    });
    await expect.poll(async () => Math.abs((await first()) / total - 0.5)).toBeLessThan(0.001);
    // The wheel: by exact rows.
    const before = await first();
    await shows(before + 2);
    await grid(name).hover();
    await page.mouse.wheel(0, 240);
    await expect.poll(first).toBe(before + 10);
    await shows(before + 12);
    expect(await grid(name).locator('.vgrid-row').count()).toBeLessThan(60);
  });
});
