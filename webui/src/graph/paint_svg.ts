// The graph as an SVG file: the same shapes, texts and colours as on the canvas. Pure functions.
import { formatNs } from '../format';
import { RING, type GraphMarks, type GraphPalette } from './paint';
import { BRIEF_GAP, TEXT_SIZE, type Item, type LaidOutScene } from './scene';

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
    const colours = heat ? [heat.text, heat.text] : [palette.text, palette.dim];
    const hint = `${item.title} ${item.node.name}${time > 0 ? `, ${formatNs(time)}` : ''}`;
    const selected = marks.selected.has(i)
      ? `<rect x="${round(x - RING)}" y="${round(y - RING)}" width="${item.w + 2 * RING}" height="${item.h + 2 * RING}" fill="none" stroke="${palette.accent}" stroke-width="2.5"/>`
      : '';
    return `<g><title>${escaped(hint)}</title><rect x="${round(x)}" y="${round(y)}" width="${item.w}" height="${item.h}" rx="4" fill="${fill}" stroke="${palette.line[category]}" stroke-width="${item.origin === 'computed' ? 1.6 : 1}"/>${textOf(item, x, y, colours)}${selected}</g>`;
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

// Title and brief. An item is as wide as they are.
function textOf(
  item: Item,
  x: number,
  y: number,
  [text = '', dim = '']: readonly string[],
): string {
  const { title, brief, origin } = item;
  const bold = origin === 'computed' ? ' font-weight="600"' : '';
  const rest = brief === '' ? '' : `<tspan dx="${BRIEF_GAP}" font-weight="400" fill="${dim}">${escaped(brief)}</tspan>`; // prettier-ignore
  return `<text x="${round(x + item.w / 2)}" y="${round(y + item.h / 2 + 0.36 * TEXT_SIZE)}" font-size="${TEXT_SIZE}"${bold} text-anchor="middle" fill="${text}">${escaped(title)}${rest}</text>`;
}

const round = (n: number): number => Math.round(n * 10) / 10;

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
};
const escaped = (words: string): string => words.replace(/[&<>"]/g, (c) => ENTITIES[c] ?? c);
