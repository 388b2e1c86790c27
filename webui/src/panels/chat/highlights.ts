// Marks ranges of text without changing the document (CSS Custom Highlight API). Several token
// texts share the page's highlights: each adds and removes its own ranges.

export type Mark =
  | 'token-selected'
  | 'token-hovered'
  | 'token-reused'
  | 'token-rejected'
  | `token-cost-${1 | 2 | 3 | 4 | 5}`;

const PRIORITIES: Partial<Record<Mark, number>> = { 'token-selected': 2, 'token-hovered': 3 };

const made = new Map<Mark, Highlight>();

function highlightOf(mark: Mark): Highlight | null {
  // An old browser shows the text without marks.
  if (typeof Highlight === 'undefined') return null;
  const known = made.get(mark);
  if (known) return known;
  const highlight = new Highlight();
  highlight.priority = PRIORITIES[mark] ?? 0;
  CSS.highlights.set(mark, highlight);
  made.set(mark, highlight);
  return highlight;
}

// Replaces the ranges `before` by `after`.
export function mark(
  name: Mark,
  before: readonly StaticRange[],
  after: readonly StaticRange[],
): void {
  const highlight = highlightOf(name);
  for (const range of before) highlight?.delete(range);
  for (const range of after) highlight?.add(range);
}
