import { describe, expect, it } from 'vitest';
import { axisOf, type Axis } from '../../../src/plane/axis';
import type { Range } from '../../../src/plane/range';
import {
  cameraWith,
  fullX,
  hitAt,
  lensLayout,
  planeLayout,
  positionIn,
  xOf,
  yOf,
  zoneAt,
} from '../../../src/plane/layout';
import { isWholeCamera, wholeCamera } from '../../../src/plane/camera';

const box = { w: 1000, h: 500 };
const tokens = axisOf('count', 'token', 200);
const layers = axisOf('rows', 'layer', 23, {
  names: Array.from({ length: 23 }, (_, i) => String(i)),
});
const file = axisOf('bytes', 'file', 1_000_000);
const axes = { x: tokens, tracks: [{ y: layers, share: 1 }] };

describe('a layout', () => {
  it('limits the width of columns and the height of rows', () => {
    const few = {
      x: axisOf('count', 'token', 4),
      tracks: [{ y: axisOf('rows', 'layer', 3), share: 1 }],
    };
    const { x, plot, tracks } = planeLayout(box, few, wholeCamera);
    expect(plot.w / (x.to - x.from)).toBeCloseTo(48);
    expect((tracks[0]?.plot.h ?? 0) / 3).toBeCloseTo(64);
  });

  it('finds the cell at a point, and the point of a cell', () => {
    const layout = planeLayout(box, axes, wholeCamera);
    const track = layout.tracks[0];
    if (!track) throw new Error('no track');
    const [x, y] = [xOf(layout, 3.5), yOf(track, 2.5)];
    const hit = hitAt(layout, tokens, x, y);
    expect(hit?.track).toBe(0);
    expect(hit?.x).toBeCloseTo(3.5);
    expect(hit?.y).toBeCloseTo(2.5);
    expect(positionIn(track, y)).toBeCloseTo(2.5);
    expect(hitAt(layout, tokens, x, 2)).toMatchObject({ y: null }); // above the rows
    expect(hitAt(layout, tokens, layout.plot.x - 1, y)).toBeNull();
    expect(zoneAt(layout, x, y)).toBe('plot');
    expect(zoneAt(layout, layout.plot.x - 5, y)).toBe('names');
    expect(zoneAt(layout, x, 3)).toBe('outside');
    expect(zoneAt(layout, x, 10)).toBe('sums');
    expect(zoneAt(layout, x, layout.labels.y + 3)).toBe('labels');
  });

  it('divides the height among the tracks', () => {
    const two = {
      x: axisOf('one', 'all', 1),
      tracks: [
        { y: file, share: 3 },
        { y: file, share: 1 },
      ],
    };
    const [a, b] = planeLayout(box, two, wholeCamera).tracks;
    expect((a?.plot.h ?? 0) / (b?.plot.h ?? 1)).toBeCloseTo(3);
    expect((b?.plot.y ?? 0) - (a?.plot.y ?? 0) - (a?.plot.h ?? 0)).toBeGreaterThan(10); // its title
    expect((b?.plot.y ?? 0) + (b?.plot.h ?? 0)).toBeLessThanOrEqual(box.h);
  });

  it('stays inside a small box', () => {
    for (const w of [40, 120, 390]) {
      const { plot, gutter } = planeLayout({ w, h: 60 }, axes, wholeCamera);
      expect(gutter).toBeLessThan(w);
      expect(plot.w).toBeGreaterThan(0);
    }
  });
});

describe('the names of the rows', () => {
  const names = Array.from({ length: 900 }, (_, i) => `attn_out_of_op-${i}`);
  const groups = [0, 1, 2].map((i) => ({ name: `layer ${i}`, from: 300 * i, to: 300 * i + 300 }));
  const gutter = (y: Axis, view: Range | null) =>
    planeLayout(box, { x: tokens, tracks: [{ y, share: 1 }] }, { x: null, ys: [view] }).gutter;

  it('take only the room of those that are shown', () => {
    const ops = axisOf('rows', 'op', 900, { names, groups });
    expect(gutter(ops, null)).toBeLessThan(75);
    expect(gutter(ops, { from: 5, to: 15 })).toBeGreaterThan(150);
  });

  it('of a file take the room of the parts that are large enough', () => {
    const parts = [
      { name: 'output', from: 0, to: 80_000 },
      { name: 'attn_output.weight', from: 80_000, to: 80_900 },
    ];
    const files = axisOf('bytes', 'file', 90_000, { parts, groups: groups.slice(0, 2) });
    const whole = gutter(files, null);
    expect(whole).toBeLessThan(130);
    // The same while the part is panned out of view.
    for (const from of [60_000, 70_000])
      expect(gutter(files, { from, to: from + 20_000 })).toBeGreaterThan(whole);
  });
});

describe('a camera', () => {
  const layout = planeLayout(box, axes, wholeCamera);

  it('is whole again when everything is in view', () => {
    const zoomed = cameraWith(wholeCamera, { x: { from: 5, to: 50 } }, layout, tokens);
    expect(zoomed).toEqual({ x: { from: 5, to: 50 }, ys: [null] });
    const back = cameraWith(zoomed, { x: fullX(tokens, layout.plot.w) }, layout, tokens);
    expect(isWholeCamera(back)).toBe(true);
  });

  it('of a shorter session is moved inside', () => {
    const { x } = planeLayout(box, axes, {
      x: { from: 5000, to: 5050 },
      ys: [{ from: 90, to: 95 }],
    });
    expect(x).toEqual({ from: 150, to: 200 });
  });
});

describe('a lens', () => {
  const magnify = (scene: typeof axes, at = { x: 600, y: 200 }) => {
    const layout = planeLayout(box, scene, wholeCamera);
    const track = layout.tracks[0];
    const hit = track && hitAt(layout, scene.x, at.x, at.y);
    if (!track || hit?.y == null) throw new Error('no cell');
    const lens = lensLayout(layout, track, scene.x, { ...hit, y: hit.y }, at, 1000);
    return { lens, hit, layout };
  };

  it('magnifies what is around the pointer, beside it', () => {
    const { lens, hit } = magnify({ x: tokens, tracks: [{ y: file, share: 1 }] });
    const { y, plot } = lens.track;
    expect(y.from).toBeLessThan(hit.y ?? 0);
    expect(y.to).toBeGreaterThan(hit.y ?? 0);
    expect((y.to - y.from) / plot.h).toBeCloseTo(1_000_000 / 420 / 16, -2);
    expect(lens.box.x + lens.box.w).toBeLessThan(600);
    expect(lens.isNamed).toBe(true);
    expect(lens.box.y).toBeGreaterThanOrEqual(0);
  });

  it('does not magnify rows that are large already, and stays on the axis', () => {
    const few = axisOf('rows', 'layer', 2, { names: ['0', '1'] });
    const one = { x: axisOf('one', 'all', 1), tracks: [{ y: few, share: 1 }] };
    const { lens } = magnify(one, { x: 400, y: 60 });
    expect(lens.track.y).toEqual({ from: 0, to: 2 });
    expect(lens.layout.x).toEqual({ from: 0, to: 1 });
    expect(lens.isNamed).toBe(false);
  });

  it.each([100, 180, 500, 800])('covers only cells, with the pointer at %d', (x) => {
    const { lens, layout } = magnify({ x: tokens, tracks: [{ y: file, share: 1 }] }, { x, y: 200 });
    const { plot } = layout;
    expect(lens.box.x).toBeGreaterThanOrEqual(plot.x);
    expect(lens.box.x + lens.box.w).toBeLessThanOrEqual(plot.x + plot.w);
    expect(lens.track.plot).toEqual(lens.box);
  });
});
