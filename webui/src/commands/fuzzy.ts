// Finds by letters that stand in a text in this order. Beginnings of words and
// neighbours count more, a longer text less.

export interface Match {
  readonly score: number;
  readonly at: readonly number[]; // the letters that matched
}

const START = 8;
const NEIGHBOUR = 5;
const SKIPPED = 0.2;

// Null when a letter lacks. Spaces in the query separate; they match nothing.
export function fuzzy(query: string, text: string): Match | null {
  const wanted = query.toLowerCase().replace(/\s+/g, '');
  const within = text.toLowerCase();
  if (wanted === '') return { score: 0, at: [] };
  let best: Match | null = null;
  // Each place of the first letter is a try: the greedy rest finds what lies
  // together once it begins at the right place.
  for (let from = within.indexOf(wanted.charAt(0)); from >= 0;) {
    const match = matchFrom(wanted, within, from);
    if (match && (!best || match.score > best.score)) best = match;
    from = within.indexOf(wanted.charAt(0), from + 1);
  }
  return best;
}

function matchFrom(wanted: string, within: string, from: number): Match | null {
  const at: number[] = [];
  let score = 0;
  let next = from;
  for (const letter of wanted) {
    const found = within.indexOf(letter, next);
    if (found < 0) return null;
    const start = found === 0 || /[^a-z0-9]/.test(within.charAt(found - 1));
    if (start) score += START;
    if (at.length > 0 && found === next) score += NEIGHBOUR;
    score -= (found - next) * SKIPPED;
    at.push(found);
    next = found + 1;
  }
  return { score: score - within.length * 0.05, at };
}

const ELSEWHERE = 1000; // what is found only with `more` comes last

// The best first; among equals the order that they came in. `more` is what an
// item may be found by besides its text.
export function ranked<T>(
  query: string,
  items: readonly T[],
  textOf: (item: T) => string,
  more: (item: T) => string = () => '',
): readonly { readonly item: T; readonly at: readonly number[] }[] {
  return items
    .flatMap((item) => {
      const match = fuzzy(query, textOf(item));
      if (match) return [{ item, ...match }];
      const beside = fuzzy(query, `${textOf(item)} ${more(item)}`);
      return beside ? [{ item, score: beside.score - ELSEWHERE, at: [] }] : [];
    })
    .sort((a, b) => b.score - a.score);
}
