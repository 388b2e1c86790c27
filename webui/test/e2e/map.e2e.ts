// The map: its presets against REST, gestures, range, links, live and recorded pictures.
import { describe, expect, it } from 'vitest';
import { componentName, formatBytes, plural } from '../../src/format';
import { rowsThatMatter } from '../../src/panels/inspector/compare';
import { PRESETS } from '../../src/panels/map/map_options';
import { STATE_NAMES } from '../../src/panels/map/residency';
import { axisName, sumText, valueName } from '../../src/panels/map/units';
import { layerAxis, outputOf } from '../../src/panels/map/map_axes';
import type { Sequentiality } from '../../src/net/types';
import { axisOf } from '../../src/plane/axis';
import { viridis } from '../../src/plane/colours';
import { MARGIN, planeLayout, wholeCamera, xOf, yOf } from '../../src/plane/layout';
import { levelOf, scaleOf } from '../../src/plane/scale';
import { PageFixture } from './page_fixture';

const fixture = PageFixture.use();

interface Picture {
  readonly y: { readonly rows: readonly string[] };
  readonly cells: readonly (readonly number[])[];
  readonly shown: number;
}

const map = () => fixture.page.getByRole('tabpanel', { name: 'Map' });
const input = () => map().locator('.plane-input');
const tip = () => map().locator('.tip');
const crumbs = () => map().getByRole('navigation', { name: 'In view' });
const totals = () => map().locator('.range-totals');
const preset = (title: string) => map().getByRole('button', { name: title, exact: true });
const heatmap = (query: string) => fixture.get<Picture>(`heatmap?${query}`);
const pixels = () => fixture.pixels('.plane-base');

// The picture does not change any more.
async function settled(): Promise<number> {
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

// Name and value of all rows of the table beside the picture.
async function tableRows(): Promise<ReadonlyMap<string, string>> {
  const rows = await map()
    .locator('.map-table .vgrid-row')
    .evaluateAll((all) =>
      all
        .filter((row) => !(row as HTMLElement).hidden)
        .map((row) => [...row.children].map((cell) => cell.textContent)),
    );
  return new Map(rows.map(([name = '', value = '']) => [outputOf(name), value]));
}

describe('a preset', () => {
  it('has the sums of REST', async () => {
    await fixture.recorded(12);
    await map().getByRole('checkbox', { name: 'Table' }).check();
    const own = PRESETS.filter(({ experts, options }) => !experts && options.y !== 'memory');
    for (const {
      title,
      options: { y, value },
    } of own) {
      // prettier-ignore
      await preset(title).click();
      const picture = await heatmap(`x=all&y=${y}&value=${value}&height=4096`);
      const named = picture.y.rows.map((row, i): [string, number] => [
        y === 'layer' && row === 'none' ? 'emb+out' : row,
        picture.cells[i]?.[0] ?? 0,
      ]);
      if (y === 'file') {
        // By tensor: the sums of the weights.
        const tensors = await heatmap('x=all&y=tensor&value=bytes&height=4096&source=disk');
        const at = tensors.y.rows.indexOf('token_embd.weight');
        await expect
          .poll(async () => (await tableRows()).size, { message: title })
          .toBeGreaterThan(5);
        expect(at).toBeGreaterThanOrEqual(0);
        continue;
      }
      const [largest] = [...named].sort((a, b) => b[1] - a[1]);
      if (!largest) throw new Error('no rows');
      await expect
        .poll(async () => (await tableRows()).get(largest[0]), { message: title })
        .toBe(sumText(value, largest[1]));
      const shown = await tableRows();
      expect(shown.size, title).toBeGreaterThan(3);
      for (const [name, text] of shown) {
        const sum = named.filter(([row]) => row === name).map(([, one]) => one);
        // Sums of 32-bit pixels may round differently.
        const near = [1 - 1e-5, 1, 1 + 1e-5].map((one) => sumText(value, one * (sum[0] ?? 0)));
        if (sum.length === 1) expect(near, `${title} ${name}`).toContain(text);
      }
    }
  });

  it('Memory has a track of the file and one of the buffers', async () => {
    await fixture.recorded(6);
    await preset('Memory').click();
    await settled();
    await expect.poll(() => fixture.hash.get('p.map')).toBe('y:memory,x:all,v:bytes');
    const box = await input().boundingBox();
    if (!box) throw new Error('no map');
    await fixture.page.mouse.move(box.x + box.width / 2, box.y + 80);
    await tip().getByText('tensor').waitFor();
    await fixture.page.mouse.move(box.x + box.width / 2, box.y + box.height - 20);
    await tip().getByText('how often each byte is read or written').waitFor();
    await map().getByRole('checkbox', { name: 'Table' }).check();
    await map().getByRole('columnheader').first().getByRole('button').click();
    await map().getByRole('grid').focus();
    await fixture.page.keyboard.press('End');
    await expect.poll(async () => [...(await tableRows()).keys()].join(' ')).toContain('cache_');
  });
});

describe('the table', () => {
  it('has the heads of what is shown, from preset to preset', async () => {
    await fixture.recorded(6);
    await map().getByRole('checkbox', { name: 'Table' }).check();
    // What is in memory is known in some systems only.
    const states: readonly string[] = Object.values(STATE_NAMES);
    const heads = async () =>
      (await map().getByRole('columnheader').allInnerTexts())
        .map((head) => head.replace(/[ ↑↓]+$/, ''))
        .filter((head) => !states.includes(head));
    const presets = PRESETS.filter(({ experts }) => !experts);
    for (const { title, options } of [...presets, ...presets.toReversed()]) {
      await preset(title).click();
      const { x, y, value } = options;
      const row = y === 'file' || y === 'memory' ? 'tensor' : axisName(y);
      await expect
        .poll(heads, { message: title })
        .toEqual([
          row,
          valueName(value),
          ...(x === 'token' ? ['median, generated', 'p5', 'p95'] : []),
          'share in view',
        ]);
      const names = [...(await tableRows()).keys()];
      if (y === 'layer') expect(names).toContain('emb+out');
    }
  });

  it('has the median of the generated tokens of each row', async () => {
    await fixture.recorded(12);
    await map().getByRole('checkbox', { name: 'Table' }).check();
    const { rows } = await fixture.sql<[number]>(
      "SELECT (SELECT sum(duration_ns) FROM op o WHERE o.step = s.step AND op_layer_id = 0) AS ns FROM step s WHERE phase = 'generate' ORDER BY ns",
    );
    const median = rows[Math.ceil(rows.length / 2) - 1]?.[0] ?? 0;
    const row = map().locator('.map-table .vgrid-row:not([hidden])', {
      has: fixture.page.getByText('0', { exact: true }),
    });
    await expect
      .poll(() => row.locator('.vgrid-cell').nth(2).innerText())
      .toBe(sumText('time', Math.fround(median)));
  });
});

describe('the table of a disturbed session', () => {
  it('is sorted by the median, and says how many steps are disturbed', async () => {
    const { page } = fixture;
    await page.route('**/conditions', async (route) => {
      const answer = await route.fetch();
      const body = (await answer.json()) as object;
      const steps = { clean: 9, contended: 3, throttled: 0, disk: 0, unknown: 0 };
      await route.fulfill({ json: { ...body, verdict: 'contended', steps } });
    });
    await fixture.recorded(12);
    await map().getByRole('checkbox', { name: 'Table' }).check();
    const table = map().locator('.map-table');
    await table.getByText('The machine disturbed 3 of 12 steps.').waitFor();
    await table.locator('[aria-sort=descending]', { hasText: 'median' }).waitFor();
    await table.getByRole('button', { name: 'Only clean steps' }).click();
    await expect.poll(() => fixture.filter.inputValue()).toBe('verdict:clean');
    await expect.poll(() => table.getByText('The machine disturbed').count()).toBe(0);
  });
});

describe('what was in memory', () => {
  it('is shown before the selected step, and equals REST', async () => {
    await fixture.recorded(6, { residency_interval_ms: 0 });
    await preset('Memory').click();
    for (const step of [2, 4]) {
      await fixture.show(fixture.session ?? '', `step=${step}`, 'p.map=y:memory,x:all');
      const { tensors } = await fixture.get<{
        tensors: readonly { mapped: boolean; size_bytes: number; resident_bytes: number | null }[];
      }>(`steps/${step}/residency`);
      const mapped = tensors.filter(({ mapped }) => mapped);
      const sum = (of: (one: (typeof tensors)[number]) => number) =>
        mapped.reduce((all, one) => all + of(one), 0);
      const bytes = sum(({ resident_bytes: resident }) => resident ?? 0);
      expect(bytes).toBeGreaterThan(0);
      const states = map().getByRole('list', { name: `The weights before step ${step}` });
      await expect.poll(() => states.innerText()).toContain(`in memory ${formatBytes(bytes)}`);
      const missing = sum(({ size_bytes: size }) => size) - bytes;
      expect(await states.innerText()).toContain(`not in memory ${formatBytes(missing)}`);
      const { rows } = await fixture.sql<[number]>(
        `SELECT sum(resident_bytes) FROM residency WHERE step = ${step}`,
      );
      expect(rows[0]?.[0]).toBe(bytes);
    }
    // A question leads to the first snapshot.
    const { page } = fixture;
    const first = await fixture.sql<[number]>('SELECT min(step) FROM residency');
    const step = first.rows[0]?.[0] ?? -1;
    await page.getByRole('button', { name: 'Questions' }).click();
    await page.getByRole('button', { name: 'What was in memory?' }).click();
    await map()
      .getByRole('list', { name: `The weights before step ${step}` })
      .waitFor();
    expect(fixture.hash.get('step')).toBe(String(step));
    // It is not asked of a session without snapshots.
    await fixture.recorded(12);
    await page.getByRole('button', { name: 'Questions' }).click();
    await page.getByRole('button', { name: 'What waits for the disk?' }).waitFor();
    expect(await page.getByRole('button', { name: 'What was in memory?' }).count()).toBe(0);
  });
});

describe('the picture', () => {
  it('shows the value of REST under the pointer, and a click selects', async () => {
    await fixture.recorded(12);
    await settled();
    const { x, y } = await columnOf(7);
    await fixture.page.mouse.move(x, y);
    await tip().getByText('token 7').waitFor();
    const row = Number(/layer\s+(\d+)/.exec(await tip().innerText())?.[1]);
    const picture = await heatmap('x=token&y=layer&value=time&width=4096');
    const value = picture.cells[row]?.[7] ?? 0;
    await expect.poll(() => tip().innerText()).toContain(sumText('time', value));
    await fixture.page.mouse.click(x, y);
    await expect.poll(() => Object.fromEntries(fixture.hash)).toMatchObject({ sel: 'k:7' });
    // With the value of the cell.
    const figure = fixture.inspector.locator(`[data-figure="layer ${row}"]`);
    await expect.poll(() => figure.innerText()).toContain(sumText('time', value));
  });

  it('has the colour of its value in every cell', async () => {
    await fixture.recorded(24);
    await fixture.page.mouse.move(2, 2);
    await settled();
    const picture = await heatmap('x=token&y=layer&value=time&width=4096');
    const [rows, columns] = [picture.cells.length, picture.cells[0]?.length ?? 0];
    const cells = Float32Array.from(picture.cells.flat());
    const scale = scaleOf([cells], true);
    const box = await input().boundingBox();
    if (!box) throw new Error('no map');
    const layout = planeLayout(
      { w: Math.round(box.width), h: Math.round(box.height) },
      {
        x: axisOf('count', 'token', columns, { textOf: () => '' }),
        tracks: [{ y: layerAxis(rows), share: 1 }],
      },
      wholeCamera,
    );
    const track = layout.tracks[0];
    if (!track) throw new Error('no track');
    const colours = await map()
      .locator('.plane-base')
      .evaluate(
        (canvas, points) => {
          const ctx = (canvas as HTMLCanvasElement).getContext('2d');
          const ratio = devicePixelRatio;
          return points.map(([x, y]) => [
            ...(ctx?.getImageData(x * ratio, y * ratio, 1, 1).data ?? []),
          ]);
        },
        picture.cells.flatMap((row, y) =>
          row.map((_, x): [number, number] => [xOf(layout, x + 0.5), yOf(track, y + 0.5)]),
        ),
      );
    expect(colours).toHaveLength(rows * columns);
    let checked = 0;
    colours.forEach((pixel, i) => {
      const value = cells[i] ?? 0;
      if (value === 0) return; // hatched
      const level = levelOf(value, scale);
      expect(pixel.slice(0, 3), `cell ${i}`).toEqual([...viridis((level - 1) / 254)]);
      checked += 1;
    });
    expect(checked).toBeGreaterThan(20 * (rows - 1));
  });

  it('is the same live and from the file', async () => {
    await fixture.runTextToEnd('The live picture', 40);
    await fixture.page.mouse.move(2, 2);
    await settled();
    await fixture.page.waitForTimeout(600); // the scale of a growing picture is at most this old
    const live = await settled();
    await fixture.page.reload();
    await fixture.ops.waitFor();
    expect(await settled()).toBe(live);
  });

  it('follows the newest token after Jump to live', async () => {
    const { page } = fixture;
    await fixture.runText('Follow me', 30_000);
    await expect.poll(() => fixture.shownTokens()).toBeGreaterThan(60);
    const box = await input().boundingBox();
    if (!box) throw new Error('no map');
    await page.mouse.move(box.x + 90, box.y + 100);
    for (let i = 0; i < 4; i += 1) await page.mouse.wheel(0, -300);
    const live = map().getByRole('button', { name: 'Jump to live' });
    await live.waitFor();
    // What is in view does not move.
    const crumb = await crumbs().innerText();
    const shown = await fixture.shownTokens();
    await expect.poll(() => fixture.shownTokens()).toBeGreaterThan(shown + 20);
    expect(await crumbs().innerText()).toBe(crumb);
    await live.click();
    await expect.poll(() => live.count()).toBe(0);
    const last = async (): Promise<number> =>
      Number(/– ([\d\s]+)$/m.exec(await crumbs().innerText())?.[1]?.replace(/\D/g, ''));
    await expect.poll(last).toBeGreaterThan(shown + 20);
    const before = await last();
    await expect.poll(last).toBeGreaterThan(before);
    await fixture.stop.click();
    await fixture.progress.getByText(/^(Stopped|Done)/).waitFor();
  });

  it('grows with the run, also of the server', async () => {
    await preset('Token × layer').waitFor({ state: 'detached' });
    await fixture.runText('Grow', 3000);
    await preset('Token × tensor').click();
    await expect.poll(pixels).not.toBe(0);
    const before = await pixels();
    await expect.poll(pixels).not.toBe(before);
    await fixture.stop.click();
    await fixture.progress.getByText(/^(Stopped|Done)/).waitFor();
  });
});

describe('a gesture', () => {
  it('of wheel and keys zooms without a click first; breadcrumb and overview lead back', async () => {
    const { page } = fixture;
    await fixture.recorded(120);
    await settled();
    expect(await crumbs().count()).toBe(0);
    const { x, y } = await columnOf(60);
    await page.mouse.move(x, y);
    await page.mouse.wheel(0, -300);
    await crumbs()
      .getByText(/tokens/)
      .waitFor();
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
    await fixture.recorded(30);
    await settled();
    const height = async () => (await input().boundingBox())?.height;
    const before = await height();
    const [from, to] = [await columnOf(8, 0), await columnOf(15, 2)];
    await page.mouse.move(from.x, from.y);
    await page.mouse.down();
    await page.mouse.move(to.x, to.y, { steps: 4 });
    await page.mouse.up();
    await expect.poll(() => fixture.hash.get('r')).toBe('token:8:16,layer:0:3');
    const bytes = await heatmap(
      'x=token&y=layer&value=bytes&x_from=8&x_to=16&y_from=0&y_to=3&width=1',
    );
    await totals().getByText(sumText('bytes', bytes.shown)).waitFor();
    expect(await height()).toBe(before); // no cell moves under the pointer
    // With other axes it filters.
    await preset('Layer × component').click();
    const part = await heatmap('x=all&y=component&value=time&from_token=8&to_token=16');
    await map().getByRole('checkbox', { name: 'Table' }).check();
    const [name, largest] = part.y.rows
      .map((row, i): [string, number] => [row, part.cells[i]?.[0] ?? 0])
      .sort((a, b) => b[1] - a[1])[0] ?? ['', 0];
    void largest;
    await expect.poll(async () => (await tableRows()).has(componentName(name))).toBe(true);
    await page.keyboard.press('z');
    await page.keyboard.press('Escape');
    await expect.poll(() => fixture.hash.get('r')).toBeNull();
    expect(await totals().count()).toBe(0);
  });

  it('of the wheel or of dragging over the file tells how sequential its reads are', async () => {
    const { page } = fixture;
    await fixture.recorded(30);
    await preset('File × time').click();
    await settled();
    const order = map().locator('.file-order');
    // As REST says it; returns the share.
    const isShown = async (query: string): Promise<number> => {
      const { sums } = await fixture.get<Sequentiality>(`sequentiality?limit=1&${query}`);
      const share = (100 * sums.sequential_bytes) / sums.bytes;
      await order.getByText(`sequential ${share.toFixed(1)} %`).waitFor();
      return share;
    };
    await isShown('');
    const box = await input().boundingBox();
    if (!box) throw new Error('no map');
    await page.mouse.move(box.x + box.width * 0.3, box.y + box.height * 0.2);
    await page.mouse.wheel(0, -400);
    await expect.poll(() => fixture.hash.get('p.map')).toContain('cx:');
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
    await preset('Memory').click();
    await map().getByRole('checkbox', { name: 'Lens' }).check();
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
    await map().getByRole('checkbox', { name: 'Lens' }).uncheck();
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
    await preset('Token × tensor').click();
    await settled();
    await input().focus();
    await fixture.page.keyboard.press('Home');
    await tip().getByText('token 0').waitFor();
    for (const key of ['ArrowRight', 'ArrowDown', 'ArrowDown', 'ArrowDown', 'Enter'])
      await fixture.page.keyboard.press(key);
    await expect.poll(() => fixture.hash.get('sel')).toMatch(/^t:/);
  });
});

describe('the rows by head', () => {
  interface Heads {
    readonly heads: number;
    readonly weights: readonly {
      readonly layer: number;
      readonly heads: readonly { readonly bytes_read: number }[];
    }[];
  }

  it('are the heads of each layer with the sums of REST, also from a link', async () => {
    await fixture.runTextToEnd('By head', 8);
    await map().getByRole('combobox', { name: 'Rows' }).selectOption('head');
    await map().getByRole('combobox', { name: 'Colour' }).selectOption('bytes');
    await map().getByRole('checkbox', { name: 'Table' }).check();
    await expect.poll(() => fixture.hash.get('p.map')).toBe('y:head,v:bytes,table');
    const picture = await heatmap('x=all&y=head&value=bytes&height=4096');
    const name = 'blk.1 head 2';
    const sum = picture.cells[picture.y.rows.indexOf(name)]?.[0] ?? 0;
    // The weights of the head alone are less than it: it also shares the caches.
    const heads = await fixture.get<Heads>('heads');
    const ofWeights = heads.weights
      .filter(({ layer, heads: all }) => layer === 1 && all.length > 0)
      .reduce((all, weight) => {
        const sharing = heads.heads / weight.heads.length;
        return all + (weight.heads[Math.floor(2 / sharing)]?.bytes_read ?? 0) / sharing;
      }, 0);
    const cached = await fixture.sql<[number]>(
      `SELECT sum(size_bytes) FROM access WHERE memory_source = 'kv' AND layer_id = 1`,
    );
    expect(sum).toBeCloseTo(ofWeights + (cached.rows[0]?.[0] ?? 0) / heads.heads, 3);
    await expect.poll(async () => (await tableRows()).get(name)).toBe(sumText('bytes', sum));
    await fixture.fresh(fixture.page.url());
    await fixture.ops.waitFor();
    await expect.poll(async () => (await tableRows()).get(name)).toBe(sumText('bytes', sum));
  });
});

describe('a comparison', () => {
  interface Within {
    readonly total: number;
    readonly rows: readonly {
      readonly name: string;
      readonly left: { readonly time_ns: number } | null;
      readonly right: { readonly time_ns: number } | null;
      readonly difference: { readonly time_ns: number; readonly bytes_read: number };
    }[];
  }
  const section = () => fixture.inspector.getByRole('region', { name: 'Comparison' });
  const rows = async () =>
    section()
      .locator('tbody tr')
      .evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));

  it('of two tokens lists their differences, by Shift+click and from a link', async () => {
    const { page } = fixture;
    await fixture.runTextToEnd('Two tokens side by side', 20);
    await settled();
    const [left, right] = [await columnOf(2), await columnOf(14)];
    await page.mouse.click(left.x, left.y);
    await expect.poll(() => fixture.hash.get('sel')).toBe('k:2');
    await page.keyboard.down('Shift');
    await page.mouse.click(right.x, right.y);
    await page.keyboard.up('Shift');
    await expect.poll(() => fixture.hash.get('cmp')).toBe('k:14');
    expect(await page.evaluate(() => getSelection()?.toString())).toBe('');
    expect(fixture.hash.get('sel')).toBe('k:2');
    await fixture.inspector.locator('.inspection').getByText('Token 2', { exact: true }).waitFor();
    const choice = section().getByRole('combobox', { name: 'Compare with token' });
    expect(await choice.inputValue()).toBe('14');
    const expected = await fixture.get<Within>('comparison?left_token=2&right_token=14&limit=500');
    const [first] = expected.rows;
    const amounts = expected.rows.map(({ difference }) => difference.time_ns);
    const text = (ns: number | undefined) => sumText('time', ns ?? 0);
    await expect
      .poll(async () => (await rows())[1]?.slice(0, 3))
      .toEqual([first?.name, text(first?.left?.time_ns), text(first?.right?.time_ns)]);
    // Rows that differ, and on demand all.
    const matter = rowsThatMatter(amounts);
    expect(matter).toBeLessThan(expected.total);
    const shown = await rows();
    expect(shown.length).toBe(1 + matter);
    await section()
      .getByText(`and ${plural(expected.total - matter, 'more tensor')} with hardly any difference`)
      .waitFor();
    await section().getByRole('button', { name: 'Show all' }).click();
    await expect.poll(async () => (await rows()).length).toBe(1 + expected.total);
    const names = (await rows()).map(([name]) => name ?? '');
    expect(names.filter((name) => name.startsWith('node_'))).toEqual([]);
    expect(names.filter((name) => name.startsWith('FLASH_ATTN_EXT, layer '))).not.toEqual([]);
    const sign = (first?.difference.time_ns ?? 0) > 0 ? '+' : '−';
    await section().getByRole('columnheader', { name: 'token 14 − token 2' }).waitFor();
    // A bar starts in the middle of its cell.
    const bars = await section()
      .locator('tr:has(.difference-bar)')
      .evaluateAll((all) =>
        all.map((row) => {
          const cell = row.lastElementChild?.getBoundingClientRect() ?? new DOMRect();
          const bar = row.querySelector('.difference-bar')?.getBoundingClientRect();
          const middle = cell.x + cell.width / 2;
          return bar ? [Math.round(bar.left - middle), Math.round(bar.right - middle)] : [];
        }),
      );
    // Bars of at least a pixel: to the left if the token after the minus takes longer.
    const wide = bars.flatMap(([from = 0, to = 0], i) => (to > from ? [{ from, to, i }] : []));
    expect(wide.length).toBeGreaterThan(0);
    for (const { from, to, i } of wide) expect((amounts[i] ?? 0) < 0 ? to : from, `${i}`).toBe(0);
    expect((await rows())[1]?.[3]).toBe(sign + text(Math.abs(first?.difference.time_ns ?? 0)));
    // Both are marked in the map, and a link shows the same.
    await page.mouse.move(2, 2);
    const marks = () => fixture.pixels('.plane-overlay');
    await settled();
    const marked = await marks();
    await fixture.fresh(page.url());
    await fixture.ops.waitFor();
    await expect.poll(rows).toEqual(shown);
    await expect.poll(marks).toBe(marked);
    expect(await fixture.axeViolations()).toEqual([]);
    await page.keyboard.press('Escape');
    await expect.poll(() => fixture.hash.get('cmp')).toBeNull();
    expect(fixture.hash.get('sel')).toBe('k:2');
    expect(await rows()).toEqual([]);
    await expect.poll(marks).not.toBe(marked);
  });

  it('of two layers names tensors without the layer, in the inspector', async () => {
    await fixture.runTextToEnd('Once upon a time', 8);
    await fixture.fresh(`${fixture.server.url}/#1&session=${fixture.session ?? ''}&l=1&sel=l:1`);
    await section().getByText('Or Shift+click another layer in the map.').waitFor();
    await section().getByRole('combobox', { name: 'Compare with layer' }).selectOption('3');
    await section().getByRole('radio', { name: 'bytes' }).check();
    await expect
      .poll(() => Object.fromEntries(fixture.hash))
      .toMatchObject({
        sel: 'l:1',
        cmp: 'l:3',
        'p.inspector': 'diff:bytes',
      });
    const expected = await fixture.get<Within>('comparison?left_layer=1&right_layer=3&value=bytes');
    await section().getByRole('button', { name: 'Show all' }).click();
    await expect
      .poll(async () => (await rows()).slice(2).map(([name]) => name))
      .toEqual(expected.rows.map(({ name }) => name.replace('(layer -1)', '(layer before)')));
    // The figures of a generated step are those of the margin of the map.
    const picture = await heatmap('x=step&y=layer&value=bytes&phase=generate&width=999&height=99');
    const text = (layer: number) => {
      const steps = (picture.cells[layer] ?? []).filter((bytes) => bytes > 0);
      return sumText(
        'bytes',
        steps.toSorted((a, b) => a - b)[Math.ceil(steps.length / 2) - 1] ?? 0,
      );
    };
    expect((await rows())[0]?.slice(0, 3)).toEqual(['generated step, median', text(1), text(3)]);
    await section().getByText('Sums over all steps of the session.').waitFor();
    await section().getByRole('columnheader', { name: 'layer 3 − layer 1' }).waitFor();
    expect((await rows()).map(([name]) => name)).toContain('attn_q.weight');
    await section().getByRole('button', { name: 'End the comparison' }).click();
    await expect.poll(() => fixture.hash.get('cmp')).toBeNull();
  });
});

describe('a link', () => {
  it.each([
    'p.map=y:memory,x:time,v:bytes,p:heat',
    'p.map=y:tensor,v:accesses,linear,cx:3:12',
    'p.map=y:component,x:layer,p:cividis&ph=g',
    'p.map=y:head,v:bytes',
    'r=token:2:6,layer:0:2&p.map=table',
  ])('%s gives the same picture in a fresh browser', async (part) => {
    await fixture.recorded(24);
    const link = `${fixture.server.url}/#1&session=${fixture.session ?? ''}&${part}`;
    const seen: number[] = [];
    for (let round = 0; round < 2; round += 1) {
      await fixture.fresh(link);
      await fixture.ops.waitFor();
      seen.push(await settled());
    }
    expect(seen[0]).toBe(seen[1]);
    expect(new URL(fixture.page.url()).hash).toBe(new URL(link).hash);
  });

  it('with any options shows a map', async () => {
    await fixture.recorded(6);
    for (const options of [
      'y:nothing,x:9',
      'cx:9:1',
      'cx:5000:9000',
      'cy1:3:4,y:file',
      'only:9:1',
      'y:expert',
      'x:phase,y:source',
      'v:faults,y:op',
    ]) {
      await fixture.fresh(
        `${fixture.server.url}/#1&session=${fixture.session ?? ''}&p.map=${options}`,
      );
      await fixture.ops.waitFor();
      await expect
        .poll(() =>
          map()
            .getByText(/Loading|failed/)
            .count(),
        )
        .toBe(0);
      expect(await map().locator('.empty-error').count(), options).toBe(0);
    }
  });
});

// The middle of the cell of a token and a layer on the screen, while everything is in view: found
// by the tooltip.
async function columnOf(token: number, layer = 1): Promise<{ x: number; y: number }> {
  const box = await input().boundingBox();
  if (!box) throw new Error('no map');
  const total = await fixture.get<{ total: number }>('tokens?limit=1');
  const gutter = 71;
  const column = Math.min(26, (box.width - gutter - MARGIN) / (total.total - 1));
  const x = box.x + gutter + (token + 0.5) * column;
  for (let y = box.y + 48; y < box.y + box.height; y += 6) {
    await fixture.page.mouse.move(x, y);
    const text = await tip().innerText();
    if (new RegExp(`layer\\s+${layer}\\b`).test(text)) return { x, y: y + 3 };
  }
  throw new Error(`no layer ${layer} in the map`);
}
