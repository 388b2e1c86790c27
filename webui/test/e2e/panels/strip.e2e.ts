// The strip of memory with its figures, against REST.
import { describe, expect, it } from 'vitest';
import { formatBytes, formatSpeed, plural } from '../../../src/format';
import type { Model, Run, Session } from '../../../src/net/types';
import { viridis } from '../../../src/plane/colours';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use(() => Promise.resolve(['-c', '32768']));

interface Step {
  readonly phase: string;
  readonly token_count: number;
  readonly bytes_read: number;
  readonly bytes_written: number;
  readonly begin_ns: number;
  readonly end_ns: number;
  readonly dropped: boolean;
}

const strip = () => fixture.page.getByRole('region', { name: 'Memory' });
const chart = () => strip().locator('.strip-chart');
const figure = (name: string) =>
  strip()
    .locator('div', { has: fixture.page.getByText(name, { exact: true }) })
    .locator('dd');

describe('the strip', () => {
  it('has the figures of REST', async () => {
    await fixture.recorded(40);
    const { steps } = await fixture.get<{ steps: readonly Step[] }>('steps?limit=1000');
    const generated = steps.filter(({ phase, dropped }) => phase === 'generate' && !dropped);
    const sum = (of: (step: Step) => number): number =>
      generated.reduce((all, step) => all + of(step), 0);
    const tokens = sum((step) => step.token_count);
    const bytes = sum((step) => step.bytes_read + step.bytes_written);
    const ns = sum((step) => step.end_ns - step.begin_ns);
    const read = sum((step) => step.bytes_read);
    await expect
      .poll(() => figure('read per token').innerText())
      .toBe(formatBytes(Math.round(read / tokens)));
    expect(await figure('bandwidth').innerText()).toBe(
      `${formatBytes(Math.round((bytes / ns) * 1e9))}/s`,
    );
    const { speed } = await fixture.get<Session>('');
    expect(await figure('speed, no prompt').innerText()).toBe(
      formatSpeed(speed?.tokens_per_second ?? 0),
    );
    const faults = await fixture.get<{ shown: number }>('heatmap?x=all&y=all&value=faults');
    await expect.poll(() => figure('disk waits').innerText()).toBe(String(faults.shown));
  });

  it('names its parts, and a click shows them in the map', async () => {
    await fixture.recorded(6);
    await expect
      .poll(() => chart().getAttribute('aria-label'))
      .toMatch(/mapped file .*KV cache .*intermediate results/);
    // What the colours mean: the scale, from fast to slow.
    const key = strip().locator('.strip-key');
    expect(await key.innerText()).toMatch(
      /^time of the layer, step \d+\s+fast\s+slow\s+running or selected$/,
    );
    const scale = await key
      .locator('.colour-scale')
      .evaluate((one) => getComputedStyle(one).backgroundImage);
    const [first, last] = [0, 1].map((at) => `rgb(${viridis(at).join(', ')})`);
    expect(scale).toMatch(/^linear-gradient\(90deg, /);
    expect(scale.indexOf(first ?? '')).toBeLessThan(scale.indexOf(last ?? ''));
    expect(scale).toContain(first);
    const box = await chart().boundingBox();
    if (!box) throw new Error('no strip');
    await fixture.page.mouse.move(box.x + 6, box.y + 22);
    const tip = strip().locator('.tip');
    await expect.poll(() => tip.innerText()).toMatch(/^mapped file, .*: size .*bytes\)/);
    expect(await tip.innerText()).toMatch(
      /Colour: time of the layer in step \d+, .* the scale on the right shows what is slow/,
    );
    await fixture.page.mouse.click(box.x + 6, box.y + 22);
    await expect.poll(() => fixture.hash.get('p.map')).toBe('y:memory,x:all,v:bytes');
  });

  it('marks the layer of a selected weight', async () => {
    const session = await fixture.recorded(6);
    const paint = async (layer: number): Promise<number> => {
      await fixture.show(session, 'step=3', `sel=t:blk.${layer}.ffn_up.weight`);
      await expect.poll(() => strip().locator('.strip-key').innerText()).toContain('step 3');
      await expect.poll(() => isMarked()).toBe(true);
      return fixture.pixels('.strip-chart');
    };
    // The frame has the colour of the theme.
    const accent = await fixture.cssColour('--accent');
    const isMarked = () =>
      chart().evaluate((canvas, colour) => {
        if (!(canvas instanceof HTMLCanvasElement)) return false;
        const { width } = canvas;
        const row = canvas.getContext('2d')?.getImageData(0, 14 * devicePixelRatio, width, 1).data;
        return Array.from({ length: width }, (_, x) =>
          [...(row?.slice(4 * x, 4 * x + 3) ?? [])].join(),
        ).includes(colour);
      }, accent);
    await fixture.show(session, 'step=3');
    await expect.poll(() => fixture.pixels('.strip-chart')).not.toBe(0);
    expect(await isMarked()).toBe(false);
    expect(await paint(0)).not.toBe(await paint(1));
  });

  it('moves while the model runs', async () => {
    await fixture.runText('Alive', 40_000);
    await expect.poll(() => fixture.pixels('.strip-chart')).not.toBe(0);
    await figure('speed, last second').waitFor();
    for (let looks = 0; looks < 3; looks += 1) {
      const before = await fixture.pixels('.strip-chart');
      await expect.poll(() => fixture.pixels('.strip-chart')).not.toBe(before);
    }
    await figure('time left').waitFor();
    // What remains is what the context has room for, not the token limit.
    const { models } = await fixture.rest<{ models: readonly Model[] }>('models');
    const run = await fixture.rest<Run>(`generate/${fixture.session ?? ''}`);
    const context = models.find(({ id }) => id === run.model)?.context ?? 0;
    const most = plural(context - run.prompt_tokens + 1, 'token');
    await fixture.progress.getByText(`of at most ${most} (context)`).waitFor();
    await fixture.stopRun();
    await expect.poll(() => figure('time left').count()).toBe(0);
  });
});
