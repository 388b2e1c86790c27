// Colours and fonts of the page for canvases.
import type { LaneState } from './scene';

export interface PlaneTheme {
  readonly isLight: boolean;
  readonly back: string;
  readonly text: string;
  readonly dim: string;
  readonly line: string;
  readonly strong: string;
  readonly bar: string;
  readonly accent: string;
  readonly glow: string; // of what was just touched
  readonly learned: string;
  readonly exact: string;
  readonly lane: Readonly<Record<LaneState, string>>;
  readonly sans: string;
  readonly mono: string;
}

export function themeOf(element: Element): PlaneTheme {
  const style = getComputedStyle(element);
  const of = (name: string): string => style.getPropertyValue(name).trim();
  return {
    isLight: of('color-scheme') === 'light',
    back: of('--panel'),
    text: of('--text'),
    dim: of('--text-dim'),
    line: of('--line'),
    strong: of('--line-strong'),
    bar: of('--bar'),
    accent: of('--accent'),
    glow: of('--glow'),
    learned: of('--learned'),
    exact: of('--exact'),
    lane: {
      pinned: of('--pinned'),
      streamed: of('--streamed'),
      resident: of('--resident'),
      copied: of('--copied'),
    },
    sans: of('--sans'),
    mono: of('--mono'),
  };
}
