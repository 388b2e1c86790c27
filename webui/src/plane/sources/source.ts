// Where the pictures of a plane come from.
import type { ReadonlySignal } from '@preact/signals';
import type { ApiError } from '../../net/api';
import type { Raster } from '../raster';
import type { Range } from '../range';

export interface Wanted {
  readonly x: Range;
  readonly y: Range;
  readonly width: number; // pixels of the screen
  readonly height: number;
}

export interface Source {
  // Counts changes: another picture may be available.
  readonly version: ReadonlySignal<number>;
  readonly error: ReadonlySignal<ApiError | null>;
  readonly busy: ReadonlySignal<boolean>; // a request is under way
  // The pictures to draw for what is wanted, the coarsest first. The last one is the best; it may
  // not cover everything yet. Requests a better one if it is necessary. The plane and its lens want
  // different pictures at the same time.
  pictures(wanted: Wanted, by?: 'plane' | 'lens'): readonly Raster[];
  // The picture of everything; null: not available yet.
  overview(): Raster | null;
}
