// Canvases that are no larger than what they show: the browser composes whatever lies over a pixel
// that has changed, also where it is transparent.

export interface Area {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

// Places a canvas over an area of the element that contains it, and paints it anew, in the
// coordinates of that element. Null: hides it and frees its memory.
export function paintInto(
  canvas: HTMLCanvasElement,
  area: Area | null,
  paint: (ctx: CanvasRenderingContext2D) => void = () => undefined,
): void {
  const { style } = canvas;
  if (!area) {
    if (style.visibility === 'hidden') return;
    style.visibility = 'hidden';
    canvas.width = canvas.height = 1;
    return;
  }
  const ctx = canvas.getContext('2d');
  if (!ctx) return;
  const ratio = devicePixelRatio;
  const [x, y] = [Math.floor(area.x), Math.floor(area.y)];
  const [w, h] = [Math.ceil(area.x + area.w) - x, Math.ceil(area.y + area.h) - y];
  const [pixelsW, pixelsH] = [Math.round(w * ratio), Math.round(h * ratio)];
  if (canvas.width !== pixelsW || canvas.height !== pixelsH) {
    canvas.width = pixelsW;
    canvas.height = pixelsH;
    style.width = `${w}px`;
    style.height = `${h}px`;
  }
  const transform = `translate(${x}px, ${y}px)`;
  if (style.transform !== transform) style.transform = transform;
  if (style.visibility !== '') style.visibility = '';
  ctx.setTransform(ratio, 0, 0, ratio, -x * ratio, -y * ratio);
  ctx.clearRect(x, y, w, h);
  paint(ctx);
}

// The common part of two rectangles; null: none.
export function within(a: Area, b: Area): Area | null {
  const [x, y] = [Math.max(a.x, b.x), Math.max(a.y, b.y)];
  const w = Math.min(a.x + a.w, b.x + b.w) - x;
  const h = Math.min(a.y + a.h, b.y + b.h) - y;
  return w > 0 && h > 0 ? { x, y, w, h } : null;
}
