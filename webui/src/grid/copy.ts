// Rows as text for the clipboard. Pure functions.

export type Cell = string | number | boolean | null;
export const COPY_FORMATS = ['TSV', 'CSV', 'JSON'] as const;
export type CopyFormat = (typeof COPY_FORMATS)[number];

export function rowsText(
  format: CopyFormat,
  names: readonly string[],
  rows: readonly (readonly Cell[])[],
): string {
  switch (format) {
    case 'JSON': {
      const objects = rows.map((row) => Object.fromEntries(names.map((name, i) => [name, row[i]])));
      return JSON.stringify(objects, null, 2);
    }
    case 'CSV':
      return lines([names, ...rows], ',', csv);
    case 'TSV':
      return lines([names, ...rows], '\t', (cell) => plain(cell).replace(/[\t\r\n]+/g, ' '));
  }
}

const lines = (
  rows: readonly (readonly Cell[])[],
  separator: string,
  text: (cell: Cell) => string,
): string => rows.map((row) => `${row.map(text).join(separator)}\n`).join('');

const plain = (cell: Cell): string => (cell === null ? '' : String(cell));

// RFC 4180.
const csv = (cell: Cell): string => {
  const text = plain(cell);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
