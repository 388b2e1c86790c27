// A column of a table, and the order of its rows.

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

// Marks at the left edge of the rows.
export interface Gutter<Row> {
  readonly mark: (row: Row) => string; // value of data-mark, for CSS
  readonly press: (row: Row) => void;
  readonly hint: string; // tooltip
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
