// What the charts of this panel share.
import { formatSpeed } from '../../format';

export const CHART_WIDTH = 600; // units of the drawing

// A figure at a height of a chart, 0 at its bottom and 1 at its top; it stays inside the chart.
export function Tick({ at, text }: { at: number; text: string }) {
  const bottom = `clamp(1px, calc(${(100 * at).toFixed(1)}% - 7px), calc(100% - 14px))`;
  return (
    <span class="budget-tick" style={{ bottom }}>
      {text}
    </span>
  );
}

export const speedText = (tokensPerSecond: number | null): string =>
  tokensPerSecond === null ? 'not known' : formatSpeed(tokensPerSecond);
