// What a plane shows: its axes, its sources and its colours.
import type { Axis, Section } from './axis';
import type { Colours } from './colours';
import type { ValueRange } from './raster';
import type { Range } from './range';
import type { RowFiguresSource } from './sources/row_figures';
import type { Source } from './sources/source';
import type { MarkedPixels } from './sources/column_marks';

// What a unit of a lane is; units outside of all parts are empty.
export type LaneState = 'pinned' | 'streamed' | 'resident' | 'copied';

export interface LanePart extends Range {
  readonly state: LaneState;
}

// A narrow column beside a track: the state of its units.
export interface Lane {
  readonly title: string; // short
  readonly parts: readonly LanePart[]; // in order, without overlap
}

export interface Track {
  readonly title: string; // above its names
  readonly y: Axis;
  readonly share: number; // of the height
  readonly source: Source;
  // Of one step or token, from the server; null: the margin has means over x.
  readonly figures: RowFiguresSource | null;
  readonly lanes?: readonly Lane[];
}

export interface Scene {
  readonly x: Axis;
  readonly tracks: readonly Track[];
  readonly log: boolean;
  readonly palette: Colours;
  readonly shown: ValueRange;
  readonly lens: boolean;
  // Without sums of the columns and figures of the rows: values with signs cancel out.
  readonly bare?: true;
  readonly valueText: (value: number, track: number) => string;
  // Timing of the units of x, and whether a line follows a unit; null: none.
  readonly marks: {
    readonly pixels: (x: Range, width: number) => MarkedPixels;
    readonly columnEnds: (unit: number) => boolean;
    readonly together: readonly Together[];
  } | null;
}

// Tokens that one step evaluated together: several units whose values are shares of it, or one.
export interface Together extends Section {
  readonly tokens: number;
}
