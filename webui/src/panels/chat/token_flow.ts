// Displays the tokens of the prompt or the answer as plain text in few elements: chunks of about 2,000
// characters, each a block with one text node. Appending lays out the last chunk only. A chunk ends at
// a newline, or where a displayed line ends, so that the text looks like one flow; after a change of
// width the latter are divided again. Marks are highlights, and the token at a point is found from the
// character there, so a token needs no element. Tokens of rejected drafts are struck through, and are
// no part of a copied text.
import type { TraceData } from '../../state/session/trace_data';
import type { Token } from '../../net/types';
import { inAnswer, isRejected } from '../../state/session/token_origin';
import { mark, type Mark } from './highlights';
import { COST_MARKS } from './token_cost';
import { CHUNK, TokenOffsets, cutsOf, lastAtOrBefore } from './token_text';

interface Chunk {
  readonly block: HTMLElement;
  readonly node: Text;
  readonly start: number; // offset of its first character
  readonly soft: boolean; // begins where a displayed line of the previous chunk ended
}

const REFLOW_MS = 150;

// A selection may cover several texts.
const onPage = new Set<TokenFlow>();

// The text to copy instead of what the browser would take from the document; null: that is right.
export function textToCopy(): string | null {
  const selection = getSelection();
  if (!selection || selection.isCollapsed) return null;
  const all = [...onPage];
  const inside = all.map((flow) => flow.selectedText()).find((text) => text !== null);
  if (inside !== undefined) return inside;
  const parts = all.filter((flow) => flow.hasRejectedIn(selection));
  if (parts.length === 0) return null;
  const { anchorNode, anchorOffset, focusNode, focusOffset } = selection;
  const undo = parts.map((flow) => flow.cutRejected());
  const text = selection.toString();
  for (const one of undo) one();
  if (anchorNode && focusNode)
    selection.setBaseAndExtent(anchorNode, anchorOffset, focusNode, focusOffset);
  return text;
}

// Where a token is in the window, in whichever text it is; null: in none.
export function placeOf(token: number): DOMRect | null {
  for (const flow of onPage) {
    const place = flow.placeOf(token);
    if (place) return place;
  }
  return null;
}

// Scrolls to a token if it is not in view, in whichever text it is.
export function reveal(token: number): void {
  for (const flow of onPage) if (flow.reveal(token)) return;
}

export class TokenFlow {
  private readonly host: HTMLElement;
  private readonly generated: boolean; // which tokens are shown
  private readonly sequence: number | null; // of the tokens; null: of any
  private offsets = new TokenOffsets();
  private chunks: Chunk[] = [];
  private next = 0; // the first token that is not shown yet
  private rewrites = 0;
  private ids = false; // show IDs, because no token has text
  private tail = ''; // text after the tokens
  private replaced: string | null = null; // text shown instead of the tokens
  private readonly marks = new Map<Mark, readonly StaticRange[]>();
  private selected: readonly [number, number] = [0, 0];
  private hovered: number | null = null;
  private levels: Uint8Array | null = null; // by token: its cost
  // Ascending: the first and the last of each run of consecutive tokens.
  private reused: [first: number, last: number][] = []; // the first tokens of prompts
  private rejected: [first: number, last: number][] = []; // of rejected drafts
  private readonly size: ResizeObserver;
  private width = 0;
  private timer: ReturnType<typeof setTimeout> | null = null;

  constructor(host: HTMLElement, part: 'prompt' | 'answer', sequence: number | null) {
    this.host = host;
    this.sequence = sequence;
    this.generated = part === 'answer';
    this.size = new ResizeObserver(([entry]) => {
      const width = entry?.contentRect.width ?? 0;
      if (width === this.width) return;
      this.width = width;
      if (this.timer !== null) clearTimeout(this.timer);
      if (width > 0) this.timer = setTimeout(() => { this.reflow(); }, REFLOW_MS); // prettier-ignore
    });
    this.size.observe(host);
    onPage.add(this);
  }

  destroy(): void {
    onPage.delete(this);
    this.size.disconnect();
    if (this.timer !== null) clearTimeout(this.timer);
    for (const name of this.marks.keys()) this.show(name, []);
  }

  // `tail`: text after the last token. `instead`: text that replaces the tokens.
  update(data: TraceData, tail: string, instead: string | null): void {
    const ids = data.tokenTotals.withText === 0;
    const part = this.generated ? data.answer : data.prompt;
    const isNew = part.rewrites === this.rewrites && ids === this.ids && instead === this.replaced;
    if (!isNew || !tail.startsWith(this.tail)) this.clear();
    this.rewrites = part.rewrites;
    this.ids = ids;
    this.replaced = instead;
    if (instead !== null) {
      if (this.chunks.length === 0) this.append(instead);
      this.host.dataset.tokens = '0';
      return;
    }
    let added = '';
    let reused = false;
    let rejected = false;
    // Later tokens are announced, but have not arrived.
    for (; this.next <= part.newest; this.next += 1) {
      const token = data.tokens[this.next];
      if (!token || !this.has(token)) continue;
      const text = this.ids ? `${token.id} ` : token.text;
      this.offsets.append(token.index, text);
      added += text;
      if (token.reused) {
        reused = true;
        addTo(this.reused, token.index);
      }
      if (isRejected(token)) {
        rejected = true;
        addTo(this.rejected, token.index);
      }
    }
    this.append(added + tail.slice(this.tail.length));
    this.tail = tail;
    if (reused) this.markReused();
    if (rejected) this.markRejected();
    this.mark();
    this.host.dataset.tokens = String(this.offsets.count - this.rejectedCount());
  }

  private rejectedCount(): number {
    return this.rejected.reduce((sum, [first, last]) => sum + last - first + 1, 0);
  }

  private has(token: Token): boolean {
    if (this.sequence !== null && token.sequence !== this.sequence) return false;
    return this.generated ? inAnswer(token) || isRejected(token) : !token.generated;
  }

  select(first: number, count: number): void {
    if (first === this.selected[0] && count === this.selected[1]) return;
    this.selected = [first, count];
    this.mark();
  }

  // Scrolls to the token if it is not in view. False: it has not arrived, or is not in this part.
  reveal(token: number): boolean {
    const [found] = this.rangesOf(token, token);
    const box = this.host.closest('.transcript');
    if (!found || !box) return false;
    const { startContainer: text, startOffset: offset } = found;
    const [at] = (text instanceof Text ? rectsOf(text, offset) : null) ?? [];
    const { top, bottom, height } = box.getBoundingClientRect();
    // A folded part has no rectangles.
    if (at && (at.top < top || at.bottom > bottom)) box.scrollBy(0, at.top - top - height / 2);
    return true;
  }

  // Where the token is in the window; in a folded part, where that can be unfolded. Null: it has no text
  // in this part.
  placeOf(token: number): DOMRect | null {
    const [found] = this.rangesOf(token, token);
    if (!found || !(found.startContainer instanceof Text)) return null;
    const fold = this.host.closest('details:not([open])');
    if (fold) return fold.querySelector('summary')?.getBoundingClientRect() ?? null;
    // The widest line: a space before a word may be at the end of the line above.
    const rects = [...(rectsOf(found.startContainer, found.startOffset, found.endOffset) ?? [])];
    return rects.toSorted((a, b) => b.width - a.width)[0] ?? null;
  }

  hover(token: number | null): void {
    if (token === this.hovered) return;
    this.hovered = token;
    this.mark();
  }

  // Tints the tokens by their levels (token_cost.ts); null: not tinted.
  tint(levels: Uint8Array | null): void {
    if (levels === this.levels) return;
    this.levels = levels;
    this.showTint();
  }

  private showTint(): void {
    const { levels } = this;
    COST_MARKS.forEach((name, i) => {
      const ranges: StaticRange[] = [];
      // Adjacent tokens of one level are one range.
      for (let at = 0; levels && at < levels.length; at += 1) {
        if (levels[at] !== i + 1) continue;
        const first = at;
        while (levels[at + 1] === i + 1) at += 1;
        ranges.push(...this.rangesOf(first, at));
      }
      this.show(name, ranges);
    });
  }

  // The token at a point of the window.
  tokenAt(x: number, y: number): number | null {
    const caret = caretAt(x, y);
    const chunk = caret && this.chunks.find(({ node }) => node === caret.node);
    if (!chunk) return null;
    // The caret is at one side of the character.
    for (const offset of [caret.offset, caret.offset - 1]) {
      if (offset >= 0 && offset < chunk.node.length && covers(chunk.node, offset, x, y)) {
        return this.offsets.tokenAt(chunk.start + offset);
      }
    }
    return null;
  }

  // The text of the document's selection without the line breaks between chunks and without rejected
  // drafts; null if the selection is empty or not inside this text.
  selectedText(): string | null {
    const selection = getSelection();
    if (!selection || selection.isCollapsed || selection.rangeCount === 0) return null;
    const { startContainer, startOffset, endContainer, endOffset } = selection.getRangeAt(0);
    const from = this.offsetOf(startContainer, startOffset);
    const to = this.offsetOf(endContainer, endOffset);
    if (from === null || to === null) return null;
    return this.replaced === null ? this.keptText(from, to) : this.replaced.slice(from, to);
  }

  // The text between two offsets without rejected drafts.
  private keptText(from: number, to: number): string {
    const all = this.offsets.text + this.tail;
    let text = '';
    let at = from;
    for (const [first, last] of this.rejected) {
      const range = this.offsets.rangeOf(first, last);
      if (!range || range[1] <= at || range[0] >= to) continue;
      text += all.slice(at, range[0]);
      at = range[1];
    }
    return text + all.slice(at, Math.max(at, to));
  }

  // Whether a selection that goes beyond this text contains rejected drafts of it.
  hasRejectedIn(selection: Selection): boolean {
    return this.rejected.length > 0 && selection.containsNode(this.host, true);
  }

  // Takes the rejected drafts out of the document. Returns a function that puts them back.
  cutRejected(): () => void {
    const whole = this.chunks.map(({ node }) => node.data);
    // From the end: the offsets before a part stay valid, and those of a selection move with it.
    for (const { startContainer, startOffset, endOffset } of this.rejectedRanges().reverse()) {
      if (startContainer instanceof Text)
        startContainer.deleteData(startOffset, endOffset - startOffset);
    }
    return () => {
      this.chunks.forEach(({ node }, i) => {
        node.data = whole[i] ?? '';
      });
    };
  }

  private offsetOf(container: globalThis.Node, offset: number): number | null {
    const chunk = this.chunks.find(({ node }) => node === container);
    return chunk ? chunk.start + offset : null;
  }

  // ---- Chunks -----------------------------------------------------------------------

  private clear(): void {
    this.chunks = [];
    this.host.replaceChildren();
    this.offsets = new TokenOffsets();
    this.reused = [];
    this.rejected = [];
    this.show('token-reused', []);
    this.show('token-rejected', []);
    this.next = 0;
    this.tail = '';
  }

  private append(text: string): void {
    // In pieces: the time to find the lines of a text grows with the square of its length.
    for (let at = 0; at < text.length; at += 8 * CHUNK) {
      const last = this.chunks.at(-1) ?? this.addChunk('', 0, false);
      last.node.appendData(text.slice(at, at + 8 * CHUNK));
      if (last.node.length > 2 * CHUNK) this.divide(this.chunks.length - 1);
    }
  }

  private addChunk(text: string, start: number, soft: boolean, at = this.chunks.length): Chunk {
    const block = document.createElement('div');
    block.className = 'token-chunk';
    const node = document.createTextNode(text);
    block.append(node);
    const chunk = { block, node, start, soft };
    const following = this.chunks[at]?.block ?? null;
    this.host.insertBefore(block, following);
    this.chunks.splice(at, 0, chunk);
    return chunk;
  }

  private divide(index: number): void {
    const chunk = this.chunks[index];
    if (!chunk) return;
    const { node } = chunk;
    const displayed = this.host.getClientRects().length > 0;
    const cuts = cutsOf(node.data, (offset, after) =>
      displayed ? lineStart(node, offset, after) : null,
    );
    const text = node.data;
    cuts.forEach(({ at, soft }, i) => {
      const end = cuts[i + 1]?.at ?? text.length;
      this.addChunk(text.slice(at, end), chunk.start + at, soft, index + 1 + i);
    });
    if (cuts[0]) node.data = text.slice(0, cuts[0].at);
    if (cuts.length > 0) this.mark(true);
  }

  // Divides again what was divided at displayed lines.
  private reflow(): void {
    for (let i = this.chunks.length - 1; i > 0; i -= 1) {
      const chunk = this.chunks[i];
      const before = this.chunks[i - 1];
      if (!chunk?.soft || !before) continue;
      before.node.appendData(chunk.node.data);
      chunk.block.remove();
      this.chunks.splice(i, 1);
    }
    for (let i = this.chunks.length - 1; i >= 0; i -= 1) this.divide(i);
    this.mark(true);
  }

  // ---- Marks ------------------------------------------------------------------------

  private mark(moved = false): void {
    const [first, count] = this.selected;
    this.show('token-selected', this.rangesOf(first, first + count - 1));
    const { hovered } = this;
    this.show('token-hovered', hovered === null ? [] : this.rangesOf(hovered, hovered));
    if (!moved) return;
    this.markReused();
    this.markRejected();
    if (this.levels) this.showTint();
  }

  private markRejected(): void {
    this.show('token-rejected', this.rejectedRanges());
  }

  private rejectedRanges(): StaticRange[] {
    return this.rejected.flatMap(([first, last]) => this.rangesOf(first, last));
  }

  private markReused(): void {
    this.show(
      'token-reused',
      this.reused.flatMap(([first, last]) => this.rangesOf(first, last)),
    );
  }

  private show(name: Mark, ranges: readonly StaticRange[]): void {
    const before = this.marks.get(name) ?? [];
    if (before.length === ranges.length && before.every((one, i) => sameRange(one, ranges[i])))
      return;
    mark(name, before, ranges);
    this.marks.set(name, ranges);
  }

  private rangesOf(first: number, last: number): readonly StaticRange[] {
    const found = this.replaced === null ? this.offsets.rangeOf(first, last) : null;
    if (!found) return [];
    const [from, to] = found;
    const starts = this.chunks.map(({ start }) => start);
    const ranges: StaticRange[] = [];
    for (let i = lastAtOrBefore(starts, from); i < this.chunks.length; i += 1) {
      const chunk = this.chunks[i];
      if (!chunk || chunk.start >= to) break;
      ranges.push(
        new StaticRange({
          startContainer: chunk.node,
          startOffset: Math.max(0, from - chunk.start),
          endContainer: chunk.node,
          endOffset: Math.min(chunk.node.length, to - chunk.start),
        }),
      );
    }
    return ranges;
  }
}

function addTo(runs: [first: number, last: number][], token: number): void {
  const last = runs.at(-1);
  if (last?.[1] === token - 1) last[1] = token;
  else runs.push([token, token]);
}

const sameRange = (a: StaticRange, b: StaticRange | undefined): boolean =>
  a.startContainer === b?.startContainer &&
  a.startOffset === b.startOffset &&
  a.endOffset === b.endOffset;

interface Caret {
  readonly node: globalThis.Node;
  readonly offset: number;
}

function caretAt(x: number, y: number): Caret | null {
  const caret = document.caretPositionFromPoint(x, y);
  return caret && { node: caret.offsetNode, offset: caret.offset };
}

const probe = typeof document === 'undefined' ? null : document.createRange();

function rectsOf(node: Text, offset: number, end = offset + 1): DOMRectList | null {
  probe?.setStart(node, offset);
  probe?.setEnd(node, end);
  return probe?.getClientRects() ?? null;
}

function covers(node: Text, offset: number, x: number, y: number): boolean {
  return [...(rectsOf(node, offset) ?? [])].some(
    ({ left, right, top, bottom }) => x >= left && x < right && y >= top && y < bottom,
  );
}

// The start of the displayed line of the character at `offset`; null: it is before `after`.
function lineStart(node: Text, offset: number, after: number): number | null {
  const top = (at: number): number => rectsOf(node, at)?.[0]?.top ?? -Infinity;
  const line = top(offset);
  let low = after;
  let high = offset;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (top(middle) >= line - 1) high = middle;
    else low = middle + 1;
  }
  return low > after ? low : null;
}
