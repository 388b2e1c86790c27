// Search by words: every word of the query must be in the text, as the beginning of a word, as the
// initials of words ("fsp": Full screen of the panel), or inside a word. Letters that merely occur in
// this order are no match.

export interface Match {
  readonly score: number;
  readonly indices: readonly number[]; // indices of the matching letters
}

const WORD_SCORE = 100; // the whole word
const PREFIX_SCORE = 60;
const INITIALS_SCORE = 40;
const INSIDE_SCORE = 20;
const LEAST_INSIDE = 4; // letters: "ram" is not "diagram"
const MOST_INITIALS = 3; // letters; more are found by accident
const LENGTH_PENALTY = 0.05; // per letter of the text
const PLACE_PENALTY = 0.1; // per letter before the match

const isStart = (text: string, at: number): boolean =>
  at === 0 || /[^\p{L}\p{N}]/u.test(text.charAt(at - 1));

// Null: a word is missing.
export function fuzzy(query: string, text: string): Match | null {
  const target = spelled(text);
  const found = wordsOf(query).map((word) => bestOf(word, target));
  if (found.some((one) => one === null)) return null;
  const indices = [...new Set(found.flatMap((one) => one?.indices ?? []))].sort((a, b) => a - b);
  const score = found.reduce((sum, one) => sum + (one?.score ?? 0), 0);
  return { score: score === 0 ? 0 : score - LENGTH_PENALTY * target.length, indices };
}

// Words joined by a hyphen are several words.
const wordsOf = (query: string): readonly string[] =>
  spelled(query)
    .split(/[\s-]+/)
    .filter(Boolean);

// In one spelling, letter by letter: "optimize" is also "optimise".
const spelled = (text: string): string => text.toLowerCase().replaceAll('iz', 'is');

const PLAIN = 'a about an and are at be by can did do does for from had has have how i in is it its many me much my of on or show than that the there they this to two use used uses was were what when where which who why with'; // prettier-ignore
const PLAIN_WORDS: ReadonlySet<string> = new Set(PLAIN.split(' '));

// The words of a question that say what it is about: "which tokens used expert 3" is "tokens expert".
// Empty: it is no sentence.
export function topicOf(query: string): string {
  const words = wordsOf(query.replace(/[?!.,]/g, ' '));
  const telling = words.filter((word) => !PLAIN_WORDS.has(word));
  return telling.length === words.length
    ? ''
    : telling.filter((word) => !/^\d+$/.test(word)).join(' ');
}

// A plural is also found as a singular.
function bestOf(word: string, target: string): Match | null {
  const one = word.length > 3 && word.endsWith('s') ? word.slice(0, -1) : null;
  return matchOf(word, target) ?? (one === null ? null : matchOf(one, target));
}

function matchOf(word: string, target: string): Match | null {
  let best: Match | null = null;
  for (let at = target.indexOf(word); at >= 0; at = target.indexOf(word, at + 1)) {
    const ends = !/[\p{L}\p{N}]/u.test(target.charAt(at + word.length));
    const kind = !isStart(target, at)
      ? word.length < LEAST_INSIDE
        ? 0
        : INSIDE_SCORE
      : ends
        ? WORD_SCORE
        : PREFIX_SCORE;
    const score = kind - PLACE_PENALTY * at;
    if (kind > 0 && (!best || score > best.score))
      best = { score, indices: Array.from(word, (_, i) => at + i) };
  }
  if (best) return best;
  const isShort = word.length > 1 && word.length <= MOST_INITIALS;
  const initials = isShort ? initialsOf(word, target, 0) : null;
  return initials && { score: INITIALS_SCORE - PLACE_PENALTY * (initials[0] ?? 0), indices: initials }; // prettier-ignore
}

// The places of the letters, each next to the one before or at the start of a word; null: none.
function initialsOf(letters: string, target: string, from: number): readonly number[] | null {
  const [letter = '', ...rest] = letters;
  for (let at = target.indexOf(letter, from); at >= 0; at = target.indexOf(letter, at + 1)) {
    if (!isStart(target, at) && (at !== from || from === 0)) continue;
    if (rest.length === 0) return [at];
    const more = initialsOf(rest.join(''), target, at + 1);
    if (more) return [at, ...more];
  }
  return null;
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
