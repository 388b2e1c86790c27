// How wide the columns of a table are: as their texts, up to a limit. They only grow, so that no column
// moves while the rows change.
import type { Column, Sort } from './column';

interface Fonts {
  readonly text: string;
  readonly mono: string;
  readonly title: string;
}

const PADDING = 17; // of a cell, and what is lost by rounding
const ARROW = 16; // of the sorted column
const MAX_FITTED = 280;

export class ColumnWidths<Row> {
  template = ''; // of the CSS grid
  least = 0; // pixels of all columns
  private fitted: readonly number[] = []; // by the texts so far
  private fonts: Fonts | null = null;
  private readonly host: HTMLElement;

  constructor(host: HTMLElement) {
    this.host = host;
  }

  reset(columns: readonly Column<Row>[]): void {
    this.fitted = [];
    this.arrange(columns);
  }

  // Makes the columns as wide as the texts of these rows.
  fit(columns: readonly Column<Row>[], sort: Sort | null, rows: readonly Row[]): void {
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
    this.arrange(columns);
  }

  arrange(columns: readonly Column<Row>[]): void {
    const widths = columns.map(({ width }, i) => this.fitted[i] ?? width);
    this.least = widths.reduce((sum, width) => sum + width, 0);
    this.template = columns
      .map(({ grow }, i) =>
        grow ? `minmax(${widths[i] ?? 0}px, ${grow}fr)` : `${widths[i] ?? 0}px`,
      )
      .join(' ');
  }
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
