// What the page must be able to do, one test each, named after the requirement. The table of a
// million rows is in table.e2e.ts.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { colourOf } from '../../../src/plane/colours';
import type { GraphEdge, GraphNode, Op, StepSummary } from '../../../src/net/types';
import { mapPanel } from '../support/map_panel';
import { makeModel } from '../support/models';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use();

const { map, preset, display } = mapPanel(fixture);
const input = () => map().locator('.plane-input');
const tip = () => map().locator('.tip');
const graph = (layer: number) =>
  fixture.page.getByRole('application', { name: new RegExp(`^Layer ${layer}: `) });
const base = () => fixture.pixels('.plane-base');

async function box() {
  const found = await input().boundingBox();
  if (!found) throw new Error('no map');
  return found;
}
async function pointAt(share: number, y: number): Promise<void> {
  const { x, y: top, width } = await box();
  await fixture.page.mouse.move(x + share * width, top + y);
}

describe('the page', () => {
  it('shows the file (DISK) and the buffers (BUFFER) as two tracks', async () => {
    await fixture.recorded();
    await preset('Memory');
    const { y } = await fixture.get<{ y: { sections: unknown[] } }>('heatmap?x=all&y=file&value=bytes'); // prettier-ignore
    expect(y.sections).toHaveLength(1);
    await expect
      .poll(async () => {
        await pointAt(0.4, 60);
        return tip().innerText();
      })
      .toMatch(/tensor\s+(blk|token_embd|output)/);
    await expect
      .poll(async () => {
        const { height } = await box(); // the map changes its size when its legend arrives
        await pointAt(0.4, height - 30);
        return tip().innerText();
      })
      .toMatch(/cache_|offset/);
  });

  it('zooms and magnifies', async () => {
    const { page } = fixture;
    await fixture.recorded();
    await pointAt(0.4, 100);
    const crumbs = map().getByRole('navigation', { name: 'In view' });
    await page.mouse.wheel(0, -400);
    await crumbs.waitFor();
    await page.keyboard.press('0');
    await expect.poll(() => crumbs.count()).toBe(0);
    await display((menu) => menu.getByRole('checkbox', { name: 'Lens' }).check());
    await pointAt(0.4, 101);
    await expect.poll(() => fixture.pixels('.plane-lens')).not.toBe(0);
  });

  it('a click in the map selects in graph and table', async () => {
    const { page } = fixture;
    await fixture.recorded();
    const { x, y } = await box();
    await page.mouse.click(x + 150, y + 120); // the column after the prompt
    await expect.poll(() => fixture.hash.get('sel')).toMatch(/^k:\d+$/);
    const layer = Number(fixture.hash.get('l') ?? 0);
    const token = Number(fixture.hash.get('sel')?.slice(2));
    const { steps } = await fixture.get<{ steps: StepSummary[] }>('steps');
    const step = steps.find((one) => one.token_id <= token && token < one.token_id + one.token_count);
    await page.getByRole('grid', { name: `Ops of step ${step?.step ?? -1}` }).waitFor();
    await fixture.tab('Graph').click();
    await graph(layer).waitFor();
  }); // prettier-ignore

  it('shows details under the pointer', async () => {
    await fixture.recorded();
    await pointAt(0.2, 120);
    await expect.poll(() => tip().innerText()).toMatch(/layer\s+\d+[\s\S]*time[\s\S]*share\s+[\d.]+ % of all[\s\S]*step/); // prettier-ignore
  });

  it('colours by access frequency, cold blue to hot red', async () => {
    await fixture.recorded();
    await preset('Memory');
    // The addresses of the buffers differ from run to run, and with them what a pixel covers.
    await map().getByLabel('Rows', { exact: true }).selectOption('file');
    await display((menu) => menu.getByLabel('Scale').selectOption('heat'));
    // The least and the largest twentieth of the scale: the least value of all may be that of a sliver
    // between two tensors that is thinner than a pixel.
    const least = Array.from({ length: 13 }, (_, i) => colourOf('heat', i / 254));
    const largest = Array.from({ length: 13 }, (_, i) => colourOf('heat', 1 - i / 254));
    expect(least.every(([r, , b]) => b > 2 * r)).toBe(true);
    expect(largest.every(([r, , b]) => r > 2 * b)).toBe(true);
    const isPainted = () =>
      map()
        .locator('.plane-base')
        .evaluate((canvas, wanted) => {
          const { width, height } = canvas as HTMLCanvasElement;
          const data = (canvas as HTMLCanvasElement).getContext('2d')?.getImageData(0, 0, width, height).data ?? [];
          return wanted.map((colours) => {
            for (let i = 0; i < data.length; i += 4)
              if (colours.some(([r, g, b]) => data[i] === r && data[i + 1] === g && data[i + 2] === b)) return true;
            return false;
          });
        }, [least, largest]);
    await expect.poll(isPainted).toEqual([true, true]);
  }); // prettier-ignore

  it('filters by phase', async () => {
    const { page } = fixture;
    await fixture.recorded();
    await fixture.rows('Steps');
    const grid = page.getByRole('grid', { name: 'Steps of the session' });
    const { steps } = await fixture.get<{ steps: StepSummary[] }>('steps');
    const rows = () => grid.getAttribute('aria-rowcount');
    await expect.poll(rows).toBe(String(steps.length + 1));
    const picture = await base();
    for (const [name, phase] of [['Prompt', 'prompt'], ['Generate', 'generate']] as const) {
      await page.getByRole('radio', { name, exact: true }).check();
      const own = steps.filter((one) => one.phase === phase);
      await expect.poll(rows).toBe(String(own.length + 1));
      await expect.poll(base).not.toBe(picture);
    }
  }); // prettier-ignore

  it('goes to the next and the previous token', async () => {
    const { page } = fixture;
    await fixture.recorded();
    await input().focus();
    await page.keyboard.press('End');
    await page.keyboard.press('Enter');
    await expect.poll(() => fixture.hash.get('sel')).toMatch(/^k:\d+$/);
    const token = Number(fixture.hash.get('sel')?.slice(2));
    await page.keyboard.press('[');
    await expect.poll(() => fixture.hash.get('sel')).toBe(`k:${token - 1}`);
    await page.getByRole('button', { name: 'Next step' }).click();
    await expect.poll(() => fixture.hash.get('sel')).toBe(`k:${token}`);
  });

  it('a click on an entry lights the graph and the map', async () => {
    await fixture.recorded();
    await preset('Op × time');
    await fixture.page.mouse.move(2, 2);
    await expect.poll(base).not.toBe(0);
    const overlay = () => fixture.pixels('.plane-overlay');
    const before = await overlay();
    const { ops } = await fixture.get<{ ops: Op[] }>('steps/3/ops?limit=1000');
    const op = ops.find((one) => one.op_layer_id === 2 && one.operation_type === 'MUL_MAT');
    await fixture.show(fixture.session ?? '', 'step=3', 'l=2', 'p.map=y:op,x:time');
    await fixture.filter.fill(`n:${op?.op ?? -1}`);
    await fixture.ops.locator('.vgrid-row').first().click();
    await expect.poll(overlay).not.toBe(before);
    await fixture.filter.fill('');
    await fixture.tab('Graph').click();
    await graph(2).waitFor();
    await fixture.page.locator('.graph[data-drawn="2"]').waitFor();
    const lit = () => fixture.pixels('.graph-base');
    const selected = await lit();
    await fixture.page.keyboard.press('Escape');
    await expect.poll(lit).not.toBe(selected);
  });

  it('has a legend of the kinds of nodes', async () => {
    const { page } = fixture;
    await fixture.recorded();
    await fixture.tab('Graph').click();
    await page.keyboard.press('}');
    await graph(1).waitFor();
    const { nodes } = await fixture.get<{ nodes: GraphNode[] }>('steps/0/layers/1');
    const legend = page.getByRole('list', { name: 'Kinds of nodes' });
    const names = { layer: 'layer', infrastructure: 'shared', cross_layer_input: 'input' };
    for (const [category, name] of Object.entries(names)) {
      const count = nodes.filter((node) => node.category === category).length;
      expect(await legend.getByRole('button', { name }).first().innerText()).toMatch(
        new RegExp(`${name}\\s*${count}`),
      );
    }
  });

  it('draws edges across layers dashed', async () => {
    const { page } = fixture;
    await fixture.recorded();
    const { edges } = await fixture.get<{ edges: GraphEdge[] }>('steps/0/layers/1');
    await page.keyboard.press('}');
    await fixture.tab('Graph').click();
    await page.locator('.graph[data-drawn="1"]').waitFor();
    await page.getByRole('button', { name: 'Export' }).click();
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save as SVG' }).click(),
    ]);
    const chunks: Buffer[] = [];
    for await (const chunk of await file.createReadStream()) chunks.push(chunk as Buffer);
    const dashed =
      Buffer.concat(chunks)
        .toString()
        .match(/stroke-dasharray="6 4"/g) ?? [];
    const across = edges.filter(({ cross_layer: cross }) => cross).length;
    expect(across).toBeGreaterThan(0);
    expect(dashed).toHaveLength(across);
  });

  it('shows each panel in full screen by F, until Escape', async () => {
    const { page } = fixture;
    await fixture.recorded();
    for (const name of ['Chat', 'Map', 'Graph', 'Table', 'Inspector']) {
      await fixture.tab(name).click();
      await page.keyboard.press('f');
      const panel = page.getByRole('tabpanel', { name, exact: true });
      const width = async () => (await panel.boundingBox())?.width ?? 0;
      await expect.poll(width, { message: name }).toBeGreaterThan(1400);
      expect(await page.getByRole('tabpanel').count(), name).toBe(1);
      await page.keyboard.press('Escape');
      await expect.poll(width, { message: name }).toBeLessThan(1200);
    }
  });

  it('plays the session', async () => {
    const { page } = fixture;
    // Not a recording of now: an op that waited for a processor would play for seconds.
    await fixture.example();
    await page.getByRole('combobox', { name: 'Speed' }).selectOption('0.0005');
    await page.getByRole('button', { name: 'Play', exact: true }).click();
    const position = page.locator('.playback-position');
    await position.getByText(/^op \d+/).waitFor();
    const first = await position.innerText();
    await expect.poll(() => position.innerText()).not.toBe(first);
    await page.getByRole('button', { name: 'Pause' }).click();
  });
});

describe('the page with a model of 22 layers', () => {
  let folder = '';
  const fixture = PageFixture.use(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tt-models-'));
    return ['-m', await makeModel(folder, 'small', ['--layers', '22'])];
  });
  afterAll(async () => {
    await rm(folder, { recursive: true });
  });

  it('navigates all 22 layers', async () => {
    const { page } = fixture;
    await fixture.recorded();
    await fixture.tab('Graph').click();
    for (let layer = 0; layer < 22; layer += 1) {
      await page.getByRole('application', { name: new RegExp(`^Layer ${layer}: `) }).waitFor();
      await page.locator(`.graph[data-drawn="${layer}"]`).waitFor();
      await page.keyboard.press('}');
    }
    expect(fixture.hash.get('l')).toBe('21');
    const { nodes } = await fixture.get<{ nodes: unknown[] }>('steps/0/layers/21');
    expect(
      await page.getByRole('application', { name: /^Layer 21: / }).getAttribute('aria-label'),
    ).toContain(`${nodes.length} nodes`);
  });
});
