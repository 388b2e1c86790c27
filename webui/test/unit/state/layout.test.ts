import { describe, expect, it } from 'vitest';
import {
  LAYOUTS,
  LAYOUT_NAMES,
  dockOf,
  docksOf,
  moved,
  panelsOf,
  parseLayout,
  shownOf,
  withShare,
  withTab,
  type Layout,
  type Zone,
} from '../../../src/state/view/layout';
import { randomOf } from '../make';

const KNOWN = [
  'chat',
  'sessions',
  'map',
  'graph',
  'table',
  'budget',
  'inspector',
  'analytics',
  'compare',
  'weights',
  'values',
  'sql',
  'debug',
];
const { explore } = LAYOUTS;

describe('a layout', () => {
  it.each(LAYOUT_NAMES)('%s has every panel once', (name) => {
    expect(panelsOf(LAYOUTS[name]).toSorted()).toEqual(KNOWN.toSorted());
  });

  it('shows the tab that was selected, else the first', () => {
    expect(shownOf(['map', 'graph'], [])).toBe('map');
    expect(shownOf(['map', 'graph'], ['graph', 'chat'])).toBe('graph');
    expect(withTab(explore, [], 'graph')).toEqual(['graph']);
    expect(withTab(explore, ['graph'], 'map')).toEqual([]);
    expect(withTab(explore, ['graph'], 'table')).toEqual(['graph']);
  });

  it('moves a panel into a dock and beside it', () => {
    const into = moved(explore, 'table', 'map', 'into');
    expect(dockOf(into, 'table')).toEqual([
      'map',
      'graph',
      'analytics',
      'compare',
      'weights',
      'values',
      'sql',
      'table',
    ]);
    expect(docksOf(into)).toHaveLength(5);
    const beside = moved(explore, 'graph', 'map', 'right');
    expect(docksOf(beside).map(({ panels }) => panels.join())).toEqual([
      'chat', 'sessions', 'map,analytics,compare,weights,values,sql', 'graph', 'table,budget', 'inspector,debug',
    ]); // prettier-ignore
    expect(moved(explore, 'chat', 'chat', 'left')).toBe(explore);
    expect(dockOf(moved(explore, 'map', 'map', 'left'), 'map')).toEqual(['map']);
  });

  it('keeps every panel in any sequence of moves', () => {
    const random = randomOf(11);
    const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)] as T;
    const zones: readonly Zone[] = ['into', 'left', 'right', 'above', 'below'];
    let layout: Layout = explore;
    for (let i = 0; i < 500; i += 1) {
      layout = moved(layout, pick(KNOWN), pick(KNOWN), pick(zones));
      expect(panelsOf(layout).toSorted()).toEqual(KNOWN.toSorted());
    }
    expect(parseLayout(JSON.stringify(layout), KNOWN)).toEqual(layout);
  });

  it('is resized within limits', () => {
    expect(withShare(explore, [], 0.4)).toMatchObject({ share: 0.4 });
    expect(withShare(explore, [0], 2)).toMatchObject({ first: { share: 0.9 } });
    expect(withShare(explore, [1, 0], 0.3)).toMatchObject({ second: { first: { share: 0.3 } } });
  });

  it.each(['', '{', '[]', '{"kind":"dock","panels":["x"]}', '{"kind":"split"}'])(
    '“%s” is none',
    (text) => {
      expect(parseLayout(text, KNOWN)).toBeNull();
    },
  );

  it('of an older version has new panels beside those that they are with by default', () => {
    const old = JSON.stringify(explore).replace(',"analytics","compare","sql"', '');
    const now = parseLayout(old, KNOWN);
    expect(now && dockOf(now, 'sql')).toEqual([
      'map',
      'graph',
      'analytics',
      'compare',
      'weights',
      'values',
      'sql',
    ]);
  });

  it('of an older version gets the new panels', () => {
    const old = '{"kind":"dock","panels":["map","heat","map","chat"]}';
    expect(parseLayout(old, KNOWN)).toEqual({
      kind: 'dock',
      panels: [
        'map',
        'chat',
        'sessions',
        'graph',
        'table',
        'budget',
        'inspector',
        'analytics',
        'compare',
        'weights',
        'values',
        'sql',
        'debug',
      ],
    });
  });
});
