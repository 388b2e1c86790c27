// Where the canvas looks at the layout, and what lies under a point of it. Pure:
// canvas in CSS pixels, layout in its own units.
import type { Window } from '../state/view';
import type { Layout } from './layout';

export interface Box {
  readonly w: number;
  readonly h: number;
}

// x = (layout x) * scale + left, likewise y.
export interface Camera {
  readonly scale: number;
  readonly left: number;
  readonly top: number;
}

const MARGIN = 16;
const READABLE = 0.72; // scale at which small text can be read
const CLOSEST = 4;
const FARTHEST = 0.05;

// Everything.
export function fitted(box: Box, { width, height }: Layout): Camera {
  const scale = clamp(
    Math.min((box.w - 2 * MARGIN) / Math.max(1, width), (box.h - 2 * MARGIN) / Math.max(1, height)),
    FARTHEST,
    1.2,
  );
  return { scale, left: (box.w - width * scale) / 2, top: (box.h - height * scale) / 2 };
}

// At first: everything where that can be read, else the top of it.
export function begun(box: Box, layout: Layout): Camera {
  const all = fitted(box, layout);
  if (all.scale >= READABLE) return all;
  return { scale: READABLE, left: (box.w - layout.width * READABLE) / 2, top: MARGIN };
}

export function windowOf({ scale, left, top }: Camera, box: Box): Window {
  return [-left / scale, (box.w - left) / scale, -top / scale, (box.h - top) / scale];
}

// The window, as large as it fits into the box.
export function cameraOf(window: Window, box: Box): Camera {
  const [x0 = 0, x1 = 1, y0 = 0, y1 = 1] = window;
  const scale = clamp(Math.min(box.w / (x1 - x0), box.h / (y1 - y0)), FARTHEST, CLOSEST);
  return {
    scale,
    left: box.w / 2 - ((x0 + x1) / 2) * scale,
    top: box.h / 2 - ((y0 + y1) / 2) * scale,
  };
}

// Factor below 1 looks closer; the point of the canvas stays where it is.
export function zoomed(camera: Camera, factor: number, x: number, y: number): Camera {
  const scale = clamp(camera.scale / factor, FARTHEST, CLOSEST);
  const grown = scale / camera.scale;
  return { scale, left: x - (x - camera.left) * grown, top: y - (y - camera.top) * grown };
}

export const moved = (camera: Camera, dx: number, dy: number): Camera => ({
  ...camera,
  left: camera.left + dx,
  top: camera.top + dy,
});

// As little movement as brings the item into the box.
export function revealing(camera: Camera, box: Box, rect: Rect): Camera {
  const x0 = rect.x * camera.scale + camera.left;
  const y0 = rect.y * camera.scale + camera.top;
  const dx = shiftInto(x0, x0 + rect.w * camera.scale, box.w);
  const dy = shiftInto(y0, y0 + rect.h * camera.scale, box.h);
  return dx === 0 && dy === 0 ? camera : moved(camera, dx, dy);
}

function shiftInto(from: number, to: number, room: number): number {
  if (from < MARGIN) return MARGIN - from;
  return to > room - MARGIN ? Math.max(room - MARGIN - to, MARGIN - from) : 0;
}

export interface Rect {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

export function rectOf(layout: Layout, size: Box, item: number): Rect {
  return { x: layout.x[item] ?? 0, y: layout.y[item] ?? 0, w: size.w, h: size.h };
}

// The item at a point of the canvas.
export function hit(
  layout: Layout,
  sizes: readonly Box[],
  camera: Camera,
  x: number,
  y: number,
): number | null {
  const lx = (x - camera.left) / camera.scale;
  const ly = (y - camera.top) / camera.scale;
  const at = sizes.findIndex((size, item) => {
    const { x: left, y: top, w, h } = rectOf(layout, size, item);
    return lx >= left && lx <= left + w && ly >= top && ly <= top + h;
  });
  return at < 0 ? null : at;
}

const clamp = (value: number, least: number, most: number): number =>
  Math.min(most, Math.max(least, value));
