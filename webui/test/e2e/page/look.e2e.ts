// What is seen: the light theme, forced colours, lists, bars; and which model the memory budget is of.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { viridis } from '../../../src/plane/colours';
import { formatBytes } from '../../../src/format';
import type { MemoryPlan } from '../../../src/net/types';
import { PANELS } from '../../../src/panels/all_panels';
import { makeModel } from '../support/models';
import { PageFixture } from '../support/page_fixture';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tt-look-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const fixture = PageFixture.use(async () => {
  await makeModel(folder, 'small');
  return ['-m', await makeModel(folder, 'moe'), '--models-dir', folder];
});
const SIZES = [
  { width: 1440, height: 900 },
  { width: 1920, height: 1080 },
] as const;

const luminance = (rgb: readonly number[]): number =>
  [0.2126, 0.7152, 0.0722].reduce((sum, weight, i) => sum + weight * (rgb[i] ?? 0), 0);

describe.each(SIZES)('at %o', (size) => {
  it.each(['light', 'dark'] as const)(
    'the largest value has the most contrast on a %s page',
    async (theme) => {
      const { page } = fixture;
      await page.setViewportSize(size);
      await page.emulateMedia({ colorScheme: theme });
      await fixture.recorded(8);
      const legend = page.locator('.legend canvas');
      await legend.waitFor();
      const [low, high] = await legend.evaluate((canvas) => {
        const ctx = (canvas as HTMLCanvasElement).getContext('2d');
        const at = (x: number) => [...(ctx?.getImageData(x, 0, 1, 1).data ?? [])].slice(0, 3);
        return [at(0), at(109)];
      });
      const ends = theme === 'light' ? [viridis(1), viridis(0)] : [viridis(0), viridis(1)];
      expect([low, high]).toEqual(ends.map((one) => [...one]));
      const back = theme === 'light' ? [255, 255, 255] : [18, 22, 29]; // --panel
      const away = (rgb: readonly number[] = []) => Math.abs(luminance(rgb) - luminance(back));
      expect(away(high)).toBeGreaterThan(2 * away(low));
      expect(await fixture.axeViolations()).toEqual([]);
    },
  );

  it('forced colours keep selection, tabs, legends and bars', async () => {
    const { page } = fixture;
    await page.setViewportSize(size);
    await page.emulateMedia({ forcedColors: 'active' });
    await fixture.show(await fixture.recorded(8), 'step=5', 'sel=o:3');
    await fixture.ops.locator('.vgrid-row[aria-selected=true]').waitFor();
    const back = (selector: string): Promise<string> =>
      page.locator(selector).first().evaluate((one) => getComputedStyle(one).backgroundColor);
    for (const [chosen, other] of [
      ['.tabs button[aria-selected=true]', '.tabs button[aria-selected=false]'],
      ['.segmented input:checked + span', '.segmented input:not(:checked) + span'],
      ['.vgrid-row[aria-selected=true]', '.vgrid-row:not([aria-selected=true])'],
    ] as const)
      expect(await back(chosen), chosen).not.toBe(await back(other));
    const images = (selector: string): Promise<string> =>
      page.locator(selector).first().evaluate((one) => getComputedStyle(one).backgroundImage);
    expect(await images('.strip-key .colour-scale')).toContain('gradient');
    expect(await images(".vgrid-row:not([aria-selected=true]) .vgrid-cell[style*='--share']")).toContain('gradient');
    await page.emulateMedia({ forcedColors: 'none' });
  }); // prettier-ignore
});

// What is chosen in each group of a panel, and whether it differs from the others in more than its colours of
// the page, which forced colours replace.
function choices(panel: Element): readonly string[] {
  const look = (one: Element): string => {
    const { backgroundColor, borderColor, color, outlineStyle, textDecorationLine } = getComputedStyle(one);
    return [backgroundColor, borderColor, color, outlineStyle, textDecorationLine].join(' ');
  };
  const groups: (readonly [string, Element | null, Element | null])[] = [...panel.querySelectorAll('.segmented')].map((group) => [
    group.getAttribute('aria-label') ?? '',
    group.querySelector('input:checked + span'),
    group.querySelector('input:not(:checked):not(:disabled) + span'),
  ]);
  for (const state of ['aria-pressed', 'aria-selected']) {
    const of = (value: boolean) => panel.querySelector(`[${state}=${value}]:not(:disabled)`);
    groups.push([state, of(true), of(false)]);
  }
  return groups.flatMap(([name, chosen, other]) => (chosen?.checkVisibility() && other?.checkVisibility() && look(chosen) === look(other) ? [name] : []));
} // prettier-ignore

it('every panel shows what is chosen in forced colours', async () => {
  const { page } = fixture;
  await page.emulateMedia({ forcedColors: 'active' });
  const session = await fixture.recorded(8);
  const same: string[] = [];
  for (const panel of PANELS) {
    await fixture.show(session, `full=${panel.id}`, 'step=5');
    const shown = page.getByRole('tabpanel', { name: panel.title, exact: true });
    await shown.waitFor();
    await expect.poll(() => shown.locator('progress').count()).toBe(0);
    same.push(...(await shown.evaluate(choices)).map((name) => `${panel.id}: ${name}`));
    expect(await fixture.axeViolations(true), panel.id).toEqual([]);
  }
  await page.emulateMedia({ forcedColors: 'none' });
  expect(same).toEqual([]);
});

it('lists have the look of the page, and the keyboard of the browser', async () => {
  const { page } = fixture;
  await fixture.recorded(8);
  const list = page.getByRole('combobox', { name: 'Totals by', exact: true });
  expect(await list.evaluate((one) => getComputedStyle(one).appearance)).toBe('base-select');
  await list.focus();
  await page.keyboard.press('Space');
  const option = list.getByRole('option', { name: 'layer', exact: true });
  await option.waitFor();
  await option.click();
  await page.getByRole('grid', { name: 'Totals by layer' }).waitFor();
});

it('bars of ops and of totals are shares of all', async () => {
  const { page } = fixture;
  await fixture.show(await fixture.recorded(8), 'step=5');
  const sumOf = async (column: number): Promise<number> => {
    const shares = await page
      .locator(`.vgrid-row:not([hidden]) .vgrid-cell:nth-child(${column})`)
      .evaluateAll((all) => all.map((one) => parseFloat((one as HTMLElement).style.getPropertyValue('--share')) || 0));
    return shares.reduce((sum, one) => sum + one, 0);
  };
  await page.getByRole('grid', { name: 'Ops of step 5' }).waitFor();
  expect(await sumOf(6)).toBeLessThan(101); // those in view
  await fixture.show(fixture.session ?? '', 'p.table=by:layer,all');
  await page.getByRole('grid', { name: 'Totals by layer' }).waitFor();
  await expect.poll(() => sumOf(6)).toBeGreaterThan(99); // bytes
  expect(await sumOf(6)).toBeLessThan(101);
  expect(await sumOf(2)).toBeGreaterThan(0); // medians do not add up to the median of all
}); // prettier-ignore

it('the memory budget says which model it is about, and that the open session is of another one', async () => {
  const { page } = fixture;
  await fixture.example();
  await fixture.tab('Memory budget').click();
  const note = page.getByRole('tabpanel', { name: 'Memory budget' }).getByRole('note');
  await note.getByText(/^Memory of moe, .*, the model of the next run\./).waitFor();
  await note.getByText('The open session is of another model').waitFor();
  await fixture.recorded(8, { model: 'moe' });
  await fixture.tab('Memory budget').click(); // a link without tabs shows the first of each dock
  await expect.poll(() => note.innerText()).not.toContain('another model');
  expect(await note.innerText()).toContain('Memory of moe');
});

it('the memory budget has the weights as a table, beside the rest where there is room', async () => {
  const { page } = fixture;
  await page.setViewportSize(SIZES[0]);
  const session = await fixture.recorded(8, { model: 'moe' });
  const panel = page.getByRole('tabpanel', { name: 'Memory budget' });
  const table = panel.getByRole('grid', { name: 'Tensors of the model file' });
  await fixture.show(session, 'full=budget');
  const { tensors } = await fixture.rest<MemoryPlan>('models/moe/memory/plan');
  await expect.poll(() => table.getAttribute('aria-rowcount')).toBe(String(tensors.length + 1));
  const [first] = tensors;
  const cells = await table.locator('.vgrid-row[data-index="0"] .vgrid-cell').allInnerTexts();
  expect(cells.slice(0, 2)).toEqual([first?.tensor_name, formatBytes(first?.file_bytes ?? 0)]);
  // All of the panel is used: no line of the text is longer than half of it, and the table ends with it.
  const [whole, own, choices] = await Promise.all([panel, table, panel.locator('.budget-choices')].map((one) => one.boundingBox()));
  if (!whole || !own || !choices) throw new Error('not shown');
  expect(own.x).toBeGreaterThan(choices.x + choices.width);
  expect(own.y + own.height).toBeGreaterThan(whole.y + whole.height - 30);
  expect(await fixture.axeViolations()).toEqual([]);
  await table.locator('.vgrid-row[data-index="1"]').click();
  await expect.poll(() => fixture.hash.get('sel')).toBe(`t:${tensors[1]?.tensor_name ?? ''}`);
}); // prettier-ignore

it('one thing is called Table', async () => {
  await fixture.recorded(8);
  expect(await fixture.page.getByText('Table', { exact: true }).count()).toBe(1);
});

it('the search finds views, exports, the report and commands of tt by their words', async () => {
  const { page } = fixture;
  await fixture.recorded(8);
  for (const [query, title] of [
    ['heads', 'Map: rows by head'],
    ['parquet', 'Export the session as Parquet'],
    ['report', 'Report as HTML'],
    ['tt report', 'Copy the command: tt report'],
    ['experts', 'Map: rows by expert'],
  ] as const) {
    await page.keyboard.press('Control+k');
    await page.keyboard.type(query);
    const options = page.getByRole('listbox', { name: 'Commands' }).getByRole('option');
    await options.filter({ hasText: title }).first().waitFor();
    expect(await options.filter({ hasText: 'Explain' }).count(), query).toBe(0);
    await page.keyboard.press('Escape');
  }
  const id = fixture.session ?? '';
  for (const path of ['export?format=csv', 'report?format=md'])
    expect((await fetch(`${fixture.server.url}/api/v1/sessions/${id}/${path}`)).ok).toBe(true);
});
