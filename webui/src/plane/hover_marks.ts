// What moves with the pointer over a plane: the frames of the column, the row and the cell under it,
// and the name and the figure of the row. They are small elements that the browser only moves. In a
// canvas over the whole plane, each movement of the pointer would paint and compose the whole plane.
import { xOf, yOf, type Hit, type PlaneLayout, type Rect } from './layout';
import type { Range } from './range';

export interface Hovered {
  readonly hit: Hit;
  readonly x: Range; // the cell
  readonly y: Range | null;
  readonly name: string; // of the row
  readonly figure: string; // of the row
}

const NAME_GAP = 2; // pixels between the badges and the plot
const FIGURE_GAP = 6;
const BADGE_HEIGHT = 16; // as in map.css

export class HoverMarks {
  private readonly column: Mark;
  private readonly row: Mark;
  private readonly cell: Mark;
  private readonly name: Badge;
  private readonly figure: Badge;

  // `host` covers the plane.
  constructor(host: HTMLElement) {
    this.column = new Mark(host, 'plane-column');
    this.row = new Mark(host, 'plane-row');
    this.cell = new Mark(host, 'plane-cell');
    this.name = new Badge(host, 'plane-name');
    this.figure = new Badge(host, 'plane-figure');
  }

  destroy(): void {
    for (const mark of [this.column, this.row, this.cell, this.name, this.figure]) mark.destroy();
  }

  hide(): void {
    for (const mark of [this.column, this.row, this.cell, this.name, this.figure]) mark.hide();
  }

  show(layout: PlaneLayout, { hit, name, figure, ...cell }: Hovered): void {
    const { plot } = layout;
    const [x0, x1] = pixels(xOf(layout, cell.x.from), xOf(layout, cell.x.to), plot.x, plot.w);
    this.column.place({ x: x0 - 1, y: plot.y - 1, w: x1 - x0 + 1, h: Math.round(plot.h) + 2 });
    const track = layout.tracks[hit.track];
    if (!track || !cell.y) {
      for (const mark of [this.row, this.cell, this.name, this.figure]) mark.hide();
      return;
    }
    const { y, h } = track.plot;
    const [y0, y1] = pixels(yOf(track, cell.y.from), yOf(track, cell.y.to), y, h);
    this.row.place({ x: Math.round(plot.x), y: y0, w: Math.round(plot.w), h: y1 - y0 });
    this.cell.place({ x: x0, y: y0, w: Math.max(2, x1 - x0 - 1), h: Math.max(2, y1 - y0 - 1) });
    const top = Math.round((y0 + y1 - BADGE_HEIGHT) / 2);
    this.name.place({ x: 0, y: top, w: Math.round(plot.x) - NAME_GAP, h: BADGE_HEIGHT });
    this.name.write(name);
    if (layout.margin === 0 || figure === '') {
      this.figure.hide();
      return;
    }
    const right = Math.round(plot.x + plot.w + layout.lanes);
    this.figure.place({ x: right + FIGURE_GAP, y: top, w: layout.margin - FIGURE_GAP, h: BADGE_HEIGHT }); // prettier-ignore
    this.figure.write(figure);
  }
}

// Whole pixels of a range, at least one, inside the plot.
function pixels(from: number, to: number, start: number, size: number): readonly [number, number] {
  const first = Math.round(Math.max(start, Math.min(from, start + size - 1)));
  return [first, Math.max(first + 1, Math.round(Math.min(to, start + size)))];
}

// An element that touches the document only if something has changed.
class Mark {
  protected readonly element = document.createElement('div');
  private at: Rect = { x: 0, y: 0, w: 0, h: 0 };

  constructor(host: HTMLElement, name: string) {
    this.element.className = name;
    this.element.hidden = true;
    host.append(this.element);
  }

  destroy(): void {
    this.element.remove();
  }

  hide(): void {
    if (!this.element.hidden) this.element.hidden = true;
  }

  place(to: Rect): void {
    const { at, element } = this;
    const { style } = element;
    if (to.x !== at.x || to.y !== at.y) style.transform = `translate(${to.x}px, ${to.y}px)`;
    if (to.w !== at.w) style.width = `${to.w}px`;
    if (to.h !== at.h) style.height = `${to.h}px`;
    this.at = to;
    if (element.hidden) element.hidden = false;
  }
}

class Badge extends Mark {
  private readonly text = document.createElement('span');

  constructor(host: HTMLElement, name: string) {
    super(host, name);
    this.element.append(this.text);
  }

  write(text: string): void {
    if (this.text.textContent !== text) this.text.textContent = text;
  }
}
