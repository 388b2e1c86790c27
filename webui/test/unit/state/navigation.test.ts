import { effect, untracked } from '@preact/signals';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Navigation } from '../../../src/state/view/navigation';
import { FakeBrowser, PANELS } from '../fakes';

const invalidParts: string[] = [];
function at(hash: string): { browser: FakeBrowser; navigation: Navigation } {
  invalidParts.length = 0;
  const browser = new FakeBrowser(hash);
  const navigation = new Navigation(browser, PANELS, (dropped) => invalidParts.push(...dropped));
  navigation.start();
  return { browser, navigation };
}

describe('navigation', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('starts with the view of the URL', () => {
    const { navigation } = at('#1&session=ab&step=3');
    expect(navigation.view.value).toMatchObject({ session: 'ab', step: 3 });
  });

  it('reports invalid parts and removes them from the URL', () => {
    const { browser, navigation } = at('#1&session=ab&step=x');
    expect(invalidParts).toEqual(['step=x']);
    expect(navigation.view.value.session).toBe('ab');
    expect(browser.entries).toEqual(['/#1&session=ab']);
  });

  it('pushes an entry for each selection; Back and Forward restore them', () => {
    const { browser, navigation } = at('');
    navigation.toSession('ab');
    navigation.toStep(3);
    navigation.change({ selection: { kind: 'op', op: 7 } });
    expect(browser.entries).toHaveLength(4);
    browser.go(-1);
    expect(navigation.view.value).toMatchObject({ step: 3, selection: null });
    browser.go(-2);
    expect(navigation.view.value.session).toBeNull();
    browser.go(3);
    expect(navigation.view.value.selection).toEqual({ kind: 'op', op: 7 });
  });

  it('adds no entries in the frame of another page, whose history they would be', () => {
    const { browser, navigation } = at('#1&session=ab&embed=map');
    navigation.toStep(3);
    navigation.change({ selection: { kind: 'op', op: 7 } });
    expect(browser.entries).toEqual(['/#1&session=ab&step=3&sel=o:7&embed=map']);
    expect(navigation.link({ embed: null })).toBe('/#1&session=ab&step=3&sel=o:7');
  });

  it('pushes its entry before a reaction to the view replaces it', () => {
    const { browser, navigation } = at('#1&session=ab');
    const stop = effect(() => {
      const { step, selection } = navigation.view.value;
      if (step !== 3 || selection) return;
      untracked(() => {
        navigation.change({ selection: { kind: 'op', op: 8 } }, 'replace');
      });
    });
    navigation.toStep(3);
    stop();
    expect(browser.entries).toEqual(['/#1&session=ab', '/#1&session=ab&step=3&sel=o:8']);
  });

  it('names the selected op by its output as soon as the name is known', () => {
    const browser = new FakeBrowser('#1&session=ab&sel=o:7');
    let name: string | null = null;
    const navigation = new Navigation(browser, PANELS, vi.fn(), () => name);
    navigation.start();
    navigation.nameOutput();
    expect(browser.entries).toEqual(['/#1&session=ab&sel=o:7']);
    name = 'ffn_out-0';
    navigation.nameOutput();
    expect(browser.entries).toEqual(['/#1&session=ab&sel=o:ffn_out-0']);
    expect(navigation.view.value.selection).toEqual({ kind: 'op', op: 7 });
  });

  it('replaces the entry 250 ms after the last change', () => {
    const { browser, navigation } = at('#1&session=ab');
    navigation.setWindow('map', [0, 10]);
    vi.advanceTimersByTime(200);
    navigation.setWindow('map', [0, 5]);
    vi.advanceTimersByTime(200);
    expect(browser.entries).toEqual(['/#1&session=ab']);
    vi.advanceTimersByTime(60);
    expect(browser.entries).toEqual(['/#1&session=ab&w.map=0:5']);
    expect(navigation.view.value.windows).toEqual({ map: [0, 5] });
  });

  it('writes pending changes before it pushes an entry', () => {
    const { browser, navigation } = at('#1&session=ab');
    navigation.setWindow('map', [0, 5]);
    navigation.toStep(1);
    expect(browser.entries).toEqual([
      '/#1&session=ab&w.map=0:5',
      '/#1&session=ab&step=1&w.map=0:5',
    ]);
    browser.go(-1);
    expect(navigation.view.value).toMatchObject({ step: null, windows: { map: [0, 5] } });
  });

  it('merges consecutive steps into one entry', () => {
    const { browser, navigation } = at('#1&session=ab&step=0');
    for (const step of [1, 2, 3]) navigation.toStep(step, 'coalesce');
    expect(browser.entries).toEqual(['/#1&session=ab&step=0', '/#1&session=ab&step=3']);
    navigation.change({ full: 'map' });
    navigation.toStep(4, 'coalesce');
    expect(browser.entries).toHaveLength(4);
  });

  it('omits an empty filter from the URL', () => {
    const { browser, navigation } = at('#1&session=ab&f.ops=x');
    navigation.setSearch('ops', '');
    vi.advanceTimersByTime(300);
    expect(browser.entries).toEqual(['/#1&session=ab']);
  });
});
