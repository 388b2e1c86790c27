// The questions of a first visitor, on a mixture of experts. Each is answered by the open session
// with at most three clicks, and the answer is that of REST.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Locator } from 'playwright-core';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { formatBytes, formatNs, layerName, plural, sourceName } from '../../../src/format';
import type {
  Breakdown,
  Conditions,
  Determinism,
  PictureAxis,
  Router,
  SessionComparison,
} from '../../../src/net/types';
import { axisFrom } from '../../../src/panels/map/map_axes';
import { axisOf } from '../../../src/plane/axis';
import { planeLayout, xOf, yOf } from '../../../src/plane/layout';
import { wholeCamera } from '../../../src/plane/camera';
import { AnalyticsPage } from '../support/analytics_page';
import { mapPanel } from '../support/map_panel';
import { makeModel } from '../support/models';
import { PageFixture } from '../support/page_fixture';
import { asOnPage } from '../support/server_text';

let folder = '';
afterAll(() => rm(folder, { recursive: true }));
const fixture = PageFixture.use(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tt-visitors-'));
  return ['-m', await makeModel(folder, 'moe', ['--layers', '3'])];
});

let clicks = 0;
async function click(target: Locator): Promise<void> {
  clicks += 1;
  await target.click();
}
beforeEach(async () => {
  await fixture.recorded(24);
  clicks = 0;
});
afterEach(() => {
  expect(clicks).toBeLessThanOrEqual(3);
});

const { map, preset } = mapPanel(fixture);
const sentence = (text: RegExp) =>
  fixture.inspector.getByRole('list', { name: 'Summary' }).getByRole('button', { name: text });

it('which layer is slowest', async () => {
  await click(map().getByRole('checkbox', { name: 'Totals' }));
  // The map counts the steps that the tables count.
  const { rows } = await fixture.get<Breakdown>(
    'breakdown?by=layer&sort=-time&step_times=true&phase=generate',
  );
  const first = layerName(rows[0]?.name ?? '');
  const row = map().locator('.map-table .vgrid-row:not([hidden])').first();
  await expect.poll(() => row.locator('.vgrid-cell').first().innerText()).toBe(first);
});

// The layers by their median time in a generated step, in the steps that the summary counts.
async function slowestLayers() {
  const machine = await fixture.get<Conditions>('conditions');
  const onlyClean =
    machine.verdict !== null && machine.verdict !== 'clean' && machine.steps.clean > 0;
  const steps = `step_times=true&phase=generate${onlyClean ? '&clean=true' : ''}`;
  const { rows } = await fixture.get<Breakdown>(`breakdown?by=layer&sort=-time&${steps}`);
  const all = await fixture.get<Breakdown>(`breakdown?by=all&${steps}`);
  return { onlyClean, rows, whole: all.rows[0]?.step_ns?.median ?? 0 };
}

it('which layer is slowest, by its question: of the same steps as the summary', async () => {
  const { onlyClean, rows, whole } = await slowestLayers();
  await click(fixture.page.getByRole('button', { name: 'Questions' }));
  await click(fixture.page.getByRole('button', { name: 'Which layer is slowest?' }));
  const grid = fixture.page.getByRole('grid', { name: 'Totals by layer' });
  const cells = grid.locator('.vgrid-row').first().locator('.vgrid-cell');
  await expect.poll(() => cells.first().innerText()).toBe(layerName(rows[0]?.name ?? ''));
  expect(await fixture.filter.inputValue()).toBe(onlyClean ? 'verdict:clean' : '');
  expect(fixture.hash.get('ph')).toBe('g');
  const layer = rows.find(({ name }) => /^\d+$/.test(name));
  const share = (100 * (layer?.step_ns?.median ?? 0)) / whole;
  await sentence(
    new RegExp(`layers? ${layer?.name ?? ''} .*${String(Number(share.toPrecision(3)))} %`, 'i'),
  ).waitFor();
  // The table has the same share.
  const row = grid.locator('.vgrid-row').nth(rows.findIndex(({ name }) => name === layer?.name));
  await expect.poll(() => row.locator('.vgrid-cell').nth(4).innerText()).toBe(`${String(Number(share.toPrecision(3)))} %`); // prettier-ignore
});

it('what is read per token, and from where', async () => {
  const { page } = fixture;
  const all = await fixture.get<Breakdown>('breakdown?by=source&sort=-bytes_read');
  const weights = await fixture.get<Breakdown>('breakdown?by=source&kind=weight');
  const perToken = (bytes: number) => asOnPage(formatBytes(Math.round(bytes / 23)));
  const text = asOnPage(await sentence(/^A generated token reads/).innerText());
  expect(text).toContain(`reads ${perToken(all.sums.generate.bytes_read)}: `);
  for (const { name, generate } of weights.rows)
    if (generate.bytes_read > 0)
      expect(text).toContain(
        `${perToken(generate.bytes_read)} of ${name === 'disk' ? 'weights in the mapped file' : `${name} weights`}`,
      );
  await click(sentence(/^A generated token reads/));
  const grid = page.getByRole('grid', { name: 'Totals by memory source' });
  const row = grid.locator('.vgrid-row').first();
  await expect
    .poll(() => row.locator('.vgrid-cell').first().innerText())
    .toBe(sourceName(all.rows[0]?.name ?? ''));
});

it('what is read per token, by its question, whatever was filtered before', async () => {
  const { page, filter } = fixture;
  const { sums } = await fixture.get<Breakdown>('breakdown?by=source&phase=generate');
  await filter.fill('layer:1 verdict:clean');
  await click(page.getByRole('button', { name: 'Questions' }));
  await click(page.getByRole('button', { name: 'What does a token read?' }));
  await page.getByRole('grid', { name: 'Totals by memory source' }).waitFor();
  expect(await filter.inputValue()).toBe('');
  await fixture.toasts.getByText('sorted by “read”, generated tokens only, no filter.').waitFor(); // prettier-ignore
  // The message covers no row of a panel.
  const ends = await page
    .locator('[role=tabpanel]:visible')
    .evaluateAll((all) => all.map((one) => one.getBoundingClientRect().bottom));
  const top = await fixture.toasts.locator('.toast').evaluate((one) => one.getBoundingClientRect().top); // prettier-ignore
  expect(ends.length).toBeGreaterThan(1);
  expect(top).toBeGreaterThanOrEqual(Math.max(...ends));
  const each = formatBytes(Math.round(sums.all.bytes_read / 23));
  await page.locator('.table-note').getByText(`${each} per generated token`).waitFor();
});

it.each([
  ['What does a token read?', 'memory source', 'read'],
  ['What waits for the disk?', 'tensor', 'disk waits'],
])('“%s” opens its table at the left end, with the column that answers', async (...all) => {
  const [asked, by, column] = all;
  const { page } = fixture;
  await click(page.getByRole('button', { name: 'Questions' }));
  await click(page.getByRole('button', { name: asked }));
  const grid = page.getByRole('grid', { name: `Totals by ${by}` });
  const head = grid.locator('[aria-sort=descending]');
  await expect.poll(() => head.innerText()).toBe(column);
  await grid.locator('.vgrid-row').first().waitFor();
  expect(await grid.evaluate((one) => one.scrollLeft)).toBe(0);
  const [inner, outer] = await Promise.all([head.boundingBox(), grid.boundingBox()]);
  expect((inner?.x ?? 0) + (inner?.width ?? 0)).toBeLessThan(
    (outer?.x ?? 0) + (outer?.width ?? 0) - 20,
  );
});

it('does it repeat', async () => {
  const { same_weights: same, pairs } = await fixture.get<Determinism>('determinism');
  const { routers } = await fixture.get<{ routers: readonly Router[] }>('experts?phase=generate');
  const sum = (of: (router: Router) => number) => routers.reduce((all, one) => all + of(one), 0);
  const turned = sum(({ followed, turnover }) => followed * (turnover ?? 0));
  const shared = (100 * (1 - turned / sum(({ followed }) => followed))).toFixed(1);
  // A model with random weights chooses other experts for almost every token.
  expect(same).toBeLessThan(pairs);
  await sentence(
    new RegExp(
      `^Each generated token reads the same weights as the previous token, except experts: ${shared} % of its experts were also used by the previous token`,
    ),
  ).waitFor();
});

it('how much RAM would do', async () => {
  const { facts } = await fixture.get<{ facts: Readonly<Record<string, string>> }>('');
  const text = asOnPage(await sentence(/of RAM are enough/).innerText());
  // How much in all, and what it consists of: with what llama.cpp reserved.
  const compute = asOnPage(formatBytes(Number(facts['result.compute_bytes'])));
  expect(text).toContain(`reserved for ${facts['context.size'] ?? ''} tokens`);
  expect(text).toContain(`and ${compute} of compute buffers (flash attention auto). Not counted:`);
  await click(sentence(/of RAM are enough/));
  await fixture.page
    .getByRole('region', { name: 'Budget' })
    .getByText(/of RAM are enough, .* compute buffers/)
    .waitFor();
});

it('which tokens used expert 3 of layer 2', async () => {
  const { page } = fixture;
  clicks += 1;
  await preset('Step × expert');
  // Its columns are steps: the prompt is one. Those of tokens tell its tokens apart.
  clicks += 1;
  await map().getByRole('combobox', { name: 'Columns' }).selectOption('token');
  await click(fixture.filter);
  await page.keyboard.type('layer:2');
  await page.mouse.move(2, 2);
  const picture = await fixture.get<{
    readonly x: PictureAxis;
    readonly y: PictureAxis;
    readonly cells: readonly (readonly number[])[];
  }>('heatmap?x=token&y=expert&value=accesses&layers=2&width=1024&height=1024');
  const box = await map().locator('.plane-input').boundingBox();
  const layout = planeLayout(
    { w: Math.round(box?.width ?? 0), h: Math.round(box?.height ?? 0) },
    {
      x: axisOf('count', 'token', picture.x.size, { textOf: () => '' }),
      tracks: [{ y: axisFrom(picture.y), share: 1 }],
    },
    wholeCamera,
  );
  const track = layout.tracks[0];
  if (!track) throw new Error('no track');
  const row = picture.y.rows.indexOf('blk.2 expert 3');
  const points = Array.from({ length: picture.x.size }, (_, token) => [
    xOf(layout, token + 0.5),
    yOf(track, row + 0.5),
  ]);
  const background = await fixture.cssColour('--panel');
  const used = async () => {
    const colours = await map()
      .locator('.plane-base')
      .evaluate((canvas, at) => {
        const ctx = (canvas as HTMLCanvasElement).getContext('2d');
        return at.map(([x = 0, y = 0]) =>
          [...(ctx?.getImageData(x * devicePixelRatio, y * devicePixelRatio, 1, 1).data ?? [])].slice(0, 3),
        );
      }, points); // prettier-ignore
    return colours.flatMap((colour, token) =>
      colour.join() === background || !colour.some(Boolean) ? [] : [token],
    );
  };
  const expected = (picture.cells[row] ?? []).flatMap((cell, token) => (cell > 0 ? [token] : []));
  await expect.poll(used).toEqual(expected);
  // Of the generated tokens, those of the recorded accesses.
  const { rows } = await fixture.sql<[number]>(
    `SELECT DISTINCT token_id FROM access WHERE expert_id = 3 AND op_layer_id = 2 AND token_count = 1 ORDER BY token_id`,
  );
  const generated = rows.map(([token]) => token);
  expect(generated.length).toBeGreaterThan(0);
  expect(expected.filter((token) => token >= (generated[0] ?? 0))).toEqual(generated);
});

it('which tokens used expert 3 of layer 2, as links of the expert', async () => {
  const { page, inspector } = fixture;
  const session = fixture.session ?? '';
  const list = inspector.locator('section', { hasText: /^Tokens that used it/ });
  // The tokens of the list, after it is unfolded.
  const listed = async () => {
    for (const more = list.getByRole('button', { name: /^Show \d+ more$/ }); await more.count();)
      await more.click();
    const details = await list.locator('button.jump .dim').allInnerTexts();
    return details.map((text) => Number(/^token (\d+)$/.exec(text)?.[1]));
  };
  const used = async (query: string) => {
    const { tokens } = await fixture.get<{
      tokens: { token: number; experts: { expert: number }[] }[];
    }>(`experts/tokens?limit=1000${query}`);
    return tokens.filter(({ experts }) => experts.some(({ expert }) => expert === 3)).map(({ token }) => token); // prettier-ignore
  };
  await fixture.show(session, 'sel=x:2.3');
  const ofLayer = await used('&layer=2');
  await expect.poll(listed).toEqual(ofLayer);
  expect(await fixture.axeViolations()).toEqual([]);
  // The filter of another expert does not empty it, and says so.
  await fixture.filter.fill('layer:2 expert:1');
  await click(inspector.getByRole('button', { name: 'Remove expert:1 from the filter' }));
  await expect.poll(() => fixture.filter.inputValue()).toBe('layer:2');
  await expect.poll(listed).toEqual(ofLayer);
  await click(list.locator('button.jump').last());
  await expect.poll(() => fixture.hash.get('sel')).toBe(`k:${ofLayer.at(-1) ?? ''}`);
  await page.goBack();
  await expect.poll(() => fixture.hash.get('sel')).toBe('x:2.3');
});

it('which tokens used expert 3 of layer 2, as a table to copy', async () => {
  const { page, filter } = fixture;
  await click(filter);
  const options = page.getByRole('listbox', { name: 'Completions' });
  await options.getByRole('option', { name: /^expert:/ }).waitFor();
  await page.keyboard.type('layer:');
  await options.getByRole('option', { name: '2', exact: false }).first().waitFor();
  await page.keyboard.type('2 expert:3');
  await page.getByRole('combobox', { name: 'Totals by' }).selectOption('token');
  const { rows: used } = await fixture.sql<[number, number, number]>(
    `SELECT step, count(*), sum(size_bytes) FROM access WHERE expert_id = 3 AND op_layer_id = 2 GROUP BY step`,
  );
  const { rows: chosen } = await fixture.sql<[number, number]>(
    `SELECT step, token_id FROM expert WHERE expert_id = 3 AND layer_id = 2 ORDER BY token_id`,
  );
  const shown = page.getByRole('grid', { name: 'Totals by token' });
  await page.locator('.table-note').getByText('whole session').waitFor();
  expect(chosen.length).toBeGreaterThan(0);
  const note = page.locator('.table-note');
  await note.getByText(plural(chosen.length, 'token'), { exact: true }).waitFor();
  // The time is the expert's, not that of all experts of its ops.
  const { rows: times } = await fixture.sql<[number, number]>(
    `SELECT sum(self_ns), sum(duration_ns) FROM access WHERE expert_id = 3 AND op_layer_id = 2`,
  );
  const [own = 0, whole = 0] = times[0] ?? [];
  expect(own).toBeLessThan(whole);
  await note.getByText(formatNs(own), { exact: true }).waitFor({ timeout: 20_000 });
  await expect.poll(() => shown.getAttribute('aria-rowcount')).toBe(String(used.length + 1));
  await page.getByRole('button', { name: 'Copy', exact: true }).click();
  await page.getByRole('button', { name: 'Rows as JSON' }).click();
  await fixture.toasts.getByText('copied as JSON').waitFor();
  const copied = JSON.parse(await page.evaluate(() => navigator.clipboard.readText())) as {
    tokens: string;
    step: number;
    text: string;
    accesses: number;
    bytes_read: number;
    time: number;
  }[];
  expect(copied.map((row) => [row.step, row.accesses, row.bytes_read])).toEqual(used);
  expect(copied.flatMap((row) => row.tokens.split(', ').map(Number))).toEqual(
    chosen.map(([, token]) => token),
  );
  expect(copied.every((row) => row.text !== '' && row.time > 0)).toBe(true);
  await page.getByRole('combobox', { name: 'Totals by' }).selectOption('expert');
  const totals = page.getByRole('grid', { name: 'Totals by expert' });
  await page.getByRole('radio', { name: 'Session', exact: true }).check();
  await expect.poll(() => totals.getAttribute('aria-rowcount')).toBe('2');
  await totals.locator('.vgrid-row', { hasText: 'blk.2 expert 3' }).waitFor();
  expect(await note.innerText()).not.toContain('ignores');
  const { rows: experts } = await fixture.get<Breakdown>('breakdown?by=expert&layers=2&limit=1000');
  const time = experts.find(({ name }) => name === 'blk.2 expert 3')?.all.time_ns ?? 0;
  await note.getByText(formatNs(time), { exact: true }).waitFor({ timeout: 20_000 });
  await page.getByRole('radio', { name: 'Accesses', exact: true }).check();
  const accesses = page.getByRole('grid', { name: 'Accesses of the session' });
  const all = used.reduce((sum, [, count]) => sum + count, 0);
  await expect.poll(() => accesses.getAttribute('aria-rowcount')).toBe(String(all + 1));
});

it('which tokens used an expert: one that was used, without a list over the answer', async () => {
  const { page, filter } = fixture;
  await page.keyboard.press('Control+K');
  const search = page.getByRole('dialog', { name: 'Search and commands' });
  await search.getByRole('combobox').fill('Which tokens used an expert?');
  await search.getByRole('option', { name: 'Which tokens used an expert?' }).first().click();
  await expect.poll(() => filter.inputValue()).toMatch(/^layer:\d+ expert:\d+$/);
  const [layer, expert] = (await filter.inputValue()).match(/\d+/g) ?? [];
  const { rows } = await fixture.sql<[number, number]>(`SELECT expert_id, tokens FROM expert_use WHERE layer_id = ${layer ?? ''} ORDER BY tokens DESC`); // prettier-ignore
  const most = rows.filter(([, tokens]) => tokens === rows[0]?.[1]).map(([id]) => String(id));
  expect(most).toContain(expert);
  await page.getByRole('grid', { name: 'Totals by token' }).getByText('op time').waitFor();
  await expect.poll(() => page.evaluate(() => getSelection()?.toString())).toBe(expert);
  expect(await page.getByRole('listbox', { name: 'Completions' }).count()).toBe(0);
});

it('is answered by a question of each view, also in other words', async () => {
  const { page } = fixture;
  const search = page.getByRole('dialog', { name: 'Search and commands' });
  for (const [words, title, shown] of [
    ['optimize first', 'What is memory-bound, and how far?', '[data-chart="roofline"]'],
    ['tensor type', 'Which tensor type has the most bytes?', '[data-chart="tensor_types"]'],
    ['previous token', 'Which head looks at the previous token?', '[data-chart="look_previous"]'],
    ['logit lens', 'What would the model have said after a layer?', '[data-chart="lens_likely"]'],
    ['what was NaN first', 'Where does the first NaN come from?', '.sql-status'],
    ['what changed', 'What changed between two runs?', '#panel-compare, [data-panel="compare"]'],
  ] as const) {
    await page.keyboard.press('Control+K');
    await search.getByRole('combobox').fill(words);
    await search.getByRole('option', { name: title }).first().click();
    await page.locator(shown).first().waitFor({ timeout: 20_000 });
  }
});

// Asks a question of the menu.
async function ask(question: string): Promise<void> {
  await click(fixture.page.getByRole('button', { name: 'Questions' }));
  await click(fixture.page.getByRole('button', { name: question }));
}

it('which tensor type has the most bytes', async () => {
  const analytics = new AnalyticsPage(fixture);
  const { rows } = await fixture.sql<[string, number]>(
    "SELECT tensor_type, sum(size_bytes) AS bytes FROM access WHERE phase = 'generate' AND tensor_kind = 'weight' AND write = 0 GROUP BY tensor_type ORDER BY bytes DESC",
  );
  await ask('Which tensor type has the most bytes?');
  await analytics.chart('tensor_types').waitFor();
  const shown = await analytics.csv('tensor_types');
  expect(shown.map((row) => [row['tensor type'], Number(row['read in all steps (bytes)'])])).toEqual(rows); // prettier-ignore
  // The same in words, for the keyboard and for a screen reader.
  await analytics.chart('tensor_types').focus();
  await fixture.page.keyboard.press('Home');
  const [type = '', bytes = 0] = rows[0] ?? [];
  const words = analytics.card('tensor_types').getByRole('status');
  await expect.poll(() => words.innerText()).toContain(type);
  expect(asOnPage(await words.innerText())).toContain(asOnPage(formatBytes(Math.round(bytes / 23))));
}); // prettier-ignore

it('how the prompt differs from generation', async () => {
  const { rows } = await fixture.sql<[string, number]>(
    "SELECT phase, 1.0 * bytes_read / tokens FROM phase_totals WHERE phase IN ('prompt', 'generate')",
  );
  await ask('How does the prompt differ from generation?');
  const compare = fixture.page.getByRole('tabpanel', { name: 'Compare' });
  await compare.locator('.compare-table').first().waitFor();
  const words = fixture.page.getByText(/A token of the prompt reads .* a generated token/).first();
  const text = asOnPage(await words.innerText());
  for (const [phase, bytes] of rows)
    expect(text, phase).toContain(asOnPage(formatBytes(Math.round(bytes))));
});

it('which op type to optimise, and how much of the time it takes', async () => {
  const { onlyClean } = await slowestLayers();
  const { rows, sums } = await fixture.get<Breakdown>(
    `breakdown?by=op_kind&sort=-time&step_times=true&phase=generate${onlyClean ? '&clean=true' : ''}`,
  );
  await ask('Which op takes the most time?');
  const grid = fixture.page.getByRole('grid', { name: 'Totals by op type' });
  const cells = grid.locator('.vgrid-row').first().locator('.vgrid-cell');
  await expect.poll(() => cells.first().innerText()).toBe(rows[0]?.name);
  const share = (100 * (rows[0]?.step_ns?.median ?? 0)) / (sums.step_ns?.median ?? 1);
  await expect.poll(() => cells.nth(4).innerText()).toBe(`${String(Number(share.toPrecision(3)))} %`); // prettier-ignore
});

it('what changed between two runs', async () => {
  const first = fixture.session ?? '';
  const second = await fixture.recorded(9);
  await ask('What changed between two runs?');
  const compare = fixture.page.getByRole('tabpanel', { name: 'Compare' });
  const other = fixture.hash.get('with') ?? '';
  expect(other).not.toBe(second);
  const { change } = await fixture.get<SessionComparison>(`comparison/${other}?limit=0`);
  const words = compare.locator('.compare-facts > p').first();
  await expect.poll(() => words.textContent()).toBe(change.text);
  expect(first).not.toBe('');
});

it('is answered by the search, which also explains terms', async () => {
  const { page } = fixture;
  const search = page.getByRole('dialog', { name: 'Search and commands' });
  await page.keyboard.press('Control+K');
  await page.keyboard.type('kv cache');
  await search
    .getByRole('option', { name: /^KV cache memory that keeps the keys and values/ })
    .waitFor();
  await page.keyboard.press('Enter');
  const help = page.getByRole('dialog', { name: 'Keyboard shortcuts and glossary' });
  await help.locator('[data-shown=true] dt', { hasText: 'KV cache' }).waitFor();
  expect(await fixture.axeViolations()).toEqual([]);
  await page.keyboard.press('Escape');
  await page.keyboard.press('Control+K');
  await page.keyboard.type('slowest layer');
  await page.keyboard.press('Enter');
  const { rows } = await slowestLayers();
  const first = page.getByRole('grid', { name: 'Totals by layer' }).locator('.vgrid-row').first();
  await expect
    .poll(() => first.locator('.vgrid-cell').first().innerText())
    .toBe(layerName(rows[0]?.name ?? ''));
});

it('and Back returns to the filter from before a sentence was clicked', async () => {
  const { page, filter } = fixture;
  await filter.fill('layer:1');
  await click(sentence(/^A generated token reads/));
  await expect.poll(() => filter.inputValue()).toBe('');
  await page.goBack();
  await expect.poll(() => filter.inputValue()).toBe('layer:1');
  await page.goForward();
  await expect.poll(() => filter.inputValue()).toBe('');
});

it('shows only the expert of the filter', async () => {
  clicks += 1;
  await preset('Step × expert');
  await fixture.filter.fill('layer:2 expert:3');
  await click(map().getByRole('checkbox', { name: 'Totals' }));
  const { rows } = await fixture.sql<[number]>(
    'SELECT count(*) FROM access WHERE expert_id = 3 AND op_layer_id = 2',
  );
  const shown = map().locator('.map-table .vgrid-row:not([hidden])');
  await expect.poll(() => shown.count()).toBe(1);
  const cells = await shown.locator('.vgrid-cell').allInnerTexts();
  expect(cells.slice(0, 2)).toEqual(['blk.2 expert 3', String(rows[0]?.[0])]);
  expect(await map().getByText('ignores').count()).toBe(0);
});
