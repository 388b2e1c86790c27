// A virtual table of any number of rows, of which only those in view are in the document. It
// updates the DOM directly, without JSX, because it follows a running model.
//
// The host element scrolls over a spacer; the rows are in a box that sticks to the top. Browsers
// limit the height of an element (Chromium to 33 million pixels), so the spacer is at most MAX_HEIGHT:
// then a short scroll moves by exact rows, a long one (the scroll bar) by share.

import type { Rows } from './rows';

export interface Column<Row> {
  readonly key: string;
  readonly title: string;
  readonly hint?: string;
  readonly unsortable?: true; // not sortable
  // Pixels. With `grow` and of numbers it is the minimum; other columns are as wide as their texts.
  readonly width: number;
  readonly grow?: number; // share of the remaining width
  readonly align?: 'right';
  readonly mono?: boolean;
  readonly text: (row: Row) => string;
  readonly exact?: (row: Row) => string; // tooltip
  readonly bar?: (row: Row) => number; // 0..1, drawn below the text
  readonly tone?: (row: Row) => string; // value of data-tone, for CSS
}

export interface Sort {
  readonly key: string;
  readonly descending: boolean;
}

// The form of a sort order in the view: the column's key, with a leading minus for descending.
export const sortText = ({ key, descending }: Sort): string => (descending ? `-${key}` : key);
export const sortOf = (text: string): Sort =>
  text.startsWith('-')
    ? { key: text.slice(1), descending: true }
    : { key: text, descending: false };

// The order after a click on a column header. The same column reverses it; another column starts
// descending if `greatest` contains it, else ascending.
export function nextSort(sort: Sort, column: string, descendingFirst: readonly string[]): Sort {
  if (sort.key === column) return { key: column, descending: !sort.descending };
  return { key: column, descending: descendingFirst.includes(column) };
}

export interface RowRange {
  readonly from: number;
  readonly to: number; // exclusive
}

export interface GridEvents {
  sort(key: string): void;
  activate(index: number, by: 'click' | 'key'): void; // a row was clicked or reached by keyboard
  move?(key: string, before: string | null): void; // a column was moved; null: to the end
  copy?(): void; // Ctrl+C
  enter?(index: number): void; // Enter or a double click
}

export interface GridContent<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: Rows<Row>;
  readonly sort: Sort | null;
  readonly active: number | null;
}

// A row of the document, and what it shows.
interface Line<Row> {
  readonly element: HTMLElement;
  index: number;
  row: Row | undefined;
  isSelected: boolean;
}

interface Fonts {
  readonly text: string;
  readonly mono: string;
  readonly title: string;
}

const ROW = 24;
const MAX_HEIGHT = 8_000_000;
const MAX_SHIFT = 10_000; // rows from the base: transforms of the browser have 24 bits
const EDGE = 10_000; // pixels of exact scrolling that are kept at both ends
const PADDING = 17; // of a cell, and what is lost by rounding
const ARROW = 16; // of the sorted column
const MAX_FITTED = 280;
const SAMPLE = 60; // rows that are measured besides those in view

let grids = 0;

export class VGrid<Row> {
  private content: GridContent<Row>;
  private active: number | null = null;
  private anchor: number | null = null; // start of the selected range
  private top = 0; // the first row in view, with its fraction
  private seenTop = 0; // scrollTop that `top` belongs to
  private lines: Line<Row>[] = []; // in order
  private base = 0; // the row at which the lines' positions begin
  // Measured when they change: reading them between changes of the document costs a layout.
  private size = { width: 0, height: 0 };
  // Of the columns.
  private template = '';
  private minWidth = 0;
  private fitted: number[] = []; // widths of the columns by their texts so far: they only grow
  private fonts: Fonts | null = null;
  private sortKey: string | null = null;
  private sortToReveal: string | null = null; // the column, until its rows have arrived
  private readonly head: HTMLElement;
  private readonly body: HTMLElement;
  private readonly view: HTMLElement;
  private readonly prefix: string;
  private readonly resize: ResizeObserver;
  private readonly host: HTMLElement;
  private readonly events: GridEvents;

  constructor(host: HTMLElement, content: GridContent<Row>, events: GridEvents) {
    this.host = host;
    this.content = content;
    this.events = events;
    grids += 1;
    this.prefix = `grid${grids}-`;
    host.classList.add('vgrid');
    host.tabIndex = 0;
    host.setAttribute('role', 'grid');
    host.setAttribute('aria-multiselectable', 'true');
    this.head = element('div', 'vgrid-head', 'row');
    this.head.setAttribute('aria-rowindex', '1');
    const top = element('div', 'vgrid-top', 'rowgroup');
    top.append(this.head);
    this.body = element('div', 'vgrid-body', 'presentation');
    this.view = element('div', 'vgrid-view', 'rowgroup');
    this.body.append(this.view);
    host.append(top, this.body);
    this.makeColumns();
    host.addEventListener('scroll', this.scrolled, { passive: true });
    host.addEventListener('scrollend', this.settled);
    host.addEventListener('keydown', this.key);
    this.view.addEventListener('click', this.click);
    this.view.addEventListener('dblclick', this.doubleClick);
    this.resize = new ResizeObserver(() => {
      this.measure();
      this.paint();
    });
    this.resize.observe(host);
    this.resize.observe(this.head);
    this.measure();
    this.show(content);
  }

  destroy(): void {
    this.resize.disconnect();
    this.host.removeEventListener('scroll', this.scrolled);
    this.host.removeEventListener('scrollend', this.settled);
    this.host.removeEventListener('keydown', this.key);
    this.host.replaceChildren();
  }

  show(content: GridContent<Row>): void {
    const before = this.content;
    this.content = content;
    const { columns, rows, label, sort, active } = content;
    const heads = (all: readonly Column<Row>[]): string =>
      all.map(({ key, title }) => `${key} ${title}`).join();
    if (before.columns !== columns) {
      if (heads(before.columns) === heads(columns)) this.setTemplate();
      else this.makeColumns();
    }
    this.host.setAttribute('aria-label', label);
    this.host.setAttribute('aria-rowcount', String(rows.count + 1));
    if (active !== this.active) this.anchor = active;
    this.active = active;
    const height = `${Math.min(MAX_HEIGHT, rows.count * ROW)}px`;
    if (this.body.style.height !== height) {
      this.body.style.height = height;
      this.top = Math.min(this.top, this.lastTop());
      this.placeBar();
    }
    columns.forEach((column, i) => {
      if (column.unsortable) return;
      const direction =
        sort?.key !== column.key ? 'none' : sort.descending ? 'descending' : 'ascending';
      this.head.children[i]?.setAttribute('aria-sort', direction);
    });
    this.fitColumns();
    this.paint(true);
    if (this.sortKey !== sort?.key) this.sortToReveal = this.sortKey = sort?.key ?? null;
    if (this.sortToReveal !== null && rows.at(0) !== undefined) {
      this.revealColumn(this.sortToReveal);
      this.sortToReveal = null;
    }
  }

  // Scrolls the minimum distance that brings the column into view, beside the first one, which stays.
  private revealColumn(key: string): void {
    const at = this.content.columns.findIndex((column) => column.key === key);
    const [first, cell] = [this.head.children[0], this.head.children[at]];
    if (!(first instanceof HTMLElement) || !(cell instanceof HTMLElement) || cell === first) return;
    const [left, width] = [cell.offsetLeft, cell.offsetWidth];
    const { scrollLeft } = this.host;
    const most = left - first.offsetWidth;
    const least = left + width - this.size.width;
    this.host.scrollLeft = Math.min(most, Math.max(least, scrollLeft));
  }

  // The selected rows; null: none.
  selected(): RowRange | null {
    if (this.active === null) return null;
    const anchor = this.anchor ?? this.active;
    return { from: Math.min(anchor, this.active), to: Math.max(anchor, this.active) + 1 };
  }

  // Scrolls the minimum distance that brings the row into view.
  reveal(index: number): void {
    const whole = Math.max(1, Math.floor(this.visible()));
    if (index < this.top) this.scrollToRow(index);
    else if (index + 1 > this.top + this.visible()) this.scrollToRow(index + 1 - whole);
  }

  // ---- Scrolling ---------------------------------------------------------------------

  private visible(): number {
    return this.size.height / ROW;
  }

  private measure(): void {
    const { clientWidth: width, clientHeight: height } = this.host;
    this.size = { width, height: Math.max(0, height - this.head.offsetHeight) };
  }

  private lastTop(): number {
    return Math.max(0, this.content.rows.count - this.visible());
  }

  private isScaled(): boolean {
    return this.content.rows.count * ROW > MAX_HEIGHT;
  }

  private room(): number {
    const spacer = Math.min(MAX_HEIGHT, this.content.rows.count * ROW);
    return Math.max(0, spacer - this.visible() * ROW);
  }

  private scrollToRow(top: number): void {
    this.top = Math.min(this.lastTop(), Math.max(0, top));
    this.placeBar();
    this.paint();
  }

  // Moves the scroll bar to where `top` is.
  private placeBar(): void {
    const [room, last] = [this.room(), this.lastTop()];
    let at = this.top * ROW;
    if (this.isScaled()) {
      at = Math.max((this.top / last) * room, Math.min(at, EDGE));
      at = Math.min(at, room - Math.min((last - this.top) * ROW, EDGE));
    }
    if (Math.abs(this.host.scrollTop - at) >= 1) this.host.scrollTop = at;
    this.seenTop = this.host.scrollTop;
  }

  private readonly scrolled = (): void => {
    const at = this.host.scrollTop;
    const moved = at - this.seenTop;
    if (moved !== 0) {
      const isShort = Math.abs(moved) <= 2 * this.size.height;
      const share = this.room() > 0 ? at / this.room() : 0;
      const top = !this.isScaled()
        ? at / ROW
        : isShort
          ? this.top + moved / ROW
          : share * this.lastTop();
      this.top = Math.min(this.lastTop(), Math.max(0, top));
      this.seenTop = at;
      const isAtEnd = at <= 0 || at >= this.room();
      if (isAtEnd && isShort) this.settled();
    }
    this.paint();
  };

  private readonly settled = (): void => {
    if (this.isScaled()) this.placeBar();
  };

  // ---- Columns -----------------------------------------------------------------------

  private makeColumns(): void {
    const { columns } = this.content;
    this.fitted = [];
    this.host.setAttribute('aria-colcount', String(columns.length));
    this.head.replaceChildren(...columns.map((column, i) => this.heading(column, i === 0)));
    for (const line of this.lines.splice(0)) line.element.remove();
    this.setTemplate();
  }

  private setTemplate(): void {
    const { columns } = this.content;
    const widths = columns.map(({ width }, i) => this.fitted[i] ?? width);
    this.minWidth = widths.reduce((sum, width) => sum + width, 0);
    const template = columns
      .map(({ grow }, i) =>
        grow ? `minmax(${widths[i] ?? 0}px, ${grow}fr)` : `${widths[i] ?? 0}px`,
      )
      .join(' ');
    if (template === this.template) return;
    this.template = template;
    for (const one of [this.head, ...this.lines.map(({ element: line }) => line)])
      one.style.gridTemplateColumns = template;
  }

  // Makes columns as wide as the texts of a sample of the rows, up to a limit.
  private fitColumns(): void {
    const { columns, sort } = this.content;
    const rows = this.sample();
    if (rows.length === 0) return;
    this.fonts ??= cellFonts(this.host);
    const { fonts } = this;
    this.fitted = columns.map((column, i) => {
      if (column.grow) return column.width;
      const arrow = sort?.key === column.key ? ARROW : 0;
      const least = Math.max(
        this.fitted[i] ?? (column.align ? column.width : 0),
        textWidth(fonts.title, column.title) + arrow + PADDING,
      );
      const font = column.mono ? fonts.mono : fonts.text;
      const widest = rows.reduce(
        (width, row) => Math.max(width, textWidth(font, column.text(row)) + PADDING),
        least,
      );
      return Math.ceil(Math.min(MAX_FITTED, widest));
    });
    this.setTemplate();
  }

  // The rows in view, and some of all that are loaded.
  private sample(): readonly Row[] {
    const { rows } = this.content;
    const first = Math.floor(this.top);
    const inView = Math.min(rows.count - first, Math.ceil(this.visible()) + 1);
    const apart = Math.max(1, rows.count / SAMPLE);
    const indices = [
      ...Array.from({ length: Math.max(0, inView) }, (_, i) => first + i),
      ...Array.from({ length: Math.min(SAMPLE, rows.count) }, (_, i) => Math.floor(i * apart)),
    ];
    return indices.flatMap((index) => {
      const row = rows.at(index);
      return row === undefined ? [] : [row];
    });
  }

  // The headings are one stop of the Tab key: left and right move between them.
  private heading(column: Column<Row>, isFirst: boolean): HTMLElement {
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
    const { columns } = this.content;
    const at = columns.findIndex((one) => one.key === key);
    const next = columns[at + by];
    if (!next) return;
    if (event.altKey) {
      this.events.move?.(key, by < 0 ? next.key : (columns[at + 2]?.key ?? null));
      this.focusHeading(at + by);
    } else this.focusHeading(at + by);
  }

  private focusHeading(index: number): void {
    Array.from(this.head.querySelectorAll('button'), (button, i) => {
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
      const { columns } = this.content;
      const at = columns.findIndex((one) => one.key === key);
      const before = isLeftHalf(event, cell) ? key : (columns[at + 1]?.key ?? null);
      if (before !== moved) this.events.move?.(moved, before);
    });
  }

  // ---- Paint -------------------------------------------------------------------------

  // Lines that stay in view are moved with the whole view, unless `all` rows may have changed.
  private paint(all = false): void {
    const { rows } = this.content;
    const width = `${Math.max(this.minWidth, this.size.width)}px`;
    for (const line of [this.head, this.view])
      if (line.style.width !== width) line.style.width = width;
    this.top = Math.min(this.top, this.lastTop());
    const first = Math.floor(this.top);
    // One more than has room, so that the number does not depend on the fraction of the first row.
    const last = Math.min(rows.count, first + Math.ceil(this.visible()) + 1);
    rows.need?.(first, last);
    this.turnLines(first);
    for (const spare of this.lines.splice(Math.max(0, last - first))) spare.element.remove();
    for (let i = 0; i < last - first; i += 1) this.paintRow(i, first + i, all);
    this.view.style.transform = `translateY(${-(this.top - this.base) * ROW}px)`;
    const shown = this.active !== null && this.active >= first && this.active < last;
    const id = shown ? `${this.prefix}${this.active ?? 0}` : null;
    if (id === this.host.getAttribute('aria-activedescendant')) return;
    if (id !== null) this.host.setAttribute('aria-activedescendant', id);
    else this.host.removeAttribute('aria-activedescendant');
  }

  // The lines that leave the view at one end enter it at the other.
  private turnLines(first: number): void {
    const { lines } = this;
    const by = first - (lines[0]?.index ?? first);
    if (Math.abs(by) >= lines.length || Math.abs(first - this.base) > MAX_SHIFT) {
      this.base = first;
      for (const line of lines) line.index = -1;
    } else if (by > 0) {
      const moved = lines.splice(0, by);
      lines.push(...moved);
      this.view.append(...moved.map(({ element: line }) => line));
    } else if (by < 0) {
      const moved = lines.splice(by);
      lines.unshift(...moved);
      this.view.prepend(...moved.map(({ element: line }) => line));
    }
  }

  private paintRow(slot: number, index: number, all: boolean): void {
    const { columns, rows } = this.content;
    const row = rows.at(index);
    const line = (this.lines[slot] ??= this.newLine());
    const selected = this.selected();
    const isSelected = selected !== null && index >= selected.from && index < selected.to;
    const isMoved = line.index !== index;
    if (!all && !isMoved && line.row === row && line.isSelected === isSelected) return;
    const isBusy = row === undefined;
    if (isMoved) {
      line.element.id = `${this.prefix}${index}`;
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
    Object.assign(line, { index, row, isSelected });
    columns.forEach((column, i) => {
      const cell = line.element.children[i];
      if (cell instanceof HTMLElement) paintCell(cell, column, row);
    });
  }

  private newLine(): Line<Row> {
    const line = element('div', 'vgrid-row', 'row');
    line.style.gridTemplateColumns = this.template;
    for (const column of this.content.columns) {
      const cell = element('div', 'vgrid-cell', 'gridcell');
      if (column.align) cell.dataset.align = column.align;
      if (column.mono) cell.dataset.mono = '';
      line.append(cell);
    }
    this.view.append(line);
    return { element: line, index: -1, row: undefined, isSelected: false };
  }

  // ---- Selection ---------------------------------------------------------------------

  private indexOf(event: Event): number | null {
    const line = event.target instanceof Element ? event.target.closest('.vgrid-row') : null;
    const index = line instanceof HTMLElement ? line.dataset.index : undefined;
    return index === undefined ? null : Number(index);
  }

  private readonly click = (event: MouseEvent): void => {
    const index = this.indexOf(event);
    if (index === null) return;
    // A selection of text is not a click on the row.
    if (getSelection()?.type === 'Range' && event.detail < 2 && !event.shiftKey) return;
    this.activate(index, event.shiftKey, 'click');
  };

  private readonly doubleClick = (event: MouseEvent): void => {
    const index = this.indexOf(event);
    if (index !== null) this.events.enter?.(index);
  };

  private activate(index: number, extend: boolean, by: 'click' | 'key'): void {
    if (!extend || this.anchor === null) this.anchor = index;
    this.active = index;
    this.paint();
    if (!extend) this.events.activate(index, by);
  }

  private readonly key = (event: KeyboardEvent): void => {
    const { count } = this.content.rows;
    if (event.target !== this.host || count === 0) return;
    const page = Math.max(1, Math.floor(this.visible()) - 1);
    if (event.ctrlKey || event.metaKey) {
      if (event.key === 'c' && this.events.copy) this.events.copy();
      else if (event.key === 'a') {
        [this.anchor, this.active] = [0, count - 1];
        this.paint();
      } else return;
      event.preventDefault();
      return;
    }
    if (event.key === 'Enter' && this.active !== null && this.events.enter) {
      event.preventDefault();
      this.events.enter(this.active);
      return;
    }
    const moves: Partial<Record<string, number>> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -count,
      End: count,
    };
    const move = moves[event.key];
    if (move === undefined || event.altKey) return;
    event.preventDefault();
    // The next key continues from this row, even before the owner calls show().
    const from = this.active ?? (move > 0 ? -1 : count);
    const index = Math.min(count - 1, Math.max(0, from + move));
    this.active ??= index;
    this.reveal(index);
    this.activate(index, event.shiftKey, 'key');
  };
}

// As in table.css.
function cellFonts(host: HTMLElement): Fonts {
  const style = getComputedStyle(host);
  const { fontFamily, fontSize } = style;
  return {
    text: `${fontSize} ${fontFamily}`,
    mono: `11.5px ${style.getPropertyValue('--mono')}`,
    title: `600 11.5px ${fontFamily}`,
  };
}

let measuring: CanvasRenderingContext2D | null = null;

function textWidth(font: string, text: string): number {
  measuring ??= document.createElement('canvas').getContext('2d');
  if (!measuring) return 0;
  if (measuring.font !== font) measuring.font = font;
  return measuring.measureText(text).width;
}

const isLeftHalf = (event: DragEvent, cell: HTMLElement): boolean => {
  const { left, width } = cell.getBoundingClientRect();
  return event.clientX < left + width / 2;
};

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

function element(tag: string, className: string, role: string): HTMLElement {
  const made = document.createElement(tag);
  made.className = className;
  made.setAttribute('role', role);
  return made;
}
