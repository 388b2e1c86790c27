// The canvas of a plane, and what is drawn inside a part of it.
import type { Rect } from './layout';

export type Ctx = CanvasRenderingContext2D;

export function clipped(ctx: Ctx, { x, y, w, h }: Rect, paint: () => void): void {
  ctx.save();
  ctx.beginPath();
  ctx.rect(x, y, w, h);
  ctx.clip();
  paint();
  ctx.restore();
}
