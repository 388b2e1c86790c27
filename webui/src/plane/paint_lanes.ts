// Paints the lanes beside a track: in each row of pixels, as much of the width as the share of its
// units that is in a state.
import { sectionsIn } from './axis';
import { laneBox, type TrackLayout } from './layout';
import type { Ctx } from './canvas';
import { clip, spanOf, type Range } from './range';
import type { Lane, LaneState } from './scene';
import type { PlaneTheme } from './theme';

export const LANE_STATES: readonly LaneState[] = ['pinned', 'streamed', 'resident', 'copied'];

// Row by row of `rows` rows over the view, the share of each of LANE_STATES.
export function laneShares({ parts }: Lane, view: Range, rows: number): Float32Array {
  const states = LANE_STATES.length;
  const shares = new Float32Array(rows * states);
  const scale = rows / spanOf(view);
  for (const part of sectionsIn(parts, view)) {
    const { from, to } = clip(part, view);
    const [begin, end] = [(from - view.from) * scale, (to - view.from) * scale];
    const state = LANE_STATES.indexOf(part.state);
    for (let row = Math.floor(begin); row < Math.min(rows, end); row += 1) {
      const i = row * states + state;
      shares[i] = (shares[i] ?? 0) + Math.min(end, row + 1) - Math.max(begin, row);
    }
  }
  return shares;
}

export function paintLanes(
  ctx: Ctx,
  track: TrackLayout,
  lanes: readonly Lane[],
  theme: PlaneTheme,
): void {
  lanes.forEach((lane, index) => {
    const box = laneBox(track, index);
    ctx.font = `11px ${theme.sans}`;
    ctx.textAlign = 'center';
    ctx.textBaseline = 'alphabetic';
    ctx.fillStyle = theme.dim;
    ctx.fillText(lane.title, box.x + box.w / 2, box.y - 4);
    const rows = Math.max(1, Math.round(box.h * devicePixelRatio));
    const shares = laneShares(lane, track.y, rows);
    const states = LANE_STATES.length;
    const height = box.h / rows;
    const isSame = (a: number, b: number): boolean =>
      LANE_STATES.every((_, i) => shares[a * states + i] === shares[b * states + i]);
    let from = 0;
    for (let row = 1; row <= rows; row += 1) {
      if (row < rows && isSame(row, from)) continue;
      let { x } = box;
      LANE_STATES.forEach((state, i) => {
        const w = (shares[from * states + i] ?? 0) * box.w;
        ctx.fillStyle = theme.lane[state];
        ctx.fillRect(x, box.y + from * height, w, (row - from) * height);
        x += w;
      });
      from = row;
    }
    ctx.strokeStyle = theme.line;
    ctx.lineWidth = 1;
    ctx.strokeRect(box.x - 0.5, box.y - 0.5, box.w + 1, box.h + 1);
  });
}
