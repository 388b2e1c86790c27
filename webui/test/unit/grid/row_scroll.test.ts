import { describe, expect, it } from 'vitest';
import { ROW, RowScroll } from '../../../src/grid/row_scroll';

const HEIGHT = 20 * ROW;
const MANY = 100_000_000;

function scrollOf(rows: number): { host: { scrollTop: number }; scroll: RowScroll } {
  const host = { scrollTop: 0 };
  const scroll = new RowScroll(host, () => rows);
  scroll.height = HEIGHT;
  return { host, scroll };
}

describe('scrolling of rows', () => {
  it('has exact rows while the spacer has room for all', () => {
    const { host, scroll } = scrollOf(1000);
    expect(scroll.spacer).toBe(1000 * ROW);
    host.scrollTop = 100.5 * ROW;
    scroll.scrolled();
    expect([scroll.top, scroll.visible]).toEqual([100.5, 20]);
    scroll.toRow(990);
    expect([scroll.top, host.scrollTop]).toEqual([980, 980 * ROW]);
  });

  it.each([
    { index: 50, top: 50 }, // above
    { index: 110, top: 100 }, // in view
    { index: 120, top: 101 }, // below
  ])('brings row $index into view with the least movement', ({ index, top }) => {
    const { scroll } = scrollOf(1000);
    scroll.toRow(100);
    expect(scroll.reveal(index)).toBe(top !== 100);
    expect(scroll.top).toBe(top);
  });

  it('moves many rows exactly by a short scroll, and by share with the scroll bar', () => {
    const { host, scroll } = scrollOf(MANY);
    expect(scroll.spacer).toBe(8_000_000);
    scroll.toRow(MANY / 2);
    host.scrollTop += 3 * ROW;
    scroll.scrolled();
    expect(scroll.top).toBe(MANY / 2 + 3);
    host.scrollTop = (scroll.spacer - HEIGHT) / 4;
    scroll.scrolled();
    expect(scroll.top).toBeCloseTo((MANY - 20) / 4, 3);
  });

  it('reaches the first and the last of many rows', () => {
    const { host, scroll } = scrollOf(MANY);
    scroll.toRow(MANY);
    expect([scroll.top, host.scrollTop]).toEqual([MANY - 20, scroll.spacer - HEIGHT]);
    host.scrollTop = 0;
    scroll.scrolled();
    expect(scroll.top).toBe(0);
  });

  it('stays in the rows when there are fewer', () => {
    let rows = 1000;
    const scroll = new RowScroll({ scrollTop: 0 }, () => rows);
    scroll.height = HEIGHT;
    scroll.toRow(900);
    rows = 100;
    scroll.clamp();
    expect(scroll.top).toBe(80);
  });
});
