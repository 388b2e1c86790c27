import type { Range } from './range';

// What is in view; null: everything, also what arrives later.
export interface Camera {
  readonly x: Range | null;
  readonly ys: readonly (Range | null)[]; // by track
}

export const wholeCamera: Camera = { x: null, ys: [] };

export const isWholeCamera = ({ x, ys }: Camera): boolean =>
  x === null && ys.every((y) => y === null);
