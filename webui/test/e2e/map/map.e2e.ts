// The map: its colours and figures against REST, live and recorded pictures, links.
import { describe, expect, it } from 'vitest';
import { layerAxis } from '../../../src/panels/map/map_axes';
import { sumText } from '../../../src/panels/map/units';
import { axisOf } from '../../../src/plane/axis';
import { viridis } from '../../../src/plane/colours';
import { planeLayout, xOf, yOf } from '../../../src/plane/layout';
import { wholeCamera } from '../../../src/plane/camera';
import { levelOf, scaleOf } from '../../../src/plane/scale';
import { mapPanel } from '../support/map_panel';
import { PageFixture } from '../support/page_fixture';

// A run of the default context ends within a second on a fast machine, before the tests have looked at it.
const fixture = PageFixture.use(() => Promise.resolve(['-c', '32768']));
const { map, input, tip, crumbs, preset, presets, heatmap, pixels, settled, columnOf } =
  mapPanel(fixture);

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
    await fixture.show(await fixture.recorded(24), 'p.map=x:token');
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
    await fixture.stopRun();
  });

  it('grows with the run, also of the server', async () => {
    await presets().waitFor({ state: 'detached' });
    await fixture.runText('Grow', 3000);
    await preset('Step × tensor');
    await expect.poll(pixels).not.toBe(0);
    const before = await pixels();
    await expect.poll(pixels).not.toBe(before);
    await fixture.stopRun();
  });
});

describe('a link', () => {
  it.each([
    'p.map=y:memory,x:time,v:bytes,p:heat',
    'p.map=y:tensor,v:accesses,linear,cx:3:12',
    'ph=g&p.map=y:component,x:layer,p:cividis',
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
