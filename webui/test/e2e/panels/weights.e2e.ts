// The values of the weights: figures and pictures are those of REST, down to single values.
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Locator } from 'playwright-core';
import { afterAll, describe, expect, it } from 'vitest';
import type {
  TensorErrors,
  TensorWeights,
  WeightsErrors,
  WeightsMix,
  WeightsOfTensor,
  WeightsValue,
} from '../../../src/net/types';
import {
  shortText,
  blockText,
  blockValuesText,
  floatText,
  formulaText,
  superBlockText,
} from '../../../src/panels/weights/value_text';
import { decodeWeights } from '../../../src/panels/weights/weights_options';
import { percentText } from '../../../src/panels/weights/weights_tables';
import { makeModel, observe, quantize } from '../support/models';
import { PageFixture } from '../support/page_fixture';

const folders: string[] = [];
afterAll(async () => {
  for (const folder of folders) await rm(folder, { recursive: true });
});
// The bundled model, a small one in three types, each made of the one before, and an importance matrix of it.
const fixture = PageFixture.use(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tt-weights-'));
  folders.push(folder);
  const f32 = await makeModel(folder, 'small', ['--layers', '2', '--quant', 'f32']);
  const q8 = await quantize(f32, join(folder, 'q8.gguf'), 'Q8_0');
  await quantize(q8, join(folder, 'q4.gguf'), 'Q4_K');
  await observe(f32, join(folder, 'matrix.gguf'));
  const bundled = fileURLToPath(
    new URL('../../../../tracer/modelgen/bundled/pocket.gguf', import.meta.url),
  );
  return ['-m', bundled, '--models-dir', folder];
});
const TENSOR = 'blk.0.attn_q.weight';
const panel = (): Locator => fixture.page.getByRole('tabpanel', { name: 'Weights' });
const readout = (): Locator => panel().locator('.weights-foot').getByRole('status');
const model = (): Promise<string> => Promise.resolve('pocket');
const weights = async <T>(path: string): Promise<T> =>
  fixture.rest<T>(`models/${await model()}/weights${path}`);
const options = () => decodeWeights(fixture.hash.get('p.weights') ?? '');
const names = (): Promise<readonly string[]> =>
  panel()
    .locator('.vgrid-row')
    .evaluateAll((all) =>
      all
        .filter((row) => !(row as HTMLElement).hidden)
        .map((row) => row.children[0]?.textContent ?? ''),
    );

describe('the weights panel', () => {
  it('lists the statistics of REST in any order', async () => {
    const session = await fixture.recorded(4);
    await fixture.show(session, 'full=weights');
    const { tensors } = await weights<{ tensors: WeightsOfTensor[] }>('');
    await panel().getByText(`${tensors.length} tensors`).waitFor();
    const shown = await names();
    expect(shown).toEqual(tensors.slice(0, shown.length).map(({ name }) => name));
    const first = panel().locator('.vgrid-row').first();
    for (const figure of ['min', 'max', 'mean', 'std'] as const)
      expect(await first.innerText()).toContain(shortText(tensors[0]?.[figure] ?? NaN));
    await panel().getByRole('columnheader', { name: 'max', exact: true }).click();
    const sorted = tensors.toSorted((a, b) => (b.max ?? 0) - (a.max ?? 0));
    await expect.poll(async () => (await names())[0]).toBe(sorted[0]?.name);
    expect(await fixture.axeViolations()).toEqual([]);
  });

  it('reads a large model only when it is asked to, and lists its tensors at once', async () => {
    const { page } = fixture;
    const session = await fixture.recorded(4);
    let asked = 0;
    await page.route('**/models/pocket/weights', async (route) => {
      asked += 1;
      await route.continue();
    });
    await page.route('**/api/v1/models', async (route) => {
      const answer = await route.fetch();
      const body = (await answer.json()) as { models: { id: string }[] };
      const models = body.models.map((one) => one.id === 'pocket' ? { ...one, size_bytes: 3 * 2 ** 30 } : one); // prettier-ignore
      await route.fulfill({ json: { ...body, models } });
    });
    await fixture.show(session);
    await page.reload(); // the list of models is read again
    await fixture.show(session, 'full=weights');
    const { tensors } = await fixture.rest<{ tensors: { name: string }[] }>(`models/${await model()}/gguf`); // prettier-ignore
    await panel().getByText(`${tensors.length} tensors. Enter or a double click reads one`).waitFor();
    const shown = await names();
    expect(shown).toEqual(tensors.slice(0, shown.length).map(({ name }) => name));
    expect(asked).toBe(0);
    expect(await fixture.axeViolations()).toEqual([]);
    await panel().getByRole('button', { name: 'Read all weights, 3 GiB' }).click();
    await panel().getByRole('grid', { name: 'Statistics of the weights' }).waitFor();
    expect(asked).toBeGreaterThan(0);
    await page.unroute('**/api/v1/models');
    await page.unroute('**/models/pocket/weights');
  });

  it('says how far the server is with a large model, and can be cancelled', async () => {
    const { page } = fixture;
    const session = await fixture.recorded(4);
    // As the server answers while it reads a model for more than 3 s.
    let asked = 0;
    await page.route('**/models/pocket/weights', async (route) => {
      asked += 1;
      await route.fulfill({
        status: 503,
        headers: { 'retry-after': '2' },
        contentType: 'application/problem+json',
        body: JSON.stringify({
          type: 'about:blank',
          title: 'Too many concurrent queries',
          status: 503,
          code: 'queries_busy',
          detail: 'The query is still being computed.',
          progress: { read_bytes: (8 + (asked % 8)) * 2 ** 30, all_bytes: 64 * 2 ** 30 },
        }),
      });
    });
    await fixture.show(session, 'full=weights');
    const text = panel().getByText(/^Reading all weights: [\d.]+ GiB of [\d.]+ GiB$/);
    await text.waitFor();
    const bar = panel().getByRole('progressbar', { name: 'Reading all weights' });
    expect(Number(await bar.getAttribute('value'))).toBeGreaterThan(0);
    expect(await fixture.axeViolations()).toEqual([]);
    await panel().getByRole('button', { name: 'Cancel' }).click();
    await panel().getByText('Cancelled.').waitFor();
    await page.unroute('**/models/pocket/weights');
    await panel().getByRole('button', { name: 'Start again' }).click();
    await panel().getByText(/^\d+ tensors/).waitFor();
  });

  it('shows the histogram of a tensor, with its figures', async () => {
    const session = await fixture.recorded(4);
    await fixture.show(session, 'full=weights', `p.weights=t:${TENSOR},show:histogram`);
    const found = await weights<TensorWeights>(`/tensor?name=${TENSOR}`);
    await panel()
      .getByText(`std ${shortText(found.std)}`)
      .waitFor();
    const charts = [found.histogram, found.scales, found.minima].filter((bins) => bins !== null);
    expect(await panel().locator('.chart-card').count()).toBe(charts.length);
    expect(await fixture.axeViolations()).toEqual([]);
  });

  it('is opened by a selected weight, zoomed to one value, and read by keys', async () => {
    const { page } = fixture;
    const session = await fixture.recorded(4);
    await fixture.show(session, `sel=t:${TENSOR}`);
    await fixture.inspector.getByRole('button', { name: 'Weights', exact: true }).click();
    await expect.poll(options).toMatchObject({ tensor: TENSOR, show: 'picture', at: null });
    await panel().getByText(/each cell is/).waitFor();
    // Two rows of three values are in view.
    await fixture.show(session, 'full=weights', `p.weights=t:${TENSOR},show:picture,cx:30:33,cy0:7:9`);
    await panel().getByText('each cell is one value').waitFor();
    const box = await panel().locator('.plane-input').boundingBox();
    if (!box) throw new Error('the picture is not shown');
    await page.mouse.move(box.x + 0.55 * box.width, box.y + 0.25 * box.height);
    await expect.poll(() => readout().innerText()).toContain('[7, 31]');
    // The picture does not move away from the pointer.
    expect(await panel().locator('.plane-input').boundingBox()).toEqual(box);
    const value = (row: number, column: number) =>
      weights<WeightsValue>(`/value?name=${TENSOR}&row=${row}&column=${column}`);
    const expected = await value(7, 31);
    for (const text of [floatText(expected.value ?? NaN), formulaText(expected) ?? '', blockText(expected)])
      await expect.poll(() => readout().innerText()).toContain(text);
    await expect.poll(() => panel().locator('.tip').innerText()).toContain(blockText(expected));
    // Keys move by one value, and Enter selects it: it is in the link.
    await panel().locator('.plane-input').focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await expect.poll(options).toMatchObject({ at: { row: 8, column: 32 } });
    await page.mouse.move(0, 0);
    const below = await value(8, 32);
    await expect.poll(() => readout().innerText()).toContain(`[8, 32] = ${floatText(below.value ?? NaN)}`);
    expect(await fixture.axeViolations()).toEqual([]);
    // The whole tensor, of which the screen has fewer pixels than values.
    await panel().getByRole('button', { name: 'Show the whole tensor' }).click();
    await expect.poll(() => options().camera.x).toBe(null);
    await page.mouse.move(box.x + 0.5 * box.width, box.y + 0.5 * box.height);
    await page.mouse.wheel(0, -300);
    await expect.poll(() => options().camera.ys[0] ?? null).not.toBe(null);
    await panel().getByLabel('Cells show').selectOption('max |value|');
    await expect.poll(() => options().cells).toBe('max_abs');
    // The scale that a value is decoded with.
    await panel().getByLabel('Cells show').selectOption('scale');
    await expect.poll(() => options().cells).toBe('scale');
    await fixture.show(session, 'full=weights', `p.weights=t:${TENSOR},show:picture,cells:scale,cx:30:33,cy0:7:9`); // prettier-ignore
    await panel().getByText('each cell is the block scale of one value').waitFor();
    await page.mouse.move(box.x + 0.55 * box.width, box.y + 0.25 * box.height);
    const tip = `block scale ${shortText(expected.scale ?? NaN)}`;
    await expect.poll(() => panel().locator('.tip').innerText()).toContain(tip);
  });

  it('shows what the scale of a value in a super-block is made of', async () => {
    const { page } = fixture;
    const session = await fixture.recorded(4);
    await fixture.show(session, 'full=weights', `p.weights=m:q4,t:${TENSOR},show:picture,cells:scale_factor,cx:30:33,cy0:7:9`);
    await panel().getByText('each cell is the scale factor of one value').waitFor();
    const expected = await fixture.rest<WeightsValue>(`models/q4/weights/value?name=${TENSOR}&row=7&column=31`);
    const of = expected.super_block;
    if (of === null) throw new Error('q4_K has super-blocks');
    // Six bits, and what the value is decoded from.
    expect(Number.isInteger(of.scale_factor) && of.scale_factor >= 0 && of.scale_factor < 64).toBe(true);
    expect(expected.scale).toBeCloseTo((of.scale ?? NaN) * of.scale_factor, 9);
    const box = await panel().locator('.plane-input').boundingBox();
    if (!box) throw new Error('the picture is not shown');
    await page.mouse.move(box.x + 0.55 * box.width, box.y + 0.25 * box.height);
    const tip = () => panel().locator('.tip').innerText();
    await expect.poll(tip).toContain(`scale factor ${shortText(of.scale_factor)}`);
    const text = superBlockText(expected) ?? '';
    expect(text).toContain(`${floatText(of.scale ?? NaN)} × ${of.scale_factor}`);
    await expect.poll(tip).toContain(text);
    await expect.poll(() => readout().innerText()).toContain(text);
    await expect.poll(() => readout().innerText()).toContain(blockValuesText(expected) ?? '');
    expect(await fixture.axeViolations()).toEqual([]);
  });

  it('says which tensor quantization changed most, where, and which types would be better', async () => {
    const { page } = fixture;
    const session = await fixture.recorded(4);
    await fixture.show(session, 'full=weights');
    // From the page alone: model, view, reference.
    await panel().getByLabel('Model').selectOption('q4');
    await panel().getByRole('radio', { name: 'Errors' }).check();
    await panel().getByText('Choose a reference').waitFor();
    expect(await fixture.axeViolations()).toEqual([]);
    await panel().getByLabel('Reference').selectOption('small');
    const errors = await fixture.rest<WeightsErrors>('models/q4/weights/errors?reference=small');
    const sorted = errors.tensors.toSorted((a, b) => (b.relative_error ?? 0) - (a.relative_error ?? 0));
    const worst = sorted[0];
    if (worst?.relative_error === undefined) throw new Error('no tensor was compared');
    await panel().getByText(`${worst.name} lost most: ${percentText(worst.relative_error)}`).waitFor();
    const shown = await names();
    expect(shown).toEqual(sorted.slice(0, shown.length).map(({ name }) => name));
    await panel().getByRole('grid', { name: 'Errors of the weights' }).getByRole('columnheader', { name: 'RMSE', exact: true }).click();
    const byRmse = errors.tensors.toSorted((a, b) => (b.rmse ?? 0) - (a.rmse ?? 0));
    await expect.poll(async () => (await names())[0]).toBe(byRmse[0]?.name);
    expect(await panel().locator('.chart-card').count()).toBe(2);
    // One tensor: its worst block is a link to the picture.
    await panel().locator('.vgrid-row').first().click();
    const tensor = byRmse[0]?.name ?? '';
    const { worst_rows, worst_blocks } = await fixture.rest<TensorErrors>(
      `models/q4/weights/errors/tensor?reference=small&name=${tensor}`,
    );
    const details = panel().getByRole('region', { name: `Worst rows and blocks of ${tensor}` });
    await expect.poll(() => details.innerText()).toContain(percentText(worst_rows[0]?.relative_error ?? NaN));
    expect(await fixture.axeViolations()).toEqual([]);
    // A mix of types with the size of the model.
    await panel().getByRole('button', { name: 'Find better types' }).click();
    const bytes = errors.tensors.reduce((sum, one) => sum + one.bytes, 0);
    const mix = await fixture.rest<WeightsMix>(`models/small/weights/mix?bytes=${bytes}`);
    await panel().getByText(`${percentText(mix.relative_error)} instead of ${percentText(errors.relative_error)}`).waitFor();
    const waiting = page.waitForEvent('download');
    await panel().getByRole('button', { name: 'Save the types' }).click();
    const list = await readFile(await (await waiting).path(), 'utf8');
    expect(list.trim().split('\n')).toEqual(mix.tensors.flatMap(({ rule }) => rule ?? []));
    const { row, first } = worst_blocks[0] ?? { row: NaN, first: NaN };
    await details.getByRole('button', { name: `Block of row ${row} from column ${first}`, exact: true }).click();
    await expect.poll(options).toMatchObject({ model: 'q4', reference: 'small', show: 'picture', at: { row, column: first } });
    await panel().getByText('each cell is one value').waitFor();
    // The reference has this value.
    const own = await fixture.rest<WeightsValue>(`models/small/weights/value?name=${tensor}&row=${row}&column=${first}`);
    await panel().getByText(`reference small: ${floatText(own.value ?? NaN)}`).waitFor();
  });

  it('is opened on the errors by the question about them, also without a session', async () => {
    const { page } = fixture;
    await page.getByRole('button', { name: 'Questions' }).click();
    await page.getByText('Which tensor lost most by quantization?').click();
    await expect.poll(() => options().show).toBe('errors');
    await panel().getByText('Choose a reference').waitFor();
    expect(fixture.session).toBe(null);
  });

  it('weighs the errors by an importance matrix, which is no model to choose', async () => {
    const session = await fixture.recorded(4);
    await fixture.show(session, 'full=weights', 'p.weights=m:q4,ref:small,show:errors');
    const plain = await fixture.rest<WeightsErrors>('models/q4/weights/errors?reference=small');
    const weighed = await fixture.rest<WeightsErrors>('models/q4/weights/errors?reference=small&imatrix=matrix');
    const worst = ({ tensors }: WeightsErrors) =>
      tensors.toSorted((a, b) => (b.relative_error ?? 0) - (a.relative_error ?? 0))[0];
    const lost = (errors: WeightsErrors) =>
      `${worst(errors)?.name ?? ''} lost most: ${percentText(worst(errors)?.relative_error ?? NaN)}`;
    expect(lost(weighed)).not.toBe(lost(plain));
    await panel().getByText(lost(plain)).waitFor();
    for (const label of ['Model', 'Reference'])
      expect(await panel().getByLabel(label).locator('option').allInnerTexts()).not.toContain('matrix');
    await panel().getByLabel('Weighed by').selectOption('matrix');
    await panel().getByText(lost(weighed)).waitFor();
    await panel().getByText('each column weighed by matrix').waitFor();
    await expect.poll(options).toMatchObject({ imatrix: 'matrix' });
    const name = worst(weighed)?.name ?? '';
    const one = await fixture.rest<TensorErrors>(`models/q4/weights/errors/tensor?reference=small&imatrix=matrix&name=${name}`);
    const details = panel().getByRole('region', { name: `Worst rows and blocks of ${name}` });
    await expect.poll(() => details.innerText()).toContain(percentText(one.worst_rows[0]?.relative_error ?? NaN));
    expect(await fixture.axeViolations()).toEqual([]);
    await panel().getByRole('button', { name: 'Find better types' }).click();
    const bytes = weighed.tensors.reduce((sum, tensor) => sum + tensor.bytes, 0);
    const mix = await fixture.rest<WeightsMix>(`models/small/weights/mix?bytes=${bytes}&imatrix=matrix`);
    await panel().getByText(`${percentText(mix.relative_error)} instead of ${percentText(weighed.relative_error)}`).waitFor();
    // Without it again.
    await panel().getByLabel('Weighed by').selectOption('nothing');
    await panel().getByText(lost(plain)).waitFor();
  });

  it('weighs the errors by what a session read, and says what was predicted for the types', async () => {
    await fixture.rest('models/small/load', { method: 'POST' });
    await expect.poll(async () => (await fixture.rest<{ state: string }>('models/small')).state).toBe('loaded');
    const session = await fixture.recorded(4, { model: 'small' });
    await fixture.show(session, 'full=weights', 'p.weights=m:q4,ref:small,show:errors');
    const plain = await fixture.rest<WeightsErrors>('models/q4/weights/errors?reference=small');
    const predicted = (errors: WeightsErrors) => {
      expect(errors.predicted_relative_error).not.toBe(null);
      return `${percentText(errors.relative_error)} (predicted for these types: ${percentText(errors.predicted_relative_error ?? NaN)})`;
    };
    await panel().getByText(predicted(plain)).waitFor();
    await panel().getByLabel('Reads of').selectOption(session);
    await expect.poll(options).toMatchObject({ session });
    const weighed = await fixture.rest<WeightsErrors>(`models/q4/weights/errors?reference=small&session=${session}`);
    // The rows of the embedding that were read are not all rows.
    expect(weighed.relative_error).not.toBe(plain.relative_error);
    await panel().getByText(predicted(weighed)).waitFor();
    await panel().getByText(`each row by how often ${session} read it`).waitFor();
    // The tensors that may be smaller are first.
    await panel().getByRole('columnheader', { name: 'error per MiB saved' }).click();
    const cheapest = weighed.tensors
      .filter(({ error_per_byte }) => (error_per_byte ?? null) !== null)
      .toSorted((a, b) => (a.error_per_byte ?? 0) - (b.error_per_byte ?? 0));
    await expect.poll(async () => (await names()).slice(0, 3)).toEqual(cheapest.slice(0, 3).map(({ name }) => name));
    expect(await fixture.axeViolations()).toEqual([]);
  });
}); // prettier-ignore
