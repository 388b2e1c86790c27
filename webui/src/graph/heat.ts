// Colours of the nodes by time, bytes or disk waits: cold blue to hot red, on a logarithmic scale
// whose ends are the smallest and the largest value. Pure functions.
import { colourOf, textOn, type Rgb } from '../plane/colours';

export interface HeatColour {
  readonly fill: string;
  readonly text: string; // readable on it
}

export function heatColours(values: Float64Array): readonly (HeatColour | null)[] {
  const used = values.filter((value) => value > 0);
  if (used.length === 0) return Array.from(values, () => null);
  const low = Math.log(used.reduce((min, value) => Math.min(min, value), Infinity));
  const high = Math.log(used.reduce((max, value) => Math.max(max, value), 0));
  return Array.from(values, (value) =>
    value > 0
      ? shown(colourOf('heat', high > low ? (Math.log(value) - low) / (high - low) : 1))
      : null,
  );
}

// Of values with a sign: neutral at 0, the ends are the largest value with either sign. NaN has no colour.
export function signedColours(
  values: Float64Array,
  isLight: boolean,
): readonly (HeatColour | null)[] {
  const most = values.reduce((max, value) => Math.max(max, Math.abs(value) || 0), 0);
  return Array.from(values, (value) =>
    Number.isNaN(value)
      ? null
      : shown(colourOf('diverging', most > 0 ? 0.5 + value / (2 * most) : 0.5, isLight)),
  );
}

const shown = (rgb: Rgb): HeatColour => ({
  fill: css(rgb),
  text: textOn(rgb),
});

const css = ([r, g, b]: Rgb): string =>
  `rgb(${[r, g, b].map((channel) => Math.round(channel)).join(' ')})`;
