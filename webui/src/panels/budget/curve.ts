// Positions in the charts of the budget panel. Pure.
import { formatSpeed } from '../../format';
import type { Memory, MemoryPlan } from '../../net/types';

export type CurvePoint = MemoryPlan['curve'][number];

// The prediction for a budget: of the nearest point. Null: there is no curve.
export function predictionAt(curve: readonly CurvePoint[], budgetBytes: number): CurvePoint | null {
  let best: CurvePoint | null = null;
  for (const point of curve) {
    const distance = Math.abs(point.budget_bytes - budgetBytes);
    if (!best || distance < Math.abs(best.budget_bytes - budgetBytes)) best = point;
  }
  return best;
}

export type Prediction = Pick<
  CurvePoint,
  'bytes_per_token' | 'tokens_per_second' | 'plain_bytes_per_token' | 'plain_tokens_per_second'
>;

// Whether a plan for this budget is carried out.
export const isInForce = ({ phase, budget, plan }: Memory, bytes: number): boolean =>
  phase === 'active' && (bytes === budget || bytes === plan.budget_bytes);

// Of the plan for this budget if it is carried out, as the points of the curve are of other budgets.
export const predictionFor = (
  curve: readonly CurvePoint[],
  bytes: number,
  state: Memory,
): Prediction | null => (isInForce(state, bytes) ? state.plan : predictionAt(curve, bytes));

// The `points` attribute of an SVG polyline in a box of `width` x `height`. `y` grows upwards.
export function polyline(
  values: readonly { readonly x: number; readonly y: number }[],
  max: { readonly x: number; readonly y: number },
  width: number,
  height: number,
): string {
  return values
    .map(({ x, y }) => {
      const px = max.x > 0 ? (x / max.x) * width : 0;
      const py = max.y > 0 ? height - (y / max.y) * height : height;
      return `${px.toFixed(1)},${py.toFixed(1)}`;
    })
    .join(' ');
}

// The rows where another value begins: the charts mark another setting, and draw a line per run,
// because nothing ran between two runs.
export const beginnings = (values: Int32Array): readonly number[] =>
  Array.from(values.keys()).filter((i) => i === 0 || values[i] !== values[i - 1]);

const GAP = 0.012; // between two runs, of the time in which something ran: a few pixels

export interface RunningTime {
  readonly x: Float64Array; // of each sample, in ms; the first is at 0
  readonly gap: number;
  readonly ms: number; // in which something ran
}

// The samples over the time in which something ran, so that a few seconds of an hour can be seen.
export function runningTime(atMs: Float64Array, runs: Int32Array): RunningTime {
  const starts = new Set(beginnings(runs));
  const since = (i: number): number => (atMs[i] ?? 0) - (atMs[i - 1] ?? 0);
  const ms = atMs.reduce((sum, _, i) => sum + (starts.has(i) ? 0 : since(i)), 0);
  const gap = GAP * ms || 1; // runs of one sample each are beside each other, too
  let at = 0;
  const x = atMs.map((_, i) => {
    if (i > 0) at += starts.has(i) ? gap : since(i);
    return at;
  });
  return { x, gap, ms };
}

// The points of a run. Its first one is there twice: a run with one sample is a dot.
export function lineOf(
  x: Float64Array,
  values: Float64Array,
  from: number,
  to?: number,
): readonly { readonly x: number; readonly y: number }[] {
  const points = Array.from(values.subarray(from, to), (y, i) => ({ x: x[from + i] ?? 0, y }));
  return [...points.slice(0, 1), ...points];
}

// Whether some budget is faster with a plan, as far as the shown figures can tell.
export const gainsByPlan = (curve: readonly CurvePoint[]): boolean =>
  curve.some(
    ({ tokens_per_second: planned, plain_tokens_per_second: plain }) =>
      planned !== null && plain !== null && formatSpeed(planned) !== formatSpeed(plain),
  );

// Speeds as heights of a logarithmic chart: those without memory pressure are many times the others.
// Null: not known.
export function logarithmic(speeds: readonly (number | null)[]): readonly number[] {
  const known = speeds.filter((speed): speed is number => speed !== null && speed > 0);
  const least = Math.log(Math.min(...known) / 1.2);
  return speeds.map((speed) => (speed !== null && speed > 0 ? Math.log(speed) - least : 0));
}

export interface MapColumn {
  readonly name: string; // the tensors, for a tooltip
  readonly pinned: number; // shares of the column's bytes
  readonly streamed: number;
  readonly resident: number | null; // null: not known
}

// The tensors of all files in order, as `columns` columns of equal size in bytes.
export function mapColumns(tensors: MemoryPlan['tensors'], columns: number): readonly MapColumn[] {
  const total = tensors.reduce((sum, { file_bytes }) => sum + file_bytes, 0);
  if (total === 0) return [];
  const width = total / columns;
  const out: {
    names: string[];
    bytes: number;
    pinned: number;
    streamed: number;
    resident: number;
    known: boolean;
  }[] = Array.from({ length: columns }, () => ({
    names: [],
    bytes: 0,
    pinned: 0,
    streamed: 0,
    resident: 0,
    known: true,
  }));
  let at = 0;
  for (const tensor of tensors) {
    const { file_bytes: size } = tensor;
    const end = at + size;
    for (let i = Math.floor(at / width); i < columns && i * width < end; i += 1) {
      const column = out[i];
      const bytes = Math.min(end, (i + 1) * width) - Math.max(at, i * width);
      if (!column || bytes <= 0 || size === 0) continue;
      const share = bytes / size;
      column.names.push(tensor.tensor_name);
      column.bytes += bytes;
      column.pinned += tensor.pinned_bytes * share;
      column.streamed += tensor.streamed_bytes * share;
      if (tensor.resident_bytes === null) column.known = false;
      else column.resident += tensor.resident_bytes * share;
    }
    at = end;
  }
  return out.map(({ names, bytes, pinned, streamed, resident, known }) => ({
    name:
      names.length > 3
        ? `${names[0] ?? ''} to ${names.at(-1) ?? ''} (${names.length} tensors)`
        : names.join(', '),
    pinned: bytes > 0 ? pinned / bytes : 0,
    streamed: bytes > 0 ? streamed / bytes : 0,
    resident: known ? (bytes > 0 ? resident / bytes : 0) : null,
  }));
}
