import { describe, expect, it } from 'vitest';
import { fromHash, toHash } from '../../../src/state/view/url';
import {
  withSession,
  withStep,
  emptyView,
  afterEscape,
  comparedOf,
  withKey,
  type View,
} from '../../../src/state/view/view';

const PANELS = new Set(['map', 'graph', 'table']);

const FULL: View = {
  session: '20261121-032926-cc4975',
  phase: 'generate',
  step: 12,
  layer: 5,
  selection: { kind: 'access', op: 403, access: 12, part: 2 },
  compared: { kind: 'token', token: 9 },
  other: '20261122-101112-aabbcc',
  full: 'graph',
  embed: 'map',
  tabs: ['graph', 'table'],
  filter: 'op:mul_mat -layer:0 a&b=c d',
  filters: { graph: 'ffn up' },
  sorts: { table: '-duration_ns' },
  windows: { map: [3, 40.5], graph: [0, 1, -2, 2] },
  options: { map: 'y:file,x:time,linear,cx:3:40.5' },
  range: { x: { axis: 'token', from: 3, to: 9 }, y: { axis: 'layer', from: 0, to: 2 } },
  speed: 0.005,
  loop: true,
};

describe('a URL', () => {
  it('restores the whole view', () => {
    expect(fromHash(toHash(FULL), PANELS)).toEqual({ view: FULL, invalid: [] });
  });
  it('omits defaults', () => {
    expect(toHash(emptyView)).toBe('');
    expect(toHash({ ...emptyView, session: 'ab' })).toBe('#1&session=ab');
  });
  it.each([
    'o:1',
    'o:ffn_out-3',
    'o:Qcur-0~2',
    'n:node_12',
    'a:1.5.0',
    'n:7',
    't:blk.3.ffn_up.weight',
    't:Qcur-0~2',
    'x:2.6',
    'h:3.7',
    'k:0',
    'l:3',
  ])('encodes the selection %s', (text) => {
    const hash = `#1&session=ab&sel=${text}`;
    const { view, invalid } = fromHash(hash, PANELS);
    expect(invalid).toEqual([]);
    expect(toHash(view)).toBe(hash);
  });
  it('may be empty', () => {
    expect(fromHash('', PANELS)).toEqual({ view: emptyView, invalid: [] });
    expect(fromHash('#', PANELS)).toEqual({ view: emptyView, invalid: [] });
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
    'cmp=o:1',
    'cmp=9',
    'sel=o:',
    `sel=o:${'x'.repeat(201)}`,
    'sel=a:1',
    'full=nowhere',
    'embed=nowhere',
    'tab=heat,nowhere',
    'f.nowhere=x',
    'o.ops=DROP TABLE',
    'w.map=1:0',
    'w.map=0:NaN',
    'w.map=0:1:2',
    'prompt=secret',
    'step=%E0%A4%A',
    'step',
  ])('ignores and reports %s', (part) => {
    const { view, invalid } = fromHash(`#1&session=ab&${part}&l=2`, PANELS);
    expect(invalid).toHaveLength(1);
    expect(view).toEqual(
      // Of two sessions the second is invalid; the first is kept.
      { ...emptyView, session: 'ab', layer: 2 },
    );
  });
  it('of another version is ignored', () => {
    expect(fromHash('#2&session=ab', PANELS)).toMatchObject({ view: emptyView });
    expect(fromHash('#2&session=ab', PANELS).invalid).toHaveLength(1);
  });
});

describe('a view', () => {
  it('of another session resets the selection, not the layout', () => {
    const next = withSession(FULL, 'other');
    expect(next).toMatchObject({ session: 'other', step: null, layer: 0, selection: null });
    expect(next).toMatchObject({ tabs: FULL.tabs, filters: FULL.filters, windows: {} });
    expect(withSession(FULL, FULL.session)).toBe(FULL);
  });
  it('of another session has everything in view', () => {
    const options = {
      map: 'y:file,linear,cx:72:96,cy0:1:2,cy1:0:9',
      other: 'cx:1:2',
      table: 'by:layer',
    };
    expect(withSession({ ...FULL, options }, 'other').options).toEqual({
      map: 'y:file,linear',
      table: 'by:layer',
    });
  });
  it('of another step keeps a selected op, not a token', () => {
    const op = { ...FULL, selection: { kind: 'op', op: 3 } } as const;
    expect(withStep(op, 13).selection).toEqual({ kind: 'op', op: 3 });
    const token = { ...FULL, selection: { kind: 'token', token: 3 } } as const;
    expect(withStep(token, 13).selection).toBeNull();
  });
  it('exits full screen, then clears the range, then the selection', () => {
    const once = afterEscape(FULL);
    expect(once).toMatchObject({ full: null, selection: FULL.selection });
    const twice = once && afterEscape(once);
    expect(twice).toMatchObject({ range: null, selection: FULL.selection });
    const thrice = twice && afterEscape(twice);
    expect(thrice).toMatchObject({ full: null, selection: null });
    const last = thrice && afterEscape(thrice);
    expect(last).toMatchObject({ other: null, session: FULL.session });
    expect(last && afterEscape(last)).toBeNull();
  });
  it('compares a selection with another item of its kind', () => {
    const view: View = {
      ...emptyView,
      selection: { kind: 'token', token: 3 },
      compared: { kind: 'token', token: 9 },
    };
    expect(comparedOf(view)).toEqual({ kind: 'token', token: 9 });
    expect(comparedOf({ ...view, compared: { kind: 'token', token: 3 } })).toBeNull();
    expect(comparedOf({ ...view, compared: { kind: 'layer', layer: 9 } })).toBeNull();
    expect(comparedOf({ ...view, selection: null })).toBeNull();
    const back = afterEscape(view);
    expect(back).toMatchObject({ compared: null, selection: view.selection });
    expect(back && afterEscape(back)).toMatchObject({ selection: null });
  });
  it('has records without null entries', () => {
    expect(withKey({ a: 1 }, 'b', 2)).toEqual({ a: 1, b: 2 });
    expect(withKey({ a: 1, b: 2 }, 'b', null)).toEqual({ a: 1 });
  });
});
