// A virtual table that renders only the rows in view. It updates the DOM directly, without JSX,
// because a step may have thousands of ops and the table follows a running model.
//
// The host element scrolls; a spacer has the height of all rows. Chromium limits the height of an
// element to 33 million pixels, i.e. 1.4 million rows of 24 pixels: far more than the ops of a step
// or the steps of a session.

export interface Column<Row> {
  readonly key: string;
  readonly title: string;
  readonly hint?: string;
  readonly unsortable?: true; // not sortable
  readonly width: number; // pixels; the minimum if `grow` is set
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

export interface GridEvents {
  sort(key: string): void;
  activate(index: number, by: 'click' | 'key'): void; // a row was clicked or reached by keyboard
}

const ROW = 24;
const OVERSCAN = 6;

let grids = 0;

export class VGrid<Row> {
  private rows: readonly Row[] = [];
  private active: number | null = null;
  private readonly pool: HTMLElement[] = [];
  private readonly head: HTMLElement;
  private readonly body: HTMLElement;
  private readonly prefix: string;
  private readonly resize: ResizeObserver;
  private readonly host: HTMLElement;
  private columns: readonly Column<Row>[];
  private readonly events: GridEvents;

  constructor(host: HTMLElement, columns: readonly Column<Row>[], events: GridEvents) {
    this.host = host;
    this.columns = columns;
    this.events = events;
    grids += 1;
    this.prefix = `grid${grids}-`;
    host.classList.add('vgrid');
    host.tabIndex = 0;
    host.setAttribute('role', 'grid');
    host.setAttribute('aria-colcount', String(columns.length));
    this.head = element('div', 'vgrid-head', 'row');
    this.head.setAttribute('aria-rowindex', '1');
    this.body = element('div', 'vgrid-body', 'rowgroup');
    const top = element('div', 'vgrid-top', 'rowgroup');
    top.append(this.head);
    host.append(top, this.body);
    for (const column of columns) this.head.append(this.heading(column));
    host.addEventListener('scroll', this.paint, { passive: true });
    host.addEventListener('keydown', this.key);
    this.body.addEventListener('click', this.click);
    this.resize = new ResizeObserver(this.paint);
    this.resize.observe(host);
  }

  destroy(): void {
    this.resize.disconnect();
    this.host.removeEventListener('scroll', this.paint);
    this.host.removeEventListener('keydown', this.key);
    this.host.replaceChildren();
  }

  // `columns` are those of the constructor; their functions may have changed.
  show(
    label: string,
    columns: readonly Column<Row>[],
    rows: readonly Row[],
    sort: Sort | null,
    active: number | null,
  ): void {
    this.columns = columns;
    this.host.setAttribute('aria-label', label);
    this.rows = rows;
    this.active = active;
    this.host.setAttribute('aria-rowcount', String(rows.length + 1));
    this.body.style.height = `${rows.length * ROW}px`;
    this.columns.forEach((column, i) => {
      if (column.unsortable) return;
      const direction =
        sort?.key !== column.key ? 'none' : sort.descending ? 'descending' : 'ascending';
      this.head.children[i]?.setAttribute('aria-sort', direction);
    });
    this.paint();
  }

  // Scrolls the minimum distance that brings the row into view.
  reveal(index: number): void {
    const top = index * ROW;
    const view = this.host.clientHeight - this.head.offsetHeight;
    if (top < this.host.scrollTop) this.host.scrollTop = top;
    else if (top + ROW > this.host.scrollTop + view) this.host.scrollTop = top + ROW - view;
  }

  private heading(column: Column<Row>): HTMLElement {
    const cell = element('div', 'vgrid-cell', 'columnheader');
    if (column.unsortable) {
      const title = document.createElement('span');
      title.textContent = column.title;
      title.title = column.hint ?? column.title;
      cell.append(title);
    } else {
      const button = document.createElement('button');
      button.type = 'button';
      button.textContent = column.title;
      button.title = column.hint ?? `Sort by ${column.title}`;
      button.addEventListener('click', () => {
        this.events.sort(column.key);
      });
      cell.append(button);
    }
    if (column.align) cell.dataset.align = column.align;
    return cell;
  }

  private readonly paint = (): void => {
    const minWidth = this.columns.reduce((sum, column) => sum + column.width, 0);
    const width = `${Math.max(minWidth, this.host.clientWidth)}px`;
    const template = this.columns
      .map(({ width: w, grow }) => (grow ? `minmax(${w}px, ${grow}fr)` : `${w}px`))
      .join(' ');
    for (const line of [this.head, this.body]) line.style.width = width;
    this.head.style.gridTemplateColumns = template;
    const first = Math.max(0, Math.floor(this.host.scrollTop / ROW) - OVERSCAN);
    const seen = Math.ceil(this.host.clientHeight / ROW) + 2 * OVERSCAN;
    const last = Math.min(this.rows.length, first + seen);
    for (let i = 0; i < last - first; i += 1) this.paintRow(i, first + i, template);
    for (const spare of this.pool.splice(last - first)) spare.remove();
    const shown = this.active !== null && this.active >= first && this.active < last;
    if (shown) this.host.setAttribute('aria-activedescendant', `${this.prefix}${this.active ?? 0}`);
    else this.host.removeAttribute('aria-activedescendant');
  };

  private paintRow(slot: number, index: number, template: string): void {
    const row = this.rows[index];
    if (row === undefined) return;
    const line = this.pool[slot] ?? this.newLine();
    this.pool[slot] = line;
    line.id = `${this.prefix}${index}`;
    line.style.transform = `translateY(${index * ROW}px)`;
    line.style.gridTemplateColumns = template;
    line.setAttribute('aria-rowindex', String(index + 2));
    line.setAttribute('aria-selected', String(index === this.active));
    line.dataset.index = String(index);
    this.columns.forEach((column, i) => {
      const cell = line.children[i];
      if (cell instanceof HTMLElement) paintCell(cell, column, row);
    });
  }

  private newLine(): HTMLElement {
    const line = element('div', 'vgrid-row', 'row');
    for (const column of this.columns) {
      const cell = element('div', 'vgrid-cell', 'gridcell');
      if (column.align) cell.dataset.align = column.align;
      if (column.mono) cell.dataset.mono = '';
      line.append(cell);
    }
    this.body.append(line);
    return line;
  }

  private readonly click = (event: MouseEvent): void => {
    const line = event.target instanceof Element ? event.target.closest('.vgrid-row') : null;
    const index = line instanceof HTMLElement ? line.dataset.index : undefined;
    if (index !== undefined) this.events.activate(Number(index), 'click');
  };

  private readonly key = (event: KeyboardEvent): void => {
    if (event.target !== this.host || this.rows.length === 0) return;
    const page = Math.max(1, Math.floor(this.host.clientHeight / ROW) - 2);
    const moves: Partial<Record<string, number>> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -this.rows.length,
      End: this.rows.length,
    };
    const move = moves[event.key];
    if (move === undefined) return;
    event.preventDefault();
    // The next key continues from this row, even before the owner calls show().
    const from = this.active ?? (move > 0 ? -1 : this.rows.length);
    const index = Math.min(this.rows.length - 1, Math.max(0, from + move));
    this.active = index;
    this.reveal(index);
    this.paint();
    this.events.activate(index, 'key');
  };
}

function paintCell<Row>(cell: HTMLElement, column: Column<Row>, row: Row): void {
  const text = column.text(row);
  if (cell.textContent !== text) cell.textContent = text;
  const title = column.exact?.(row) ?? text;
  if (cell.title !== title) cell.title = title;
  if (column.bar) cell.style.setProperty('--share', `${(100 * column.bar(row)).toFixed(1)}%`);
  if (column.tone) cell.dataset.tone = column.tone(row);
}

function element(tag: string, className: string, role: string): HTMLElement {
  const made = document.createElement(tag);
  made.className = className;
  made.setAttribute('role', role);
  return made;
}
