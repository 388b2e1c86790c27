// Paints a laid-out graph into a canvas. Each category has its own colour and shape. Nodes without
// computation are not filled.
import { formatNs } from '../format';
import type { Category } from '../net/types';
import type { Area } from '../ui/paint_into';
import { BRIEF_GAP, TEXT_SIZE, type LaidOutScene, type Item, type Scene } from './scene';
import type { HeatColour } from './heat';
import type { Camera } from './view';

export interface GraphMarks {
  readonly times: Float64Array; // ns, by item; 0: unknown
  readonly selected: ReadonlySet<number>;
  readonly focused: number | null; // keyboard focus
  readonly running: ReadonlySet<number>; // the op that the model runs now, or at which it is stopped
  readonly breakpoints: ReadonlyMap<number, 'on' | 'off'>; // by item
  readonly heat: readonly (HeatColour | null)[] | null; // by item; null: no heat
  readonly hidden: ReadonlySet<Category>;
  readonly found: ReadonlySet<number> | null; // search results, other items are dimmed; null: no search
}

export interface GraphPalette {
  readonly panel: string;
  readonly text: string;
  readonly dim: string;
  readonly accent: string;
  readonly edge: string;
  readonly bar: string;
  readonly breakpoint: string;
  readonly line: Readonly<Record<Category, string>>;
  readonly back: Readonly<Record<Category, string>>;
  readonly sans: string;
  readonly mono: string;
}

const VARIABLES: Readonly<Record<Category, string>> = {
  layer: '--g-layer',
  infrastructure: '--g-infra',
  cross_layer_input: '--g-in',
  cross_layer_output: '--g-out',
  embedding: '--g-embedding',
  output: '--g-logits',
};

export function graphPalette(element: Element): GraphPalette {
  const style = getComputedStyle(element);
  const of = (name: string): string => style.getPropertyValue(name).trim();
  const each = (suffix: string) =>
    Object.fromEntries(
      Object.entries(VARIABLES).map(([category, name]) => [category, of(`${name}${suffix}`)]),
    ) as Record<Category, string>;
  return {
    panel: of('--panel'),
    text: of('--text'),
    dim: of('--text-dim'),
    accent: of('--accent'),
    edge: of('--g-edge'),
    bar: of('--warn'),
    breakpoint: of('--bad'),
    line: each(''),
    back: each('-back'),
    sans: of('--sans'),
    mono: of('--mono'),
  };
}

type Ctx = CanvasRenderingContext2D;

const MIN_TEXT_SCALE = 0.35; // scale below which text is not drawn
const MIN_TWO_LINE_SCALE = 2.2; // from which on an item has room for two lines
const LARGEST_TEXT = 13; // pixels of the screen
const LIT = 2; // width of a marked edge
const DASH = [6, 4];

// `w`, `h`: size of the canvas in CSS pixels.
export function paintGraph(
  ctx: Ctx,
  { w, h }: { readonly w: number; readonly h: number },
  drawn: LaidOutScene,
  camera: Camera,
  marks: GraphMarks,
  palette: GraphPalette,
): void {
  ctx.clearRect(0, 0, w, h);
  ctx.save();
  ctx.translate(camera.left, camera.top);
  ctx.scale(camera.scale, camera.scale);
  const seen = {
    x0: -camera.left / camera.scale,
    y0: -camera.top / camera.scale,
    x1: (w - camera.left) / camera.scale,
    y1: (h - camera.top) / camera.scale,
  };
  paintEdges(ctx, drawn, seen, marks, palette, camera.scale);
  const longest = marks.times.reduce((max, time) => Math.max(max, time), 0);
  drawn.scene.items.forEach((item, i) => {
    if (marks.hidden.has(item.node.category)) return;
    const x = drawn.layout.x[i] ?? 0;
    const y = drawn.layout.y[i] ?? 0;
    if (x > seen.x1 || y > seen.y1 || x + item.w < seen.x0 || y + item.h < seen.y0) return;
    ctx.globalAlpha = marks.found && !marks.found.has(i) ? 0.28 : 1;
    paintItem(ctx, item, x, y, { i, longest, marks, palette, scale: camera.scale });
  });
  ctx.restore();
}

interface VisibleArea {
  readonly x0: number;
  readonly y0: number;
  readonly x1: number;
  readonly y1: number;
}

function paintEdges(
  ctx: Ctx,
  { scene, layout }: LaidOutScene,
  seen: VisibleArea,
  marks: GraphMarks,
  palette: GraphPalette,
  scale: number,
): void {
  scene.edges.forEach(({ from, to, crossLayer }, i) => {
    const path = layout.paths[i];
    if (!path || !touches(path, seen)) return;
    const ends = [scene.items[from], scene.items[to]];
    if (ends.some((end) => end && marks.hidden.has(end.node.category))) return;
    const lit = marks.running.has(to) || marks.selected.has(from) || marks.selected.has(to);
    const shown = !marks.found || (marks.found.has(from) && marks.found.has(to));
    ctx.globalAlpha = shown || lit ? 1 : 0.28;
    ctx.strokeStyle = lit
      ? palette.accent
      : crossLayer
        ? palette.line.cross_layer_input
        : palette.edge;
    ctx.lineWidth = (lit ? LIT : 1.2) / Math.max(scale, 0.5);
    ctx.setLineDash(crossLayer ? DASH : []);
    tracePath(ctx, path);
    ctx.stroke();
    if (scale >= MIN_TEXT_SCALE) paintArrow(ctx, path, ctx.strokeStyle);
  });
  ctx.setLineDash([]);
  ctx.globalAlpha = 1;
}

function touches(path: Float64Array, seen: VisibleArea): boolean {
  let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let i = 0; i < path.length; i += 2) {
    x0 = Math.min(x0, path[i] ?? 0);
    x1 = Math.max(x1, path[i] ?? 0);
    y0 = Math.min(y0, path[i + 1] ?? 0);
    y1 = Math.max(y1, path[i + 1] ?? 0);
  }
  return x0 <= seen.x1 && x1 >= seen.x0 && y0 <= seen.y1 && y1 >= seen.y0;
}

// A curve through the bends; each segment starts and ends vertically.
function tracePath(ctx: Ctx, path: Float64Array): void {
  let x = path[0] ?? 0;
  let y = path[1] ?? 0;
  ctx.beginPath();
  ctx.moveTo(x, y);
  for (let i = 2; i < path.length; i += 2) {
    const nextX = path[i] ?? 0;
    const nextY = path[i + 1] ?? 0;
    if (nextX === x) ctx.lineTo(nextX, nextY);
    else {
      const half = (y + nextY) / 2;
      ctx.bezierCurveTo(x, half, nextX, half, nextX, nextY);
    }
    x = nextX;
    y = nextY;
  }
}

function paintArrow(ctx: Ctx, path: Float64Array, colour: Ctx['strokeStyle']): void {
  const x = path[path.length - 2] ?? 0;
  const y = path[path.length - 1] ?? 0;
  const back = (path[path.length - 3] ?? 0) > y ? 5 : -5; // an edge upwards ends from below
  ctx.fillStyle = colour;
  ctx.beginPath();
  ctx.moveTo(x - 3, y + back);
  ctx.lineTo(x + 3, y + back);
  ctx.lineTo(x, y);
  ctx.fill();
}

interface ItemStyle {
  readonly i: number;
  readonly longest: number;
  readonly marks: GraphMarks;
  readonly palette: GraphPalette;
  readonly scale: number;
}

function paintItem(ctx: Ctx, item: Item, x: number, y: number, look: ItemStyle): void {
  const { i, marks, palette, scale } = look;
  const { category } = item.node;
  const { w, h } = item;
  traceShape(ctx, category, x, y, w, h);
  const heat = marks.heat?.[i] ?? null;
  ctx.fillStyle =
    heat?.fill ?? (item.origin === 'computed' ? palette.back[category] : palette.panel);
  ctx.fill();
  if (!marks.heat) paintTime(ctx, item, x, y, look);
  traceShape(ctx, category, x, y, w, h);
  ctx.strokeStyle = palette.line[category];
  ctx.lineWidth = (item.origin === 'computed' ? 1.6 : 1) / Math.max(scale, 0.6);
  ctx.stroke();
  if (scale >= MIN_TEXT_SCALE) paintText(ctx, item, x, y, look);
  if (marks.running.has(i)) {
    ring(ctx, x, y, w, h, palette.bar, 4 / Math.max(scale, 0.4));
  }
  if (marks.selected.has(i)) ring(ctx, x, y, w, h, palette.accent, 2.5 / Math.max(scale, 0.5));
  const breakpoint = marks.breakpoints.get(i);
  if (breakpoint) paintBreakpoint(ctx, x, y, breakpoint, palette, scale);
  if (marks.focused === i) {
    ctx.setLineDash([3, 2]);
    ring(ctx, x, y, w, h, palette.text, 1.5 / Math.max(scale, 0.5));
    ctx.setLineDash([]);
  }
}

// A dot at the upper left corner; of one that is off, a ring.
function paintBreakpoint(
  ctx: Ctx,
  x: number,
  y: number,
  state: 'on' | 'off',
  palette: GraphPalette,
  scale: number,
): void {
  ctx.beginPath();
  ctx.arc(x, y, Math.max(3, 4 / scale), 0, 2 * Math.PI);
  ctx.fillStyle = state === 'on' ? palette.breakpoint : palette.panel;
  ctx.fill();
  ctx.strokeStyle = state === 'on' ? palette.panel : palette.breakpoint;
  ctx.lineWidth = 1.5 / Math.max(scale, 0.6);
  ctx.stroke();
}

// The item under the pointer and its edges, over the graph.
export function paintHovered(
  ctx: Ctx,
  { scene, layout }: LaidOutScene,
  camera: Camera,
  hovered: number,
  hidden: ReadonlySet<Category>,
  palette: GraphPalette,
): void {
  const item = scene.items[hovered];
  if (!item) return;
  const { scale } = camera;
  ctx.save();
  ctx.translate(camera.left, camera.top);
  ctx.scale(scale, scale);
  ctx.lineWidth = LIT / Math.max(scale, 0.5);
  for (const i of edgesOf(scene, hovered, hidden)) {
    const path = layout.paths[i];
    if (!path) continue;
    ctx.strokeStyle = palette.accent;
    ctx.setLineDash(scene.edges[i]?.crossLayer === true ? DASH : []);
    tracePath(ctx, path);
    ctx.stroke();
    if (scale >= MIN_TEXT_SCALE) paintArrow(ctx, path, palette.accent);
  }
  ctx.setLineDash([]);
  const [x, y] = [layout.x[hovered] ?? 0, layout.y[hovered] ?? 0];
  ring(ctx, x, y, item.w, item.h, palette.text, 1 / Math.max(scale, 0.5));
  ctx.restore();
}

// The area of the canvas that paintHovered paints.
export function hoveredArea(
  { scene, layout }: LaidOutScene,
  camera: Camera,
  hovered: number,
  hidden: ReadonlySet<Category>,
): Area {
  const item = scene.items[hovered];
  const [x, y] = [layout.x[hovered] ?? 0, layout.y[hovered] ?? 0];
  let [x0, y0, x1, y1] = [x, y, x + (item?.w ?? 0), y + (item?.h ?? 0)];
  for (const i of edgesOf(scene, hovered, hidden)) {
    const path = layout.paths[i] ?? new Float64Array();
    for (let at = 0; at < path.length; at += 2) {
      [x0, x1] = [Math.min(x0, path[at] ?? x0), Math.max(x1, path[at] ?? x1)];
      [y0, y1] = [Math.min(y0, path[at + 1] ?? y0), Math.max(y1, path[at + 1] ?? y1)];
    }
  }
  const { scale, left, top } = camera;
  const edge = 8; // of the ring, the arrows and the lines
  return {
    x: (x0 - edge) * scale + left,
    y: (y0 - edge) * scale + top,
    w: (x1 - x0 + 2 * edge) * scale,
    h: (y1 - y0 + 2 * edge) * scale,
  };
}

function edgesOf(
  { items, edges }: Scene,
  item: number,
  hidden: ReadonlySet<Category>,
): readonly number[] {
  const isShown = (one: number): boolean => {
    const category = items[one]?.node.category;
    return category !== undefined && !hidden.has(category);
  };
  return edges.flatMap(({ from, to }, i) =>
    (from === item || to === item) && isShown(from) && isShown(to) ? [i] : [],
  );
}

export const RING = 3; // distance of a ring around an item

function ring(
  ctx: Ctx,
  x: number,
  y: number,
  w: number,
  h: number,
  colour: string,
  line: number,
): void {
  ctx.strokeStyle = colour;
  ctx.lineWidth = line;
  ctx.strokeRect(x - RING, y - RING, w + 2 * RING, h + 2 * RING);
}

const BAR = 2;

// A bar along the lower edge: the op's time relative to the layer's longest op.
function paintTime(ctx: Ctx, item: Item, x: number, y: number, look: ItemStyle): void {
  const time = look.marks.times[look.i] ?? 0;
  if (!(time > 0) || look.longest === 0) return;
  ctx.save();
  ctx.clip();
  ctx.fillStyle = look.palette.bar;
  ctx.fillRect(x, y + item.h - BAR, item.w * (time / look.longest), BAR);
  ctx.restore();
}

// Each category has its own outline.
export function traceShape(
  ctx: Ctx,
  category: Category,
  x: number,
  y: number,
  w: number,
  h: number,
): void {
  const cut = Math.min(9, h / 3);
  const points: Readonly<Partial<Record<Category, readonly (readonly [number, number])[]>>> = {
    infrastructure: [
      [cut, 0],
      [w - cut, 0],
      [w, h / 2],
      [w - cut, h],
      [cut, h],
      [0, h / 2],
    ],
    cross_layer_input: [
      [0, 0],
      [w, 0],
      [w, h - cut],
      [w / 2, h],
      [0, h - cut],
    ],
    embedding: [
      [cut, 0],
      [w, 0],
      [w - cut, h],
      [0, h],
    ],
    output: [
      [cut, 0],
      [w - cut, 0],
      [w, cut],
      [w, h - cut],
      [w - cut, h],
      [cut, h],
      [0, h - cut],
      [0, cut],
    ],
  };
  const outline = points[category];
  ctx.beginPath();
  if (!outline) {
    ctx.roundRect(x, y, w, h, category === 'cross_layer_output' ? h / 2 : 4);
    return;
  }
  outline.forEach(([px, py], i) => {
    if (i === 0) ctx.moveTo(x + px, y + py);
    else ctx.lineTo(x + px, y + py);
  });
  ctx.closePath();
}

function paintText(ctx: Ctx, item: Item, x: number, y: number, look: ItemStyle): void {
  const { palette, marks, i, scale } = look;
  const heat = marks.heat?.[i] ?? null;
  const text = heat?.text ?? palette.text;
  const dim = heat?.text ?? palette.dim;
  const weight = item.origin === 'computed' ? 600 : 400;
  ctx.textBaseline = 'middle';
  if (scale < MIN_TWO_LINE_SCALE || item.sub === '') {
    const size = Math.min(TEXT_SIZE, LARGEST_TEXT / scale);
    const fonts = [`${weight} ${size}px ${palette.sans}`, `400 ${size}px ${palette.sans}`] as const;
    paintLine(ctx, item, { x, y: y + item.h / 2, fonts, colours: [text, dim] });
    return;
  }
  const size = LARGEST_TEXT / scale;
  const [left, right, line] = [x + size / 2, x + item.w - size / 2, item.h / 4];
  const time = marks.times[i] ?? 0;
  const when = time > 0 ? formatNs(time) : '';
  ctx.font = `400 ${0.9 * size}px ${palette.sans}`;
  ctx.fillStyle = dim;
  ctx.textAlign = 'right';
  ctx.fillText(when, right, y + line);
  const room = right - left - (when === '' ? 0 : widthOf(ctx, when) + size / 2);
  ctx.textAlign = 'left';
  ctx.font = `400 ${0.85 * size}px ${palette.mono}`;
  ctx.fillText(shortened(ctx, item.sub, right - left), left, y + item.h - line);
  ctx.font = `${weight} ${size}px ${palette.sans}`;
  ctx.fillStyle = text;
  ctx.fillText(shortened(ctx, item.title, room), left, y + line);
}

// Title and brief, in the middle of the item.
function paintLine(
  ctx: Ctx,
  item: Item,
  line: {
    readonly x: number;
    readonly y: number; // middle
    readonly fonts: readonly [title: string, brief: string];
    readonly colours: readonly [title: string, brief: string];
  },
): void {
  const room = item.w - 6;
  ctx.textAlign = 'left';
  ctx.font = line.fonts[1];
  const briefWidth = item.brief === '' ? 0 : BRIEF_GAP + widthOf(ctx, item.brief);
  ctx.font = line.fonts[0];
  const title = shortened(ctx, item.title, room);
  const titleWidth = widthOf(ctx, title);
  const hasBrief = titleWidth + briefWidth <= room;
  const start = line.x + (item.w - titleWidth - (hasBrief ? briefWidth : 0)) / 2;
  ctx.fillStyle = line.colours[0];
  ctx.fillText(title, start, line.y);
  if (!hasBrief || briefWidth === 0) return;
  ctx.font = line.fonts[1];
  ctx.fillStyle = line.colours[1];
  ctx.fillText(item.brief, start + titleWidth + BRIEF_GAP, line.y);
}

const widths = new Map<string, number>();

function widthOf(ctx: Ctx, text: string): number {
  const key = `${ctx.font} ${text}`;
  const known = widths.get(key);
  if (known !== undefined) return known;
  if (widths.size > 20_000) widths.clear();
  const width = ctx.measureText(text).width;
  widths.set(key, width);
  return width;
}

function shortened(ctx: Ctx, text: string, room: number): string {
  const width = widthOf(ctx, text);
  if (width <= room) return text;
  const keep = Math.max(1, Math.floor((text.length * room) / width) - 1);
  return `${text.slice(0, keep)}…`;
}
