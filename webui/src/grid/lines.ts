// The rows of a table that are in the document: those in view. A line that leaves the view at one end
// enters it at the other, and one that stays is not changed unless what it shows did.
import type { Column, Gutter } from './column';
import { element } from './element';
import { ROW } from './row_scroll';
import type { Rows } from './rows';

export interface RowRange {
  readonly from: number;
  readonly to: number; // exclusive
}

export interface LineContent<Row> {
  readonly columns: readonly Column<Row>[];
  readonly rows: Rows<Row>;
  readonly gutter: Gutter<Row> | undefined;
  readonly selected: RowRange | null;
  readonly all: boolean; // all rows may have changed
}

// A row of the document, and what it shows.
interface Line<Row> {
  readonly element: HTMLElement;
  index: number;
  row: Row | undefined;
  isSelected: boolean;
}

const MAX_SHIFT = 10_000; // rows from the base: transforms of the browser have 24 bits

export class Lines<Row> {
  readonly element = element('div', 'vgrid-view', 'rowgroup');
  private lines: Line<Row>[] = []; // in order
  private base = 0; // the row at which the lines' positions begin
  private template = '';
  private readonly prefix: string; // of the rows' ids

  constructor(prefix: string) {
    this.prefix = prefix;
  }

  idOf(index: number): string {
    return `${this.prefix}${index}`;
  }

  clear(): void {
    for (const line of this.lines.splice(0)) line.element.remove();
  }

  setTemplate(template: string): void {
    this.template = template;
    for (const { element: line } of this.lines) line.style.gridTemplateColumns = template;
  }

  // The rows [first, last), of which `top`, with its fraction, is at the top.
  paint(content: LineContent<Row>, first: number, last: number, top: number): void {
    this.turn(first);
    for (const spare of this.lines.splice(Math.max(0, last - first))) spare.element.remove();
    for (let i = 0; i < last - first; i += 1) this.paintLine(i, first + i, content);
    this.element.style.transform = `translateY(${-(top - this.base) * ROW}px)`;
  }

  private turn(first: number): void {
    const { lines } = this;
    const by = first - (lines[0]?.index ?? first);
    if (Math.abs(by) >= lines.length || Math.abs(first - this.base) > MAX_SHIFT) {
      this.base = first;
      for (const line of lines) line.index = -1;
    } else if (by > 0) {
      const moved = lines.splice(0, by);
      lines.push(...moved);
      this.element.append(...moved.map(({ element: line }) => line));
    } else if (by < 0) {
      const moved = lines.splice(by);
      lines.unshift(...moved);
      this.element.prepend(...moved.map(({ element: line }) => line));
    }
  }

  private paintLine(slot: number, index: number, content: LineContent<Row>): void {
    const { columns, rows, gutter, selected } = content;
    const row = rows.at(index);
    const line = (this.lines[slot] ??= this.newLine(columns));
    const isSelected = selected !== null && index >= selected.from && index < selected.to;
    const isMoved = line.index !== index;
    if (!content.all && !isMoved && line.row === row && line.isSelected === isSelected) return;
    const isBusy = row === undefined;
    if (isMoved) {
      line.element.id = this.idOf(index);
      line.element.setAttribute('aria-rowindex', String(index + 2));
      line.element.dataset.index = String(index);
      line.element.dataset.odd = String(index % 2);
    }
    // Also if only the base has changed.
    const place = `translateY(${(index - this.base) * ROW}px)`;
    if (line.element.style.transform !== place) line.element.style.transform = place;
    line.element.setAttribute('aria-selected', String(isSelected));
    if (isBusy) line.element.setAttribute('aria-busy', 'true');
    else line.element.removeAttribute('aria-busy');
    if (gutter) {
      line.element.dataset.mark = row === undefined ? '' : gutter.mark(row);
      line.element.title = gutter.hint;
    }
    Object.assign(line, { index, row, isSelected });
    columns.forEach((column, i) => {
      const cell = line.element.children[i];
      if (cell instanceof HTMLElement) paintCell(cell, column, row);
    });
  }

  private newLine(columns: readonly Column<Row>[]): Line<Row> {
    const line = element('div', 'vgrid-row', 'row');
    line.style.gridTemplateColumns = this.template;
    for (const column of columns) {
      const cell = element('div', 'vgrid-cell', 'gridcell');
      if (column.align) cell.dataset.align = column.align;
      if (column.mono) cell.dataset.mono = '';
      line.append(cell);
    }
    this.element.append(line);
    return { element: line, index: -1, row: undefined, isSelected: false };
  }
}

function paintCell<Row>(cell: HTMLElement, column: Column<Row>, row: Row | undefined): void {
  const text = row === undefined ? '' : column.text(row);
  if (cell.textContent !== text) cell.textContent = text;
  const title = row === undefined ? '' : (column.exact?.(row) ?? text);
  if (cell.title !== title) cell.title = title;
  if (column.bar) {
    const share = row === undefined ? 0 : column.bar(row);
    cell.style.setProperty('--share', `${(100 * share).toFixed(1)}%`);
  }
  if (column.tone) cell.dataset.tone = row === undefined ? '' : column.tone(row);
}
