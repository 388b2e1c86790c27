// The tables and columns of docs/sql.md, for the completion. Pure functions.

export interface SqlColumn {
  readonly name: string;
  readonly type: string; // with the unit; empty: not described
  readonly meaning: string;
}

export interface SqlTable {
  readonly name: string;
  readonly about: string;
  readonly columns: readonly SqlColumn[];
}

const plain = (text: string): string =>
  text
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/`/g, '')
    .replace(/\s+/g, ' ')
    .trim();

export function parseSchema(markdown: string): readonly SqlTable[] {
  const sections = markdown.slice(markdown.indexOf('\n## Tables')).split(/\n### /).slice(1);
  return sections.map((section) => {
    const [name = '', ...lines] = section.split('\n');
    const body = lines.join('\n').replace(/\n## [\s\S]*$/, '');
    const rows = body.split('\n').filter((line) => line.startsWith('| `'));
    const columns =
      rows.length > 0
        ? rows.flatMap((row): readonly SqlColumn[] => {
            const [, names = '', type = '', meaning = ''] = row.split('|');
            return namesIn(names).map((one) => ({
              name: one,
              type: plain(type),
              meaning: plain(meaning),
            }));
          })
        : namesIn(body.slice(body.indexOf(':'))).map((one) => ({ name: one, type: '', meaning: '' }));
    return { name: name.trim(), about: aboutOf(body), columns };
  });
} // prettier-ignore

// Its first paragraph; empty: it has only a table.
function aboutOf(body: string): string {
  const first = body.trim().split('\n\n')[0] ?? '';
  return /^[|<]/.test(first) ? '' : plain(first);
}

// Names of columns: in backticks, lower case.
const namesIn = (text: string): readonly string[] => [
  ...new Set([...text.matchAll(/`([a-z][a-z0-9_]*)`/g)].map(([, name]) => name ?? '')),
];
