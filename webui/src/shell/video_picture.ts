// A picture of a video of playback: the map, the running op, the clock, the scale and the tokens.
import type { PlaneTheme } from '../plane/theme';
import type { Filmed } from '../state/shell';

export const VIDEO = { w: 1280, h: 720 } as const;

const EDGE = 24;
const MAP = { x: EDGE, y: 84, w: VIDEO.w - 2 * EDGE, h: 430 } as const;
const LEGEND_Y = MAP.y + MAP.h + 12;
const TEXT = { y: LEGEND_Y + 28, line: 27, lines: 5 } as const;

export interface VideoFrame {
  readonly title: string;
  readonly clock: string;
  readonly op: string;
  readonly speed: string;
  readonly before: string; // the tokens before those of the step
  readonly now: string; // the tokens of the step
  readonly filmed: Filmed;
}

export function paintVideo(
  ctx: CanvasRenderingContext2D,
  frame: VideoFrame,
  theme: PlaneTheme,
): void {
  ctx.fillStyle = theme.back;
  ctx.fillRect(0, 0, VIDEO.w, VIDEO.h);
  ctx.textBaseline = 'top';
  write(ctx, frame.title, EDGE, 14, 'left', `600 22px ${theme.sans}`, theme.text);
  write(ctx, frame.clock, VIDEO.w - EDGE, 14, 'right', `20px ${theme.mono}`, theme.text);
  write(ctx, frame.op, EDGE, 48, 'left', `18px ${theme.mono}`, theme.dim);
  write(ctx, frame.speed, VIDEO.w - EDGE, 48, 'right', `16px ${theme.sans}`, theme.dim);
  paintMap(ctx, frame.filmed);
  paintLegend(ctx, frame.filmed, theme);
  ctx.font = `20px ${theme.sans}`;
  ctx.textAlign = 'left';
  const width = (text: string): number => ctx.measureText(text).width;
  wrapped(frame.before, frame.now, VIDEO.w - 2 * EDGE, width)
    .slice(-TEXT.lines)
    .forEach((line, i) => {
      let x: number = EDGE;
      for (const { text, isNow } of line) {
        ctx.fillStyle = isNow ? theme.accent : theme.text;
        ctx.fillText(text, x, TEXT.y + i * TEXT.line);
        x += width(text);
      }
    });
}

function write(
  ctx: CanvasRenderingContext2D,
  text: string,
  x: number,
  y: number,
  align: CanvasTextAlign,
  font: string,
  colour: string,
): void {
  ctx.font = font;
  ctx.textAlign = align;
  ctx.fillStyle = colour;
  ctx.fillText(text, x, y, VIDEO.w * 0.6);
}

// The canvases are smaller than their panel, and each is where it has something to show.
function paintMap(ctx: CanvasRenderingContext2D, { host, canvases }: Filmed): void {
  const box = host.getBoundingClientRect();
  if (box.width === 0 || box.height === 0) return;
  const scale = Math.min(MAP.w / box.width, MAP.h / box.height);
  const left = MAP.x + (MAP.w - box.width * scale) / 2;
  for (const canvas of canvases) {
    const of = canvas.getBoundingClientRect();
    if (canvas.width <= 1 || canvas.height <= 1 || of.width === 0) continue;
    const [x, y] = [left + (of.left - box.left) * scale, MAP.y + (of.top - box.top) * scale];
    ctx.drawImage(canvas, x, y, of.width * scale, of.height * scale);
  }
}

function paintLegend(ctx: CanvasRenderingContext2D, { legend }: Filmed, theme: PlaneTheme): void {
  if (!legend) return;
  const [width, height] = [180, 12];
  const x = (VIDEO.w - width) / 2;
  for (let i = 0; i < width; i += 1) {
    ctx.fillStyle = legend.colour(i / (width - 1));
    ctx.fillRect(x + i, LEGEND_Y, 1, height);
  }
  const font = `15px ${theme.sans}`;
  write(ctx, `${legend.what}: ${legend.least}`, x - 8, LEGEND_Y - 2, 'right', font, theme.dim);
  write(ctx, legend.most, x + width + 8, LEGEND_Y - 2, 'left', font, theme.dim);
}

export interface Piece {
  readonly text: string;
  readonly isNow: boolean;
}

// Lines of at most `width`, as `measure` has it. They break at spaces and line feeds; a word that is
// longer than a line is cut.
export function wrapped(
  before: string,
  now: string,
  width: number,
  measure: (text: string) => number,
): readonly (readonly Piece[])[] {
  const lines: Piece[][] = [[]];
  let used = 0;
  const breakLine = (): void => {
    lines.push([]);
    used = 0;
  };
  const add = (text: string, isNow: boolean): void => {
    const line = lines.at(-1);
    const last = line?.at(-1);
    if (last?.isNow === isNow) line?.splice(-1, 1, { text: last.text + text, isNow });
    else line?.push({ text, isNow });
    used += measure(text);
  };
  for (const [text, isNow] of [
    [before, false],
    [now, true],
  ] as const) {
    for (const word of text.split(/(\n)|(?<=[^\S\n])(?=\S)/u)) {
      if (!word) continue; // split() gives undefined for a group without a match
      if (word === '\n') {
        breakLine();
        continue;
      }
      if (used > 0 && used + measure(word.trimEnd()) > width) breakLine();
      if (measure(word.trimEnd()) <= width) {
        add(word, isNow);
        continue;
      }
      for (const character of word) {
        if (used + measure(character) > width) breakLine();
        add(character, isNow);
      }
    }
  }
  return lines;
}
