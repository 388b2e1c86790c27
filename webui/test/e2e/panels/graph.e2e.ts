// The layer graph with the real server: selection by click, links of the inspector, keyboard
// navigation, the table and the hidden list.
import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { layoutGraph } from '../../../src/graph/layout';
import { RING } from '../../../src/graph/paint';
import { laidOut, layoutGraphOf, sceneOf } from '../../../src/graph/scene';
import { cameraOf, initialCamera } from '../../../src/graph/view';
import { formatBytes } from '../../../src/format';
import type { Breakdown, LayerSubgraph, Op } from '../../../src/net/types';
import { proxyLive, type Message } from '../support/live_proxy';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use(() => Promise.resolve(['-c', '65536']));
const canvas = () => fixture.page.getByRole('application', { name: /^Layer \d+: / });
const title = () => fixture.inspector.locator('.inspection h2').innerText();

async function shown(): Promise<void> {
  await fixture.recorded(6);
  await fixture.tab('Graph').click();
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
          await page.mouse.click(box.x + box.width * x, box.y + 20);
          // Read in the page, because page.url() may lag behind.
          if (await page.evaluate(() => location.hash.includes('sel='))) return true;
        }
        return false;
      })
      .toBe(true);
    await expect.poll(() => fixture.hash.get('sel')).toMatch(/^[nt]:./);
    await fixture.inspector.getByText(/^Read by/).waitFor();
    const before = await title();
    await fixture.inspector.locator('button.jump').first().click();
    await expect.poll(title).not.toBe(before);
    await page.goBack();
    await expect.poll(title).toBe(before);
    await fixture.copyAs('Text');
    await fixture.toasts.getByText('Text copied').waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toContain(before);
    await fixture.copyAs('JSON');
    await fixture.toasts.getByText('JSON copied').waitFor();
    const json: unknown = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
    expect(json).toBeTypeOf('object');
  });

  it('tells that there is more below and beside it', async () => {
    await shown();
    const { page } = fixture;
    const graph = page.locator('.graph');
    const hint = () => graph.evaluate((element) => getComputedStyle(element, '::after').content);
    expect(await hint()).toBe('none');
    const panel = page.getByRole('tabpanel', { name: 'Graph' });
    await panel.getByRole('button', { name: 'Zoom in', exact: true }).click();
    await expect.poll(hint).toContain('more below');
    const aside = () => graph.evaluate((element) => getComputedStyle(element, '::before').content);
    expect(await aside()).toContain('→');
    await panel.getByRole('button', { name: 'Show all', exact: true }).click();
    await expect.poll(hint).toBe('none');
    expect(await aside()).toBe('none');
  });

  it('has a readable name for each node in the default layout', async () => {
    const { page } = fixture;
    await fixture.recorded(6);
    // The texts of the last picture, as the browser draws them.
    await page.evaluate(() => {
      const { prototype } = CanvasRenderingContext2D;
      type Call = (...values: readonly unknown[]) => void;
      const plain = (name: string) => Reflect.get(prototype, name) as Call;
      const [clear, fill] = [plain('clearRect'), plain('fillText')];
      const texts = ((window as unknown as { drawn: unknown[] }).drawn = [] as unknown[]);
      const isGraph = (ctx: CanvasRenderingContext2D) => ctx.canvas.className === 'graph-base';
      prototype.clearRect = function (...area) {
        if (isGraph(this)) texts.length = 0;
        clear.apply(this, area);
      };
      prototype.fillText = function (text, x, y) {
        fill.call(this, text, x, y);
        if (!isGraph(this)) return;
        const { a: scale, e: left, f: top } = this.getTransform();
        const css = scale / devicePixelRatio;
        const w = this.measureText(text).width * css;
        const size = Number(/([\d.]+)px/.exec(this.font)?.[1]) * css;
        const x0 = (left + x * scale) / devicePixelRatio;
        const middle = (top + y * scale) / devicePixelRatio;
        texts.push({ text, size, x0, x1: x0 + w, y0: middle - size / 2, y1: middle + size / 2 });
      };
    });
    await fixture.tab('Graph').click();
    await page.locator('.graph[data-drawn="0"]').waitFor();
    const layer = await fixture.get<LayerSubgraph>('steps/0/layers/0');
    const names = sceneOf(layer).items.flatMap(({ title, brief }) => [title, brief]).filter(Boolean);
    expect(layer.nodes.length).toBeGreaterThan(45);
    interface Text { text: string; size: number; x0: number; x1: number; y0: number; y1: number }
    const drawn = () => page.evaluate(() => (window as unknown as { drawn: Text[] }).drawn);
    await expect.poll(async () => (await drawn()).length).toBe(names.length);
    const texts = await drawn();
    expect(texts.map(({ text }) => text).sort()).toEqual(names.sort());
    const box = await page.locator('.graph-base').boundingBox();
    for (const one of texts) {
      expect(one.size, one.text).toBeGreaterThanOrEqual(10);
      expect(one.text).not.toContain('…');
      expect(Math.min(one.x0, one.y0), one.text).toBeGreaterThanOrEqual(0);
      expect(one.x1, one.text).toBeLessThanOrEqual(box?.width ?? 0);
      expect(one.y1, one.text).toBeLessThanOrEqual(box?.height ?? 0);
      for (const other of texts)
        if (other !== one) expect(one.x0 < other.x1 && other.x0 < one.x1 && one.y0 < other.y1 && other.y0 < one.y1, `${one.text} over ${other.text}`).toBe(false);
    }
  }); // prettier-ignore

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
    await expect.poll(() => fixture.hash.get('sel')).toMatch(/^n:./);
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

  it('comes to what is selected elsewhere, above its fade, also when it was zoomed', async () => {
    const session = await fixture.recorded(6);
    const { page } = fixture;
    const name = 'blk.1.ffn_down.weight';
    const isInView = async (): Promise<boolean> => {
      const scene = sceneOf(await fixture.get<LayerSubgraph>('steps/0/layers/1'));
      const { layout } = laidOut(scene, layoutGraph(layoutGraphOf(scene)));
      const item = scene.items.findIndex(({ node }) => node.name === name);
      const box = await page.locator('.graph-base').boundingBox();
      const window = fixture.hash.get('w.graph')?.split(':').map(Number);
      if (!box || !window || item < 0) return false;
      const { scale, left, top } = cameraOf(window, { w: box.width, h: box.height });
      const [x, y] = [(layout.x[item] ?? 0) * scale + left, (layout.y[item] ?? 0) * scale + top];
      const bottom = y + (scene.items[item]?.h ?? 0) * scale;
      return x >= 0 && x < box.width && y >= 0 && bottom <= box.height - 50;
    };
    const isShown = () => expect.poll(isInView).toBe(true);
    const away = 'w.graph=-2000:-1000:-2000:-1500';
    // A search finds a tensor of another layer.
    await fixture.show(session, 'tab=graph', away);
    await page.locator('.graph[data-drawn="0"]').waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type(name);
    await page.getByRole('option', { name }).first().click();
    await page.locator('.graph[data-drawn="1"]').waitFor();
    await isShown();
    // The button of the inspector, after the graph was moved.
    await page.locator('.graph-base').focus();
    for (let i = 0; i < 9; i += 1) await page.keyboard.press('d');
    await expect.poll(isInView).toBe(false);
    await fixture.inspector.getByRole('button', { name: 'Graph', exact: true }).click();
    await isShown();
    // Selected while another tab was in front.
    await fixture.show(session, 'tab=graph', 'l=1', away);
    await page.locator('.graph[data-drawn="1"]').waitFor();
    await fixture.tab('Map').click();
    await page.keyboard.press('Control+k');
    await page.keyboard.type(name);
    await page.getByRole('option', { name }).first().click();
    await fixture.tab('Graph').click();
    await isShown();
  });

  it('is of the layer that the filter names', async () => {
    await shown();
    await fixture.filter.fill('layer:1');
    await fixture.page.locator('.graph[data-drawn="1"]').waitFor();
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
    // The link has the form.
    await expect.poll(() => fixture.hash.get('p.graph')).toBe('list');
    await page.reload();
    await table.waitFor();
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

  it('hides a kind of nodes by its legend', async () => {
    await shown();
    const { page } = fixture;
    const before = await fixture.pixels('.graph-base');
    const legend = page.getByRole('list', { name: 'Kinds of nodes' });
    await legend.getByRole('button', { name: /^shared/ }).click();
    await expect.poll(() => fixture.hash.get('p.graph')).toBe('hide:infrastructure');
    await expect.poll(() => fixture.pixels('.graph-base')).not.toBe(before);
    await legend.getByRole('button', { name: /^shared/ }).click();
    await expect.poll(() => fixture.pixels('.graph-base')).toBe(before);
  });

  it('is coloured by time, bytes or disk waits of the step or the session', async () => {
    await shown();
    const { page } = fixture;
    const plain = await fixture.pixels('.graph-base');
    await page.getByLabel('Colour of the nodes').selectOption('bytes');
    await expect.poll(() => fixture.pixels('.graph-base')).not.toBe(plain);
    // The scale ends at the op of the layer with the most bytes.
    const at = /step (\d+)/.exec(await page.locator('.toolbar', { hasText: /step \d+, \d+ nodes/ }).innerText())?.[1]; // prettier-ignore
    const { rows } = await fixture.get<Breakdown>(`breakdown?by=op&from_step=${at}&to_step=${Number(at) + 1}&layers=0`); // prettier-ignore
    const most = Math.max(...rows.map(({ all }) => all.bytes_read + all.bytes_written));
    await page.locator('li', { hasText: new RegExp(`^bytes [\\d.]+ .*B${formatBytes(most)}$`) }).waitFor(); // prettier-ignore
    const step = await fixture.pixels('.graph-base');
    // The bytes of the ops of a session have the proportions of a step; their times have not.
    await page.getByLabel('Colour of the nodes').selectOption('time');
    await page.getByRole('radio', { name: 'Session' }).check();
    await expect.poll(() => fixture.hash.get('p.graph')).toBe('heat:time,all');
    await expect.poll(() => fixture.pixels('.graph-base')).not.toBe(step);
    expect(await fixture.axeViolations()).toEqual([]);
    // A brushed range: other requests, other times.
    const whole = await fixture.pixels('.graph-base');
    const asked = page.waitForRequest(
      (request) => request.url().includes('/breakdown?') && request.url().includes('from_token=6'),
    );
    await fixture.show(fixture.session ?? '', 'tab=graph', 'p.graph=heat:time,all', 'r=token:6:9,');
    expect((await asked).url()).toMatch(/by=op.*to_token=9|to_token=9.*by=op/);
    await expect.poll(() => fixture.pixels('.graph-base')).not.toBe(whole);
    // Nothing of this session waited for the disk: no node has a colour.
    await page.getByLabel('Colour of the nodes').selectOption({ label: 'disk waits' });
    await expect.poll(() => fixture.hash.get('p.graph')).toBe('heat:faults,all');
    await page.getByText('no disk waits').waitFor();
  });
});

describe('the graph of a running step', () => {
  // The first `rows` ops of a frame (api/live.md), as if the step were still running.
  function begun(frame: Buffer, rows: number): Buffer {
    const all = frame.readUInt32LE(20);
    const column = (count: number): number => (4 * count + 7) & ~7;
    const made = Buffer.alloc(32 + column(rows) + 16 * rows);
    frame.copy(made, 0, 0, 32);
    made.writeUInt16LE(0, 6); // flags
    made.writeUInt32LE(rows, 20);
    frame.copy(made, 32, 32, 32 + 4 * rows);
    for (const times of [0, 1]) {
      const from = 32 + column(all) + times * 8 * all;
      frame.copy(made, 32 + column(rows) + times * 8 * rows, from, from + 8 * rows);
    }
    return made;
  }

  it('lights the running op, and the edges with the data that it reads', async () => {
    const { page } = fixture;
    const proxy = await proxyLive(fixture);
    await page.reload();
    await expect.poll(() => fixture.run.isEnabled()).toBe(true);
    const lit = async () => {
      // After step 0, the messages stop before op 2 of layer 0 (in step 1, unless it ended before the page
      // asked for ops). The run goes on.
      const done = 2;
      const held: Message[] = [];
      let release = (): void => undefined;
      proxy.onMessage = (message, pass) => {
        const isOps = typeof message !== 'string';
        // The first frame of a step may have fewer rows; then this op is in a later one.
        const before =
          isOps && message.readUInt32LE(12) >= 1 ? done - message.readUInt32LE(16) : NaN;
        if (held.length > 0) held.push(message);
        else if (isOps && message.readUInt32LE(20) > before) {
          if (before > 0) pass(begun(message, before));
          held.push(message);
          release = () => {
            proxy.onMessage = (later, passed) => {
              passed(later);
            };
            held.forEach(pass);
          };
        } else pass(message);
      };
      await fixture.runText('Once upon a time there was a little frog. '.repeat(130), 60_000);
      await fixture.tab('Graph').click();
      await page.locator('.graph[data-drawn="0"]').waitFor();
      await expect.poll(() => held.length).toBeGreaterThan(0);

      const { ops } = await fixture.get<{ ops: Op[] }>('steps/0/ops?limit=1000');
      const running = ops[done];
      expect(running?.op_layer_id).toBe(0);
      const scene = sceneOf(await fixture.get<LayerSubgraph>('steps/0/layers/0'));
      const { layout } = laidOut(scene, layoutGraph(layoutGraphOf(scene)));
      const size = await page.locator('.graph-base').boundingBox();
      const camera = initialCamera({ w: size?.width ?? 0, h: size?.height ?? 0 }, layout);
      const item = scene.items.findIndex(({ node }) => node.executed_op === running?.op);
      const read = scene.edges.flatMap(({ to }, i) => (to === item ? [i] : []));
      expect(read.length).toBeGreaterThan(0);
      const screen = (x: number, y: number): [number, number] => [
        x * camera.scale + camera.left,
        y * camera.scale + camera.top,
      ];
      // Beside the box, where its ring is; and the middle of the last piece of each edge that ends there.
      const ring = screen(
        (layout.x[item] ?? 0) - RING,
        (layout.y[item] ?? 0) + (scene.items[item]?.h ?? 0) / 2,
      );
      const ends = read.map((edge) => {
        const [x0 = 0, y0 = 0, x1 = 0, y1 = 0] = layout.paths[edge]?.slice(-4) ?? [];
        return screen((x0 + x1) / 2, (y0 + y1) / 2);
      });
      const colours = () =>
        page.locator('.graph-base').evaluate(
          (canvas, points) => {
            const style = getComputedStyle(canvas);
            const ctx = (canvas as HTMLCanvasElement).getContext('2d');
            const names = ['--warn', '--accent'].map((name) => {
              const probe = document.createElement('i');
              probe.style.color = style.getPropertyValue(name);
              document.body.append(probe);
              const rgb = getComputedStyle(probe).color.match(/\d+/g)?.join();
              probe.remove();
              return rgb;
            });
            // Lines are 3 pixels wide: one of the pixels around has their colour.
            return points.map(([x, y]) => {
              const data = ctx?.getImageData(x * devicePixelRatio - 1, y * devicePixelRatio - 1, 3, 3).data ?? [];
              const found = Array.from({ length: 9 }, (_, i) => [...data.slice(4 * i, 4 * i + 3)].join());
              return names.findIndex((name) => name !== undefined && found.includes(name));
            });
          },
          [ring, ...ends],
        ); // prettier-ignore
      return { colours, expected: [0, ...ends.map(() => 1)], release };
    };
    // A busy page may lose a live message: it reads newer steps then, and no op is lit.
    for (let attempt = 1; ; attempt += 1) {
      const { colours, expected, release } = await lit();
      const isLit = await expect
        .poll(colours, { timeout: 20_000 })
        .toEqual(expected)
        .then(() => true)
        .catch((error: unknown) => {
          if (attempt === 4) throw error;
          return false;
        });
      release();
      await fixture.stopRun();
      if (!isLit) continue;
      await expect.poll(colours).toEqual(expected.map(() => -1));
      return;
    }
  });
});

describe('the graph of the model', () => {
  const model = () => fixture.page.getByRole('application', { name: /^Model: / });
  async function shownModel(): Promise<void> {
    await shown();
    await fixture.page.getByRole('radio', { name: 'Model', exact: true }).check();
    await fixture.page.locator('.graph[data-drawn="-1"]').waitFor();
  }
  const count = async () =>
    Number(/(\d[\d\u202f]*) nodes/.exec((await model().getAttribute('aria-label')) ?? '')?.[1]);

  it('has a box per layer and component, as REST has', async () => {
    await shownModel();
    const { steps } = await fixture.get<{ steps: { template: number }[] }>('steps?limit=100');
    const template = steps.at(-1)?.template ?? 0;
    const rest = await fixture.get<{ groups: unknown[]; edges: unknown[] }>(
      `templates/${template}/graph?collapse=true`,
    );
    expect(await count()).toBe(rest.groups.length);
    expect(await model().getAttribute('aria-label')).toContain(` ${rest.edges.length} edges`);
    expect(await fixture.axeViolations()).toEqual([]);
  });

  it('opens a box in place, by keyboard, and a link restores it', async () => {
    await shownModel();
    const { page } = fixture;
    const before = await count();
    await model().focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('o');
    await expect.poll(() => fixture.hash.get('p.graph')).toMatch(/^model,open:(\d+|x)_[a-z-]+$/);
    await expect.poll(count).toBeGreaterThan(before);
    const opened = await count();
    await page.reload();
    await expect.poll(count).toBe(opened);
    await page.getByRole('button', { name: 'Open layer 0' }).click();
    await expect.poll(count).toBeGreaterThan(opened);
    // The layer is chosen here, and nowhere else.
    await page.getByRole('button', { name: 'Next layer' }).click();
    await page.getByRole('button', { name: 'Open layer 1' }).waitFor();
    await page.getByRole('button', { name: 'Close all' }).click();
    await expect.poll(count).toBe(before);
  });

  it('opens as a whole, with the nodes of REST, and closes single boxes', async () => {
    await shownModel();
    const { page } = fixture;
    await page.getByRole('button', { name: 'Open all' }).click();
    const { steps } = await fixture.get<{ steps: { template: number }[] }>('steps?limit=100');
    const rest = await fixture.get<{ nodes: unknown[] }>(
      `templates/${steps.at(-1)?.template ?? 0}/graph`,
    );
    // What many nodes read and nobody computes is repeated beside its readers.
    await expect.poll(count).toBeGreaterThanOrEqual(rest.nodes.length);
    expect(await page.getByRole('button', { name: 'Open all' }).isDisabled()).toBe(true);
    const all = await count();
    await model().focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('o');
    await expect.poll(count).toBeLessThan(all);
    expect(fixture.hash.get('p.graph')).toMatch(/^model,open:every\.(\d+|x)_[a-z-]+$/);
    await page.getByRole('button', { name: 'Open all' }).click();
    await expect.poll(count).toBe(all);
  });

  it('is saved as SVG and PNG', async () => {
    await shownModel();
    const { page } = fixture;
    for (const format of ['SVG', 'PNG']) {
      await page.getByRole('button', { name: 'Export' }).click();
      const [file] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: `Save as ${format}` }).click(),
      ]);
      expect(file.suggestedFilename()).toBe(`model.${format.toLowerCase()}`);
      const bytes = await readFile(await file.path());
      if (format === 'PNG') expect(bytes.subarray(1, 4).toString()).toBe('PNG');
      else {
        const svg = bytes.toString();
        const boxes = svg.match(/<g><title>/g) ?? [];
        expect(boxes.length).toBeGreaterThanOrEqual(await count());
        expect(svg).toContain('stroke-dasharray="6 4"'); // edges across layers
      }
    }
  });
});
