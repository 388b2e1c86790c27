// Paints the names of the rows and the labels of the x axis of a plane.
import {
  partLabels,
  rowLabels,
  sectionLabels,
  sectionsIn,
  ticks,
  type Axis,
  type Label,
} from './axis';
import { MIN_TEXT_COLUMN, xOf, yOf, type PlaneLayout, type TrackLayout } from './layout';
import type { Ctx } from './paint_cells';
import { fitted, ROOM } from './paint_text';
import { spanOf } from './range';
import type { PlaneTheme } from './theme';

// The names of the rows, left of the plot: of groups in a first column if there are parts or
// rows with names of their own.
export function paintNames(
  ctx: Ctx,
  layout: PlaneLayout,
  track: TrackLayout,
  title: string,
  theme: PlaneTheme,
): void {
  const { plot, y, axis } = track;
  ctx.font = `11px ${theme.sans}`;
  ctx.textBaseline = 'alphabetic';
  ctx.textAlign = 'left';
  ctx.fillStyle = theme.dim;
  ctx.fillText(fitted(ctx, title, layout.gutter - 8), 6, plot.y - 4);
  const isGrouped = axis.groups.length > 1;
  const groups = isGrouped ? sectionLabels(axis.groups, y, plot.h, ROOM) : [];
  const fine =
    axis.kind === 'rows'
      ? plot.h / spanOf(y) >= ROOM || !isGrouped
        ? rowLabels(axis, y, plot.h, ROOM)
        : []
      : axis.kind === 'bytes'
        ? partLabels(axis.parts, y, plot.h, ROOM)
        : axis.kind === 'one'
          ? []
          : ticks(axis, y, plot.h, 26);
  const left = isGrouped ? 46 : 6;
  const line = (label: Label): number => yOf(track, (label.from + label.to) / 2);
  ctx.textBaseline = 'middle';
  if (isGrouped) {
    ctx.fillStyle = theme.line;
    for (const { from, to } of sectionsIn(axis.groups, y)) {
      const [y0, y1] = [
        Math.max(plot.y, yOf(track, from)),
        Math.min(plot.y + plot.h, yOf(track, to)),
      ];
      if (y1 - y0 >= 3) ctx.fillRect(left - 4, y0 + 1, 2, y1 - y0 - 2);
    }
    ctx.fillStyle = theme.dim;
    for (const label of groups) ctx.fillText(fitted(ctx, label.text, left - 12), 6, line(label));
  }
  ctx.textAlign = 'right';
  for (const label of fine) {
    // The first and the last label stay inside the plot.
    const at = line(label);
    if (at < plot.y || at > plot.y + plot.h) continue;
    const inside = Math.max(plot.y + 6, Math.min(plot.y + plot.h - 6, at));
    ctx.fillStyle = theme.dim;
    ctx.fillText(fitted(ctx, label.text, layout.gutter - left - 10), plot.x - 8, inside);
  }
  // Where nothing has room, offsets.
  if (axis.kind !== 'bytes' || fine.length + groups.length > 0) return;
  for (const label of ticks(axis, y, plot.h, 26))
    ctx.fillText(label.text, plot.x - 8, Math.max(plot.y + 6, line(label)));
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
