// Paints the shapes of a chart into a canvas, or writes them as SVG.
import { colourOf, textOn, type Rgb } from '../plane/colours';
import type { Scene, Shape, Tone } from './scene';

export interface ChartTheme {
  readonly series: readonly string[];
  readonly text: string;
  readonly dim: string;
  readonly line: string;
  readonly mark: string;
  readonly back: string;
  readonly isLight: boolean;
}

const ALL_COLOURS = 10; // in charts.css

export const FONT = '11px system-ui, sans-serif';

// From the style sheet.
export function themeOf(element: Element): ChartTheme {
  const style = getComputedStyle(element);
  const get = (name: string): string => style.getPropertyValue(name).trim();
  return {
    series: Array.from({ length: ALL_COLOURS }, (_, n) => get(`--series-${n}`)),
    text: get('--text'),
    dim: get('--text-dim'),
    line: get('--line'),
    mark: get('--warn'),
    back: get('--panel'),
    isLight: document.documentElement.dataset.theme === 'light',
  };
}

function colour(tone: Tone, theme: ChartTheme): string {
  switch (tone.is) {
    case 'series':
      return theme.series[tone.n] ?? theme.text;
    case 'heat':
      // On a slice of a pie.
      return tone.at < 0 ? theme.back : `rgb(${colourOf('viridis', tone.at, theme.isLight).join(',')})`; // prettier-ignore
    case 'on-heat':
      return textOn(colourOf('viridis', tone.at, theme.isLight));
    case 'difference':
      return `rgb(${mixed(tone.at, theme).join(',')})`;
    case 'on-difference':
      return textOn(mixed(tone.at, theme));
    case 'text':
      return theme.text;
    case 'dim':
      return theme.dim;
    case 'line':
      return theme.line;
    case 'mark':
      return theme.mark;
  }
}

// From that of the page, at 0, to that of the first or of the second series.
function mixed(at: number, { series, back }: ChartTheme): Rgb {
  const [from, to] = [rgbOf(back), rgbOf(series[at < 0 ? 0 : 1] ?? back)];
  const mix = (i: 0 | 1 | 2): number => Math.round(from[i] + (to[i] - from[i]) * Math.abs(at));
  return [mix(0), mix(1), mix(2)];
}

// The style sheets have these colours as #rrggbb.
const rgbOf = (hex: string): Rgb => {
  const n = Number.parseInt(hex.slice(1), 16);
  return [(n >> 16) & 255, (n >> 8) & 255, n & 255];
};

export function paintScene(ctx: CanvasRenderingContext2D, scene: Scene, theme: ChartTheme): void {
  ctx.font = FONT;
  ctx.textBaseline = 'middle';
  for (const shape of scene.shapes) paintShape(ctx, shape, theme);
}

function paintShape(ctx: CanvasRenderingContext2D, shape: Shape, theme: ChartTheme): void {
  ctx.fillStyle = ctx.strokeStyle = colour(shape.tone, theme);
  switch (shape.is) {
    case 'rect':
      ctx.fillRect(shape.x, shape.y, shape.w, shape.h);
      return;
    case 'path':
      ctx.beginPath();
      ctx.lineWidth = shape.tone.is === 'series' ? 1.6 : 1;
      ctx.lineJoin = 'round';
      ctx.setLineDash(dashes(shape));
      for (const [x, y] of shape.points) ctx.lineTo(x, y);
      ctx.stroke();
      ctx.setLineDash([]);
      return;
    case 'arc':
      ctx.beginPath();
      ctx.moveTo(shape.x, shape.y);
      ctx.arc(shape.x, shape.y, shape.r, shape.from, shape.to);
      ctx.closePath();
      ctx.fill();
      ctx.strokeStyle = theme.back;
      ctx.lineWidth = 1;
      ctx.stroke();
      return;
    case 'dot':
      ctx.beginPath();
      ctx.arc(shape.x, shape.y, shape.r, 0, 2 * Math.PI);
      ctx.fill();
      return;
    case 'text':
      ctx.textAlign = shape.align === 'middle' ? 'center' : shape.align;
      ctx.fillText(shape.text, shape.x, shape.y);
  }
}

// Lines that cover each other are told apart by their dashes.
const DASHES: readonly (readonly number[])[] = [[], [7, 4], [2, 3], [9, 3, 2, 3]];

function dashes({ tone, dashed }: Extract<Shape, { is: 'path' }>): number[] {
  if (dashed) return [5, 4];
  return tone.is === 'series' ? [...(DASHES[tone.n % DASHES.length] ?? [])] : [];
}

const escaped = (text: string): string =>
  text.replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c] ?? c); // prettier-ignore

const n = (value: number): string => String(Math.round(value * 100) / 100);

export function svgOf(scene: Scene, theme: ChartTheme): string {
  const body = scene.shapes.map((shape) => svgShape(shape, theme)).join('\n');
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${n(scene.width)}" height="${n(scene.height)}" viewBox="0 0 ${n(scene.width)} ${n(scene.height)}" font-family="system-ui, sans-serif" font-size="11">
<rect width="100%" height="100%" fill="${theme.back}"/>
${body}
</svg>
`;
}

function svgShape(shape: Shape, theme: ChartTheme): string {
  const fill = colour(shape.tone, theme);
  switch (shape.is) {
    case 'rect':
      return `<rect x="${n(shape.x)}" y="${n(shape.y)}" width="${n(shape.w)}" height="${n(shape.h)}" fill="${fill}"/>`;
    case 'path':
      return `<polyline points="${shape.points.map(([x, y]) => `${n(x)},${n(y)}`).join(' ')}" fill="none" stroke="${fill}" stroke-width="${shape.tone.is === 'series' ? 1.6 : 1}"${dashes(shape).length > 0 ? ` stroke-dasharray="${dashes(shape).join(' ')}"` : ''}/>`;
    case 'arc':
      return `<path d="${arcPath(shape)}" fill="${fill}" stroke="${theme.back}"/>`;
    case 'dot':
      return `<circle cx="${n(shape.x)}" cy="${n(shape.y)}" r="${n(shape.r)}" fill="${fill}"/>`;
    case 'text':
      return `<text x="${n(shape.x)}" y="${n(shape.y)}" dominant-baseline="middle" text-anchor="${shape.align}" fill="${fill}">${escaped(shape.text)}</text>`;
  }
}

function arcPath({ x, y, r, from, to }: Extract<Shape, { is: 'arc' }>): string {
  const at = (angle: number): string => `${n(x + r * Math.cos(angle))} ${n(y + r * Math.sin(angle))}`; // prettier-ignore
  // A whole circle has no begin and end that differ.
  const end = Math.min(to, from + 2 * Math.PI - 1e-4);
  return `M ${n(x)} ${n(y)} L ${at(from)} A ${n(r)} ${n(r)} 0 ${end - from > Math.PI ? 1 : 0} 1 ${at(end)} Z`;
}

// The picture with its title, its unit and the names of its colours, for a file.
export function withHeading(
  scene: Scene,
  title: string,
  about: string,
  names: readonly { readonly name: string; readonly colour: number }[],
  measure: (text: string) => number,
): Scene {
  const HEAD = 40;
  const shapes: Shape[] = [
    { is: 'text', x: 8, y: 12, text: title, align: 'start', tone: { is: 'text' } },
    { is: 'text', x: 8, y: 28, text: about, align: 'start', tone: { is: 'dim' } },
  ];
  let [x, y] = [8, HEAD + scene.height + 8];
  for (const { name, colour: colourOfName } of names) {
    const w = measure(name) + 26;
    if (x + w > scene.width && x > 8) [x, y] = [8, y + 16];
    shapes.push({ is: 'rect', x, y: y - 5, w: 10, h: 10, tone: { is: 'series', n: colourOfName } });
    shapes.push({ is: 'text', x: x + 14, y, text: name, align: 'start', tone: { is: 'dim' } });
    x += w;
  }
  return {
    ...scene,
    height: y + 12,
    shapes: [...scene.shapes.map((shape) => lowered(shape, HEAD)), ...shapes],
  };
}

const lowered = (shape: Shape, by: number): Shape =>
  shape.is === 'path'
    ? { ...shape, points: shape.points.map(([x, y]) => [x, y + by] as const) }
    : { ...shape, y: shape.y + by };
