// Models that are unlike the bundled one: a mixture of experts, one that is
// recurrent, one that only embeds, one without a vocabulary. Each can be used,
// and what is unusual is said.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { makeBareModel, makeModel } from './models';
import { Stage } from './stage';

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

describe('a mixture of experts', () => {
  const stage = Stage.use(shape('moe'));

  it('shows which experts an op read', async () => {
    const { page } = stage;
    await stage.page.locator('.model-button').click();
    await page.getByRole('dialog', { name: 'Models' }).getByText('Mixture of experts').waitFor();
    expect(await stage.faults()).toEqual([]);
    await page.keyboard.press('Escape');
    await stage.textToEnd('Experts', 4);
    await page.getByLabel('Filter the ops').fill('op:mul_mat_id');
    await stage.ops.locator('.vgrid-row').first().click();
    await stage.inspector
      .getByText(/expert \d+, rank 0, score/)
      .first()
      .waitFor();
    await stage.tab('Layer graph').click();
    await page.getByRole('application', { name: /^Layer 0: / }).waitFor();
    expect(await stage.faults()).toEqual([]);
  });
});

describe('a folder of models', () => {
  let folder = '';
  const stage = Stage.use(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tt-models-'));
    folders.push(folder);
    const [dense] = await Promise.all([makeModel(folder, 'small'), makeModel(folder, 'mamba')]);
    return ['--models-dir', folder, '-m', dense];
  });

  it('is read again when its list is opened', async () => {
    const { page } = stage;
    await makeModel(folder, 'moe');
    await page.locator('.model-button').click();
    const models = page.getByRole('dialog', { name: 'Models' });
    await models.getByRole('button', { name: 'Load moe' }).waitFor();
  });

  it('says of each how far it is loaded', async () => {
    const { page } = stage;
    const shelf = await page.evaluate(() => fetch('api/v1/models').then((one) => one.text()));
    const answer = JSON.parse(shelf) as { models: { name: string }[] };
    const mamba = answer.models.find(({ name }) => name === 'mamba');
    Object.assign(mamba ?? {}, { state: 'loading', load_progress: 0.25 });
    await page.route('**/api/v1/models', (route) => route.fulfill({ json: answer }));
    await page.locator('.model-button').click();
    const bar = page.getByRole('progressbar', { name: 'Loading mamba' });
    await expect.poll(() => bar.getAttribute('value')).toBe('0.25');
  });

  it('is a list from which one is loaded, used and unloaded', async () => {
    const { page } = stage;
    await page.locator('.model-button').click();
    const models = page.getByRole('dialog', { name: 'Models' });
    await models.getByRole('button', { name: 'Load mamba' }).click();
    await models.getByRole('button', { name: 'Unload mamba' }).waitFor({ timeout: 40_000 });
    // One at a time: the other made room.
    await models.getByRole('button', { name: 'Load small' }).waitFor();
    await page.keyboard.press('Escape');
    await expect.poll(() => page.locator('.model-button').innerText()).toContain('mamba');
    await stage.textToEnd('With the other one', 4);
    await page.locator('.model-button').click();
    await models.getByRole('button', { name: 'Unload mamba' }).click();
    await models.getByRole('button', { name: 'Load mamba' }).waitFor({ timeout: 40_000 });
    await page.keyboard.press('Escape');
    await expect.poll(() => stage.run.isDisabled()).toBe(true);
    // What was recorded is read without a model.
    await page.reload();
    await stage.ops.waitFor();
  });
});

describe('a recurrent model', () => {
  const stage = Stage.use(shape('mamba'));

  it('runs, and its layers are drawn', async () => {
    const { page } = stage;
    await page.locator('.model-button').click();
    await page.getByRole('dialog', { name: 'Models' }).getByText('Keeps a state').waitFor();
    await page.keyboard.press('Escape');
    await stage.textToEnd('State', 4);
    await page.getByLabel('Filter the ops').fill('component:ssm');
    await stage.ops.locator('.vgrid-row').first().waitFor();
    await stage.tab('Layer graph').click();
    await page.getByRole('application', { name: /^Layer 0: / }).waitFor();
  });
});

describe('a model that only embeds', () => {
  const stage = Stage.use(shape('bert'));

  it('reads a text, and says that it generates nothing', async () => {
    const { page } = stage;
    await page.locator('.composer').getByText('Computes embeddings').waitFor();
    expect(await stage.run.innerText()).toContain('Embed');
    await page.getByText('Settings', { exact: true }).click();
    expect(await page.getByLabel('Temperature').count()).toBe(0);
    await page.getByText('Settings', { exact: true }).click();
    await page.getByRole('textbox', { name: 'Prompt' }).fill('embed me');
    await page.keyboard.press('Control+Enter');
    await stage.progress.getByText(/^Done: embedding of \d+ tokens/).waitFor({ timeout: 40_000 });
    await stage.ops.waitFor();
    expect(await page.getByRole('radio', { name: 'Generate', exact: true }).isDisabled()).toBe(
      true,
    );
  });
});

describe('a model without a vocabulary', () => {
  const stage = Stage.use(modelArgs(makeBareModel));

  it('takes token ids and shows ids', async () => {
    const { page } = stage;
    await page.locator('.composer').getByText('Has no vocabulary').waitFor();
    expect(await page.getByRole('radio', { name: 'Text', exact: true }).isDisabled()).toBe(true);
    const ids = page.getByRole('textbox', { name: 'Token ids' });
    await ids.fill('1 2 99999');
    await page.keyboard.press('Control+Enter');
    await page.getByRole('alert').getByText('99999 is no token of this model').waitFor();
    await stage.settings(4);
    await ids.fill('1 2 3');
    await page.keyboard.press('Control+Enter');
    await stage.done();
    await expect.poll(() => stage.generated.count()).toBeGreaterThan(0);
    expect(await stage.generated.first().innerText()).toMatch(/^\d+\s*$/);
    await stage.generated.first().click();
    await stage.inspector
      .getByText(/^#\d+$/)
      .first()
      .waitFor();
  });
});
