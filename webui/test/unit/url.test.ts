import { describe, expect, it } from 'vitest';
import { fromHash, toHash } from '../../src/state/url';
import { atSession, atStep, emptyView, unwound, withKey, type View } from '../../src/state/view';

const PANELS = new Map([
  ['heat', 'upper'],
  ['graph', 'upper'],
  ['ops', 'lower'],
  ['steps', 'lower'],
]);

const FULL: View = {
  session: '20261121-032926-cc4975',
  phase: 'generate',
  step: 12,
  layer: 5,
  selection: { kind: 'access', op: 403, index: 2 },
  full: 'graph',
  tabs: { upper: 'graph', lower: 'steps' },
  filters: { ops: 'op:mul_mat -layer:0 a&b=c d' },
  sorts: { ops: '-duration' },
  windows: { heat: [3, 40.5], graph: [0, 1, -2, 2] },
};

describe('an address', () => {
  it('brings the whole view back', () => {
    expect(fromHash(toHash(FULL), PANELS)).toEqual({ view: FULL, dropped: [] });
  });
  it('is short where everything is as usual', () => {
    expect(toHash(emptyView)).toBe('');
    expect(toHash({ ...emptyView, session: 'ab' })).toBe('#1&session=ab');
  });
  it.each(['o:1', 'a:1.0', 'n:7', 't:9', 'k:0', 'l:3'])('names a selection as %s', (text) => {
    const hash = `#1&session=ab&sel=${text}`;
    const { view, dropped } = fromHash(hash, PANELS);
    expect(dropped).toEqual([]);
    expect(toHash(view)).toBe(hash);
  });
  it('may be empty', () => {
    expect(fromHash('', PANELS)).toEqual({ view: emptyView, dropped: [] });
    expect(fromHash('#', PANELS)).toEqual({ view: emptyView, dropped: [] });
  });
  it.each([
    'step=x',
    'step=-1',
    'step=1.5',
    'session=',
    'session=..%2Fetc',
    'ph=x',
    'l=99999999999',
    'sel=q:1',
    'sel=o:1.2',
    'sel=a:1',
    'full=nowhere',
    'tab=heat,nowhere',
    'f.nowhere=x',
    'o.ops=DROP TABLE',
    'w.heat=1:0',
    'w.heat=0:NaN',
    'w.heat=0:1:2',
    'prompt=secret',
    'step=%E0%A4%A',
    'step',
  ])('leaves out %s and tells', (part) => {
    const { view, dropped } = fromHash(`#1&session=ab&${part}&l=2`, PANELS);
    expect(dropped).toHaveLength(1);
    expect(view).toEqual(
      // The second session is the wrong one; the first stands.
      { ...emptyView, session: 'ab', layer: 2 },
    );
  });
  it('of another form is no view', () => {
    expect(fromHash('#2&session=ab', PANELS)).toMatchObject({ view: emptyView });
    expect(fromHash('#2&session=ab', PANELS).dropped).toHaveLength(1);
  });
});

describe('a view', () => {
  it('forgets what belonged to another session, not how it is arranged', () => {
    const next = atSession(FULL, 'other');
    expect(next).toMatchObject({ session: 'other', step: null, layer: 0, selection: null });
    expect(next).toMatchObject({ tabs: FULL.tabs, filters: FULL.filters, windows: {} });
    expect(atSession(FULL, FULL.session)).toBe(FULL);
  });
  it('keeps an op over another step, not a token', () => {
    const op = { ...FULL, selection: { kind: 'op', op: 3 } } as const;
    expect(atStep(op, 13).selection).toEqual({ kind: 'op', op: 3 });
    const token = { ...FULL, selection: { kind: 'token', token: 3 } } as const;
    expect(atStep(token, 13).selection).toBeNull();
  });
  it('unwinds full screen before the selection', () => {
    const once = unwound(FULL);
    expect(once).toMatchObject({ full: null, selection: FULL.selection });
    const twice = once && unwound(once);
    expect(twice).toMatchObject({ full: null, selection: null });
    expect(twice && unwound(twice)).toBeNull();
  });
  it('holds records without empty entries', () => {
    expect(withKey({ a: 1 }, 'b', 2)).toEqual({ a: 1, b: 2 });
    expect(withKey({ a: 1, b: 2 }, 'b', null)).toEqual({ a: 1 });
  });
});
