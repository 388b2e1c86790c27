// The shape of a line from a token to one that it looks at. Pure.

export interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

export interface Line {
  readonly path: string; // of SVG
  readonly end: readonly [x: number, y: number]; // at the token that is looked at
}

const middle = ({ left, width }: Box): number => left + width / 2;
const bottom = ({ top, height }: Box): number => top + height;

// On one displayed line of text an arc above it, the higher the farther; else from the near edge of one
// token to that of the other, so that the words stay readable.
export function lineBetween(from: Box, to: Box): Line {
  const [x, end] = [middle(from), middle(to)];
  const isSameLine = Math.abs(from.top - to.top) < Math.min(from.height, to.height) / 2;
  if (isSameLine) {
    const top = Math.min(from.top, to.top);
    const height = Math.min(MAX_ARC, LEAST_ARC + Math.abs(end - x) / 8);
    // A token that looks at itself: a loop.
    const wide = from.left === to.left ? LOOP : 0;
    return {
      path: curve([x, top], [x + wide, top - height], [end - wide, top - height], [end, top]),
      end: [end, top],
    };
  }
  const up = from.top > to.top;
  const [y, endY] = up ? [from.top, bottom(to)] : [bottom(from), to.top];
  const half = (endY - y) / 2;
  return { path: curve([x, y], [x, y + half], [end, endY - half], [end, endY]), end: [end, endY] };
}

const [LEAST_ARC, MAX_ARC, LOOP] = [8, 40, 7]; // pixels

type Point = readonly [x: number, y: number];
const text = (points: readonly Point[]): string =>
  points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join(' ');
const curve = (from: Point, ...rest: readonly Point[]): string => `M${text([from])} C${text(rest)}`;
