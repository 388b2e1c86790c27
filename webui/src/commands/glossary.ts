// The glossary of docs/glossary.md, for the search and the help. Pure functions.

export interface Term {
  readonly term: string;
  readonly meaning: string;
}

// The rows of the first table, as plain text.
export function parseGlossary(markdown: string): readonly Term[] {
  const table = markdown.slice(markdown.indexOf('|---')).split('\n').slice(1);
  const end = table.findIndex((line) => !line.startsWith('|'));
  return table.slice(0, end < 0 ? table.length : end).flatMap((line) => {
    const [, term = '', ...rest] = line.split('|').map(plain);
    const meaning = rest.filter(Boolean).join(' ');
    return term === '' ? [] : [{ term, meaning }];
  });
}

// Without references to documents and marks.
const plain = (text: string): string =>
  text
    .replace(/[:;]?\s*\((?:\[[^\]]*\]\([^)]*\)(?:, )?)+\)|: see below/g, '')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[`*]/g, '')
    .trim();

export interface FoundTerms {
  readonly named: readonly Term[]; // whose name has the words
  readonly explained: readonly Term[]; // whose meaning has the words
}

export function findTerms(terms: readonly Term[], query: string): FoundTerms {
  const words = query.trim().toLowerCase().split(/\s+/).filter(Boolean);
  if (words.join('').length < 2) return { named: [], explained: [] };
  const has = (text: string): boolean => words.every((word) => text.toLowerCase().includes(word));
  const named = terms.filter(({ term }) => has(term));
  const explained = terms.filter(
    (one) => !named.includes(one) && has(`${one.term} ${one.meaning}`),
  );
  return { named: named.toSorted((a, b) => a.term.length - b.term.length), explained };
}
