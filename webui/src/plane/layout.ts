// Where the parts of a plane are. Sizes are CSS pixels. Pure functions.
//
//            | sums of the columns    |
//            | marks                  |
//   names of | track 1                | lanes | figures of
//   the rows | track 2                |       | the rows
//            | labels of the x axis   |
import { joined, namesRows, writtenName, type Axis, type Section } from './axis';
import { TIP_ROOM } from '../ui/tip';
import type { Camera } from './camera';
import { moveInto, spanOf, zoomRange, panRange, type Range } from './range';

export const ROOM = 12; // height of a label

export interface Rect {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
}

export interface Box {
  readonly w: number;
  readonly h: number;
}

export interface TrackLayout {
  readonly plot: Rect;
  readonly y: Range; // in view
  readonly axis: Axis;
}

export interface PlaneLayout {
  readonly x: Range; // in view
  readonly plot: Rect; // of all tracks together
  readonly tracks: readonly TrackLayout[];
  readonly gutter: number; // width of the names
  readonly lanes: number; // width of the lanes right of the plot; 0: none
  readonly margin: number; // width of the figures right of them; 0: no room
  readonly sums: Rect;
  readonly marks: Rect;
  readonly labels: Rect; // of the x axis
}

const SUMS = 30;
const MARKS = 7;
const GAP = 4;
const TITLE = 17; // above each of several tracks
const TICKS = 32;
const TEXTS = 65; // names of narrow columns, rotated
export const MARGIN = 122;
export const MAX_COLUMN = 48;
const MAX_WIDE_COLUMN = 220; // of an x axis with names
const MAX_ROW = 64;
export const MIN_TEXT_COLUMN = 13; // minimum column width for text

export interface Axes {
  readonly bare?: true; // Scene
  readonly x: Axis;
  readonly tracks: readonly {
    readonly title?: string;
    readonly y: Axis;
    readonly share: number;
    readonly lanes?: readonly unknown[];
  }[];
}

// Everything on the x axis, with columns of a limited width.
export function fullX(axis: Axis, width: number): Range {
  const widest =
    axis.kind === 'count' ? MAX_COLUMN : axis.kind === 'rows' ? MAX_WIDE_COLUMN : Infinity;
  return { from: axis.whole.from, to: Math.max(axis.whole.to, axis.whole.from + width / widest) };
}

export function planeLayout(box: Box, axes: Axes, camera: Camera): PlaneLayout {
  const { tracks } = axes;
  const most = Math.min(0.3 * box.w, Math.max(...tracks.map((track) => gutterOf(track, Infinity))));
  const widest = layoutWith(box, axes, camera, most);
  // Where the names of single rows have no room, the names of groups need less of it.
  const needed = tracks.map((track, i) => {
    const { plot, y } = widest.tracks[i] ?? { plot: { h: 0 }, y: track.y.whole };
    return gutterOf(track, plot.h / spanOf(y));
  });
  const gutter = Math.min(most, Math.max(...needed));
  return gutter === most ? widest : layoutWith(box, axes, camera, gutter);
}

function layoutWith(
  box: Box,
  { x: axis, tracks, bare }: Axes,
  camera: Camera,
  gutter: number,
): PlaneLayout {
  const margin = box.w < 480 || bare ? 0 : axis.kind === 'one' ? 0.35 * box.w : MARGIN;
  const lanes = lanesWidth(Math.max(0, ...tracks.map((track) => track.lanes?.length ?? 0)));
  const w = Math.max(40, box.w - gutter - lanes - margin - (margin === 0 ? 8 : 0));
  const full = fullX(axis, w);
  const x = camera.x ? moveInto(camera.x, full) : full;
  const bottom = bottomOf(axis, w / spanOf(x));
  // A single column has no sums and no marks.
  const top = axis.kind === 'one' || bare ? GAP : SUMS + GAP + MARKS + 2;
  const title = tracks.length > 1 || lanes > 0 ? TITLE : 0;
  const room = Math.max(40, box.h - top - bottom - title * tracks.length);
  const shares = tracks.reduce((sum, { share }) => sum + share, 0);
  let at = top;
  const made = tracks.map(({ y, share }, i): TrackLayout => {
    const view = moveInto(camera.ys[i] ?? y.whole, y.whole);
    const most = y.kind === 'rows' ? MAX_ROW * spanOf(view) : y.kind === 'one' ? MAX_ROW : Infinity;
    const h = Math.min(most, (room * share) / shares);
    const plot = { x: gutter, y: at + title, w, h };
    at = plot.y + h;
    return { plot, y: view, axis: y };
  });
  return {
    x,
    plot: { x: gutter, y: top, w, h: at - top },
    tracks: made,
    gutter,
    lanes,
    margin,
    sums: { x: gutter, y: 4, w, h: SUMS - 4 },
    marks: { x: gutter, y: SUMS + GAP, w, h: MARKS },
    labels: { x: gutter, y: at, w, h: bottom },
  };
}

export const LANE = { w: 26, gap: 4 };

const lanesWidth = (lanes: number): number => (lanes > 0 ? LANE.gap + lanes * (LANE.w + LANE.gap) : 0); // prettier-ignore

// The box of a lane of a track.
export function laneBox({ plot }: TrackLayout, lane: number): Rect {
  return { ...plot, x: plot.x + plot.w + 2 * LANE.gap + lane * (LANE.w + LANE.gap), w: LANE.w };
}

const CHARACTER = 6.4;
const NAME_GAP = 14; // beside a column of names, for the line that joins them
const LEAST_GUTTER = 62;
const OFFSETS = 66;

const widthOf = (texts: readonly string[]): number =>
  CHARACTER * texts.reduce((most, text) => Math.max(most, text.length), 0);

const namesOf = (sections: readonly Section[]): readonly string[] =>
  sections.map(({ name }) => name);

// The widths of the columns of names: of what is around the groups, and of the groups; 0: none.
export function nameColumns({ outer, groups }: Axis): {
  readonly outer: number;
  readonly groups: number;
} {
  const column = (sections: readonly Section[]): number =>
    sections.length > 1 ? NAME_GAP + widthOf(namesOf(sections)) : 0;
  return { outer: column(outer), groups: column(groups) };
}

// The width of the names of a track, of which a unit has `pitch` pixels.
function gutterOf({ title = '', y }: Axes['tracks'][number], pitch: number): number {
  const { kind, parts } = y;
  const columns = nameColumns(y);
  const around = columns.outer + columns.groups;
  const least = Math.max(LEAST_GUTTER, 10 + widthOf([title]));
  const own = (texts: readonly string[]): number =>
    texts.length === 0 ? 0 : Math.min(190, 26 + widthOf(texts));
  if (kind === 'bytes') {
    const named = own(namesOf(pitch === Infinity ? parts : joined(parts, pitch, ROOM)));
    return Math.max(least, around + Math.max(named, around > 0 ? 0 : OFFSETS));
  }
  if (kind !== 'rows') return least;
  const isNamed = columns.groups === 0 || namesRows(pitch, ROOM);
  return Math.max(
    least,
    around + (isNamed ? own(y.names.slice(0, 4096).map((name) => writtenName(y, name))) : 0),
  );
}

function bottomOf(axis: Axis, column: number): number {
  if (axis.kind === 'one') return 10;
  if (axis.kind === 'count') return axis.textOf && column >= MIN_TEXT_COLUMN ? TEXTS : TICKS;
  return axis.kind === 'rows' && column < 60 ? TEXTS : TICKS;
}

export const xOf = ({ plot, x }: PlaneLayout, at: number): number =>
  plot.x + ((at - x.from) * plot.w) / spanOf(x);

export const yOf = ({ plot, y }: TrackLayout, at: number): number =>
  plot.y + ((at - y.from) * plot.h) / spanOf(y);

// A position of the plane.
export interface Hit {
  readonly track: number;
  readonly x: number; // axis units, possibly fractional
  readonly y: number | null; // null: above or below the tracks
}

export type Zone = 'plot' | 'names' | 'labels' | 'sums' | 'outside';

// The lanes are a part of the plot.
export function zoneAt({ plot, lanes, sums, labels }: PlaneLayout, x: number, y: number): Zone {
  const inX = x >= plot.x && x < plot.x + plot.w;
  if ((inX || (x >= plot.x && x < plot.x + plot.w + lanes)) && y >= plot.y && y < plot.y + plot.h)
    return 'plot';
  if (inX && y >= labels.y && y < labels.y + labels.h) return 'labels';
  if (inX && y >= sums.y && y < plot.y) return 'sums';
  return x < plot.x && y >= plot.y && y < plot.y + plot.h ? 'names' : 'outside';
}

export function hitAt(layout: PlaneLayout, axis: Axis, x: number, y: number): Hit | null {
  const { plot } = layout;
  if (x < plot.x || x >= plot.x + plot.w + layout.lanes || y < 0) return null;
  const inPlot = Math.min(x - plot.x, plot.w - 1);
  const at = layout.x.from + (inPlot * spanOf(layout.x)) / plot.w;
  if (at < axis.whole.from || at >= axis.whole.to) return null;
  const track = trackAt(layout, y);
  const one = layout.tracks[track];
  if (!one || y < one.plot.y || y >= one.plot.y + one.plot.h) return { track, x: at, y: null };
  return { track, x: at, y: positionIn(one, y) };
}

// The track at, or else nearest above, a height.
export function trackAt({ tracks }: PlaneLayout, y: number): number {
  return Math.max(
    0,
    tracks.findLastIndex(({ plot }) => y >= plot.y),
  );
}

export const positionIn = ({ plot, y }: TrackLayout, at: number): number =>
  Math.min(y.to - 1e-9 * spanOf(y), y.from + ((at - plot.y) * spanOf(y)) / plot.h);

// ---- The lens -------------------------------------------------------------------------

const LENS = { w: 240, h: 180 };
const MAGNIFIED = 16; // times, at most: until a unit has UNIT pixels
const UNIT = 14;

export interface LensLayout {
  readonly box: Rect;
  readonly isNamed: boolean; // the rows have no room for their names beside the plane
  readonly layout: PlaneLayout;
  readonly track: TrackLayout;
}

// A magnified picture of what is around a position, beside the pointer and over the cells. `room`: width
// for the lens and the tooltip.
export function lensLayout(
  layout: PlaneLayout,
  track: TrackLayout,
  xAxis: Axis,
  { x, y }: { readonly x: number; readonly y: number },
  at: { readonly x: number; readonly y: number },
  room: number,
): LensLayout {
  const part = (whole: Range, center: number, pixels: number, pitch: number): Range => {
    const factor = Math.max(1, Math.min(MAGNIFIED, UNIT / pitch));
    const span = pixels / (pitch * factor);
    return moveInto({ from: center - span / 2, to: center + span / 2 }, whole);
  };
  const { plot: cells } = layout;
  const w = Math.min(LENS.w, cells.w);
  const most = cells.x + cells.w - w;
  // On the side where the tooltip is not.
  const [left, right] = [at.x - w - 16, at.x + 16];
  const isLeft = (left >= cells.x && at.x + TIP_ROOM <= room) || right > most;
  const boxX = Math.max(cells.x, Math.min(most, isLeft ? left : right));
  const end = Math.max(at.x, boxX + w);
  const hasTipRoom = end + TIP_ROOM <= room || Math.min(at.x, boxX) >= TIP_ROOM;
  // If the tooltip has no room beside it, it is above or below.
  const bottom = layout.plot.y + layout.plot.h;
  const isUpper = at.y < layout.plot.y + layout.plot.h / 2;
  const wantedY = hasTipRoom ? at.y - LENS.h / 2 : isUpper ? bottom : 0;
  const boxY = Math.max(4, Math.min(wantedY, bottom - LENS.h));
  const plot = { x: boxX, y: boxY, w, h: LENS.h };
  const yRange = part(track.axis.whole, y, plot.h, track.plot.h / spanOf(track.y));
  const xRange =
    xAxis.kind === 'one'
      ? xAxis.whole
      : part(xAxis.whole, x, plot.w, layout.plot.w / spanOf(layout.x));
  const shown = { plot, y: yRange, axis: track.axis };
  return {
    box: plot,
    isNamed: track.plot.h / spanOf(track.y) < UNIT,
    layout: { ...layout, plot, x: xRange, tracks: [shown] },
    track: shown,
  };
}

// ---- Cameras --------------------------------------------------------------------------

// A camera of ranges; a range that is everything becomes null.
export function cameraWith(
  camera: Camera,
  change: { readonly x?: Range; readonly y?: { readonly track: number; readonly range: Range } },
  layout: PlaneLayout,
  axis: Axis,
): Camera {
  const ys = layout.tracks.map((_, i) => camera.ys[i] ?? null);
  const { y } = change;
  if (y) ys[y.track] = isWhole(y.range, layout.tracks[y.track]?.axis.whole) ? null : y.range;
  const x = change.x ? (isWhole(change.x, fullX(axis, layout.plot.w)) ? null : change.x) : camera.x;
  return { x, ys };
}

const isWhole = (range: Range, whole: Range | undefined): boolean =>
  whole === undefined || spanOf(range) >= spanOf(whole) * 0.999;

export { zoomRange, panRange };
