// The map of a page: its elements, what it shows, and where.
import type { Locator } from 'playwright-core';
import { expect } from 'vitest';
import { outputOf } from '../../../src/panels/map/map_axes';
import { MARGIN, MAX_COLUMN } from '../../../src/plane/layout';
import type { StepSummary } from '../../../src/net/types';
import type { PageFixture } from './page_fixture';

interface Picture {
  readonly y: { readonly rows: readonly string[] };
  readonly cells: readonly (readonly number[])[];
  readonly shown: number;
}

interface MapPanel {
  readonly map: () => Locator;
  readonly input: () => Locator;
  readonly tip: () => Locator;
  readonly crumbs: () => Locator;
  readonly presets: () => Locator;
  readonly preset: (title: string) => Promise<unknown>; // chooses it
  // Chooses a checkbox or list of the menu Display, and closes the menu.
  readonly display: (change: (menu: Locator) => Promise<unknown>) => Promise<void>;
  // Of the open session, from REST.
  readonly heatmap: (query: string) => Promise<Picture>;
  // A checksum of the picture.
  readonly pixels: () => Promise<number>;
  // Waits until the picture does not change any more. Returns its checksum.
  readonly settled: () => Promise<number>;
  // Name and value of all rows of the table beside the picture.
  readonly tableRows: () => Promise<ReadonlyMap<string, string>>;
  // The middle of the cell of the step of a token and a layer on the screen, while everything is in
  // view.
  readonly columnOf: (token: number, layer?: number) => Promise<{ x: number; y: number }>;
}

export function mapPanel(fixture: PageFixture): MapPanel {
  const map = () => fixture.page.getByRole('tabpanel', { name: 'Map' });
  const input = () => map().locator('.plane-input');
  const tip = () => map().locator('.tip');
  const presets = () => map().getByRole('combobox', { name: 'Preset' });
  const pixels = () => fixture.pixels('.plane-base');
  return {
    map,
    input,
    tip,
    crumbs: () => map().getByRole('navigation', { name: 'In view' }),
    presets,
    preset: (title) => presets().selectOption({ label: title }),
    display: async (change) => {
      await map().getByRole('button', { name: 'Display' }).click();
      await change(map().getByRole('group', { name: 'Display' }));
      await fixture.page.keyboard.press('Escape');
    },
    heatmap: (query) => fixture.get<Picture>(`heatmap?${query}`),
    pixels,
    settled: () => settled(pixels),
    tableRows: () => tableRows(map()),
    columnOf: (token, layer = 1) => columnOf(fixture, input(), tip(), token, layer),
  };
}

export async function settled(pixels: () => Promise<number>): Promise<number> {
  let last = -1;
  await expect
    .poll(
      async () => {
        const before = last;
        last = await pixels();
        return last !== 0 && last === before;
      },
      { interval: 250 },
    )
    .toBe(true);
  return last;
}

async function tableRows(map: Locator): Promise<ReadonlyMap<string, string>> {
  const rows = await map
    .locator('.map-table .vgrid-row')
    .evaluateAll((all) =>
      all
        .filter((row) => !(row as HTMLElement).hidden)
        .map((row) => [...row.children].map((cell) => cell.textContent)),
    );
  return new Map(rows.map(([name = '', value = '']) => [outputOf(name), value]));
}

// Found by the tooltip.
async function columnOf(
  fixture: PageFixture,
  input: Locator,
  tip: Locator,
  token: number,
  layer: number,
): Promise<{ x: number; y: number }> {
  const box = await input.boundingBox();
  if (!box) throw new Error('no map');
  const { steps } = await fixture.get<{ steps: StepSummary[] }>('steps?limit=1000');
  const isToken = fixture.hash.get('p.map')?.includes('x:token') ?? false;
  const last = steps.at(-1);
  const units = isToken ? (last?.token_id ?? 0) + 1 : steps.length;
  const unit = isToken ? token : steps.findIndex((one) => token < one.token_id + one.token_count);
  const gutter = 71;
  const column = Math.min(MAX_COLUMN, (box.width - gutter - MARGIN) / units);
  const x = box.x + gutter + (unit + 0.5) * column;
  for (let y = box.y + 48; y < box.y + box.height; y += 6) {
    await fixture.page.mouse.move(x, y);
    const text = await tip.innerText();
    if (new RegExp(`layer\\s+${layer}\\b`).test(text)) return { x, y: y + 3 };
  }
  throw new Error(`no layer ${layer} in the map`);
}
