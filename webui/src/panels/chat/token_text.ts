// The text of consecutive tokens, and which characters belong to which token. Pure.

export class TokenOffsets {
  text = '';
  private readonly tokens: number[] = []; // index in the session
  private readonly starts: number[] = []; // offset of the first character

  get count(): number {
    return this.tokens.length;
  }

  append(token: number, text: string): void {
    this.tokens.push(token);
    this.starts.push(this.text.length);
    this.text += text;
  }

  // The token of a character; null: the text ends before it.
  tokenAt(offset: number): number | null {
    if (offset < 0 || offset >= this.text.length) return null;
    return this.tokens[lastAtOrBefore(this.starts, offset)] ?? null;
  }

  // The characters of tokens first..last; null if none of them has text here.
  rangeOf(first: number, last: number): readonly [from: number, to: number] | null {
    const begin = lastAtOrBefore(this.tokens, first - 1) + 1;
    const end = lastAtOrBefore(this.tokens, last);
    const from = this.starts[begin];
    const to = this.starts[end + 1] ?? this.text.length;
    return from === undefined || end < begin || to <= from ? null : [from, to];
  }
}

// The index of the last number that is not larger than `value`; -1: none. `sorted` is ascending.
export function lastAtOrBefore(sorted: readonly number[], value: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] ?? 0) <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

export const CHUNK = 2048; // characters; a multiple of it is divided
const NEWLINE_WITHIN = 1024;

// Where to divide a long text into chunks of about CHUNK characters: after a newline if there is
// one, else at the start of a displayed line, which `lineStart` returns for an offset (null: the
// text is not displayed). The last chunk has at least CHUNK / 2 characters.
export function cutsOf(
  text: string,
  lineStart: (offset: number, after: number) => number | null,
): readonly { readonly at: number; readonly soft: boolean }[] {
  const cuts: { at: number; soft: boolean }[] = [];
  let begin = 0;
  while (text.length - begin > CHUNK * 1.5) {
    const wanted = begin + CHUNK;
    const newline = text.lastIndexOf('\n', wanted - 1) + 1;
    const hard = newline > wanted - NEWLINE_WITHIN;
    const at = hard ? newline : lineStart(wanted, begin + 1);
    if (at === null) break;
    cuts.push({ at, soft: !hard });
    begin = at;
  }
  return cuts;
}
