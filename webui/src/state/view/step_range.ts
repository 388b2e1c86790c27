// The brushed range as a condition of steps, and of what one step has. What cannot be one is returned,
// and the view says so. Pure functions.
import type { TraceData } from '../session/trace_data';
import type { AxisRange, RangeFilter } from './view';

interface StepPlace {
  readonly step: number;
  readonly token_id: number;
  readonly token_count: number;
  readonly begin_ns: number;
  readonly end_ns: number;
}

const partsOf = (range: RangeFilter | null): readonly AxisRange[] =>
  [range?.x, range?.y].flatMap((part) => (part ? [part] : []));

const nameOf = ({ axis }: AxisRange): string => `range of ${axis.replace('_', ' ')}`;

const OF_STEPS: readonly string[] = ['step', 'token', 'time'];

// Whether a part of the step, or all of it, is in the range.
export function isInRange(step: StepPlace, range: RangeFilter | null): boolean {
  return partsOf(range).every(({ axis, from, to }) => {
    if (axis === 'step') return step.step >= from && step.step < to;
    if (axis === 'token') return step.token_id < to && step.token_id + step.token_count > from;
    return axis !== 'time' || (step.begin_ns < to && step.end_ns > from);
  });
}

// The first step of the range; null: none.
export const firstInRange = (data: TraceData, range: RangeFilter | null): number | null =>
  data.steps.find((step) => step !== undefined && isInRange(step, range))?.step ?? null;

// What a list of steps cannot honour.
export const unusedOfSteps = (range: RangeFilter | null): readonly string[] =>
  partsOf(range)
    .filter(({ axis }) => !OF_STEPS.includes(axis))
    .map(nameOf);

export interface OpPlace {
  readonly layer: number | null;
  readonly begin_ns: number | null; // null: not known
  readonly end_ns: number | null;
}

// The ops of a step that are in the range, and the parts of the range that their list ignores. The
// axis of layers has a last row for the ops without one.
export function opsInRange(
  range: RangeFilter | null,
  layers: number,
): { readonly has: (op: OpPlace) => boolean; readonly unused: readonly string[] } {
  const parts = partsOf(range);
  const isLayer = ({ layer }: OpPlace, { from, to }: AxisRange): boolean =>
    layer === null ? to > layers : layer >= from && layer < to;
  const isTime = ({ begin_ns: begin, end_ns: end }: OpPlace, { from, to }: AxisRange): boolean =>
    begin === null || end === null || (begin < to && end >= from);
  return {
    has: (op) =>
      parts.every((part) =>
        part.axis === 'layer' ? isLayer(op, part) : part.axis !== 'time' || isTime(op, part),
      ),
    unused: parts.filter(({ axis }) => axis !== 'layer' && !OF_STEPS.includes(axis)).map(nameOf),
  };
}
