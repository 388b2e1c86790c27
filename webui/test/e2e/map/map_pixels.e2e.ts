// The pixels of the map on a session whose values never change: the example of the page. Every
// colour is computed from the values of REST.
import { describe, expect, it } from 'vitest';
import type { PictureAxis } from '../../../src/net/types';
import { axisFrom, layerAxis } from '../../../src/panels/map/map_axes';
import { PRESETS } from '../../../src/panels/map/map_options';
import { axisOf } from '../../../src/plane/axis';
import { colourOf, type Palette } from '../../../src/plane/colours';
import { planeLayout, xOf, yOf, type PlaneLayout } from '../../../src/plane/layout';
import { wholeCamera } from '../../../src/plane/camera';
import { levelOf, scaleOf } from '../../../src/plane/scale';
import { PageFixture } from '../support/page_fixture';

const fixture = PageFixture.use();

interface Picture {
  readonly x: PictureAxis;
  readonly y: PictureAxis;
  readonly cells: readonly (readonly number[])[];
}

const map = () => fixture.page.getByRole('tabpanel', { name: 'Map' });

// The colours of a canvas at points of the map, in CSS pixels. Outside of the canvas: transparent.
const coloursAt = (canvas: string, points: readonly (readonly [number, number])[]) =>
  map()
    .locator(canvas)
    .evaluate((element, at) => {
      const ctx = (element as HTMLCanvasElement).getContext('2d');
      const ratio = devicePixelRatio;
      const { e: left, f: top } = new DOMMatrix(getComputedStyle(element).transform);
      return at.map(([x, y]) => [
        ...(ctx?.getImageData((x - left) * ratio, (y - top) * ratio, 1, 1).data ?? []),
      ]);
    }, points);

// Where the map draws what: from the axes of REST.
async function layoutOf({ x, y }: Picture): Promise<PlaneLayout> {
  const box = await map().locator('.plane-input').boundingBox();
  const isLive = x.axis === 'token' && y.axis === 'layer';
  return planeLayout(
    { w: Math.round(box?.width ?? 0), h: Math.round(box?.height ?? 0) },
    {
      x: x.axis === 'token' ? axisOf('count', 'token', x.size, { textOf: () => '' }) : axisFrom(x),
      tracks: [{ y: isLive ? layerAxis(y.size) : axisFrom(y), share: 1 }],
    },
    wholeCamera,
  );
}

const [LAYERS, COMPONENTS] = ['layers', 'components'].map((id) => PRESETS.find((one) => one.id === id)); // prettier-ignore

async function pictureOf(options: string, { x, y, value } = LAYERS?.options ?? { x: 'token', y: 'layer', value: 'time' }): Promise<Picture> {
  const session = await fixture.example();
  await fixture.show(session, ...(options === '' ? [] : [`p.map=${options}`]));
  return fixture.get<Picture>(`heatmap?x=${x}&y=${y}&value=${value}&width=1024&height=1024`);
} // prettier-ignore

// The cells that are wide enough to have a pixel of their own colour, in the middle.
const middles = (layout: PlaneLayout, rows: number, columns: number) =>
  Array.from({ length: rows * columns }, (_, i): [number, number] => {
    const track = layout.tracks[0];
    const [x, y] = [i % columns, Math.floor(i / columns)];
    return [xOf(layout, x + 0.5), track ? yOf(track, y + 0.5) : 0];
  });

describe('the colours of the example', () => {
  const options = (axes: string, palette: Palette, log: boolean): string =>
    [axes, log ? '' : 'linear', palette === 'viridis' ? '' : `p:${palette}`].filter(Boolean).join();

  it.each([
    [LAYERS, '', 'viridis', true],
    [LAYERS, '', 'heat', false],
    [COMPONENTS, 'y:component,x:layer', 'cividis', true],
    [COMPONENTS, 'y:component,x:layer', 'grey', false],
  ] as const)('are those of the values of REST: %o %s %s, log %s', async (preset, axes, palette, log) => {
    const picture = await pictureOf(options(axes, palette, log), preset?.options);
    const [rows, columns] = [picture.cells.length, picture.cells[0]?.length ?? 0];
    const cells = Float32Array.from(picture.cells.flat());
    const scale = scaleOf([cells], log);
    const layout = await layoutOf(picture);
    const points = middles(layout, rows, columns);
    const expected = Array.from(cells, (value) =>
      value > 0 ? [...colourOf(palette, (levelOf(value, scale) - 1) / 254)] : null,
    );
    // The picture arrives and settles.
    const differing = async (): Promise<readonly number[]> => {
      const found = await coloursAt('.plane-base', points);
      return found.flatMap((pixel, i) => {
        const wanted = expected[i];
        return wanted && String(pixel.slice(0, 3)) !== String(wanted) ? [i] : [];
      });
    };
    await expect.poll(differing).toEqual([]);
    expect(expected.filter(Boolean).length).toBeGreaterThan(columns);
  }); // prettier-ignore
});

describe('the frame of the selection', () => {
  it('does not hide a narrow column', async () => {
    await fixture.page.setViewportSize({ width: 1100, height: 900 });
    const picture = await pictureOf('');
    const layout = await layoutOf(picture);
    const columns = picture.cells[0]?.length ?? 0;
    const width = layout.plot.w / (layout.x.to - layout.x.from);
    expect(width, 'columns are narrow').toBeLessThan(8);
    for (const token of [3, Math.floor(columns / 2), columns - 1]) {
      await fixture.show(fixture.session ?? '', `sel=k:${token}`, `step=${Math.max(0, token - 20)}`);
      await fixture.page.mouse.move(2, 2);
      const points = middles(layout, picture.cells.length, columns);
      const alphas = async () => (await coloursAt('.plane-overlay', points)).map((pixel) => pixel[3]);
      await expect.poll(alphas).toEqual(points.map(() => 0));
      // It is marked above and below.
      const track = layout.tracks[0];
      const marked = await fixture.pixels('.plane-overlay');
      expect(marked).not.toBe(0);
      expect(track).toBeDefined();
    }
  }); // prettier-ignore
});

describe('the edges of the map', () => {
  it('clip no label of the x axis', async () => {
    const session = await fixture.example();
    for (const options of ['', 'x:step', 'y:op,x:time', 'y:component,x:layer']) {
      await fixture.show(session, ...(options === '' ? [] : [`p.map=${options}`]));
      await expect.poll(() => fixture.pixels('.plane-base')).not.toBe(0);
      // The columns of pixels at the left and right end, below the plot.
      const ink = await map()
        .locator('.plane-base')
        .evaluate((canvas) => {
          const { width, height } = canvas as HTMLCanvasElement;
          const ctx = (canvas as HTMLCanvasElement).getContext('2d');
          const used = (x: number): boolean =>
            ctx?.getImageData(x, height - 24, 1, 24).data.some((value, i) => i % 4 === 3 && value > 0) === true;
          return [used(0), used(width - 1)];
        }); // prettier-ignore
      expect(ink, options).toEqual([false, false]);
    }
  });

  it('are not below the zoom buttons', async () => {
    await fixture.example();
    const plane = await map().locator('.plane').boundingBox();
    const buttons = await map().locator('.zoom').boundingBox();
    expect(buttons?.y).toBeGreaterThanOrEqual((plane?.y ?? 0) + (plane?.height ?? Infinity) - 1);
  });
});
