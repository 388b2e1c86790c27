// Ranges of an axis, half-open and possibly fractional, so that zooming keeps the point under the
// pointer. Pure functions.

export interface Range {
  readonly from: number;
  readonly to: number;
}

export const spanOf = ({ from, to }: Range): number => to - from;

export const sameRange = (a: Range | null, b: Range | null): boolean =>
  a === b || (a !== null && b !== null && a.from === b.from && a.to === b.to);

export const covers = (outer: Range, inner: Range): boolean =>
  outer.from <= inner.from && outer.to >= inner.to;

export const overlaps = (a: Range, b: Range): boolean => a.from < b.to && b.from < a.to;

// The part of `range` inside `whole`; an empty range at its edge if there is none.
export function clip(range: Range, whole: Range): Range {
  const from = Math.min(whole.to, Math.max(whole.from, range.from));
  return { from, to: Math.max(from, Math.min(whole.to, range.to)) };
}

// Moves the range into `whole`; keeps its span if that is possible.
export function moveInto(range: Range, whole: Range): Range {
  const span = Math.min(spanOf(range), spanOf(whole));
  const from = Math.max(whole.from, Math.min(range.from, whole.to - span));
  return { from, to: from + span };
}

// `at`: the position that stays fixed. A factor below 1 zooms in, to at least `least`.
export function zoomRange(
  range: Range,
  at: number,
  factor: number,
  whole: Range,
  least: number,
): Range {
  const span = Math.min(
    spanOf(whole),
    Math.max(Math.min(least, spanOf(whole)), spanOf(range) * factor),
  );
  const share = spanOf(range) === 0 ? 0.5 : (at - range.from) / spanOf(range);
  return moveInto({ from: at - share * span, to: at + (1 - share) * span }, whole);
}

export const panRange = (range: Range, by: number, whole: Range): Range =>
  moveInto({ from: range.from + by, to: range.to + by }, whole);

// The smallest range of whole numbers that contains the range, inside `whole`.
export const outwards = (range: Range, whole: Range): Range =>
  clip({ from: Math.floor(range.from), to: Math.ceil(range.to) }, whole);

// The range extended by `share` of its span on both sides.
export function extend(range: Range, share: number, whole: Range): Range {
  const by = share * spanOf(range);
  return outwards({ from: range.from - by, to: range.to + by }, whole);
}
