// The layer graph with the real server: selection by click, links of the inspector, keyboard
// navigation, the table and the hidden list.
import { describe, expect, it } from 'vitest';
import { PageFixture } from './page_fixture';

const fixture = PageFixture.use();
const canvas = () => fixture.page.getByRole('application', { name: /^Layer \d+: / });
const title = () => fixture.inspector.locator('.inspection h3').innerText();

async function shown(): Promise<void> {
  await fixture.runTextToEnd('A graph', 4);
  await fixture.tab('Layer graph').click();
  await fixture.page.locator('.graph[data-drawn="0"]').waitFor();
}

describe('the layer graph', () => {
  it('selects a clicked node, and follows links', async () => {
    await shown();
    const { page } = fixture;
    const box = await canvas().boundingBox();
    if (!box) throw new Error('the graph is missing');
    // The layer's input is at the top. A click outside the nodes selects nothing.
    await expect
      .poll(async () => {
        for (let x = 0.2; x < 0.8; x += 0.04) {
          await page.mouse.click(box.x + box.width * x, box.y + 30);
          // Read in the page, because page.url() may lag behind.
          if (await page.evaluate(() => location.hash.includes('sel='))) return true;
        }
        return false;
      })
      .toBe(true);
    await expect.poll(() => fixture.hash.get('sel')).toMatch(/^[nt]:\d+$/);
    await fixture.inspector.getByText('Outputs').waitFor();
    const before = await title();
    await fixture.inspector.locator('button.jump').first().click();
    await expect.poll(title).not.toBe(before);
    await page.goBack();
    await expect.poll(title).toBe(before);
    await fixture.inspector.getByRole('button', { name: 'Copy', exact: true }).click();
    await fixture.toasts.getByText('Text copied').waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toContain(before);
    await fixture.inspector.getByRole('button', { name: 'JSON' }).click();
    await fixture.toasts.getByText('JSON copied').waitFor();
    const json: unknown = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
    expect(json).toBeTypeOf('object');
  });

  it('supports keyboard navigation, zoom and search', async () => {
    await shown();
    const { page } = fixture;
    await canvas().focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await fixture.page
      .getByRole('status')
      .getByText(/reads \d+, read by \d+/)
      .waitFor();
    await page.keyboard.press('Enter');
    await expect.poll(() => fixture.hash.get('sel')).toMatch(/^n:\d+$/);
    await page.keyboard.press('+');
    await expect.poll(() => fixture.hash.get('w.graph')).toMatch(/^(-?[\d.]+:){3}-?[\d.]+$/);
    await page.getByRole('button', { name: 'Reset view' }).click();
    await expect.poll(() => fixture.hash.has('w.graph')).toBe(false);
    await page.getByLabel('Search the layer’s nodes').fill('ffn_up');
    await page.getByText(/^[1-9]\d* found$/).waitFor();
    await canvas().focus();
    await page.keyboard.press('}');
    await page.getByRole('application', { name: /^Layer 1: / }).waitFor();
    await page.reload();
    await page.getByRole('application', { name: /^Layer 1: / }).waitFor();
    expect(Object.fromEntries(fixture.hash)).toMatchObject({ l: '1', 'f.graph': 'ffn_up' });
  });

  it('has the same nodes in the table and the list', async () => {
    await shown();
    const { page } = fixture;
    const twin = page.getByRole('list', { name: 'Nodes of the layer' });
    await twin.getByRole('listitem').nth(20).waitFor({ state: 'attached' });
    const nodes = await twin.getByRole('listitem').count();
    await twin
      .getByRole('button', { name: /^weight blk\.0\.attn_q\.weight/ })
      .dispatchEvent('click');
    await expect.poll(title).toContain('attn_q.weight');
    await page.getByRole('radio', { name: 'Nodes' }).check();
    const table = page.getByRole('grid', { name: 'Nodes of layer 0' });
    expect(Number(await table.getAttribute('aria-rowcount'))).toBeGreaterThan(nodes);
    await table.locator('[aria-selected=true]').getByText('attn_q.weight').waitFor();
    expect(await fixture.axeViolations()).toEqual([]);
  });

  it('has a legend of colours and shapes', async () => {
    await shown();
    const { page } = fixture;
    await canvas().focus();
    await page.keyboard.press('}');
    await page.getByRole('application', { name: /^Layer 1: / }).waitFor();
    const legend = page.getByRole('list', { name: 'Kinds of nodes' });
    // The hue of each sample's outline, in degrees.
    const hue = (name: RegExp) =>
      legend
        .getByRole('listitem')
        .filter({ hasText: name })
        .locator('canvas')
        .evaluate((sample: HTMLCanvasElement) => {
          const shown = sample.getContext('2d');
          const data = shown?.getImageData(0, 0, sample.width, sample.height).data ?? [];
          let [best, hue] = [0, -1];
          for (let i = 0; i < data.length; i += 4) {
            const [r = 0, g = 0, b = 0, a = 0] = data.slice(i, i + 4);
            const [max, min] = [Math.max(r, g, b), Math.min(r, g, b)];
            if (a < 200 || max - min <= best) continue;
            best = max - min;
            const sixth =
              max === r ? (g - b) / best : max === g ? 2 + (b - r) / best : 4 + (r - g) / best;
            hue = (sixth * 60 + 360) % 360;
          }
          return hue;
        });
    const between = async (name: RegExp, low: number, high: number) => {
      const found = await hue(name);
      expect(found, String(name)).toBeGreaterThan(low);
      expect(found, String(name)).toBeLessThan(high);
    };
    await between(/^layer/, 200, 230); // blue
    await between(/^shared/, 110, 165); // green
    await between(/^input/, 15, 45); // orange
    await between(/^output/, 255, 300); // purple
    const dashed = legend.locator('.dashed');
    expect(await dashed.evaluate((line) => getComputedStyle(line).borderTopStyle)).toBe('dashed');
  });
});
