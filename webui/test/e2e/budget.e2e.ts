// The memory budget: chosen in the page, carried out by the server, shown against REST.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { formatBytes } from '../../src/format';
import type { Memory, MemoryPlan, PictureAxis } from '../../src/net/types';
import { axisFrom } from '../../src/panels/map/map_axes';
import { axisOf } from '../../src/plane/axis';
import { laneBox, planeLayout, wholeCamera, yOf } from '../../src/plane/layout';
import { makeModel } from './models';
import { PageFixture } from './page_fixture';

let folder = '';
afterAll(() => rm(folder, { recursive: true }));

// Weights that are large enough to be read in part.
const fixture = PageFixture.use(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tt-budget-'));
  const sizes = ['--layers', '10', '--embd', '512', '--ff', '2048', '--quant', 'q8_0'];
  return ['-m', await makeModel(folder, 'small', sizes), '--models-dir', folder];
});

const panel = () => fixture.page.getByRole('tabpanel', { name: 'Memory budget' });
const decision = () => panel().locator('.budget-decision b');
const rest = <T>(path: string): Promise<T> =>
  fixture.page.evaluate(
    async (url) => (await (await fetch(url)).json()) as T,
    `api/v1/models/small/${path}`,
  );
const sum = (plan: MemoryPlan, of: 'pinned_bytes' | 'streamed_bytes'): number =>
  plan.tensors.reduce((all, tensor) => all + tensor[of], 0);

const map = () => fixture.page.getByRole('tabpanel', { name: 'Map' });

type PlannedRange = MemoryPlan['planned_ranges'][number];
function largest(plan: MemoryPlan, pinned: boolean): PlannedRange {
  const [first] = plan.planned_ranges
    .filter((range) => range.pinned === pinned)
    .sort((a, b) => b.size_bytes - a.size_bytes);
  if (!first) throw new Error('no range');
  return first;
}

// The middle of a range in a lane of the file track, on the screen.
async function lanePoint(lane: number, range: PlannedRange): Promise<[number, number]> {
  const box = await map().locator('.plane-input').boundingBox();
  if (!box) throw new Error('no map');
  const axis = async (y: string) =>
    axisFrom((await fixture.get<{ y: PictureAxis }>(`heatmap?x=all&y=${y}&value=bytes`)).y);
  const tracks = [
    { y: await axis('file'), share: 3, lanes: [0, 1] },
    { y: await axis('buffer'), share: 2 },
  ];
  const size = { w: Math.round(box.width), h: Math.round(box.height) };
  const [track] = planeLayout(size, { x: axisOf('one', 'all', 1), tracks }, wholeCamera).tracks;
  if (!track) throw new Error('no track');
  const { x, w } = laneBox(track, lane);
  const middle = range.file_offset + range.size_bytes / 2;
  return [box.x + x + w / 2, box.y + yOf(track, middle)];
}

async function laneColour(lane: number, range: PlannedRange): Promise<string> {
  const [x, y] = await lanePoint(lane, range);
  return map()
    .locator('.plane-base')
    .evaluate(
      (canvas, [atX, atY]) => {
        const box = canvas.getBoundingClientRect();
        const ctx = (canvas as HTMLCanvasElement).getContext('2d');
        const ratio = devicePixelRatio;
        const pixel = ctx?.getImageData((atX - box.x) * ratio, (atY - box.y) * ratio, 1, 1).data;
        return [...(pixel ?? [])].slice(0, 3).join();
      },
      [x, y] as const,
    );
}

// The table is behind this panel, so that its rows cannot be waited for.
async function run(prompt: string, tokens: number): Promise<void> {
  const before = fixture.session;
  await fixture.runText(prompt, tokens);
  await expect.poll(() => fixture.session).not.toBe(before);
  await fixture.waitDone();
}

describe('the memory budget', () => {
  it('is chosen with a slider, and its plan and its speed are shown', async () => {
    const { page } = fixture;
    await fixture.tab('Memory budget').click();
    await expect.poll(() => decision().innerText()).toBe('No plan.');
    await panel().getByText('Send a prompt').waitFor();
    await run('Without a plan', 60);
    await panel()
      .getByRole('img', { name: /^Predicted tokens per second/ })
      .waitFor();
    await panel()
      .getByText(/ of memory are enough to read no weight .* KV cache and /)
      .waitFor();
    await panel().getByRole('rowheader', { name: 'no plan' }).waitFor();

    // The weights were repacked: the model is loaded again.
    const chosen = 32 << 20;
    await panel().getByRole('slider').fill(String(chosen));
    // The marker is above the thumb, which is 16 px wide.
    const [line, slider] = await Promise.all([
      panel().locator('.budget-curve .budget-at').boundingBox(),
      panel().getByRole('slider').boundingBox(),
    ]);
    const share = await panel()
      .getByRole('slider')
      .evaluate((input) => {
        const { min, max, valueAsNumber } = input as HTMLInputElement;
        return (valueAsNumber - Number(min)) / (Number(max) - Number(min));
      });
    const thumb = (slider?.x ?? 0) + 8 + share * ((slider?.width ?? 0) - 16);
    expect(Math.abs((line?.x ?? 0) + (line?.width ?? 0) / 2 - thumb)).toBeLessThan(2);
    await panel()
      .getByRole('button', { name: `Use ${formatBytes(chosen)}` })
      .click();
    await expect.poll(() => decision().innerText(), { timeout: 20_000 }).toBe('Learning.');
    const model = () => fixture.rest<{ state: string }>('models/small');
    await expect.poll(async () => (await model()).state, { timeout: 20_000 }).toBe('loaded');
    await expect.poll(() => fixture.run.isEnabled(), { timeout: 20_000 }).toBe(true);
    await run('With a plan', 80);
    await expect.poll(() => decision().innerText()).toBe('Active.');

    const state = await rest<Memory>('memory');
    expect(state.budget).toBe(chosen);
    const plan = await rest<MemoryPlan>('memory/plan');
    expect(sum(plan, 'streamed_bytes')).toBeGreaterThan(0);
    await panel()
      .getByText(`pinned ${formatBytes(sum(plan, 'pinned_bytes'))}`, { exact: true })
      .waitFor();
    await panel()
      .getByText(`read for every token ${formatBytes(sum(plan, 'streamed_bytes'))}`, {
        exact: true,
      })
      .waitFor();
    // Two settings, of which only the second reads from the disk, and the change in the charts.
    const row = panel().getByRole('row', { name: /^32 MiB, pinned and read ahead/ });
    await row.waitFor();
    expect(state.bytes_per_token).toBeGreaterThan(0);
    expect(
      await panel()
        .getByRole('row', { name: /^no plan/ })
        .innerText(),
    ).toMatch(/0 B$/);
    expect(await row.innerText()).not.toMatch(/0 B$/);
    expect(await panel().locator('figure line.budget-at').count()).toBe(2);
    // The same in the memory map of the session.
    await map().getByRole('button', { name: 'Memory', exact: true }).click();
    const states = map().getByRole('list', { name: 'The weights now' });
    await states.getByText(`pinned ${formatBytes(sum(plan, 'pinned_bytes'))}`).waitFor();
    await states
      .getByText(`read for every token ${formatBytes(sum(plan, 'streamed_bytes'))}`)
      .waitFor();
    const [pinned, streamed] = [largest(plan, true), largest(plan, false)];
    // The legend is written before the lanes are painted.
    await expect.poll(() => laneColour(0, pinned)).toBe(await fixture.cssColour('--pinned'));
    await expect.poll(() => laneColour(0, streamed)).toBe(await fixture.cssColour('--streamed'));
    await expect.poll(() => laneColour(1, pinned)).toBe(await fixture.cssColour('--resident'));
    await page.mouse.move(...(await lanePoint(1, pinned)));
    await map().locator('.tip').getByText('in memory now').waitFor();
    await map()
      .locator('.tip')
      .getByText(/ pinned$/)
      .waitFor();
    expect(await fixture.axeViolations()).toEqual([]);

    await panel().getByRole('button', { name: 'Off', exact: true }).click();
    await expect.poll(() => decision().innerText()).toBe('No plan.');
    await panel().getByText('pinned 0 B', { exact: true }).waitFor();
    expect((await rest<Memory>('memory')).budget).toBe('off');
    await expect.poll(() => states.innerText()).not.toContain('pinned');
    await page.getByRole('tab', { name: 'Table', exact: true }).click();
  });

  it('is shown in the memory map while the model of the session is loaded', async () => {
    const { page } = fixture;
    await fixture.recorded(4);
    await map().getByRole('button', { name: 'Memory', exact: true }).click();
    const states = map().getByRole('list', { name: 'The weights now' });
    await states.getByText(/^in memory /).waitFor();
    await page.locator('.model-button').click();
    const models = page.getByRole('dialog', { name: 'Models' });
    await models.getByRole('button', { name: 'Unload small' }).click();
    await models.getByRole('button', { name: 'Load small' }).waitFor();
    await page.keyboard.press('Escape');
    await map().getByText('What is in memory now is shown while the model').waitFor();
    expect(await states.count()).toBe(0);
    await map().getByRole('button', { name: 'Load small' }).click();
    await states.getByText(/^in memory /).waitFor();
  });
});
