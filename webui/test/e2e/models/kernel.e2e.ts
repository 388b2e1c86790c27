// A model whose weights were repacked at load: the kernels of its ops, and its memory.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { formatBytes } from '../../../src/format';
import type { Breakdown, MemoryPlan } from '../../../src/net/types';
import { LEAST_BUDGET } from '../../../src/panels/budget/sizes';
import { makeModel } from '../support/models';
import { PageFixture } from '../support/page_fixture';
import { asOnPage } from '../support/server_text';

let folder = '';
afterAll(() => rm(folder, { recursive: true }));
// Larger than the least budget.
const SIZES = ['--layers', '3', '--embd', '512', '--ff', '2048'];
const fixture = PageFixture.use(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tt-kernel-'));
  return ['-m', await makeModel(folder, 'small', SIZES)];
});

const grid = (name: string) => fixture.page.getByRole('grid', { name });
const cells = (name: string, row: number) =>
  grid(name).locator(`.vgrid-row[data-index="${row}"] .vgrid-cell`).allInnerTexts();
const count = async (name: string) => Number(await grid(name).getAttribute('aria-rowcount')) - 1;

describe('the kernel of an op', () => {
  it('is a column, a word of the filter, and a fact of the op, as in SQL and REST', async () => {
    const session = await fixture.recorded(6);
    await fixture.show(session, 'step=3');
    const name = 'Ops of step 3';
    const ops = await fixture.sql<[number, string, number]>(
      'SELECT op, kernel, threads FROM op WHERE step = 3 ORDER BY op',
    );
    const titles = await grid(name).getByRole('columnheader').allInnerTexts();
    const at = (title: string) => titles.findIndex((text) => text.trim() === title);
    for (const [op, kernel, threads] of ops.rows.slice(0, 10)) {
      await expect.poll(async () => (await cells(name, op))[at('kernel')]).toBe(kernel);
      expect((await cells(name, op))[at('threads')]).toBe(String(threads));
    }
    const kernels = new Set(ops.rows.map(([, kernel]) => kernel));
    expect(kernels.size).toBeGreaterThan(1);
    for (const kernel of kernels) {
      const own = ops.rows.filter((row) => row[1] === kernel);
      await fixture.show(session, 'step=3', `q=kernel:${kernel}`, `sel=o:${own[0]?.[0] ?? -1}`);
      await expect.poll(() => count(name)).toBe(own.length);
      const facts = fixture.inspector.locator('section', { hasText: 'Ran as' });
      await expect.poll(() => facts.innerText()).toMatch(new RegExp(`kernel\\s+${kernel}\\s`));
      // Totals of the session, and the accesses of the session.
      await fixture.show(session, `q=kernel:${kernel}`, 'p.table=all,by:op_kind');
      const rest = await fixture.get<Breakdown>(`breakdown?by=op_kind&kernel=${kernel}&limit=0`);
      await expect.poll(() => count('Totals by op type')).toBe(rest.total);
      await fixture.show(session, `q=kernel:${kernel}`, 'p.table=rows:accesses,all');
      const { reads, writes } = rest.sums.all;
      await expect.poll(() => count('Accesses of the session')).toBe(reads + writes);
    }
  });
});

// Where the weights are, in bytes: the same in SQL and in the plan of the server.
async function weightsOf(of: PageFixture): Promise<{ file: number; repacked: number }> {
  const { rows } = await of.sql<[string, number]>(
    "SELECT memory_source, sum(tensor_bytes) FROM tensor WHERE template = (SELECT max(template) FROM step) AND tensor_kind = 'weight' AND view_of IS NULL GROUP BY 1",
  );
  const bytes = new Map(rows);
  const file = bytes.get('disk') ?? 0;
  const repacked = bytes.get('repacked') ?? 0;
  const { tensors } = await of.rest<MemoryPlan>('models/small/memory/plan');
  const total = tensors.reduce((sum, { file_bytes }) => sum + file_bytes, 0);
  expect(total).toBe(file + repacked);
  return { file, repacked };
}

const budget = (of: PageFixture) => of.page.getByRole('tabpanel', { name: 'Memory budget' });

// Summary and memory budget: one rule for the bytes of the weights.
async function comparesMemory(of: PageFixture, isRepacked: boolean): Promise<void> {
  await of.recorded(6);
  const { file, repacked } = await weightsOf(of);
  expect(repacked > 0).toBe(isRepacked);
  const total = formatBytes(file + repacked);
  const [inFile, copies] = [formatBytes(file), formatBytes(repacked)];
  const enough = asOnPage(
    `${inFile} for the weights in the file, ${isRepacked ? `${copies} of repacked weights, ` : ''}`,
  );

  const summary = of.inspector.getByRole('list', { name: 'Summary' });
  const ram = summary.getByText(/of RAM are enough/);
  await expect.poll(async () => asOnPage(await ram.innerText())).toContain(enough);
  if (!isRepacked) expect(await ram.innerText()).not.toContain('repacked');

  await of.tab('Memory budget').click();
  await expect
    .poll(() => budget(of).locator('.budget-slider').innerText())
    .toContain(
      isRepacked
        ? ` of ${total}: ${inFile} in the file and ${copies} that are repacked now`
        : ` of ${total}, all weights`,
    );
  const sentence = await budget(of).locator('.budget-enough').innerText();
  expect(asOnPage(sentence)).toContain(enough);
  const copiesNote = budget(of).getByText(`${copies} of the weights are repacked copies`);
  expect(await copiesNote.count()).toBe(isRepacked ? 1 : 0);
}

describe('the memory of the weights', () => {
  it('is the same in the summary, in the memory budget and in REST', () =>
    comparesMemory(fixture, true));

  describe('without repacking', () => {
    const plain = PageFixture.use(async () => [
      '-m',
      await makeModel(await mkdtemp(join(folder, 'plain-')), 'small', SIZES),
      '--no-repack',
    ]);
    it('is, too', () => comparesMemory(plain, false));
  });

  describe('of a model that is too small for a budget', () => {
    const small = PageFixture.use(async () => [
      '-m',
      await makeModel(await mkdtemp(join(folder, 'small-')), 'small'),
    ]);
    it('has its size instead of a slider', async () => {
      await small.recorded(6);
      const { file, repacked } = await weightsOf(small);
      expect(file + repacked).toBeLessThan(LEAST_BUDGET);
      await small.tab('Memory budget').click();
      await budget(small)
        .getByText(`its weights are ${formatBytes(file + repacked)}`)
        .waitFor();
      await budget(small)
        .getByText(`${formatBytes(file)} for the weights in the file`)
        .waitFor();
      expect(await budget(small).getByRole('slider').count()).toBe(0);
    });
  });
});
