// The names of the rows of the map, of models with many layers: always some of them, never over each
// other. What is painted is observed, because a canvas has no text.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { mapPanel } from '../support/map_panel';
import { makeModel } from '../support/models';
import { PageFixture } from '../support/page_fixture';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tt-names-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

interface Painted {
  readonly text: string;
  readonly x: number;
  readonly y: number;
}

const LEAST_DISTANCE = 9; // height of the letters
const SIZES = [
  { width: 1440, height: 900 },
  { width: 1920, height: 1080 },
] as const;

// The texts left of the plot, of the newest picture. Those of a file may come after its picture: they
// need the tensors.
async function namesIn(fixture: PageFixture): Promise<readonly Painted[]> {
  const painted = () =>
    fixture.page.evaluate(() => {
      const { texts } = globalThis as unknown as { texts: (Painted & { plot: number })[] };
      return texts.filter(({ x, plot }) => x <= plot);
    });
  await expect.poll(async () => (await painted()).length).toBeGreaterThan(0);
  await mapPanel(fixture).settled();
  return painted();
}

// Observes what is written into the base of the map.
async function observe(fixture: PageFixture): Promise<void> {
  fixture.spoilPage();
  await fixture.page.addInitScript(() => {
    const observed = globalThis as unknown as { texts: unknown[] };
    observed.texts = [];
    let frame = -1;
    let now = 0;
    const count = (): void => {
      now += 1;
      requestAnimationFrame(count);
    };
    requestAnimationFrame(count);
    const { prototype } = CanvasRenderingContext2D;
    // eslint-disable-next-line @typescript-eslint/unbound-method
    const write = prototype.fillText;
    prototype.fillText = function (text, x, y) {
      if (this.canvas.className.includes('plane-base') && this.getTransform().b === 0) {
        if (frame !== now) observed.texts = [];
        frame = now;
        // Row names end, and group names begin, left of the plot.
        const plot = this.textAlign === 'right' ? x : 200;
        const isName = this.textBaseline === 'middle';
        if (isName) observed.texts.push({ text, x, y, plot });
      }
      write.call(this, text, x, y);
    };
  });
  await fixture.page.reload();
}

function expectReadable(names: readonly Painted[], least: number): void {
  expect(names.length).toBeGreaterThanOrEqual(least);
  for (const x of new Set(names.map((one) => one.x))) {
    const ys = names.filter((one) => one.x === x).map(({ y }) => y);
    ys.sort((a, b) => a - b);
    ys.slice(1).forEach((y, i) => {
      expect(y - (ys[i] ?? 0)).toBeGreaterThanOrEqual(LEAST_DISTANCE);
    });
  }
}

const isLayer = ({ text }: Painted): boolean => /^layer \d+$/.test(text);

describe('the names of a model with 22 layers', () => {
  const fixture = PageFixture.use(async () => {
    const model = await makeModel(folder, 'small', ['--layers', '22']);
    return ['-m', model];
  });
  const { preset, map } = mapPanel(fixture);

  it.each(['Step × tensor', 'Op × time', 'File × time', 'Memory'])(
    'are there in %s at both sizes',
    async (title) => {
      await observe(fixture);
      await fixture.recorded(8);
      await preset(title);
      for (const size of SIZES) {
        await fixture.page.setViewportSize(size);
        const layers = (await namesIn(fixture)).filter(isLayer);
        expectReadable(layers, 7);
        expect(layers.every(({ text }) => !text.includes('…'))).toBe(true);
      }
    },
  );

  it('become those of tensors where there is room, at each zoom', async () => {
    await observe(fixture);
    await fixture.recorded(8);
    await preset('Step × tensor');
    const box = await map().locator('.plane-input').boundingBox();
    if (!box) throw new Error('no map');
    await namesIn(fixture);
    await fixture.page.mouse.move(box.x + 20, box.y + box.height / 2);
    let seen = '';
    for (let zoom = 0; zoom < 12; zoom += 1) {
      const names = await namesIn(fixture);
      expectReadable(names, 3);
      seen += names.map(({ text }) => text).join(' ');
      await fixture.page.mouse.wheel(0, -150);
    }
    expect(seen).toMatch(/layer 11/);
    expect(seen).toMatch(/blk\.1\d\.ffn_down\.weight/);
  });

  it('tell the layers of repacked weights and of the KV cache', async () => {
    await observe(fixture);
    await fixture.recorded(8);
    await fixture.show(fixture.session ?? '', 'full=map', 'p.map=y:buffer,x:all,v:bytes');
    const names = await namesIn(fixture);
    const [buffers, layers] = [names.filter((one) => !isLayer(one)), names.filter(isLayer)];
    expect(buffers.map(({ text }) => text)).toEqual(
      expect.arrayContaining(['repacked', 'KV cache or state']),
    );
    expectReadable(layers, 12);
  });
});

describe('the names of a mixture of experts', () => {
  const fixture = PageFixture.use(async () => ['-m', await makeModel(folder, 'moe', ['--layers', '6'])]); // prettier-ignore

  // Of a mixture, which has the most presets and axes.
  it('are beside one bar of controls at both sizes, of which none is cut', async () => {
    await fixture.recorded(8);
    const bar = mapPanel(fixture).map().locator('.map-tools');
    for (const size of SIZES) {
      await fixture.page.setViewportSize(size);
      const box = await bar.boundingBox();
      expect(box?.height).toBeLessThan(40);
      const controls = bar.locator('select, button, .toggle').filter({ visible: true });
      expect(await controls.count()).toBeGreaterThanOrEqual(6);
      for (const one of await controls.all()) {
        const own = await one.boundingBox();
        expect((own?.x ?? 0) + (own?.width ?? 0)).toBeLessThanOrEqual((box?.x ?? 0) + (box?.width ?? 0)); // prettier-ignore
        expect(await one.evaluate((of) => of.scrollWidth - of.clientWidth)).toBeLessThanOrEqual(1);
      }
    }
    const display = bar.getByRole('button', { name: 'Display' });
    await display.focus();
    await fixture.page.keyboard.press('Enter');
    await bar.getByRole('checkbox', { name: 'Lens' }).waitFor();
    expect(await fixture.axeViolations()).toEqual([]);
  });

  it('are layers in a small map by expert, and its experts where there is room, at each zoom', async () => {
    await observe(fixture);
    await fixture.recorded(8);
    await mapPanel(fixture).preset('Step × expert');
    for (const size of SIZES) {
      await fixture.page.setViewportSize(size);
      const names = await namesIn(fixture);
      expectReadable(names.filter(isLayer), 6);
      expect(names.every(({ text }) => !text.includes('…'))).toBe(true);
    }
    const box = await mapPanel(fixture).input().boundingBox();
    if (!box) throw new Error('no map');
    // Over the names the wheel zooms the rows.
    await fixture.page.mouse.move(box.x + 20, box.y + box.height / 2);
    let seen: string[] = [];
    for (let zoom = 0; zoom < 10; zoom += 1) {
      const names = await namesIn(fixture);
      expectReadable(names, 2);
      seen = [...seen, ...names.map(({ text }) => text)];
      await fixture.page.mouse.wheel(0, -150);
    }
    for (let expert = 0; expert < 8; expert += 1) expect(seen).toContain(`expert ${expert}`);
    expect(seen.some((text) => text.includes('…'))).toBe(false);
  });

  it('are layers, then experts together, then single ones', async () => {
    await observe(fixture);
    await fixture.recorded(8);
    await fixture.show(fixture.session ?? '', 'p.map=y:file,x:all,v:bytes');
    const input = mapPanel(fixture).input();
    const box = await input.boundingBox();
    if (!box) throw new Error('no map');
    await fixture.page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    let seen: string[] = [];
    for (let zoom = 0; zoom < 14; zoom += 1) {
      const names = await namesIn(fixture);
      expectReadable(names, 2);
      seen = [...seen, ...names.map(({ text }) => text)];
      await fixture.page.mouse.wheel(0, -120);
    }
    expect(seen).toEqual(expect.arrayContaining([expect.stringMatching(/^layer \d$/)]));
    expect(seen).toEqual(expect.arrayContaining([expect.stringMatching(/_exps, experts$/)]));
    expect(seen).toEqual(expect.arrayContaining([expect.stringMatching(/_exps expert \d$/)]));
  });
});
