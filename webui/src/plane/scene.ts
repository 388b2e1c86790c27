// What a plane shows: its axes, its sources and its colours.
import type { Axis } from './axis';
import type { Palette } from './colours';
import type { ValueRange } from './raster';
import type { Range } from './range';
import type { Source } from './sources/source';
import type { MarkedPixels } from './sources/token_marks';

export interface Track {
  readonly title: string; // above its names
  readonly y: Axis;
  readonly share: number; // of the height
  readonly source: Source;
}

export interface Scene {
  readonly x: Axis;
  readonly tracks: readonly Track[];
  readonly log: boolean;
  readonly palette: Palette;
  readonly shown: ValueRange;
  readonly lens: boolean;
  readonly figure: 'median' | 'mean'; // of the rows
  readonly figureTitle: string;
  readonly valueText: (value: number, track: number) => string;
  // Timing of the units of x, and whether a line follows a unit; null: none.
  readonly marks: {
    readonly pixels: (x: Range, width: number) => MarkedPixels;
    readonly columnEnds: (unit: number) => boolean;
  } | null;
}
