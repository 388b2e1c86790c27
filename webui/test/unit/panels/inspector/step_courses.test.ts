import { describe, expect, it } from 'vitest';
import type { StepSummary } from '../../../../src/net/types';
import { grouped } from '../../../../src/panels/inspector/place';
import { stepCourses } from '../../../../src/panels/inspector/step_courses';
import { TraceData } from '../../../../src/state/session/trace_data';
import { step } from '../../make';

const LAYERS = 3;

const stepAt = (index: number): StepSummary =>
  step(index, {
    phase: index < 4 ? 'prompt' : 'generate',
    timing: index % 17 === 0 ? 'learned' : 'fast',
    token_count: index < 4 ? 8 : 1,
    dropped: index % 13 === 5,
    duration_ns: 1000 + ((index * 7919) % 5000),
    layers: {
      ns: Array.from({ length: LAYERS }, (_, layer) => 10 * layer + (index % 11)),
      bytes: Array.from({ length: LAYERS }, () => 1),
    },
  });

function dataOf(count: number, but: (index: number) => boolean = () => false): TraceData {
  const data = new TraceData();
  for (let index = 0; index < count; index += 1) if (!but(index)) data.addStep(stepAt(index));
  return data;
}

// Each value of each step, as one would write it down.
function plain(data: TraceData, valueOf: (step: StepSummary) => number) {
  return grouped(Array.from(data.steps, (one) => (one && !one.dropped ? valueOf(one) : null)));
}

const near = (values: readonly (number | null)[]) =>
  values.map((value) => (value === null ? null : Number(value.toFixed(6))));

describe('the courses of the steps', () => {
  it.each([1, 50, 120, 121, 1000])('of %i steps are the means of their groups', (count) => {
    const data = dataOf(count, (index) => index % 29 === 3);
    const { duration, layers } = stepCourses(data);
    expect(near(duration)).toEqual(near(plain(data, (one) => one.duration_ns)));
    expect(layers).toHaveLength(LAYERS);
    layers.forEach((course, layer) => {
      const each = plain(data, (one) => (one.layers.ns[layer] ?? 0) / one.token_count);
      expect(near(course)).toEqual(near(each));
    });
  });

  it('have the median of each phase, without steps whose graph was learned', () => {
    const data = dataOf(400);
    const times = data.steps
      .flatMap((one) =>
        one?.phase === 'generate' && one.timing !== 'learned' ? [one.duration_ns] : [],
      ) // prettier-ignore
      .sort((a, b) => a - b);
    const { usual } = stepCourses(data);
    expect(usual.get('generate')).toBe(times[Math.ceil(times.length / 2) - 1]);
    expect(usual.has('prompt')).toBe(true); // three of four
    expect(stepCourses(dataOf(3)).usual.size).toBe(0);
  });

  it('are computed once for each state of the session', () => {
    const data = dataOf(20);
    const before = stepCourses(data);
    expect(stepCourses(data)).toBe(before);
    data.addStep(stepAt(20));
    const after = stepCourses(data);
    expect(after.duration).toHaveLength(21);
    data.addStep({ ...stepAt(20), duration_ns: 5 }); // replaced
    expect(stepCourses(data).duration.at(-1)).toBe(5);
  });
});
