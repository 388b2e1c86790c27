// What a selection cost: its time, bytes and accesses in each step, and their share of everything.
// Read from the same raster as the map: one row, step by step, of what phase, range and filter
// select.
import { computed, type ReadonlySignal } from '@preact/signals';
import type { PictureQuery, StepSummary, TraceSums } from '../../net/types';
import { pixelStart } from '../../plane/raster';
import { formatNs } from '../../format';
import { quantile } from '../../quantile';
import { ok, type Result } from '../../result';
import type { ApiError } from '../../net/api';
import { CLEAN_STEPS, parseFilter } from '../../state/view/filter';
import { isInPhase, type OpenSession } from '../../state/session/open_session';
import { perSession } from '../../state/session/per_session';
import { bothOf, filteredSums } from '../../state/view/range_query';
import type { SumQuery } from '../../state/view/sum_query';
import { Resource } from '../../state/resource';
import type { Store } from '../../state/store';
import type { View } from '../../state/view/view';

// A row of an axis of the map.
export interface Place {
  readonly axis: 'op' | 'tensor' | 'layer' | 'expert' | 'head' | 'all';
  readonly name: string; // of the row
  readonly index: number | null; // where it is expected; null: found by its name
  readonly step?: number; // only its values in this step
}

// Everything, in the session or in one step.
export const everything = (step?: number): Place => ({
  axis: 'all',
  name: 'all',
  index: 0,
  ...(step === undefined ? {} : { step }),
});

export interface Course {
  readonly value: PlaceValue;
  readonly sum: number;
  readonly share: number | null; // of all rows; null: it is all of them
  readonly perStep: readonly number[]; // beyond MAX_STEPS: means of consecutive steps
  readonly usual: number; // their median
}

export type PlaceValue = 'time' | 'bytes' | 'bytes_read' | 'bytes_written' | 'accesses' | 'faults';
const VALUES: readonly PlaceValue[] = ['time', 'bytes', 'accesses', 'faults'];
const VALUES_OF_ALL: readonly PlaceValue[] = ['time', 'bytes_read', 'bytes_written', 'accesses', 'faults']; // prettier-ignore

const WIDTH = 120; // pixels of a sparkline
const MAX_STEPS = 4096; // the server's limit of pixels in x

// The names of the rows of an axis: those that have something of what the query selects.
const rowsOf = perSession((session) => {
  const known = new Map<string, Promise<Result<readonly string[], ApiError>>>();
  return (axis: Place['axis'], query: SumQuery) => {
    const key = JSON.stringify([axis, session.data.steps.length, query]);
    const before = known.get(key);
    if (before) return before;
    const all: PictureQuery = { ...query, x: 'all', y: axis, value: 'bytes', width: 1, height: 1 };
    const loaded = session.context.api
      .heatmap(session.id, all)
      .then((picture) => (picture.ok ? ok(picture.value.y.rows) : picture));
    known.set(key, loaded);
    return loaded;
  };
});

// `whole`: the rows without any filter, which `index` counts. Several ops can have the same name.
export function rowIndex(
  { name, index }: Place,
  rows: readonly string[],
  whole: readonly string[] = rows,
): number {
  if (index !== null && rows[index] === name) return index;
  const placesIn = (list: readonly string[]): readonly number[] =>
    list.flatMap((one, i) => (one === name ? [i] : []));
  const [all, found] = [placesIn(whole), placesIn(rows)];
  const nth = found.length === all.length && index !== null ? all.indexOf(index) : 0;
  return found[Math.max(0, nth)] ?? -1;
}

// What the totals of the inspector are of: all that the view selects.
export const scopeOf = (store: Store): ReadonlySignal<{ readonly query: SumQuery; readonly missing: readonly string[] }> =>
  computed(() => filteredSums(store.navigation.view.value, store.layers.value)); // prettier-ignore

// Null: nothing of it is in what the view selects.
export function coursesOf(
  store: Store,
  session: OpenSession,
  place: Place,
): Resource<{ readonly courses: readonly Course[] | null }> {
  const { api, reconnects } = session.context;
  const query = computed(() => scopeOf(store).value.query);
  const values = place.axis === 'all' ? VALUES_OF_ALL : VALUES;
  return new Resource<{ readonly courses: readonly Course[] | null }>({
    // Read again once a second while the session grows.
    key: () => {
      const info = session.info.value;
      const grown =
        info.is === 'ready' ? `${info.value.state} ${info.value.steps ?? 0}` : 'unknown';
      return `${grown} ${JSON.stringify(query.value)}`;
    },
    load: async (signal) => {
      const asked = query.peek();
      const { axis, step } = place;
      const rows = await rowsOf(session)(axis, asked);
      if (!rows.ok) return rows;
      const whole = axis === 'op' ? await rowsOf(session)(axis, {}) : rows;
      if (!whole.ok) return whole;
      const row = rowIndex(place, rows.value, whole.value);
      if (row < 0) return ok({ courses: null });
      const [answers, ofStep] = await Promise.all([
        Promise.all(
          values.map((value) =>
            api.heatmap(
              session.id,
              {
                ...asked,
                x: 'step',
                y: axis,
                y_from: row,
                y_to: row + 1,
                value,
                width: MAX_STEPS,
                height: 1,
              },
              signal,
            ),
          ),
        ),
        axis === 'expert'
          ? api.breakdown(session.id, { ...asked, by: 'expert', limit: 10_000 }, signal)
          : step === undefined
            ? null
            : api.breakdown(
                session.id,
                { ...bothOf(asked, { from_step: step, to_step: step + 1 }), by: 'all', limit: 0 },
                signal,
              ),
      ]);
      if (ofStep && !ofStep.ok) return ofStep;
      // The time of an op is divided among the experts that it used: as the totals do, not step by step.
      const exact =
        axis === 'expert'
          ? ofStep?.value.rows.find(({ name }) => name === place.name)?.all
          : ofStep?.value.sums.all;
      const courses: Course[] = [];
      for (const [i, answer] of answers.entries()) {
        if (!answer.ok) return answer;
        const { shown, total, cells, x } = answer.value;
        const value = values[i] ?? 'time';
        const begin = (pixel: number): number => pixelStart(x, cells.length, pixel);
        const perStep = Array.from(cells, (cell, i) => cell / (begin(i + 1) - begin(i)));
        courses.push({
          value,
          sum: exact ? sumOf(value, exact) : shown,
          share: axis === 'all' ? null : total > 0 ? shown / total : 0,
          perStep,
          usual: median(perStep),
        });
      }
      return ok({ courses });
    },
    reconnects,
  });
}

function sumOf(value: PlaceValue, sums: TraceSums): number {
  const { bytes_read: read, bytes_written: written, reads, writes, time_ns: time, faults } = sums;
  const all = { time, bytes: read + written, bytes_read: read, bytes_written: written, accesses: reads + writes, faults }; // prettier-ignore
  return all[value];
}

// Values of 0 are missing.
export function median(values: readonly number[]): number {
  const sorted = Float64Array.from(values.filter((value) => value > 0)).sort();
  return quantile(sorted, 0.5) ?? 0;
}

// Where the groups of a sparkline begin among the values, and the end of the last one.
export function groupStarts(values: number): readonly number[] {
  const groups = Math.min(WIDTH, values);
  return Array.from({ length: groups + 1 }, (_, i) => Math.floor((i * values) / groups));
}

// The values of steps, as means of groups; null: none of a group is known.
export function grouped(values: readonly (number | null)[]): readonly (number | null)[] {
  if (values.length <= WIDTH) return values;
  const starts = groupStarts(values.length);
  return starts.slice(1).map((to, i) => {
    const part = values.slice(starts[i], to).filter((value) => value !== null);
    return part.length === 0 ? null : part.reduce((sum, value) => sum + value, 0) / part.length;
  });
}

// The courses without the steps that have no values: their times were lost, or the view leaves them
// out. `perStep` may have fewer values than there are steps: means of consecutive ones.
export function withGaps(
  perStep: readonly number[],
  steps: readonly (StepSummary | undefined)[],
  { phase, filter }: Pick<View, 'phase' | 'filter'>,
): readonly (number | null)[] {
  const onlyClean = parseFilter(filter).some(({ text }) => text === CLEAN_STEPS);
  const isKnown = (step: StepSummary | undefined): boolean =>
    step !== undefined &&
    !step.dropped &&
    isInPhase(step, phase) &&
    (!onlyClean || step.verdict === 'clean');
  const each = steps.length / Math.max(1, perStep.length);
  return perStep.map((value, i) => {
    if (value !== 0) return value;
    const of = steps.slice(Math.floor(i * each), Math.max(i + 1, Math.ceil((i + 1) * each)));
    return of.some(isKnown) ? value : null;
  });
}

// The parts of a line between its gaps: indices, half-open.
export function partsOfLine(
  values: readonly (number | null)[],
): readonly (readonly [from: number, to: number])[] {
  const parts: [number, number][] = [];
  values.forEach((value, i) => {
    const last = parts.at(-1);
    if (value === null) return;
    if (last?.[1] === i) last[1] = i + 1;
    else parts.push([i, i + 1]);
  });
  return parts;
}

type Disturbance = Pick<StepSummary, 'verdict' | 'cpu_wait_ns' | 'throttled_ns'>;

// What the machine did to the step, by the verdict of the server; empty: nothing.
export function slownessText(step: Disturbance | undefined): string {
  const because = disturbanceText(step);
  return because === '' ? '' : `in this step ${because}`;
}

function disturbanceText(step: Disturbance | undefined): string {
  const { verdict, cpu_wait_ns: wait, throttled_ns: throttled } = step ?? {};
  if (verdict === 'contended')
    return `the machine was busy: its threads waited ${formatNs(wait ?? 0)} for a processor`;
  if (verdict === 'throttled')
    return throttled ? `a CPU limit stopped it for ${formatNs(throttled)}` : 'the processors were slowed down'; // prettier-ignore
  return verdict === 'disk' ? 'it waited for the disk' : '';
}

// "1.4 × the median", "1.0 × the median"; empty if there is none.
export function againstMedian(value: number, of: number): string {
  if (of <= 0 || value <= 0) return '';
  const ratio = value / of;
  return `${ratio >= 10 ? ratio.toFixed(0) : ratio.toFixed(1)} × the median`;
}
