// The memory budget: chosen in the page, carried out by the server, shown against REST.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { formatBytes } from '../../src/format';
import type { Memory, MemoryPlan } from '../../src/net/types';
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
    await panel().getByRole('rowheader', { name: 'no plan' }).waitFor();

    // The weights were repacked: the model is loaded again.
    const chosen = 32 << 20;
    await panel().getByRole('slider').fill(String(chosen));
    await panel()
      .getByRole('button', { name: `Use ${formatBytes(chosen)}` })
      .click();
    await expect.poll(() => decision().innerText(), { timeout: 20_000 }).toBe('Learning.');
    await expect.poll(() => fixture.run.isEnabled(), { timeout: 20_000 }).toBe(true);
    await run('With a plan', 200);
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
    expect(await fixture.axeViolations()).toEqual([]);

    await panel().getByRole('button', { name: 'Off', exact: true }).click();
    await expect.poll(() => decision().innerText()).toBe('No plan.');
    await panel().getByText('pinned 0 B', { exact: true }).waitFor();
    expect((await rest<Memory>('memory')).budget).toBe('off');
    await page.getByRole('tab', { name: 'Table', exact: true }).click();
  });
});
