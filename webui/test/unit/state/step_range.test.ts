import { describe, expect, it } from 'vitest';
import {
  firstInRange,
  isInRange,
  opsInRange,
  unusedOfSteps,
} from '../../../src/state/view/step_range';
import { TraceData } from '../../../src/state/session/trace_data';
import type { RangeFilter } from '../../../src/state/view/view';
import { step } from '../make';

const range = (axis: string, from: number, to: number): RangeFilter => ({
  x: { axis, from, to },
  y: null,
});

describe('a range', () => {
  const prompt = step(0, { token_id: 0, token_count: 5, begin_ns: 100, end_ns: 200 });
  const next = step(1, { token_id: 5, begin_ns: 200, end_ns: 260 });

  it.each([
    ['step', 0, 1, true, false],
    ['step', 1, 9, false, true],
    ['token', 4, 5, true, false],
    ['token', 4, 6, true, true],
    ['time', 150, 200, true, false],
    ['time', 199, 201, true, true],
    ['layer', 7, 8, true, true], // of what a step has
  ] as const)('of %s %d to %d has these steps', (axis, from, to, first, second) => {
    expect([prompt, next].map((one) => isInRange(one, range(axis, from, to)))).toEqual([first, second]); // prettier-ignore
  });

  it('has a first step, or none', () => {
    const data = new TraceData();
    data.addStep(prompt);
    data.addStep(next);
    expect(firstInRange(data, range('token', 5, 9))).toBe(1);
    expect(firstInRange(data, range('token', 50, 90))).toBeNull();
    expect(firstInRange(data, null)).toBe(0);
  });

  it('has these ops, and those without a layer in the last row', () => {
    const place = (layer: number | null, begin: number | null = null) => ({
      layer,
      begin_ns: begin,
      end_ns: begin === null ? null : begin + 10,
    });
    const { has } = opsInRange(range('layer', 3, 5), 4);
    expect([2, 3, 4, null].map((layer) => has(place(layer)))).toEqual([false, true, true, true]);
    expect(opsInRange(range('layer', 0, 4), 4).has(place(null))).toBe(false);
    const times = opsInRange(range('time', 100, 200), 4);
    expect([80, 90, 199, 200, null].map((at) => times.has(place(0, at)))).toEqual([false, true, true, false, true]); // prettier-ignore
  });

  it('that cannot be honoured is reported', () => {
    expect(unusedOfSteps(range('layer', 0, 1))).toEqual(['range of layer']);
    expect(unusedOfSteps(range('token', 0, 1))).toEqual([]);
    expect(opsInRange(range('op_kind', 0, 1), 4).unused).toEqual(['range of op kind']);
    expect(opsInRange(range('step', 0, 1), 4).unused).toEqual([]);
  });
});
