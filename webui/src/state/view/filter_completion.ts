// Completion of the word that is typed in the filter: keys, then the values that the session has.
// Pure functions.
import { FILTER_KEYS, type FilterKey } from './filter';

export interface Completion {
  readonly from: number; // the part of the text that is replaced
  readonly to: number;
  readonly options: readonly { readonly text: string; readonly hint: string }[];
}

export type FilterNames = Readonly<Partial<Record<FilterKey, readonly string[]>>>;

const MAX_OPTIONS = 17; // all keys

// `caret`: position of the text cursor.
export function complete(text: string, caret: number, names: FilterNames): Completion {
  const from = text.slice(0, caret).search(/\S*$/);
  const to = caret + text.slice(caret).search(/(\s|$)/);
  const word = text.slice(from, caret);
  const not = word.startsWith('-') ? '-' : '';
  const rest = word.slice(not.length);
  const colon = rest.indexOf(':');
  if (colon < 0) {
    const keys = Object.entries(FILTER_KEYS)
      .filter(
        ([key]) =>
          key.startsWith(rest.toLowerCase()) && (names[key as FilterKey] ?? ['']).length > 0,
      ) // prettier-ignore
      .map(([key, hint]) => ({ text: `${not}${key}:`, hint }));
    // A word without a key searches tensors: offer them.
    const found =
      rest.length < 2
        ? []
        : best(names.tensor ?? [], rest).map((name) => ({
            text: `${not}tensor:${name} `,
            hint: 'tensor',
          }));
    return { from, to, options: [...keys, ...found].slice(0, MAX_OPTIONS) };
  }
  const key = rest.slice(0, colon);
  const values = rest.slice(colon + 1);
  const typed = values.slice(values.lastIndexOf(',') + 1);
  const before = `${not}${key}:${values.slice(0, values.length - typed.length)}`;
  const options = best(names[key as FilterKey] ?? [], typed).map((name) => ({
    text: `${before}${name} `,
    hint: '',
  }));
  return { from, to, options: options.slice(0, MAX_OPTIONS) };
}

// Names that start with the text, then those that contain it.
function best(names: readonly string[], typed: string): readonly string[] {
  const part = typed.toLowerCase();
  const starts = names.filter((name) => name.toLowerCase().startsWith(part));
  const rest = names.filter(
    (name) => name.toLowerCase().includes(part) && !name.toLowerCase().startsWith(part),
  );
  return [...starts, ...rest].filter((name) => name.toLowerCase() !== part);
}
