// The camera of the layer graph: conversion between canvas (CSS pixels) and layout coordinates,
// and hit testing. Pure functions.
import type { Window } from '../state/view/view';
import type { Layout } from './layout';

export interface Box {
  readonly w: number;
  readonly h: number;
}

// Canvas x = layout x * scale + left; y likewise with top.
export interface Camera {
  readonly scale: number;
  readonly left: number;
  readonly top: number;
}

const MARGIN = 6;
const READABLE_SCALE = 1; // minimum scale for readable text
const FIT_SCALE = 2.4; // larger only after zooming in
const FADE = 52; // height of the fade at the bottom, as in graph.css
const MAX_SCALE = 8;
const MIN_SCALE = 0.05;

// Shows the whole layout.
export function fitCamera(box: Box, { width, height }: Layout): Camera {
  const scale = clamp(
    Math.min((box.w - 2 * MARGIN) / Math.max(1, width), (box.h - 2 * MARGIN) / Math.max(1, height)),
    MIN_SCALE,
    FIT_SCALE,
  );
  return { scale, left: (box.w - width * scale) / 2, top: (box.h - height * scale) / 2 };
}

// The initial camera: the whole layout if its text is readable, else the top of it.
export function initialCamera(box: Box, layout: Layout): Camera {
  const all = fitCamera(box, layout);
  if (all.scale >= READABLE_SCALE) return all;
  const beside = (box.w - layout.width * READABLE_SCALE) / 2;
  return { scale: READABLE_SCALE, left: Math.max(MARGIN, beside), top: MARGIN };
}

export const isCutBelow = ({ scale, top }: Camera, { h }: Box, { height }: Layout): boolean =>
  height * scale + top > h;

export const isCutRight = ({ scale, left }: Camera, { w }: Box, { width }: Layout): boolean =>
  width * scale + left > w;

export function windowOf({ scale, left, top }: Camera, box: Box): Window {
  return [-left / scale, (box.w - left) / scale, -top / scale, (box.h - top) / scale];
}

// The camera that fits the window into the box.
export function cameraOf(window: Window, box: Box): Camera {
  const [x0 = 0, x1 = 1, y0 = 0, y1 = 1] = window;
  const scale = clamp(Math.min(box.w / (x1 - x0), box.h / (y1 - y0)), MIN_SCALE, MAX_SCALE);
  return {
    scale,
    left: box.w / 2 - ((x0 + x1) / 2) * scale,
    top: box.h / 2 - ((y0 + y1) / 2) * scale,
  };
}

// A factor below 1 zooms in. The given point of the canvas stays fixed.
export function zoomCamera(camera: Camera, factor: number, x: number, y: number): Camera {
  const scale = clamp(camera.scale / factor, MIN_SCALE, MAX_SCALE);
  const grown = scale / camera.scale;
  return { scale, left: x - (x - camera.left) * grown, top: y - (y - camera.top) * grown };
}

export const panCamera = (camera: Camera, dx: number, dy: number): Camera => ({
  ...camera,
  left: camera.left + dx,
  top: camera.top + dy,
});

// Pans the minimum distance that brings the item into the box, above the fade if there is one.
export function cameraRevealing(
  camera: Camera,
  box: Box,
  rect: Rect,
  edge: 'plain' | 'fades' = 'plain',
): Camera {
  const x0 = rect.x * camera.scale + camera.left;
  const y0 = rect.y * camera.scale + camera.top;
  const dx = shiftInto(x0, x0 + rect.w * camera.scale, box.w);
  const dy = shiftInto(y0, y0 + rect.h * camera.scale, edge === 'fades' ? box.h - FADE : box.h);
  return dx === 0 && dy === 0 ? camera : panCamera(camera, dx, dy);
}

// A camera that went through a link is rounded: less than half a pixel is no shift.
function shiftInto(from: number, to: number, room: number): number {
  const shift =
    from < MARGIN
      ? MARGIN - from
      : to > room - MARGIN
        ? Math.max(room - MARGIN - to, MARGIN - from)
        : 0;
  return Math.abs(shift) < 0.5 ? 0 : shift;
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

const clamp = (value: number, min: number, max: number): number =>
  Math.min(max, Math.max(min, value));
