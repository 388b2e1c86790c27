// What of the model files is in memory, and what the plan does with them: as lanes beside the
// file track of the memory map, and as text. Pure functions.
import { formatBytes } from '../../format';
import type { MemoryPlan, Model, Residency, Session } from '../../net/types';
import { sectionsIn, type Section } from '../../plane/axis';
import { clip, spanOf, type Range } from '../../plane/range';
import type { Lane, LanePart, LaneState } from '../../plane/scene';

export type WeightState = LaneState | 'missing';

export const STATE_NAMES: Readonly<Record<WeightState, string>> = {
  pinned: 'pinned',
  streamed: 'read for every token',
  resident: 'in memory',
  missing: 'not in memory',
  copied: 'copied when loaded',
};

// A session was recorded with a model if it has its path and size.
export const isModelOf = ({ model }: Session, { path, size_bytes }: Model): boolean =>
  model?.path === path && model.size === size_bytes;

export type Weights = Pick<
  MemoryPlan,
  'tensors' | 'planned_ranges' | 'resident_ranges' | 'residency_known'
>;

// The session does not say what the plan of a budget was.
export const weightsOf = ({ tensors, resident_ranges }: Residency): Weights => ({
  tensors: tensors.map((one) => ({ ...one, pinned_bytes: 0, streamed_bytes: 0 })),
  planned_ranges: [],
  resident_ranges,
  residency_known: true,
});

// Bytes of each state; null: not known.
export interface ResidencyTotals {
  readonly size: number; // of the mapped tensors
  readonly resident: number | null;
  readonly copied: number;
  readonly pinned: number;
  readonly streamed: number;
}

export function residencyTotals({ tensors, residency_known: known }: Weights): ResidencyTotals {
  const sum = (of: (tensor: Weights['tensors'][number]) => number): number =>
    tensors.reduce((all, tensor) => all + of(tensor), 0);
  return {
    size: sum(({ mapped, file_bytes: size }) => (mapped ? size : 0)),
    resident: known ? sum(({ resident_bytes: bytes }) => bytes ?? 0) : null,
    copied: sum(({ mapped, file_bytes: size }) => (mapped ? 0 : size)),
    pinned: sum(({ pinned_bytes: bytes }) => bytes),
    streamed: sum(({ streamed_bytes: bytes }) => bytes),
  };
}

// `files`: where the files begin on the axis. The lane of the plan only if there is a plan.
export function lanesOf(plan: Weights, files: readonly Section[]): readonly Lane[] {
  const part = (
    one: { readonly model_file: number; readonly file_offset: number; readonly file_bytes: number },
    state: LaneState,
  ): LanePart => {
    const from = (files[one.model_file]?.from ?? 0) + one.file_offset;
    return { from, to: from + one.file_bytes, state };
  };
  const planned = plan.planned_ranges.map((one) => part(one, one.pinned ? 'pinned' : 'streamed'));
  const copied = plan.tensors.filter(({ mapped }) => !mapped).map((one) => part(one, 'copied'));
  const inMemory = [...plan.resident_ranges.map((one) => part(one, 'resident')), ...copied];
  inMemory.sort((a, b) => a.from - b.from);
  return [
    ...(planned.length > 0 ? [{ title: 'plan', parts: planned }] : []),
    ...(plan.residency_known || copied.length > 0 ? [{ title: 'RAM', parts: inMemory }] : []),
  ];
}

// The state of a tensor, for the tooltip. `step`: just before it; null: now.
export function residencyLines(
  plan: Weights,
  tensor: string,
  step: number | null,
): readonly (readonly [name: string, value: string])[] {
  const one = plan.tensors.find(({ tensor_name: name }) => name === tensor);
  if (!one) return [];
  const of = (bytes: number): string =>
    bytes === one.file_bytes ? 'all' : `${formatBytes(bytes)} of ${formatBytes(one.file_bytes)}`;
  const planned = [
    ...(one.pinned_bytes > 0 ? [`${of(one.pinned_bytes)} ${STATE_NAMES.pinned}`] : []),
    ...(one.streamed_bytes > 0 ? [`${of(one.streamed_bytes)} ${STATE_NAMES.streamed}`] : []),
  ];
  const resident = one.mapped
    ? one.resident_bytes === null
      ? 'not known'
      : of(one.resident_bytes)
    : STATE_NAMES.copied;
  return [
    [step === null ? 'in memory now' : `in memory before step ${step}`, resident],
    ...planned.map((text): readonly [string, string] => ['plan', text]),
  ];
}

// The share of a range that is in a state, 0 to 1.
export function shareOf({ parts }: Lane, range: Range, state: LaneState): number {
  const bytes = sectionsIn(parts, range).reduce(
    (sum, part) => (part.state === state ? sum + spanOf(clip(part, range)) : sum),
    0,
  );
  return bytes / Math.max(1, spanOf(range));
}
