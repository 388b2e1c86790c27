// A virtual table of any number of rows, of which only those in view are in the document. It
// updates the DOM directly, without JSX, because it follows a running model. The rows are in a box that
// sticks to the top. This is what its parts (headings, column widths, scrolling, lines) have in common,
// the keyboard and the selection.
import type { Column, Gutter, Sort } from './column';
import { ColumnWidths } from './column_widths';
import { element } from './element';
import { Headings, type HeadingEvents } from './headings';
import { Lines, type RowRange } from './lines';
import { RowScroll } from './row_scroll';
import type { Rows } from './rows';

export interface GridEvents extends HeadingEvents {
  activate(index: number, by: 'click' | 'key'): void; // a row was clicked or reached by keyboard
  copy?(): void; // Ctrl+C
  enter?(index: number): void; // Enter or a double click
}

export interface GridContent<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: Rows<Row>;
  readonly sort: Sort | null;
  readonly active: number | null;
  readonly gutter?: Gutter<Row>;
}

const GUTTER = 18; // pixels, as in debug.css
const SAMPLE = 60; // rows that are measured besides those in view

let grids = 0;

export class VGrid<Row> {
  private content: GridContent<Row>;
  private active: number | null = null;
  private anchor: number | null = null; // start of the selected range
  private left = 0; // pixels that are scrolled out at the left
  private width = 0; // measured when it changes: reading it between changes costs a layout
  private template = ''; // of the columns
  private sortKey: string | null = null;
  private sortToReveal: string | null = null; // the column, until its rows have arrived
  private readonly headings: Headings<Row>;
  private readonly widths: ColumnWidths<Row>;
  private readonly scroll: RowScroll;
  private readonly lines: Lines<Row>;
  private readonly body = element('div', 'vgrid-body', 'presentation');
  private readonly resize: ResizeObserver;
  private readonly host: HTMLElement;
  private readonly events: GridEvents;

  constructor(host: HTMLElement, content: GridContent<Row>, events: GridEvents) {
    this.host = host;
    this.content = content;
    this.events = events;
    grids += 1;
    this.headings = new Headings(events);
    this.widths = new ColumnWidths(host);
    this.scroll = new RowScroll(host, () => this.content.rows.count);
    this.lines = new Lines(`grid${grids}-`);
    host.classList.add('vgrid');
    if (content.gutter) host.dataset.gutter = '';
    host.tabIndex = 0;
    host.setAttribute('role', 'grid');
    host.setAttribute('aria-multiselectable', 'true');
    const top = element('div', 'vgrid-top', 'rowgroup');
    top.append(this.headings.element);
    this.body.append(this.lines.element);
    host.append(top, this.body);
    this.showColumns();
    host.addEventListener('scroll', this.scrolled, { passive: true });
    host.addEventListener('scrollend', this.settled);
    host.addEventListener('keydown', this.key);
    this.lines.element.addEventListener('click', this.click);
    this.lines.element.addEventListener('dblclick', this.doubleClick);
    this.resize = new ResizeObserver(() => {
      this.measure();
      this.paint();
    });
    this.resize.observe(host);
    this.resize.observe(this.headings.element);
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
    if (before.columns !== columns) this.showColumns();
    this.host.setAttribute('aria-label', label);
    this.host.setAttribute('aria-rowcount', String(rows.count + 1));
    if (active !== this.active) this.anchor = active;
    this.active = active;
    const height = `${this.scroll.spacer}px`;
    if (this.body.style.height !== height) {
      this.body.style.height = height;
      this.scroll.toRow(this.scroll.top);
    }
    this.headings.showSort(sort);
    this.widths.fit(columns, sort, this.sample());
    this.setTemplate();
    this.paint(true);
    if (this.sortKey !== sort?.key) this.sortToReveal = this.sortKey = sort?.key ?? null;
    if (this.sortToReveal !== null && rows.at(0) !== undefined) {
      this.headings.reveal(this.sortToReveal, this.host, this.width);
      this.sortToReveal = null;
    }
  }

  // The selected rows; null: none.
  selected(): RowRange | null {
    if (this.active === null) return null;
    const anchor = this.anchor ?? this.active;
    return { from: Math.min(anchor, this.active), to: Math.max(anchor, this.active) + 1 };
  }

  // Scrolls the minimum distance that brings the row into view.
  reveal(index: number): void {
    if (this.scroll.reveal(index)) this.paint();
  }

  // Scrolls to the first row.
  toTop(): void {
    this.scroll.toRow(0);
    this.paint();
  }

  private measure(): void {
    const { clientWidth: width, clientHeight: height } = this.host;
    this.width = width;
    this.scroll.height = Math.max(0, height - this.headings.element.offsetHeight);
    this.host.style.setProperty('--rows-height', `${this.scroll.height}px`);
  }

  private readonly scrolled = (): void => {
    this.left = this.host.scrollLeft;
    this.scroll.scrolled();
    this.paint();
  };

  private readonly settled = (): void => {
    this.scroll.settled();
  };

  // ---- Columns -----------------------------------------------------------------------

  private showColumns(): void {
    const { columns } = this.content;
    this.host.setAttribute('aria-colcount', String(columns.length));
    if (this.headings.show(columns)) {
      this.lines.clear();
      this.widths.reset(columns);
    } else this.widths.arrange(columns);
    this.setTemplate();
  }

  private setTemplate(): void {
    const { template } = this.widths;
    if (template === this.template) return;
    this.template = template;
    this.headings.element.style.gridTemplateColumns = template;
    this.lines.setTemplate(template);
  }

  // The rows in view, and some of all that are loaded.
  private sample(): readonly Row[] {
    const { rows } = this.content;
    const first = Math.floor(this.scroll.top);
    const inView = Math.min(rows.count - first, Math.ceil(this.scroll.visible) + 1);
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

  // ---- Paint -------------------------------------------------------------------------

  // Lines that stay in view are moved with the whole view, unless `all` rows may have changed.
  private paint(all = false): void {
    const { columns, rows, gutter } = this.content;
    const { scroll, lines } = this;
    const least = this.widths.least + (gutter ? GUTTER : 0);
    const width = `${Math.max(least, this.width)}px`;
    for (const { style } of [this.headings.element, lines.element])
      if (style.width !== width) style.width = width;
    const more = least > this.left + this.width + 1 ? 'right' : '';
    if (this.host.dataset.more !== more) this.host.dataset.more = more;
    scroll.clamp();
    const first = Math.floor(scroll.top);
    // One more than has room, so that the number does not depend on the fraction of the first row.
    const last = Math.min(rows.count, first + Math.ceil(scroll.visible) + 1);
    rows.need?.(first, last);
    lines.paint({ columns, rows, gutter, selected: this.selected(), all }, first, last, scroll.top);
    const shown = this.active !== null && this.active >= first && this.active < last;
    const id = shown ? lines.idOf(this.active ?? 0) : null;
    if (id === this.host.getAttribute('aria-activedescendant')) return;
    if (id !== null) this.host.setAttribute('aria-activedescendant', id);
    else this.host.removeAttribute('aria-activedescendant');
  }

  // ---- Selection and keyboard --------------------------------------------------------

  private indexOf(event: Event): number | null {
    const line = event.target instanceof Element ? event.target.closest('.vgrid-row') : null;
    const index = line instanceof HTMLElement ? line.dataset.index : undefined;
    return index === undefined ? null : Number(index);
  }

  private readonly click = (event: MouseEvent): void => {
    const index = this.indexOf(event);
    if (index === null) return;
    const row = this.content.rows.at(index);
    if (this.content.gutter && row !== undefined && isInGutter(event)) {
      this.content.gutter.press(row);
      return;
    }
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
    const page = Math.max(1, Math.floor(this.scroll.visible) - 1);
    const isEnd = event.key === 'Home' || event.key === 'End';
    if ((event.ctrlKey || event.metaKey) && !isEnd) {
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

// Beside the cells.
const isInGutter = ({ target, offsetX }: MouseEvent): boolean =>
  target instanceof Element && target.classList.contains('vgrid-row') && offsetX < GUTTER;
