// The gestures of the map: zoom, ranges and their totals, lens, legend, keys.
import { describe, expect, it } from 'vitest';
import { componentName } from '../../../src/format';
import type { Breakdown, Sequentiality } from '../../../src/net/types';
import { sumText } from '../../../src/panels/map/units';
import { mapPanel } from '../support/map_panel';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use();
const { map, input, tip, crumbs, preset, display, heatmap, settled, tableRows, columnOf } =
  mapPanel(fixture);
const totals = () => map().locator('.range-totals');

describe('a gesture', () => {
  it('of wheel and keys zooms without a click first; breadcrumb and overview lead back', async () => {
    const { page } = fixture;
    await fixture.recorded(120);
    await settled();
    expect(await crumbs().count()).toBe(0);
    const { x, y } = await columnOf(60);
    await page.mouse.move(x, y);
    await page.mouse.wheel(0, -300);
    await crumbs().getByText(/steps/).waitFor();
    await map().locator('.map-overview').waitFor();
    await expect.poll(() => fixture.hash.get('p.map')).toMatch(/^cx:/);
    await crumbs().getByRole('button', { name: 'All' }).click();
    await expect.poll(() => crumbs().count()).toBe(0);
    await page.locator('.status').click(); // no panel has the focus
    await page.keyboard.press('w');
    await crumbs().waitFor();
    const window = () => /cx:([\d.]+):([\d.]+)/.exec(fixture.hash.get('p.map') ?? '');
    const from = () => Number(window()?.[1] ?? NaN);
    const width = () => Number(window()?.[2] ?? NaN) - from();
    await expect.poll(from).not.toBeNaN();
    const [start, zoomed] = [from(), width()];
    await page.keyboard.press('d');
    await expect.poll(from).toBeGreaterThan(start);
    await page.keyboard.press('a');
    await expect.poll(from).toBeCloseTo(start, 1);
    await page.keyboard.press('w');
    await expect.poll(width).toBeLessThan(zoomed);
    await page.keyboard.press('s');
    await expect.poll(width).toBeCloseTo(zoomed, 1);
    await page.keyboard.press('0');
    await expect.poll(() => crumbs().count()).toBe(0);
    await page.mouse.dblclick(x, y);
    await crumbs().waitFor();
  });

  it('of dragging selects a range with its totals, which filters other axes, until Escape', async () => {
    const { page } = fixture;
    await fixture.show(await fixture.recorded(30), 'p.map=x:token');
    await settled();
    const height = async () => (await input().boundingBox())?.height;
    const before = await height();
    const [from, to] = [await columnOf(8, 0), await columnOf(15, 2)];
    const outside = await columnOf(20, 0);
    await page.mouse.click(outside.x, outside.y);
    await expect.poll(() => fixture.hash.get('sel')).toBe('k:20');
    await page.mouse.move(from.x, from.y);
    await page.mouse.down();
    await page.mouse.move(to.x, to.y, { steps: 4 });
    const line = map().locator('.map-range');
    await expect.poll(() => line.innerText()).toMatch(/^tokens? 8 – 15.* × layers? 0 – 2/);
    await page.mouse.up();
    await expect.poll(() => fixture.hash.get('r')).toBe('token:8:16,layer:0:3');
    const bytes = await heatmap(
      'x=token&y=layer&value=bytes&x_from=8&x_to=16&y_from=0&y_to=3&width=1',
    );
    await totals().getByText(sumText('bytes', bytes.shown)).waitFor();
    // The token outside the range is not selected any more.
    const figures = await fixture.get<Breakdown>(
      'breakdown?by=all&from_token=8&to_token=16&layers=0-2',
    );
    const { reads, writes } = figures.sums.all;
    const accesses = fixture.inspector.locator('.figure[data-figure="accesses"] b');
    await expect
      .poll(async () => (await accesses.innerText()).replace(/\D/g, ''))
      .toBe(String(reads + writes));
    expect(await height()).toBe(before); // no cell moves under the pointer
    // With other axes it filters.
    await preset('Layer × component');
    const part = await heatmap('x=all&y=component&value=time&from_token=8&to_token=16');
    await map().getByRole('checkbox', { name: 'Totals' }).check();
    const [name, largest] = part.y.rows
      .map((row, i): [string, number] => [row, part.cells[i]?.[0] ?? 0])
      .sort((a, b) => b[1] - a[1])[0] ?? ['', 0];
    await expect
      .poll(async () => (await tableRows()).get(componentName(name)))
      .toBe(sumText('time', largest));
    await page.keyboard.press('z');
    await page.keyboard.press('Escape');
    await expect.poll(() => fixture.hash.get('r')).toBeNull();
    expect(await totals().count()).toBe(0);
  });

  it('of the wheel or of dragging over the file tells how sequential its reads are', async () => {
    const { page } = fixture;
    await fixture.recorded(30);
    await preset('File × time');
    await settled();
    const order = map().locator('.file-order');
    // As REST says it; returns the share. Between two steps of a busy machine nothing is read.
    const isShown = async (query: string): Promise<number> => {
      const { sums } = await fixture.get<Sequentiality>(`sequentiality?limit=1&${query}`);
      if (sums.bytes === 0) {
        await order.waitFor({ state: 'detached' });
        return 0;
      }
      const share = (100 * sums.sequential_bytes) / sums.bytes;
      await order.getByText(`sequential ${share.toFixed(1)} %`).waitFor();
      return share;
    };
    await isShown('');
    const box = await input().boundingBox();
    if (!box) throw new Error('no map');
    await page.mouse.move(box.x + box.width * 0.3, box.y + box.height * 0.2);
    await page.mouse.wheel(0, -120);
    await expect.poll(() => fixture.hash.get('p.map')).toContain('cx:');
    await settled(); // the wheel zooms in steps
    const [, from = 0, to = 0] = /cx:([\d.]+):([\d.]+)/.exec(fixture.hash.get('p.map') ?? '') ?? [];
    await isShown(`from_ns=${Math.floor(Number(from))}&to_ns=${Math.ceil(Number(to))}`);
    await page.keyboard.press('0');
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.7, box.y + box.height * 0.4, { steps: 4 });
    await page.mouse.up();
    await expect.poll(() => fixture.hash.get('r')).toMatch(/^time:/);
    const [time = ''] = (fixture.hash.get('r') ?? '').split(',');
    const [, fromNs = '', toNs = ''] = time.split(':');
    const brushed = `from_ns=${fromNs}&to_ns=${toNs}`;
    const near = await isShown(brushed);
    await map().getByLabel('Gap of sequential reads').selectOption('none');
    expect(await isShown(`${brushed}&gap=0`)).toBeLessThan(near);
    expect(fixture.hash.get('p.map')).toContain('gap:0');
  });

  it('of pointing magnifies with the lens, in the file down to rows', async () => {
    const { page } = fixture;
    await fixture.recorded(8);
    await preset('Memory');
    await display((menu) => menu.getByRole('checkbox', { name: 'Lens' }).check());
    await expect.poll(() => fixture.hash.get('p.map')).toContain('lens');
    await settled();
    const lens = () => fixture.pixels('.plane-lens');
    const box = await input().boundingBox();
    if (!box) throw new Error('no map');
    await page.mouse.move(box.x + box.width * 0.6, box.y + 80);
    await tip().getByText('tensor').waitFor();
    await expect.poll(lens).not.toBe(0);
    const sides = ['.plane-lens', '.tip'].map((part) => map().locator(part).boundingBox());
    const [magnified, text] = await Promise.all(sides);
    if (!magnified || !text) throw new Error('no lens');
    const isLeft = magnified.x + magnified.width <= text.x;
    expect(isLeft || text.x + text.width <= magnified.x).toBe(true);
    // Beside the table, the tooltip is in front of it.
    const table = map().getByRole('checkbox', { name: 'Totals' });
    await table.check();
    await expect.poll(async () => (await input().boundingBox())?.width).toBeLessThan(box.width);
    await page.mouse.move(box.x + 200, box.y + 90);
    await tip().getByText('tensor').waitFor();
    const inFront = async () => {
      const [body, at] = await Promise.all([map().locator('.map-body').boundingBox(), tip().boundingBox()]); // prettier-ignore
      if (!body || !at) return false;
      const isInside = at.x >= body.x && at.x + at.width <= body.x + body.width && at.y >= body.y;
      return isInside && tip().evaluate((one) => {
        one.style.pointerEvents = 'auto';
        const { right, top } = one.getBoundingClientRect();
        const hit = one.contains(document.elementFromPoint(right - 12, top + 12));
        one.style.pointerEvents = '';
        return hit;
      }); // prettier-ignore
    };
    await expect.poll(inFront).toBe(true);
    await table.uncheck();
    await display((menu) => menu.getByRole('checkbox', { name: 'Lens' }).uncheck());
    await page.mouse.move(box.x + box.width / 2, box.y + 80);
    await tip().getByText('tensor').waitFor();
    await expect.poll(lens).toBe(0);
    // Zoomed into a matrix: its rows.
    for (let i = 0; i < 20; i += 1) await page.mouse.wheel(0, -300);
    await tip().getByText('row').waitFor();
    await crumbs().getByText(/, /).waitFor();
  });

  it('of dragging the legend shows a range of values', async () => {
    await fixture.recorded(24);
    const before = await settled();
    const legend = map().locator('.legend canvas');
    const box = await legend.boundingBox();
    if (!box) throw new Error('no legend');
    await fixture.page.mouse.move(box.x + 60, box.y + 4);
    await fixture.page.mouse.down();
    await fixture.page.mouse.move(box.x + 109, box.y + 4, { steps: 3 });
    await fixture.page.mouse.up();
    await expect.poll(() => fixture.hash.get('p.map')).toMatch(/only:/);
    expect(await settled()).not.toBe(before);
    await map().getByRole('button', { name: 'all values' }).click();
    await fixture.page.mouse.move(2, 2);
    expect(await settled()).toBe(before);
  });

  it('of the right keys moves the cursor and selects', async () => {
    await fixture.recorded(6);
    await preset('Step × tensor');
    await settled();
    await input().focus();
    await fixture.page.keyboard.press('Home');
    await tip().getByText('step 0').first().waitFor();
    for (const key of ['ArrowRight', 'ArrowDown', 'ArrowDown', 'ArrowDown', 'Enter'])
      await fixture.page.keyboard.press(key);
    await expect.poll(() => fixture.hash.get('sel')).toMatch(/^t:/);
  });
});
