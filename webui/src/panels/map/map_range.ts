// The brushed range: the part that the map shows as axes is its brush, the rest is a filter. Pure
// functions.
import type { Camera } from '../../plane/camera';
import type { Hit } from '../../plane/layout';
import type { Brush } from '../../plane/paint_overlay';
import type { Range } from '../../plane/range';
import type { Scene } from '../../plane/scene';
import type { TraceData } from '../../state/session/trace_data';
import type { StepSummary } from '../../net/types';
import type { Selection } from '../../state/view/selection';
import type { AxisRange, RangeFilter } from '../../state/view/view';
import { tracksOf, type MapOptions } from './map_options';

const hasX = (options: MapOptions, axis: string): boolean => options.x === axis;
const hasY = (options: MapOptions, axis: string): boolean =>
  tracksOf(options.y).some((one) => one === axis);

// The parts of a range that the map does not show as axes.
export function filterIn(range: RangeFilter | null, options: MapOptions): RangeFilter | null {
  if (!range) return null;
  const isShown = (part: AxisRange): boolean =>
    hasX(options, part.axis) || hasY(options, part.axis);
  const x = range.x && !isShown(range.x) ? range.x : null;
  const y = range.y && !isShown(range.y) ? range.y : null;
  return x || y ? { x, y } : null;
}

// The parts of a range that the map shows as axes, as a brush.
export function brushIn(
  range: RangeFilter | null,
  options: MapOptions,
  scene: Scene | null,
): Brush | null {
  if (!range || !scene) return null;
  const parts = [range.x, range.y].flatMap((part) => (part ? [part] : []));
  const x = parts.find(({ axis }) => hasX(options, axis));
  const y = parts.find(({ axis }) => hasY(options, axis));
  if (!x && !y) return null;
  const index = y ? tracksOf(options.y).findIndex((one) => one === y.axis) : 0;
  return { x: x ?? scene.x.whole, track: index, y: y ?? null };
}

// Whether a place of the map, of a column of this step, is not in the selected range.
export function isOutside(
  range: RangeFilter | null,
  brush: Brush | null,
  { x, y, track }: Hit,
  step: StepSummary | undefined,
): boolean {
  if (brush) {
    const has = (of: Range, at: number): boolean => at >= of.from && at < of.to;
    if (!has(brush.x, x)) return true;
    if (brush.y && (track !== brush.track || y === null || !has(brush.y, y))) return true;
  }
  const of = range?.x;
  const place = of && step ? stepOn(of.axis, step) : null;
  return of && place ? place.from >= of.to || place.to <= of.from : false;
}

function stepOn(axis: string, step: StepSummary): Range | null {
  switch (axis) {
    case 'step':
      return { from: step.step, to: step.step + 1 };
    case 'token':
      return { from: step.token_id, to: step.token_id + step.token_count };
    case 'time':
      return { from: step.begin_ns, to: step.end_ns };
    default:
      return null;
  }
}

const MANY_STEPS = 20; // then an op of one step is narrower than a pixel

// The part of the x axis that is shown first; null: everything. The ops of a long session are shown
// in one step, where they can be told apart.
export function firstRange(
  { x, y }: MapOptions,
  { steps }: TraceData,
  step: number | null,
): Range | null {
  const one = step === null ? undefined : steps[step];
  if (x !== 'time' || y !== 'op' || !one || steps.length <= MANY_STEPS) return null;
  return one.end_ns > one.begin_ns ? { from: one.begin_ns, to: one.end_ns } : null;
}

// What is in view of the x axis; null: everything. Steps and tokens in view are whole ones.
export function rangeInView({ x }: Camera, options: MapOptions): RangeFilter | null {
  if (!x || options.x === 'all') return null;
  const range = { from: Math.max(0, Math.floor(x.from)), to: Math.ceil(x.to) };
  return { x: { axis: options.x, ...range }, y: null };
}

// Whether a range contains the selected token, layer or head. Other selections have figures in each.
export function liesIn(selection: Selection | null, of: RangeFilter, data: TraceData): boolean {
  return [of.x, of.y].every((part) => {
    const place = part && placeOn(part.axis, selection, data);
    return !part || !place || (place.from < part.to && place.to > part.from);
  });
}

// Where a selection is on an axis; null: it has no place there.
function placeOn(axis: string, selection: Selection | null, data: TraceData): Range | null {
  const at = (unit: number | null): Range | null =>
    unit === null ? null : { from: unit, to: unit + 1 };
  if (axis === 'layer') return at(selection && 'layer' in selection ? selection.layer : null);
  if (selection?.kind !== 'token') return null;
  if (axis === 'token') return at(selection.token);
  const step = data.stepOfToken(selection.token);
  if (axis === 'step') return at(step);
  const times = axis === 'time' && step !== null ? data.steps[step] : undefined;
  return times ? { from: times.begin_ns, to: times.end_ns } : null;
}

// A brush as a range; null: it covers everything.
export function rangeOf(brush: Brush, options: MapOptions): RangeFilter | null {
  const track = tracksOf(options.y)[brush.track];
  const part = (axis: string, { from, to }: Range): AxisRange => ({
    axis,
    from: Math.round(from),
    to: Math.round(to),
  });
  const x = options.x === 'all' ? null : part(options.x, brush.x);
  const y = brush.y && track ? part(track, brush.y) : null;
  return x || y ? { x, y } : null;
}
