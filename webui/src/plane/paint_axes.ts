// Paints the names of the rows and the labels of the x axis of a plane.
import {
  namesRows,
  partLabels,
  rowLabels,
  sectionLabels,
  sectionsIn,
  ticks,
  type Axis,
  type Label,
  type Section,
} from './axis';
import {
  MIN_TEXT_COLUMN,
  ROOM,
  nameColumns,
  xOf,
  yOf,
  type PlaneLayout,
  type TrackLayout,
} from './layout';
import type { Ctx } from './canvas';
import { fitted } from './paint_text';
import { spanOf } from './range';
import type { PlaneTheme } from './theme';

// The names of the rows, left of the plot: of groups in columns of their own if there are parts or
// rows with names of their own.
export function paintNames(
  ctx: Ctx,
  layout: PlaneLayout,
  track: TrackLayout,
  title: string,
  theme: PlaneTheme,
): void {
  const { plot, axis } = track;
  ctx.font = `11px ${theme.sans}`;
  ctx.textBaseline = 'alphabetic';
  ctx.textAlign = 'left';
  ctx.fillStyle = theme.dim;
  ctx.fillText(fitted(ctx, title, layout.gutter - 8), 6, plot.y - 4);
  const columns = nameColumns(axis);
  paintGroups(ctx, track, axis.outer, { x: 0, w: columns.outer }, theme);
  paintGroups(ctx, track, axis.groups, { x: columns.outer, w: columns.groups }, theme);
  const left = columns.outer + columns.groups;
  ctx.textAlign = 'right';
  ctx.fillStyle = theme.dim;
  paintTexts(track, fineLabels(track, left > 0), (text, at) => {
    ctx.fillText(fitted(ctx, text, layout.gutter - left - 10), plot.x - 8, at);
  });
}

const LEAST_DISTANCE = 9; // pixels between the middles of two labels

// The first and the last label stay inside the plot. None is over another one.
function paintTexts(
  track: TrackLayout,
  labels: readonly Label[],
  paint: (text: string, at: number) => void,
): void {
  const { y: top, h } = track.plot;
  let last = -Infinity;
  for (const { from, to, text } of labels) {
    const at = yOf(track, (from + to) / 2);
    if (at < top || at > top + h) continue;
    const inside = Math.max(top + 6, Math.min(top + h - 6, at));
    if (inside - last < LEAST_DISTANCE) continue;
    last = inside;
    paint(text, inside);
  }
}

// The names of single rows or parts; without any name, offsets.
function fineLabels({ plot, y, axis }: TrackLayout, isGrouped: boolean): readonly Label[] {
  switch (axis.kind) {
    case 'rows':
      return !isGrouped || namesRows(plot.h / spanOf(y), ROOM)
        ? rowLabels(axis, y, plot.h, ROOM)
        : [];
    case 'bytes': {
      const labels = partLabels(axis.parts, y, plot.h, ROOM);
      return labels.length > 0 || isGrouped ? labels : ticks(axis, y, plot.h, 26);
    }
    case 'one':
      return [];
    default:
      return ticks(axis, y, plot.h, 26);
  }
}

// A column of names, with a line along each group.
function paintGroups(
  ctx: Ctx,
  track: TrackLayout,
  groups: readonly Section[],
  { x, w }: { readonly x: number; readonly w: number },
  theme: PlaneTheme,
): void {
  const { plot, y } = track;
  if (w === 0) return;
  ctx.textBaseline = 'middle';
  ctx.textAlign = 'left';
  ctx.fillStyle = theme.line;
  for (const { from, to } of sectionsIn(groups, y)) {
    const [y0, y1] = [
      Math.max(plot.y, yOf(track, from)),
      Math.min(plot.y + plot.h, yOf(track, to)),
    ];
    if (y1 - y0 >= 3) ctx.fillRect(x + w - 4, y0 + 1, 2, y1 - y0 - 2);
  }
  ctx.fillStyle = theme.dim;
  paintTexts(track, sectionLabels(groups, y, plot.h, ROOM), (text, at) => {
    ctx.fillText(fitted(ctx, text, w - 8), x + 6, at);
  });
}

export function paintLabels(ctx: Ctx, layout: PlaneLayout, axis: Axis, theme: PlaneTheme): void {
  const { labels: box, x } = layout;
  const column = box.w / spanOf(x);
  if (axis.kind === 'one') return;
  ctx.font = `11px ${theme.sans}`;
  ctx.fillStyle = theme.dim;
  const isText = axis.kind === 'count' && axis.textOf && column >= MIN_TEXT_COLUMN;
  if (isText || (axis.kind === 'rows' && column < 60)) {
    if (isText) ctx.font = `11px ${theme.mono}`;
    const every = Math.max(1, Math.ceil(MIN_TEXT_COLUMN / column));
    const first = Math.max(axis.whole.from, Math.floor(x.from));
    for (
      let unit = Math.ceil(first / every) * every;
      unit < Math.min(axis.whole.to, x.to);
      unit += every
    ) {
      const text = axis.textOf?.(unit) ?? axis.names[unit - axis.whole.from] ?? '';
      rotated(
        ctx,
        text.length > 9 ? `${text.slice(0, 8)}…` : text,
        xOf(layout, unit + 0.5),
        box.y + 9,
      );
    }
    return;
  }
  ctx.textBaseline = 'top';
  if (axis.kind === 'rows') {
    ctx.textAlign = 'center';
    for (const label of rowLabels(axis, x, box.w, 60))
      ctx.fillText(fitted(ctx, label.text, column - 4), xOf(layout, label.from + 0.5), box.y + 9);
    return;
  }
  for (const label of ticks(axis, x, box.w, axis.kind === 'count' ? 56 : 80)) {
    const at = xOf(layout, (label.from + label.to) / 2);
    ctx.fillRect(Math.round(at), box.y + 2, 1, 4);
    // The first and the last label stay inside the plot.
    const half = ctx.measureText(label.text).width / 2;
    ctx.textAlign = 'left';
    const left = Math.max(box.x - 4, Math.min(at - half, box.x + box.w + layout.margin - 2 * half));
    ctx.fillText(label.text, left, box.y + 9);
  }
}

function rotated(ctx: Ctx, text: string, x: number, y: number): void {
  ctx.save();
  ctx.translate(x, y);
  ctx.rotate(-Math.PI / 2);
  ctx.textAlign = 'right';
  ctx.textBaseline = 'middle';
  ctx.fillText(text, 0, 0);
  ctx.restore();
}
