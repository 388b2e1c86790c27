// Models with special properties: mixture of experts, recurrent, embedding only, without a
// vocabulary. Each works, and the page shows a note.
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { makeModelWithoutVocabulary, makeModel } from '../support/models';
import type { Breakdown } from '../../../src/net/types';
import { expectFindingsOfServer } from '../support/findings_of_server';
import { PageFixture } from '../support/page_fixture';

const folders: string[] = [];
afterAll(async () => {
  for (const folder of folders) await rm(folder, { recursive: true });
});
const modelArgs = (make: (folder: string) => Promise<string>) => async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tt-models-'));
  folders.push(folder);
  return ['-m', await make(folder)];
};
const shape = (name: string) => modelArgs((folder) => makeModel(folder, name));

describe('a chat template that no conversation passes', () => {
  const fixture = PageFixture.use(async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tt-template-'));
    folders.push(folder);
    const file = join(folder, 'template.jinja');
    await writeFile(
      file,
      '{% for m in messages %}\n{% no_such_thing %}{{ m.content }}{% endfor %}',
    );
    return ['--chat-template-file', file];
  });

  it('is a warning of the model, with the construct and its line', async () => {
    const { page } = fixture;
    const { models } = await fixture.rest<{ models: { warning: string }[] }>('models');
    const warning = models[0]?.warning ?? '';
    expect(warning).toMatch(/no_such_thing.*line 2/);
    await page.getByRole('contentinfo').getByText(warning).first().waitFor();
    await page.locator('.model-button').click();
    await page.getByRole('dialog', { name: 'Models' }).getByText(warning).waitFor();
  });
});

describe('options without effect', () => {
  const fixture = PageFixture.use(() => Promise.resolve(['-ngl', '9', '-c', '300']));

  it('are named by the model, the status line and the facts of a session', async () => {
    const { page } = fixture;
    const offload = '-ngl 9 has no effect';
    const context = 'The context has 512 tokens, not 300 (-c)';
    await page.locator('.model-button').click();
    const dialog = page.getByRole('dialog', { name: 'Models' });
    for (const text of [offload, context]) await dialog.getByText(text).waitFor();
    await page.keyboard.press('Escape');
    for (const text of [offload, context])
      await page.getByRole('contentinfo').getByText(text).first().waitFor();
    const session = await fixture.recorded(4);
    const { facts } = await fixture.rest<{ facts: Record<string, string> }>(`sessions/${session}`);
    await fixture.inspector.getByText('All facts').click();
    const warning = fixture.inspector.locator('dl.facts div', {
      has: page.getByRole('term').getByText('warning', { exact: true }),
    });
    expect(await warning.first().locator('dd').innerText()).toBe(facts['load.warning']);
    for (const text of [offload, context]) expect(facts['load.warning']).toContain(text);
  });
});

describe('a mixture of experts', () => {
  const fixture = PageFixture.use(shape('moe'));

  it('shows which experts an op read', async () => {
    const { page } = fixture;
    await fixture.page.locator('.model-button').click();
    await page.getByRole('dialog', { name: 'Models' }).getByText('Mixture of experts').waitFor();
    expect(await fixture.axeViolations()).toEqual([]);
    await page.keyboard.press('Escape');
    await fixture.recorded(6);
    await expectFindingsOfServer(fixture);
    await fixture.filter.fill('op:mul_mat_id');
    await fixture.ops.locator('.vgrid-row').first().click();
    await fixture.inspector
      .getByText(/expert \d+, rank 0, score/)
      .first()
      .waitFor();
    await fixture.tab('Graph').click();
    await page.getByRole('application', { name: /^Layer 0: / }).waitFor();
    expect(await fixture.axeViolations()).toEqual([]);
  });

  it('has totals by expert as in REST, and a row leads to the accesses of the expert', async () => {
    const { page } = fixture;
    await fixture.recorded();
    await page.getByLabel('Totals by').selectOption('expert');
    await page.getByRole('radio', { name: 'Session' }).check();
    const grid = page.getByRole('grid', { name: 'Totals by expert' });
    const rest = await fixture.get<Breakdown>(
      'breakdown?by=expert&sort=-time&step_times=true&limit=1000',
    );
    await expect.poll(() => grid.getAttribute('aria-rowcount')).toBe(String(rest.total + 1));
    for (const [i, row] of rest.rows.slice(0, 4).entries()) {
      const cells = grid.locator(`.vgrid-row[data-index="${i}"] .vgrid-cell`);
      await expect.poll(() => cells.first().innerText()).toBe(row.name);
      const read = (await cells.nth(7).getAttribute('title'))?.replace(/\D/g, '');
      expect(read).toBe(String(row.all.bytes_read));
    }
    await grid.locator('.vgrid-row').first().dblclick();
    const [, layer, expert] = /^blk\.(\d+) expert (\d+)$/.exec(rest.rows[0]?.name ?? '') ?? [];
    await expect.poll(() => fixture.filter.inputValue()).toBe(`layer:${layer} expert:${expert}`);
    const all = await fixture.sql<[number]>(
      `SELECT count(*) FROM access WHERE layer_id = ${layer} AND expert_id = ${expert}`,
    );
    const accesses = page.getByRole('grid', { name: 'Accesses of the session' });
    await expect
      .poll(async () => Number(await accesses.getAttribute('aria-rowcount')) - 1)
      .toBe(all.rows[0]?.[0]);
  });

  it('has experts that are selected in the map by their number, in every step and after a reload', async () => {
    const { page } = fixture;
    const session = await fixture.recorded();
    const map = page.getByRole('tabpanel', { name: 'Map' });
    await fixture.show(session, 'p.map=y:expert,v:accesses');
    await page.locator('.plane-input').focus();
    for (const key of ['Home', 'ArrowDown', 'ArrowDown', 'ArrowDown', 'Enter'])
      await page.keyboard.press(key);
    const tip = map.locator('.tip');
    await expect.poll(() => fixture.hash.get('sel')).toMatch(/^x:\d+\.\d+$/);
    const selected = fixture.hash.get('sel') ?? '';
    const expert = selected.replace(/^x:(\d+)\./, 'blk.$1 expert ');
    // The tip follows the keys a frame later.
    await expect.poll(() => tip.innerText()).toContain(expert);
    const rest = await fixture.get<Breakdown>('breakdown?by=expert&limit=1000');
    const row = rest.rows.find(({ name }) => name === expert);
    const accesses = fixture.inspector.locator('.figure[data-figure="accesses"] b');
    const sum = String((row?.all.reads ?? 0) + (row?.all.writes ?? 0));
    await expect.poll(async () => (await accesses.innerText()).replace(/\D/g, '')).toBe(sum);
    await page.keyboard.press(']');
    await page.reload();
    await expect.poll(() => fixture.hash.get('sel')).toBe(selected);
    await expect.poll(async () => (await accesses.innerText()).replace(/\D/g, '')).toBe(sum);
  });

  it('has experts that the search finds by number', async () => {
    const { page } = fixture;
    await fixture.recorded();
    const accesses = fixture.inspector.locator('.figure[data-figure="accesses"] b');
    const rest = await fixture.get<Breakdown>('breakdown?by=expert&layers=1&limit=1000');
    const chosen = await fixture.sql<[number]>(
      'SELECT DISTINCT expert_id FROM expert WHERE layer_id = 1 ORDER BY expert_id LIMIT 2',
    );
    const [first, second] = chosen.rows.map(([expert]) => String(expert));
    for (const [expert, query] of [
      [first, `expert ${first} layer 1`],
      [second, `layer 1 expert ${second}`],
    ] as const) {
      await page.keyboard.press('Control+k');
      await page.keyboard.type(query);
      await page.getByRole('option', { name: `Select expert ${expert} of layer 1` }).waitFor();
      await page.keyboard.press('Enter');
      await expect
        .poll(() => [fixture.hash.get('sel'), fixture.hash.get('l')])
        .toEqual([`x:1.${expert}`, '1']);
      const row = rest.rows.find(({ name }) => name === `blk.1 expert ${expert}`);
      const sum = String((row?.all.reads ?? 0) + (row?.all.writes ?? 0));
      await expect.poll(async () => (await accesses.innerText()).replace(/\D/g, '')).toBe(sum);
      const used = await fixture.sql<[number]>(
        `SELECT DISTINCT token_id FROM expert WHERE layer_id = 1 AND expert_id = ${expert} ORDER BY token_id`,
      );
      await page.getByRole('heading', { name: `${expert} of layer 1`, exact: true }).waitFor();
      const tokens = fixture.inspector.locator('section', { hasText: 'Tokens that used it' });
      await expect
        .poll(async () => (await tokens.innerText()).match(/(?<=token )\d+$/gm) ?? [])
        .toEqual(used.rows.map(([token]) => String(token)));
    }
    // Of the layer in view, if none is named; the filter stays.
    await page.keyboard.press('Escape');
    await fixture.filter.fill('kind:weight');
    await page.keyboard.press('Control+k');
    await page.keyboard.type('expert 1');
    await page.getByRole('option', { name: 'Select expert 1 of layer 1' }).waitFor();
    await page.keyboard.press('Enter');
    await expect.poll(() => fixture.hash.get('sel')).toBe('x:1.1');
    expect(await fixture.filter.inputValue()).toBe('kind:weight');
    // More experts than the model has.
    await page.keyboard.press('Control+k');
    await page.keyboard.type('expert 999 layer 1');
    await page.getByText(/^The session has no expert 999: they are 0–/).waitFor();
    await page.keyboard.press('Escape');
  });

  it('has the choices of REST in the map, and the slices of the file are named', async () => {
    const { page } = fixture;
    await fixture.recorded(12);
    const map = page.getByRole('tabpanel', { name: 'Map' });
    await map.getByRole('combobox', { name: 'Preset' }).selectOption({ label: 'Step × expert' });
    await map.getByRole('checkbox', { name: 'Totals' }).check();
    const picture = await fixture.get<{
      readonly y: { readonly rows: readonly string[] };
      readonly cells: readonly (readonly number[])[];
    }>('heatmap?x=all&y=expert&value=accesses&height=4096');
    const sums = new Map(picture.y.rows.map((row, i) => [row, picture.cells[i]?.[0] ?? 0]));
    const shown = async () =>
      map
        .locator('.map-table .vgrid-row:not([hidden])')
        .evaluateAll((rows) =>
          rows.map((row) => [...row.children].map((cell) => cell.textContent)),
        );
    await expect.poll(async () => (await shown()).length).toBeGreaterThan(3);
    for (const [name = '', value] of await shown())
      expect(value?.replace(/\s/g, ''), name).toBe(String(sums.get(name)));
    // Over the weights of the experts, the tooltip names the expert.
    await map.getByRole('combobox', { name: 'Preset' }).selectOption({ label: 'Memory' });
    const box = await map.locator('.plane-input').boundingBox();
    if (!box) throw new Error('no map');
    const tip = map.locator('.tip');
    await expect
      .poll(async () => {
        for (let y = 60; y < box.height; y += 9) {
          await page.mouse.move(box.x + 300, box.y + y);
          if (/expert\s+\d+/.test(await tip.innerText())) return true;
        }
        return false;
      })
      .toBe(true);
  });
});

describe('a folder of models', () => {
  let folder = '';
  const fixture = PageFixture.use(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tt-models-'));
    folders.push(folder);
    const [dense] = await Promise.all([makeModel(folder, 'small'), makeModel(folder, 'mamba')]);
    return ['--models-dir', folder, '-m', dense];
  });

  it('without a loaded model the chat offers those that can be loaded', async () => {
    const { page, server } = fixture;
    await expect.poll(() => fixture.run.isEnabled()).toBe(true);
    await fetch(`${server.url}/api/v1/models/small/unload`, { method: 'POST' });
    await fixture.log.getByText('No model is loaded. Load one to run a prompt:').waitFor();
    await fixture.log.getByRole('button', { name: 'Load small' }).click();
    await expect.poll(() => fixture.run.isEnabled()).toBe(true);
    expect(await page.getByText('No model is loaded').count()).toBe(0);
  });

  it('is read again when the model menu is opened', async () => {
    const { page } = fixture;
    await makeModel(folder, 'moe');
    await page.locator('.model-button').click();
    const models = page.getByRole('dialog', { name: 'Models' });
    await models.getByRole('button', { name: 'Load moe' }).waitFor();
  });

  it('shows a link that leads outside, and why it cannot be used', async () => {
    const { page } = fixture;
    const elsewhere = await mkdtemp(join(tmpdir(), 'tt-models-'));
    folders.push(elsewhere);
    await symlink(await makeModel(elsewhere, 't5'), join(folder, 'link.gguf'));
    await page.locator('.model-button').click();
    const row = page.getByRole('dialog', { name: 'Models' }).locator('.model-row', {
      has: page.getByText('link', { exact: true }),
    });
    await row.getByText('this link does not lead to a file in the models folder').waitFor();
    expect(await row.innerText()).toContain('cannot be loaded');
    expect(await page.locator('.model-button').innerText()).toContain('small');
    expect(await fixture.axeViolations()).toEqual([]);
    await rm(join(folder, 'link.gguf'));
  });

  it('shows the load progress of each model', async () => {
    const { page } = fixture;
    const text = await page.evaluate(() => fetch('api/v1/models').then((one) => one.text()));
    const answer = JSON.parse(text) as { models: { name: string }[] };
    const mamba = answer.models.find(({ name }) => name === 'mamba');
    Object.assign(mamba ?? {}, { state: 'loading', load_progress: 0.25 });
    await page.route('**/api/v1/models', (route) => route.fulfill({ json: answer }));
    await page.locator('.model-button').click();
    const bar = page.getByRole('progressbar', { name: 'Loading mamba' });
    await expect.poll(() => bar.getAttribute('value')).toBe('0.25');
  });

  it('is a list of models to load, use and unload', async () => {
    const { page } = fixture;
    await fixture.recorded(4); // of small
    await page.locator('.model-button').click();
    const models = page.getByRole('dialog', { name: 'Models' });
    await models.getByRole('button', { name: 'Load mamba' }).click();
    await models.getByRole('button', { name: 'Unload mamba' }).waitFor();
    // Only one model is loaded at a time.
    await models.getByRole('button', { name: 'Load small' }).waitFor();
    await page.keyboard.press('Escape');
    await expect.poll(() => page.locator('.model-button').innerText()).toContain('mamba');
    // The memory budget says whose it is.
    await fixture.tab('Memory budget').click();
    const subject = page.locator('.budget-model');
    await subject.getByText('The open session is of another model').waitFor();
    expect(await subject.locator('b').innerText()).toBe('mamba');
    await fixture.tab('Table').click();
    await fixture.runTextToEnd('With the other one', 4);
    await fixture.tab('Memory budget').click();
    await expect
      .poll(() => subject.innerText())
      .toMatch(/^Memory of mamba, .*, the model of the next run\.$/);
    await fixture.tab('Table').click();
    await page.locator('.model-button').click();
    await models.getByRole('button', { name: 'Unload mamba' }).click();
    await models.getByRole('button', { name: 'Load mamba' }).waitFor();
    await page.keyboard.press('Escape');
    await expect.poll(() => fixture.run.isDisabled()).toBe(true);
    // Sessions open without a model.
    await page.reload();
    await fixture.ops.waitFor();
  });
});

describe('a recurrent model', () => {
  const fixture = PageFixture.use(shape('mamba'));

  it('runs, and its layers are shown', async () => {
    const { page } = fixture;
    await page.locator('.model-button').click();
    await page
      .getByRole('dialog', { name: 'Models' })
      .getByText('state instead of a KV cache')
      .waitFor();
    await page.keyboard.press('Escape');
    await fixture.recorded(6);
    await expectFindingsOfServer(fixture);
    // Its state is not called a KV cache, in summary, strip and graph.
    expect(await fixture.inspector.locator('.summary').innerText()).toContain('of recurrent state');
    expect(await fixture.inspector.locator('.summary').innerText()).not.toContain('KV cache');
    expect(await page.locator('.strip').innerText()).not.toContain('KV cache');
    await fixture.filter.fill('component:ssm');
    await fixture.ops.locator('.vgrid-row').first().waitFor();
    const rows = page.getByRole('combobox', { name: 'Rows' });
    expect(await rows.locator('option').allInnerTexts()).not.toContain('head');
    await fixture.tab('Graph').click();
    await page.getByRole('application', { name: /^Layer 0: / }).waitFor();
  });
});

describe('an embedding model', () => {
  const fixture = PageFixture.use(shape('bert'));

  it('processes a text, and the page shows that it generates nothing', async () => {
    const { page } = fixture;
    await page.locator('.composer').getByText('Embedding model').waitFor();
    expect(await fixture.run.innerText()).toContain('Embed');
    await page.getByText('Settings', { exact: true }).click();
    expect(await page.getByLabel('Temperature').count()).toBe(0);
    await page.getByText('Settings', { exact: true }).click();
    await page.getByRole('textbox', { name: 'Prompt' }).fill('embed me');
    await page.keyboard.press('Control+Enter');
    await fixture.progress.getByText(/^Done: embedding of \d+ tokens/).waitFor();
    await fixture.ops.waitFor();
    expect(await page.getByRole('radio', { name: 'Generate', exact: true }).isDisabled()).toBe(
      true,
    );
  });
});

describe('a model without a vocabulary', () => {
  const fixture = PageFixture.use(modelArgs(makeModelWithoutVocabulary));

  it('accepts token IDs and shows IDs', async () => {
    const { page } = fixture;
    await page.locator('.composer').getByText('Has no vocabulary').waitFor();
    expect(await page.getByRole('radio', { name: 'Text', exact: true }).isDisabled()).toBe(true);
    const ids = page.getByRole('textbox', { name: 'Token IDs' });
    await ids.fill('1 2 99999');
    await page.keyboard.press('Control+Enter');
    await page.getByRole('alert').getByText('99999 is not a token ID of this model').waitFor();
    await fixture.settings(4);
    await ids.fill('1 2 3');
    await page.keyboard.press('Control+Enter');
    await fixture.waitDone();
    await expect.poll(() => fixture.shownTokens()).toBeGreaterThan(0);
    expect(await fixture.answer.innerText()).toMatch(/^(\d+\s*)+$/);
    // The answer may still move when its place is asked for.
    await expect
      .poll(async () => {
        const { x, y } = await fixture.pointInAnswer(0);
        await page.mouse.click(x, y);
        return fixture.inspector.getByText(/^#\d+$/).count();
      })
      .toBeGreaterThan(0);
  });
});
