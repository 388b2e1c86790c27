// Fuzzy search: the letters of the query must occur in the text in this order. Matches at the
// start of words and adjacent matches score higher, longer texts lower.

export interface Match {
  readonly score: number;
  readonly indices: readonly number[]; // indices of the matching letters
}

const START_BONUS = 8;
const ADJACENT_BONUS = 5;
const SKIP_PENALTY = 0.2;

// Returns null if a letter is missing. Spaces in the query are ignored.
export function fuzzy(query: string, text: string): Match | null {
  const letters = query.toLowerCase().replace(/\s+/g, '');
  const target = text.toLowerCase();
  if (letters === '') return { score: 0, indices: [] };
  let best: Match | null = null;
  // Try each occurrence of the first letter; the rest is matched greedily.
  for (let from = target.indexOf(letters.charAt(0)); from >= 0;) {
    const match = matchFrom(letters, target, from);
    if (match && (!best || match.score > best.score)) best = match;
    from = target.indexOf(letters.charAt(0), from + 1);
  }
  return best;
}

function matchFrom(letters: string, target: string, from: number): Match | null {
  const indices: number[] = [];
  let score = 0;
  let next = from;
  for (const letter of letters) {
    const found = target.indexOf(letter, next);
    if (found < 0) return null;
    const start = found === 0 || /[^a-z0-9]/.test(target.charAt(found - 1));
    if (start) score += START_BONUS;
    if (indices.length > 0 && found === next) score += ADJACENT_BONUS;
    score -= (found - next) * SKIP_PENALTY;
    indices.push(found);
    next = found + 1;
  }
  return { score: score - target.length * 0.05, indices };
}

const EXTRA_TEXT_PENALTY = 1000; // matches that need `extraTextOf` rank last

// Matching items, best first; equal scores keep the order of the input. `extraTextOf`: additional text to
// search.
export function rank<T>(
  query: string,
  items: readonly T[],
  textOf: (item: T) => string,
  extraTextOf: (item: T) => string = () => '',
): readonly { readonly item: T; readonly indices: readonly number[] }[] {
  return items
    .flatMap((item) => {
      const match = fuzzy(query, textOf(item));
      if (match) return [{ item, ...match }];
      const extraMatch = fuzzy(query, `${textOf(item)} ${extraTextOf(item)}`);
      return extraMatch
        ? [{ item, score: extraMatch.score - EXTRA_TEXT_PENALTY, indices: [] }]
        : [];
    })
    .sort((a, b) => b.score - a.score);
}
