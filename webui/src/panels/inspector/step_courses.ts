// What a token is shown against: the course of all steps and the medians of the phases. Computed once for
// each state of the session, because it may have 150,000 steps and each selection shows them.
import type { Phase } from '../../net/types';
import type { TraceData } from '../../state/session/trace_data';
import { groupStarts, median } from './place';

type Course = readonly (number | null)[]; // means of groups of steps; null: no step of it is known

export interface StepCourses {
  readonly usual: ReadonlyMap<Phase, number>; // median duration of a step, if there are enough
  readonly duration: Course;
  readonly layers: readonly Course[]; // op time per token
}

const ENOUGH_STEPS = 3; // for a median

const made = new WeakMap<TraceData, { readonly state: string; readonly courses: StepCourses }>();

export function stepCourses(data: TraceData): StepCourses {
  const state = `${data.stepArrivals.length} ${data.stepRewrites}`;
  const known = made.get(data);
  if (known?.state === state) return known.courses;
  const courses = coursesOf(data);
  made.set(data, { state, courses });
  return courses;
}

function coursesOf(data: TraceData): StepCourses {
  const { steps } = data;
  const ofPhase = new Map<Phase, number[]>();
  const duration: (number | null)[] = [];
  const layers = Array.from({ length: data.rows() }, (): (number | null)[] => []);
  const starts = groupStarts(steps.length);
  for (let group = 0; group + 1 < starts.length; group += 1) {
    let count = 0;
    let sum = 0;
    const sums = new Float64Array(layers.length);
    for (let at = starts[group] ?? 0; at < (starts[group + 1] ?? 0); at += 1) {
      const step = steps[at];
      if (!step) continue;
      const { phase, duration_ns: time, token_count: tokens } = step;
      if (step.timing !== 'learned') {
        const times = ofPhase.get(phase);
        if (times) times.push(time);
        else ofPhase.set(phase, [time]);
      }
      if (step.dropped) continue;
      count += 1;
      sum += time;
      const { ns } = step.layers;
      for (let layer = 0; layer < sums.length; layer += 1)
        sums[layer] = (sums[layer] ?? 0) + (ns[layer] ?? 0) / tokens;
    }
    duration.push(count === 0 ? null : sum / count);
    layers.forEach((course, layer) => course.push(count === 0 ? null : (sums[layer] ?? 0) / count));
  }
  const enough = [...ofPhase].filter(([, times]) => times.length >= ENOUGH_STEPS);
  return {
    usual: new Map(enough.map(([phase, times]) => [phase, median(times)])),
    duration,
    layers,
  };
}
