// The graph as an SVG file: the same shapes, texts and colours as on the canvas. Pure functions.
import { formatNs } from '../format';
import type { GraphMarks, GraphPalette } from './paint';
import type { LaidOutScene } from './scene';

const MARGIN = 16;

export function graphSvg(
  { scene, layout }: LaidOutScene,
  marks: GraphMarks,
  palette: GraphPalette,
  title: string,
): string {
  const w = Math.ceil(layout.width + 2 * MARGIN);
  const h = Math.ceil(layout.height + 2 * MARGIN);
  const isHidden = (item: number): boolean => {
    const category = scene.items[item]?.node.category;
    return category !== undefined && marks.hidden.has(category);
  };
  const edges = scene.edges.flatMap(({ from, to, crossLayer }, i) => {
    const path = layout.paths[i];
    if (!path || isHidden(from) || isHidden(to)) return [];
    const stroke = crossLayer ? palette.line.cross_layer_input : palette.edge;
    const dash = crossLayer ? ' stroke-dasharray="6 4"' : '';
    return `<path d="${pathData(path)}" fill="none" stroke="${stroke}" stroke-width="1.2"${dash} marker-end="url(#arrow)"/>`;
  });
  const items = scene.items.flatMap((item, i) => {
    if (isHidden(i)) return [];
    const { category } = item.node;
    const heat = marks.heat?.[i] ?? null;
    const fill = heat?.fill ?? (item.origin === 'computed' ? palette.back[category] : palette.panel); // prettier-ignore
    const [x, y] = [layout.x[i] ?? 0, layout.y[i] ?? 0];
    const time = marks.times[i] ?? 0;
    const middle = x + item.w / 2;
    const words = [
      text(middle, y + (item.sub === '' ? item.h / 2 + 4 : 15), item.title, heat?.text ?? palette.text, 11.5, item.w), // prettier-ignore
      ...(item.sub === '' ? [] : [text(middle, y + 29, item.sub, heat?.text ?? palette.dim, 10, item.w)]), // prettier-ignore
    ];
    const hint = `${item.title} ${item.node.name}${time > 0 ? `, ${formatNs(time)}` : ''}`;
    const selected = marks.selected.has(i)
      ? `<rect x="${round(x - 4)}" y="${round(y - 4)}" width="${item.w + 8}" height="${item.h + 8}" fill="none" stroke="${palette.accent}" stroke-width="2.5"/>`
      : '';
    return `<g><title>${escaped(hint)}</title><rect x="${round(x)}" y="${round(y)}" width="${item.w}" height="${item.h}" rx="4" fill="${fill}" stroke="${palette.line[category]}" stroke-width="${item.origin === 'computed' ? 1.6 : 1}"/>${words.join('')}${selected}</g>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="${-MARGIN} ${-MARGIN} ${w} ${h}" font-family="${escaped(palette.sans)}">`,
    `<title>${escaped(title)}</title>`,
    `<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8Z" fill="${palette.edge}"/></marker></defs>`,
    `<rect x="${-MARGIN}" y="${-MARGIN}" width="${w}" height="${h}" fill="${palette.panel}"/>`,
    ...edges,
    ...items,
    '</svg>\n',
  ].join('\n');
}

// As on the canvas: each segment starts and ends vertically.
function pathData(path: Float64Array): string {
  let [x, y] = [path[0] ?? 0, path[1] ?? 0];
  const parts = [`M${round(x)} ${round(y)}`];
  for (let i = 2; i < path.length; i += 2) {
    const [nextX, nextY] = [path[i] ?? 0, path[i + 1] ?? 0];
    const half = (y + nextY) / 2;
    parts.push(
      nextX === x
        ? `L${round(nextX)} ${round(nextY)}`
        : `C${round(x)} ${round(half)} ${round(nextX)} ${round(half)} ${round(nextX)} ${round(nextY)}`,
    );
    [x, y] = [nextX, nextY];
  }
  return parts.join('');
}

// Text that is as wide as the box at most.
function text(
  x: number,
  y: number,
  words: string,
  fill: string,
  size: number,
  room: number,
): string {
  const most = Math.max(3, Math.floor((room - 12) / (size * 0.56)));
  const shown = words.length > most ? `${words.slice(0, most - 1)}…` : words;
  return `<text x="${round(x)}" y="${round(y)}" font-size="${size}" text-anchor="middle" fill="${fill}">${escaped(shown)}</text>`;
}

const round = (n: number): number => Math.round(n * 10) / 10;

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
};
const escaped = (words: string): string => words.replace(/[&<>"]/g, (c) => ENTITIES[c] ?? c);
