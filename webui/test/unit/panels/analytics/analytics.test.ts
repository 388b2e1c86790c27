// The declarations of the charts, their options in links, and what they honour of the view.
import { describe, expect, it } from 'vitest';
import { CHARTS } from '../../../../src/panels/analytics/all_charts';
import { decodeAnalytics, encodeAnalytics, shownOf } from '../../../../src/panels/analytics/options'; // prettier-ignore
import { PAGES } from '../../../../src/panels/analytics/page_list';
import { scopeOf, applied, unused } from '../../../../src/panels/analytics/spec';
import { fromHash, toHash } from '../../../../src/state/view/url';
import { emptyView } from '../../../../src/state/view/view';

const scope = (filter: string, range: typeof emptyView.range = null) =>
  scopeOf({ ...emptyView, filter, range }, 6, 3);

describe('the list of charts', () => {
  it('has each id once, in a form that links can have, and words for everything', () => {
    const ids = CHARTS.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { id, title, counts, empty, kinds } of CHARTS) {
      expect(id).toMatch(/^[a-z0-9_]+$/);
      expect(
        [title, counts, empty].every((text) => text.length > 4),
        id,
      ).toBe(true);
      expect(/[.!?]$/.test(counts), id).toBe(true);
      expect(kinds.length, id).toBeGreaterThan(0);
    }
    expect([...new Set(CHARTS.map(({ page }) => page))]).toEqual([...PAGES]);
  });
});

describe('the options', () => {
  it('survive a link', () => {
    const options = { page: 'reuse', shown: { layers: 'pie', op_types: 'bar.1' }, memory: 123_456, slots: null } as const; // prettier-ignore
    const text = encodeAnalytics(options);
    expect(decodeAnalytics(text)).toEqual(options);
    const hash = toHash({ ...emptyView, options: { analytics: text } });
    const { view, invalid } = fromHash(hash, new Set(['analytics']));
    expect(invalid).toEqual([]);
    expect(view.options.analytics).toBe(text);
  });

  it('that are not known have their default', () => {
    expect(decodeAnalytics('page:none,memory:x')).toMatchObject({ page: 'overview', memory: null });
    expect(shownOf('cake.9', ['bar', 'pie'])).toEqual({ kind: 'bar', series: 9 });
    expect(shownOf(undefined, ['bar'], true).kind).toBe('table');
  });
});

describe('what a chart honours', () => {
  it('goes one level deeper with each word of the filter', () => {
    expect(scope('').grouped).toBe('component');
    expect(scope('component:ffn').grouped).toBe('op_kind');
    expect(scope('component:ffn op:mul_mat').grouped).toBe('op');
  });

  it('is said where it is not all', () => {
    const range = { x: { axis: 'layer', from: 1, to: 3 }, y: null };
    expect(unused('everything', scope('component:ffn', range))).toEqual([]);
    expect(unused('step', scope('component:ffn', range))).toEqual([
      'component:ffn',
      'range of layer',
    ]);
    expect(unused('phase', scope('layer:1'))).toEqual(['layer:1']);
    expect(unused('own', scope('layer:1', range))).toEqual([]);
    expect(applied('everything', scope('component:ffn type:q4_k'))).toEqual(['component:ffn']);
    expect(applied('phase', scope('layer:1'))).toEqual([]);
    expect(applied('own', scope('layer:1'))).toEqual([]);
  });
});
