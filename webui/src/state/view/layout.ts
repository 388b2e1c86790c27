// The arrangement of the panels: a tree of splits, whose leaves are docks with one tab per panel.
// Pure functions from layout to layout. Every panel is in exactly one dock.

export type Direction = 'row' | 'column';

export interface Split {
  readonly kind: 'split';
  readonly direction: Direction;
  readonly share: number; // of the first part
  readonly first: Layout;
  readonly second: Layout;
}

export interface Docked {
  readonly kind: 'dock';
  readonly panels: readonly string[]; // at least one
}

export type Layout = Split | Docked;

// Where a panel is dropped relative to a dock: into it, or beside it.
export type Zone = 'into' | 'left' | 'right' | 'above' | 'below';

export const MIN_SHARE = 0.1;
export const MAX_SHARE = 0.9;

const dock = (...panels: readonly string[]): Docked => ({ kind: 'dock', panels });
const split = (direction: Direction, share: number, first: Layout, second: Layout): Split => ({
  kind: 'split',
  direction,
  share,
  first,
  second,
});

export const LAYOUT_NAMES = ['explore', 'watch', 'graph'] as const;
export type LayoutName = (typeof LAYOUT_NAMES)[number];

// The keys are next to each other on the keyboard, and not used otherwise.
export const LAYOUT_INFO: Readonly<Record<LayoutName, { key: string; shows: string }>> = {
  explore: { key: 'E', shows: 'all panels side by side' },
  watch: { key: 'R', shows: 'the answer and the map, while a model runs' },
  graph: { key: 'G', shows: 'the graph and its tables' },
};

export const LAYOUTS: Readonly<Record<LayoutName, Layout>> = {
  explore: split(
    'row',
    0.24,
    split('column', 0.64, dock('chat'), dock('sessions')),
    split(
      'row',
      0.7,
      split(
        'column',
        0.54,
        dock('map', 'graph', 'analytics', 'compare', 'weights', 'values', 'sql'),
        dock('table', 'budget'),
      ),
      dock('inspector', 'debug'),
    ),
  ),
  watch: split(
    'row',
    0.32,
    dock('chat', 'sessions'),
    split(
      'row',
      0.68,
      dock('map', 'graph', 'analytics', 'compare', 'weights', 'values', 'sql', 'table', 'budget'),
      dock('inspector', 'debug'),
    ),
  ),
  graph: split(
    'row',
    0.76,
    split(
      'column',
      0.68,
      dock('graph', 'map', 'analytics', 'compare', 'weights', 'values', 'sql', 'chat', 'sessions'),
      dock('table', 'budget'),
    ),
    dock('inspector', 'debug'),
  ),
};

export function docksOf(layout: Layout): readonly Docked[] {
  return layout.kind === 'dock' ? [layout] : [...docksOf(layout.first), ...docksOf(layout.second)];
}

export const panelsOf = (layout: Layout): readonly string[] =>
  docksOf(layout).flatMap(({ panels }) => panels);

// The other panels of the panel's dock, and itself.
export const dockOf = (layout: Layout, panel: string): readonly string[] =>
  docksOf(layout).find(({ panels }) => panels.includes(panel))?.panels ?? [];

// The panel that a dock shows: the one that was selected last, else the first.
export const shownOf = (panels: readonly string[], tabs: readonly string[]): string | undefined =>
  panels.find((id) => tabs.includes(id)) ?? panels[0];

// `tabs` after the panel's tab was selected: only what differs from the default is kept.
export function withTab(layout: Layout, tabs: readonly string[], panel: string): readonly string[] {
  const own = dockOf(layout, panel);
  const rest = tabs.filter((id) => !own.includes(id));
  return own[0] === panel ? rest : [...rest, panel];
}

// `path`: the way from the root to a split, 0 for its first part and 1 for its second.
export function withShare(layout: Layout, path: readonly (0 | 1)[], share: number): Layout {
  if (layout.kind === 'dock') return layout;
  const [step, ...rest] = path;
  if (step === undefined) {
    return { ...layout, share: Math.min(MAX_SHARE, Math.max(MIN_SHARE, share)) };
  }
  return step === 0
    ? { ...layout, first: withShare(layout.first, rest, share) }
    : { ...layout, second: withShare(layout.second, rest, share) };
}

// Without the panel; null: nothing is left.
function without(layout: Layout, panel: string): Layout | null {
  if (layout.kind === 'dock') {
    const panels = layout.panels.filter((id) => id !== panel);
    return panels.length > 0 ? { ...layout, panels } : null;
  }
  const [first, second] = [without(layout.first, panel), without(layout.second, panel)];
  return first && second ? { ...layout, first, second } : (first ?? second);
}

// Moves a panel to the dock of another one: into it, or beside it.
export function moved(layout: Layout, panel: string, target: string, zone: Zone): Layout {
  const isAlone = dockOf(layout, target).length === 1;
  if (panel === target && (isAlone || zone === 'into')) return layout;
  const anchor = panel === target ? dockOf(layout, target).find((id) => id !== panel) : target;
  const rest = without(layout, panel);
  return rest && anchor !== undefined ? placed(rest, panel, anchor, zone) : layout;
}

function placed(layout: Layout, panel: string, anchor: string, zone: Zone): Layout {
  if (layout.kind === 'split') {
    return {
      ...layout,
      first: placed(layout.first, panel, anchor, zone),
      second: placed(layout.second, panel, anchor, zone),
    };
  }
  if (!layout.panels.includes(anchor)) return layout;
  if (zone === 'into') return { ...layout, panels: [...layout.panels, panel] };
  const direction = zone === 'left' || zone === 'right' ? 'row' : 'column';
  return zone === 'left' || zone === 'above'
    ? split(direction, 0.5, dock(panel), layout)
    : split(direction, 0.5, layout, dock(panel));
}

// A stored layout; `known` panels that it lacks are placed beside those that they are with by default,
// others are left out.
// Null: it is not a layout.
export function parseLayout(text: string, known: readonly string[]): Layout | null {
  let stored: unknown;
  try {
    stored = JSON.parse(text);
  } catch {
    return null;
  }
  const seen = new Set<string>();
  const layout = checked(stored, known, seen, 0);
  if (!layout) return null;
  const last = panelsOf(layout).at(-1) ?? '';
  const mateOf = (id: string): string =>
    dockOf(LAYOUTS.explore, id).find((one) => seen.has(one)) ?? last;
  return known
    .filter((id) => !seen.has(id))
    .reduce((all: Layout, id) => placed(all, id, mateOf(id), 'into'), layout);
}

const MAX_DEPTH = 12;

function checked(
  value: unknown,
  known: readonly string[],
  seen: Set<string>,
  depth: number,
): Layout | null {
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return null;
  const { kind, direction, share, first, second, panels } = value as Record<string, unknown>;
  if (kind === 'dock' && Array.isArray(panels)) {
    const valid = panels.filter(
      (id): id is string => typeof id === 'string' && known.includes(id) && !seen.has(id),
    );
    const unique = [...new Set(valid)];
    for (const id of unique) seen.add(id);
    return unique.length > 0 ? dock(...unique) : null;
  }
  if (kind !== 'split' || (direction !== 'row' && direction !== 'column')) return null;
  const [a, b] = [checked(first, known, seen, depth + 1), checked(second, known, seen, depth + 1)];
  if (!a || !b) return a ?? b;
  const part = typeof share === 'number' && share >= MIN_SHARE && share <= MAX_SHARE ? share : 0.5;
  return split(direction, part, a, b);
}
