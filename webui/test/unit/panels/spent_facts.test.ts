import { expect, it } from 'vitest';
import { spentFacts } from '../../../src/panels/inspector/inspect_session';
import { step } from '../make';

const texts = (part: Parameters<typeof step>[1]) =>
  spentFacts(step(3, part)).map((fact) => `${fact.name}: ${fact.value}`);

it('says what the time since the previous step was spent on', () => {
  const part = { queue_ns: 0, sample_ns: 30_000, detokenize_ns: 700 };
  const built = { build_ns: 400_000, evaluate_ns: 3_000_000, graphs_built: 1 };
  expect(texts({ ...part, ...built })).toEqual([
    'before the step: 30 µs sampling, 700 ns text',
    'graph ready after: 400 µs, built',
    'evaluation: 3 ms',
  ]);
  const first = { ...part, ...built, queue_ns: 2_000_000, graphs_built: 0 };
  expect(texts(first).slice(0, 2)).toEqual([
    'before the step: 2 ms in the queue, 30 µs sampling, 700 ns text',
    'graph ready after: 400 µs, used again',
  ]);
});

it('says nothing about what was not recorded', () => {
  expect(texts({})).toEqual([]);
});
