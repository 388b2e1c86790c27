import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Navigation } from '../../src/state/navigation';
import { FakeBrowser, PANELS } from './fakes';

const told: string[] = [];
function at(hash: string): { browser: FakeBrowser; navigation: Navigation } {
  told.length = 0;
  const browser = new FakeBrowser(hash);
  const navigation = new Navigation(browser, PANELS, (dropped) => told.push(...dropped));
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

  it('begins with the address', () => {
    const { navigation } = at('#1&session=ab&step=3');
    expect(navigation.view.value).toMatchObject({ session: 'ab', step: 3 });
  });

  it('drops what the address should not say, also from the address', () => {
    const { browser, navigation } = at('#1&session=ab&step=x');
    expect(told).toEqual(['step=x']);
    expect(navigation.view.value.session).toBe('ab');
    expect(browser.entries).toEqual(['/#1&session=ab']);
  });

  it('makes an entry of each choice; back and forth go through them', () => {
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

  it('waits a quarter of a second after the last move before it replaces', () => {
    const { browser, navigation } = at('#1&session=ab');
    navigation.look('heat', [0, 10]);
    vi.advanceTimersByTime(200);
    navigation.look('heat', [0, 5]);
    vi.advanceTimersByTime(200);
    expect(browser.entries).toEqual(['/#1&session=ab']);
    vi.advanceTimersByTime(60);
    expect(browser.entries).toEqual(['/#1&session=ab&w.heat=0:5']);
    expect(navigation.view.value.windows).toEqual({ heat: [0, 5] });
  });

  it('leaves an entry as it was looked at last', () => {
    const { browser, navigation } = at('#1&session=ab');
    navigation.look('heat', [0, 5]);
    navigation.toStep(1);
    expect(browser.entries).toEqual([
      '/#1&session=ab&w.heat=0:5',
      '/#1&session=ab&step=1&w.heat=0:5',
    ]);
    browser.go(-1);
    expect(navigation.view.value).toMatchObject({ step: null, windows: { heat: [0, 5] } });
  });

  it('makes one entry of steps that belong together', () => {
    const { browser, navigation } = at('#1&session=ab&step=0');
    for (const step of [1, 2, 3]) navigation.toStep(step, 'walk');
    expect(browser.entries).toEqual(['/#1&session=ab&step=0', '/#1&session=ab&step=3']);
    navigation.change({ full: 'heat' });
    navigation.toStep(4, 'walk');
    expect(browser.entries).toHaveLength(4);
  });

  it('keeps an empty filter out of the address', () => {
    const { browser, navigation } = at('#1&session=ab&f.ops=x');
    navigation.filter('ops', '');
    vi.advanceTimersByTime(300);
    expect(browser.entries).toEqual(['/#1&session=ab']);
  });
});
