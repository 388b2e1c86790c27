// The headings of a table: a click sorts, dragging (or Alt with an arrow key) moves a column. They are
// one stop of the Tab key: left and right move between them.
import type { Column, Sort } from './column';
import { element } from './element';

export interface HeadingEvents {
  sort(key: string): void;
  move?(key: string, before: string | null): void; // a column was moved; null: to the end
}

const FADE = 40; // pixels of the right edge that fade while there are more columns, as in table.css

export class Headings<Row> {
  readonly element = element('div', 'vgrid-head', 'row');
  private columns: readonly Column<Row>[] = [];
  private readonly events: HeadingEvents;

  constructor(events: HeadingEvents) {
    this.events = events;
    this.element.setAttribute('aria-rowindex', '1');
  }

  // Returns whether there are other headings: those of the same columns stay, with the focus.
  show(columns: readonly Column<Row>[]): boolean {
    const isSame = namesOf(this.columns) === namesOf(columns);
    this.columns = columns;
    if (isSame) return false;
    this.element.replaceChildren(...columns.map((column, i) => this.cell(column, i === 0)));
    return true;
  }

  showSort(sort: Sort | null): void {
    this.columns.forEach((column, i) => {
      if (column.unsortable) return;
      const direction =
        sort?.key !== column.key ? 'none' : sort.descending ? 'descending' : 'ascending';
      this.element.children[i]?.setAttribute('aria-sort', direction);
    });
  }

  // Scrolls `host` until the column is in view, beside the first one, which stays and covers no part of
  // another one. `width`: of the host.
  reveal(key: string, host: HTMLElement, width: number): void {
    const at = this.columns.findIndex((column) => column.key === key);
    const cells = [...this.element.children].filter((cell) => cell instanceof HTMLElement);
    const [first, cell] = [cells[0], cells[at]];
    if (!first || !cell || cell === first) return;
    const beside = cells.slice(1).map((one) => one.offsetLeft - first.offsetWidth);
    const most = beside[at - 1] ?? 0;
    const edge = at === cells.length - 1 ? 0 : FADE;
    const least = cell.offsetLeft + cell.offsetWidth + edge - width;
    const { scrollLeft } = host;
    if (scrollLeft < least || scrollLeft > most)
      host.scrollLeft = beside.find((left) => left >= Math.min(least, most)) ?? most;
  }

  private cell(column: Column<Row>, isFirst: boolean): HTMLElement {
    const cell = element('div', 'vgrid-cell', 'columnheader');
    const button = document.createElement('button');
    button.type = 'button';
    button.tabIndex = isFirst ? 0 : -1;
    button.textContent = column.title;
    button.title = column.hint ?? (column.unsortable ? column.title : `Sort by ${column.title}`);
    if (column.unsortable) button.setAttribute('aria-disabled', 'true');
    button.addEventListener('click', () => {
      if (!column.unsortable) this.events.sort(column.key);
    });
    button.addEventListener('keydown', (event) => {
      this.headingKey(event, column.key);
    });
    cell.append(button);
    if (column.align) cell.dataset.align = column.align;
    if (this.events.move) this.makeMovable(cell, column.key);
    return cell;
  }

  private headingKey(event: KeyboardEvent, key: string): void {
    const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (by === 0) return;
    event.preventDefault();
    event.stopPropagation();
    const { columns } = this;
    const at = columns.findIndex((one) => one.key === key);
    const next = columns[at + by];
    if (!next) return;
    if (event.altKey) {
      this.events.move?.(key, by < 0 ? next.key : (columns[at + 2]?.key ?? null));
      this.focusHeading(at + by);
    } else this.focusHeading(at + by);
  }

  private focusHeading(index: number): void {
    Array.from(this.element.querySelectorAll('button'), (button, i) => {
      button.tabIndex = i === index ? 0 : -1;
      if (i === index) button.focus();
    });
  }

  private makeMovable(cell: HTMLElement, key: string): void {
    cell.draggable = true;
    cell.addEventListener('dragstart', (event) => {
      event.dataTransfer?.setData('text/x-column', key);
    });
    cell.addEventListener('dragover', (event) => {
      if (!event.dataTransfer?.types.includes('text/x-column')) return;
      event.preventDefault();
      cell.dataset.drop = isLeftHalf(event, cell) ? 'before' : 'after';
    });
    cell.addEventListener('dragleave', () => {
      delete cell.dataset.drop;
    });
    cell.addEventListener('drop', (event) => {
      delete cell.dataset.drop;
      const moved = event.dataTransfer?.getData('text/x-column') ?? '';
      if (moved === '' || moved === key) return;
      event.preventDefault();
      const { columns } = this;
      const at = columns.findIndex((one) => one.key === key);
      const before = isLeftHalf(event, cell) ? key : (columns[at + 1]?.key ?? null);
      if (before !== moved) this.events.move?.(moved, before);
    });
  }
}

const namesOf = (columns: readonly Column<never>[]): string =>
  columns.map(({ key, title }) => `${key} ${title}`).join();

const isLeftHalf = (event: DragEvent, cell: HTMLElement): boolean => {
  const { left, width } = cell.getBoundingClientRect();
  return event.clientX < left + width / 2;
};
