import { describe, expect, it } from 'vitest';
import { axisOf } from '../../../src/plane/axis';
import { planeLayout } from '../../../src/plane/layout';
import { wholeCamera } from '../../../src/plane/camera';
import { paintColumns } from '../../../src/plane/paint_overlay';
import type { PlaneTheme } from '../../../src/plane/theme';

const axes = {
  x: axisOf('count', 'token', 20),
  tracks: [{ y: axisOf('count', 'layer', 4), share: 1 }],
};
const layout = planeLayout({ w: 1000, h: 500 }, axes, wholeCamera);
const theme = { text: 'text', dim: 'dim', accent: 'accent' } as PlaneTheme;

// What a mark draws: the number of frames, and the colours of its filled parts.
function drawn(mark: 'selected' | 'compared', x = { from: 3, to: 4 }) {
  const colours = new Set<string>();
  let frames = 0;
  const ctx = new Proxy<Record<string, unknown>>(
    {},
    {
      get: (target, name: string) =>
        target[name] ??
        (() => {
          if (name === 'strokeRect') frames += 1;
          if (name.startsWith('fill')) colours.add(String(target.fillStyle));
        }),
    },
  );
  paintColumns(ctx as never, layout, x, theme, mark);
  return { frames, colours: [...colours] };
}

describe('the marks of columns', () => {
  it('frame the selected one', () => {
    expect(drawn('selected')).toEqual({ frames: 2, colours: ['text', 'accent'] });
  });
  it('frame nothing that fills the plot', () => {
    const { from, to } = layout.x;
    expect(drawn('selected', { from, to: from + 0.7 * (to - from) }).frames).toBe(2);
    expect(drawn('selected', { from: from - 9, to: to - 1 }).frames).toBe(0);
  });
  it('are weaker for the compared one: dim, without a frame', () => {
    expect(drawn('compared')).toEqual({ frames: 0, colours: ['dim'] });
  });
});
