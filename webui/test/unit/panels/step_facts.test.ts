import { expect, it } from 'vitest';
import { memoryFacts, spentFacts } from '../../../src/panels/inspector/inspect_session';
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

it('says what the process read from disks, and what waited', () => {
  const facts = memoryFacts(
    step(3, {
      disk_read_bytes: 3 << 20,
      reread_factor: 0.875,
      bytes_per_fault: 131_072,
      minor_faults: 12,
      pressure_io_ns: 2_000_000,
      pressure_memory_ns: 0,
      resident_bytes: 5 << 20,
    }),
  );
  expect(facts.map((fact) => `${fact.name}: ${fact.value}`)).toEqual([
    'read from disks: 3 MiB, 0.88 times the weights that the step read, 128 KiB per major page fault',
    'minor page faults: 12',
    'tasks waited: 2 ms for a disk',
    'weights in memory: 5 MiB',
  ]);
  expect(memoryFacts(step(3))).toEqual([]);
});
