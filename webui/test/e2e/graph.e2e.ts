// The layer graph before the real server: a click inspects, links lead on, keys
// go along edges, the table and the hidden list say the same.
import { describe, expect, it } from 'vitest';
import { Stage } from './stage';

const stage = Stage.use();
const canvas = () => stage.page.getByRole('application', { name: /^Layer \d+: / });
const title = () => stage.inspector.locator('.inspection h3').innerText();

async function shown(): Promise<void> {
  await stage.textToEnd('A graph', 4);
  await stage.tab('Layer graph').click();
  await stage.page.locator('.graph[data-drawn="0"]').waitFor();
}

describe('the layer graph', () => {
  it('inspects what is clicked, and follows its inputs', async () => {
    await shown();
    const { page } = stage;
    const box = await canvas().boundingBox();
    if (!box) throw new Error('the graph is not there');
    // The layer's input stands at the top; a click beside nodes selects nothing.
    await expect
      .poll(async () => {
        for (let x = 0.2; x < 0.8; x += 0.04) {
          await page.mouse.click(box.x + box.width * x, box.y + 30);
          // The browser's own, which is there at once.
          if (await page.evaluate(() => location.hash.includes('sel='))) return true;
        }
        return false;
      })
      .toBe(true);
    await expect.poll(() => stage.hash.get('sel')).toMatch(/^[nt]:\d+$/);
    await stage.inspector.getByText('Outputs').waitFor();
    const before = await title();
    await stage.inspector.locator('button.jump').first().click();
    await expect.poll(title).not.toBe(before);
    await page.goBack();
    await expect.poll(title).toBe(before);
    await stage.inspector.getByRole('button', { name: 'Copy', exact: true }).click();
    await stage.toasts.getByText('Text copied').waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toContain(before);
    await stage.inspector.getByRole('button', { name: 'JSON' }).click();
    await stage.toasts.getByText('JSON copied').waitFor();
    const json: unknown = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
    expect(json).toBeTypeOf('object');
  });

  it('is walked by key, zoomed and searched', async () => {
    await shown();
    const { page } = stage;
    await canvas().focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await stage.page
      .getByRole('status')
      .getByText(/reads \d+, read by \d+/)
      .waitFor();
    await page.keyboard.press('Enter');
    await expect.poll(() => stage.hash.get('sel')).toMatch(/^n:\d+$/);
    await page.keyboard.press('+');
    await expect.poll(() => stage.hash.get('w.graph')).toMatch(/^(-?[\d.]+:){3}-?[\d.]+$/);
    await page.getByRole('button', { name: 'As at first' }).click();
    await expect.poll(() => stage.hash.has('w.graph')).toBe(false);
    await page.getByLabel('Search the layer’s nodes').fill('ffn_up');
    await page.getByText(/^[1-9]\d* found$/).waitFor();
    await canvas().focus();
    await page.keyboard.press('}');
    await page.getByRole('application', { name: /^Layer 1: / }).waitFor();
    await page.reload();
    await page.getByRole('application', { name: /^Layer 1: / }).waitFor();
    expect(Object.fromEntries(stage.hash)).toMatchObject({ l: '1', 'f.graph': 'ffn_up' });
  });

  it('says in a table and a list what it draws', async () => {
    await shown();
    const { page } = stage;
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
    expect(await stage.faults()).toEqual([]);
  });

  it('has a legend of colours and shapes', async () => {
    await shown();
    const { page } = stage;
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
            const [most, least] = [Math.max(r, g, b), Math.min(r, g, b)];
            if (a < 200 || most - least <= best) continue;
            best = most - least;
            const sixth =
              most === r ? (g - b) / best : most === g ? 2 + (b - r) / best : 4 + (r - g) / best;
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
