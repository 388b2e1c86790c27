// Text in a canvas.
import type { Ctx } from './canvas';

const fittedTexts = new Map<string, string>();

// The text, shortened to a width. Measuring is slow, and the same names are painted again and
// again.
export function fitted(ctx: Ctx, text: string, width: number): string {
  const key = `${ctx.font} ${Math.floor(width)} ${text}`;
  const known = fittedTexts.get(key);
  if (known !== undefined) return known;
  if (fittedTexts.size > 5000) fittedTexts.clear();
  const made = shortened(ctx, text, width);
  fittedTexts.set(key, made);
  return made;
}

function shortened(ctx: Ctx, text: string, width: number): string {
  if (ctx.measureText(text).width <= width) return text;
  let length = Math.max(1, Math.floor((text.length * width) / ctx.measureText(text).width) - 1);
  while (length > 1 && ctx.measureText(`${text.slice(0, length)}…`).width > width) length -= 1;
  return `${text.slice(0, length)}…`;
}
