// The memory budget: chosen in the page, carried out by the server, shown against REST.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Locator } from 'playwright-core';
import { afterAll, describe, expect, it } from 'vitest';
import { formatBytes, formatNs, formatSpeed } from '../../../src/format';
import type { Memory, MemoryPlan, PictureAxis, Session, StepSummary } from '../../../src/net/types';
import { axisFrom } from '../../../src/panels/map/map_axes';
import { axisOf } from '../../../src/plane/axis';
import { laneBox, planeLayout, yOf } from '../../../src/plane/layout';
import { wholeCamera } from '../../../src/plane/camera';
import { makeModel } from '../support/models';
import { PageFixture } from '../support/page_fixture';

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
    .sort((a, b) => b.file_bytes - a.file_bytes);
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
  const middle = range.file_offset + range.file_bytes / 2;
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
        return [...(pixel ?? [])].join();
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

// The mean time of sampling of a generated token.
async function sampleNs(): Promise<number> {
  const { steps } = await fixture.get<{ steps: StepSummary[] }>('steps?limit=1000');
  const own = steps.filter(({ phase, dropped }) => phase === 'generate' && !dropped);
  const sum = own.reduce((all, step) => all + (step.sample_ns ?? 0), 0);
  return Math.round(sum / own.reduce((all, step) => all + step.token_count, 0));
}

// The last run with a plan beside the last one without: what SQL and REST say of both.
async function comparesRuns(): Promise<void> {
  const { sessions } = await fixture.rest<{ sessions: Session[] }>('sessions');
  const last = (planned: boolean) =>
    sessions.find(({ facts }) => (facts?.['memory.state'] === 'active') === planned);
  const expected = await Promise.all(
    [false, true].map(async (planned) => {
      const { steps } = await fixture.rest<{ steps: StepSummary[] }>(
        `sessions/${last(planned)?.id}/steps?limit=1000`,
      );
      const own = steps.filter(({ phase }) => phase === 'generate');
      const perToken = (of: (step: StepSummary) => number | null): number =>
        own.reduce((sum, step) => sum + (of(step) ?? 0), 0) / own.length;
      return {
        speed: formatSpeed(last(planned)?.speed?.tokens_per_second ?? NaN),
        bytes: formatBytes(Math.round(perToken((step) => step.disk_read_bytes))),
        faults: perToken((step) => step.major_faults),
      };
    }),
  );
  const rows = panel().getByRole('region', { name: 'Runs' }).locator('tbody tr');
  const cells = (row: number) => rows.nth(row).locator('td').allInnerTexts();
  await expect
    .poll(() => cells(0))
    .toEqual([...expected.map(({ speed }) => speed), expect.stringMatching(/×$/)]);
  await expect
    .poll(() => cells(1))
    .toEqual([...expected.map(({ bytes }) => bytes), expect.anything()]);
  const [plain, planned] = (await cells(2)).map(Number);
  expect(plain).toBeCloseTo(expected[0]?.faults ?? NaN, 0);
  expect(planned).toBeCloseTo(expected[1]?.faults ?? NaN, 0);
}

// "71.7 KiB" as bytes.
function bytesAtEnd(text: string): number {
  const [, number = 'NaN', unit = ''] = /([\d.]+) (B|KiB|MiB|GiB)$/.exec(text) ?? [];
  return Number(number) * 1024 ** ['B', 'KiB', 'MiB', 'GiB'].indexOf(unit);
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
      .getByText(
        / of RAM are enough, so that each weight .* KV cache \(reserved for .* tokens\) and /,
      )
      .waitFor();
    await panel().getByRole('rowheader', { name: 'no plan' }).waitFor();

    // The graph has the measured speed, and what it has besides the predicted one.
    const measured = (await rest<Memory>('memory')).tokens_per_second ?? 0;
    await panel()
      .getByText(`measured in the newest run, last 16 tokens: ${formatSpeed(measured)}`)
      .waitFor();
    await panel()
      .getByText(`also has sampling (${formatNs(await sampleNs())} per token)`)
      .waitFor();
    expect(await panel().locator('.budget-curve .budget-measured').count()).toBe(1);
    // With all memory for the weights there is nothing to plan.
    expect(await panel().getByRole('button', { name: /^Use / }).isDisabled()).toBe(true);

    // The weights were repacked: the model is loaded again.
    const chosen = 32 << 20;
    await panel().getByText('At least 8 MiB: reading ahead needs room').waitFor();
    await panel().getByRole('slider').fill(String(chosen));
    // The panel keeps it while another one is shown.
    await fixture.tab('Table').click();
    await fixture.tab('Memory budget').click();
    expect(await panel().getByRole('slider').inputValue()).toBe(String(chosen));
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
    // The figures are beside the curve.
    const [plot, ...ticks] = await Promise.all([
      panel().locator('.budget-curve').boundingBox(),
      ...(await panel().locator('.budget-chart .budget-tick').all()).map((one) =>
        one.boundingBox(),
      ),
    ]);
    expect(ticks.length).toBe(2);
    for (const tick of ticks)
      expect((tick?.x ?? 0) + (tick?.width ?? 0)).toBeLessThan(plot?.x ?? 0);
    await panel()
      .getByRole('button', { name: `Use ${formatBytes(chosen)}` })
      .click();
    await expect.poll(() => decision().innerText()).toBe('Learning.');
    const model = () => fixture.rest<{ state: string }>('models/small');
    await expect.poll(async () => (await model()).state).toBe('loaded');
    await expect.poll(() => fixture.run.isEnabled()).toBe(true);
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
    // The first run may read a little of the file that is not in memory yet.
    const readBy = async (of: Locator) => bytesAtEnd(await of.innerText());
    const plain = await readBy(panel().getByRole('row', { name: /^no plan/ }));
    expect(await readBy(row)).toBeGreaterThan(Math.max(1024, 10 * plain));
    expect(await panel().locator('figure line.budget-at').count()).toBe(2);
    // The time between the runs is left out.
    await panel().getByText('lines between runs').first().waitFor();
    // The charts end with what REST says now, and the prediction is that of the plan.
    const captions = () => panel().locator('figcaption b').allInnerTexts();
    await expect
      .poll(captions)
      .toEqual([
        formatSpeed(state.tokens_per_second ?? 0),
        formatBytes(Math.round(state.bytes_per_token)),
      ]);
    await panel()
      .getByText(/^Active\. Planned: /)
      .waitFor();
    // The prediction follows what is measured: what REST says now.
    const says = async (text: (now: Memory) => string) =>
      expect
        .poll(async () =>
          panel()
            .getByText(text(await rest<Memory>('memory')))
            .count(),
        )
        .toBe(1);
    const pace = (speed: number | null | undefined, bytes: number) =>
      `${formatSpeed(speed ?? 0)}, ${formatBytes(Math.round(bytes))} read from the disk per token`;
    await says(({ plan: planned }) => pace(planned.tokens_per_second, planned.bytes_per_token));
    await says(
      (now) =>
        `Measured in the newest run of this model, last 16 tokens: ${pace(now.tokens_per_second, now.bytes_per_token)}`,
    );
    await comparesRuns();
    await panel().getByText('Their prompts differ or were not recorded').waitFor();
    // The same in the memory map of the session.
    await map().getByRole('combobox', { name: 'Preset' }).selectOption({ label: 'Memory' });
    const states = map().getByRole('list', { name: 'The weights now' });
    await states.getByText(`pinned ${formatBytes(sum(plan, 'pinned_bytes'))}`).waitFor();
    await states
      .getByText(`read for every token ${formatBytes(sum(plan, 'streamed_bytes'))}`)
      .waitFor();
    const [pinned, streamed] = [largest(plan, true), largest(plan, false)];
    // Of a range that is a few pixels high, the edges may be in the middle pixel: make it higher.
    await page.setViewportSize({ width: 1440, height: 1800 });
    // The legend is written before the lanes are painted.
    const looksLike = async (lane: number, range: PlannedRange, name: string) =>
      expect
        .poll(() => laneColour(lane, range), { message: name })
        .toBe(`${await fixture.cssColour(name)},255`);
    await looksLike(0, pinned, '--pinned');
    await looksLike(0, streamed, '--streamed');
    await looksLike(1, pinned, '--resident');
    await page.mouse.move(...(await lanePoint(1, pinned)));
    await map().locator('.tip').getByText('in memory now').waitFor();
    await map()
      .locator('.tip')
      .getByText(/ pinned$/)
      .waitFor();
    expect(await fixture.axeViolations()).toEqual([]);

    await panel().getByRole('button', { name: 'Remove budget', exact: true }).click();
    await expect.poll(() => decision().innerText()).toBe('No plan.');
    await panel().getByText('pinned 0 B', { exact: true }).waitFor();
    expect((await rest<Memory>('memory')).budget).toBe('off');
    await expect.poll(() => states.innerText()).not.toContain('pinned');
    await page.getByRole('tab', { name: 'Table', exact: true }).click();
  });

  it('is shown in the memory map while the model of the session is loaded', async () => {
    const { page } = fixture;
    await fixture.recorded(4);
    await map().getByRole('combobox', { name: 'Preset' }).selectOption({ label: 'Memory' });
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
