import { describe, expect, it } from 'vitest';
import {
  bytesSentence,
  cleanSteps,
  cliffOf,
  disturbedSpeedSentence,
  layersText,
  layerSteps,
  memorySentence,
  machineSentence,
  orderSentence,
  repeatSentence,
  sharedExperts,
  speedSentence,
  waitSentence,
} from '../../../../src/panels/inspector/summary';
import type { Breakdown, Conditions, Determinism, Reuse, Session } from '../../../../src/net/types';

const sums = (part: Partial<Breakdown['sums']['all']>): Breakdown['sums']['all'] => ({
  bytes_read: 0,
  bytes_written: 0,
  reads: 0,
  writes: 0,
  executions: 0,
  time_ns: 0,
  faults: 0,
  bytes_per_second: null,
  ...part,
});
const breakdown = (part: Partial<Breakdown['sums']['all']>, rows: Breakdown['rows'] = []) =>
  ({
    sums: { name: 'total', all: sums(part), prompt: sums({}), generate: sums(part) },
    rows,
  }) as unknown as Breakdown;
const SESSION = { model: { size: 1_048_576 }, facts: {} } as unknown as Session;
const saved = (bytes_saved: number) => ({ reads_saved: 0, bytes_saved });
const curve = (...points: readonly [number, number][]): Reuse['curve'] =>
  points.map(([capacity_bytes, bytes]) => ({
    capacity_bytes,
    lru: saved(bytes),
    belady: saved(bytes),
    pin: saved(bytes),
  }));

describe('a summary', () => {
  it('says what a token reads', () => {
    const all = breakdown({ bytes_read: 10_485_760 });
    const weights = breakdown({ bytes_read: 5_242_880 });
    expect(bytesSentence(all, weights, { generate: 10, all: 11 }, SESSION).text).toBe(
      'A generated token reads 1 MiB, of which 512 KiB are weights (50.0 % of the model file).',
    );
    expect(bytesSentence(all, weights, { generate: 0, all: 5 }, null).text).toBe(
      'A step reads 2 MiB, of which 1 MiB are weights.',
    );
  });
  it('says where the weights are, if in several places', () => {
    const row = (name: string, bytes_read: number) => ({
      name,
      all: sums({}),
      prompt: sums({}),
      generate: sums({ bytes_read }),
    });
    const all = breakdown({ bytes_read: 4096 });
    const weights = breakdown({ bytes_read: 4096 }, [row('disk', 1024), row('repacked', 3072)]);
    expect(bytesSentence(all, weights, { generate: 1, all: 1 }, null).text).toBe(
      'A generated token reads 4 KiB, of which 4 KiB are weights: 3 KiB repacked, 1 KiB file (mapped).',
    );
  });
  it('names the slowest layers', () => {
    const layers = (...rows: readonly [string, number][]) =>
      breakdown({ time_ns: 100 }, rows.map(([name, time_ns]) => ({ name, all: sums({}), prompt: sums({}), generate: sums({ time_ns }) }))); // prettier-ignore
    expect(layersText(layers(['none', 50], ['0', 20], ['1', 30]), 'generate')).toBe(
      ' Layer 1 is the slowest: 30.0 %, then layer 0: 20.0 %.',
    );
    expect(layersText(layers(['0', 49], ['1', 50]), 'generate')).toBe(
      ' No layer is clearly the slowest: layers 1 and 0 take 50.0 % and 49.0 %.',
    );
    expect(layersText(layers(['none', 50], ['0', 0]), 'generate')).toBe('');
    const few = layersText(layers(['0', 20], ['1', 30]), 'generate', ' in 5 clean steps of 128');
    expect(few).toBe(
      ' Layer 1 is the slowest in 5 clean steps of 128: 30.0 %, then layer 0: 20.0 %.',
    );
  });
  it('does not say what bounds the speed of a disturbed run', () => {
    const rows = [
      ['MUL_MAT', 60, 6, 15],
      ['ROPE', 40, 0, 15],
    ];
    const contended = { verdict: 'contended', blocked_percent: 1 } as const;
    expect(disturbedSpeedSentence(contended, cleanSteps({ rows }), 219.4, ' L.', {}).text).toBe(
      'What limits the speed (219 tokens/s without the prompt) cannot be told, because the run was contended (other programs used the processors). In the 15 clean steps, MUL_MAT takes 60.0 % of the time, at 95.4 MiB/s. L.',
    );
  });
  it('says that the disk bounds the speed of a run that waited for it, and why', () => {
    const none = cleanSteps({ rows: [] });
    const disk = { verdict: 'disk', blocked_percent: 38.12 } as const;
    expect(disturbedSpeedSentence(disk, none, 105.2, ' L.', {}).text).toBe(
      'Reading from the disk limits the speed (105 tokens/s without the prompt): the threads waited 38.1 % of their time. No step with the usual times was clean. L.',
    );
    const facts = { 'context.memory_budget': '8388608', 'memory.state': 'active' };
    const unknown = { ...disk, blocked_percent: null };
    expect(disturbedSpeedSentence(unknown, none, null, '', facts).text).toBe(
      'Reading from the disk limits the speed because of the memory budget of 8 MiB. No step with the usual times was clean.',
    );
    const automatic = { 'context.memory_budget': 'auto', 'memory.budget': '9437184' };
    expect(disturbedSpeedSentence(disk, none, null, '', automatic).text).toMatch(
      /because of the memory budget of 9 MiB: the threads/,
    );
    for (const without of [
      { 'context.memory_budget': 'off' },
      { ...facts, 'memory.state': 'unavailable' },
      { ...facts, 'memory.state': 'fits' },
    ])
      expect(disturbedSpeedSentence(disk, none, null, '', without).text).not.toMatch(/budget/);
  });
  it('does not advise to keep all weights in memory under a budget', () => {
    const machine = {
      text: 'disk: the threads waited. --load-mode mmap+mlock keeps it there.',
      verdict: 'disk',
      phases: {},
      blocked_percent: 38.12,
      disk: { read_bytes: 1_048_576, mapped_bytes: 1, reread_factor: 1, major_faults: 172, bytes_per_fault: 1 },
      steps: { clean: 1, contended: 2, throttled: 0, disk: 7, unknown: 0 },
    } as const; // prettier-ignore
    expect(machineSentence(machine, { 'context.memory_budget': '8388608' }).text).toBe(
      'Disk: the threads waited for 38.1 % of their time in steps with 172 major page faults; 1 MiB were read. The reason is the memory budget of 8 MiB: the weights that it does not keep are read again. 9 of 10 steps are not clean.',
    );
    expect(machineSentence(machine, {}).text).toMatch(/--load-mode/);
  });
  it('says of which steps the layers are, if not of all or of many', () => {
    expect(layerSteps(0, 80)).toBe(' in all steps, waiting included');
    expect(layerSteps(1, 80)).toBe(' in 1 clean step of 80');
    expect(layerSteps(15, 128)).toBe(' in 15 clean steps of 128');
    expect(layerSteps(16, 128)).toBe('');
  });
  it('says what bounds the speed', () => {
    const row = { name: 'MUL_MAT', all: sums({}), prompt: sums({}), generate: sums({ time_ns: 60, bytes_per_second: 2_147_483_648 }) }; // prettier-ignore
    const ops = breakdown({ time_ns: 100 }, [row]);
    const steps = { generate: 4, all: 5 };
    expect(speedSentence(ops, { advice: [] }, steps, 219.4, ' L.').text).toBe(
      'Computation limits the speed (219 tokens/s without the prompt): MUL_MAT takes 60.0 % of the time, at 2 GiB/s. L.',
    );
    const report = { advice: [{ advice: 'generation is memory-bound.', because: 'b' }] };
    expect(speedSentence(ops, report, steps, null, '')).toMatchObject({ hint: 'b' });
    expect(speedSentence(ops, report, steps, null, '').text).toMatch(/^Memory bandwidth limits/);
    const waits = breakdown({ time_ns: 100, faults: 8 }, [row]);
    expect(speedSentence(waits, report, steps, null, '').text).toMatch(
      /^Reading from the disk limits the speed:/,
    );
  });
  it('says in which order the file is read', () => {
    const order = { reads: 4, sequential: 1, bytes: 200, sequential_bytes: 50 };
    expect(orderSentence({ gap: 131_072, sums: order }).text).toMatch(/^25\.0 % of the bytes/);
  });
  it('says first what the machine did', () => {
    const text = 'contended: the threads waited.';
    const steps = { clean: 9, contended: 30, throttled: 0, disk: 0, unknown: 2 };
    const contended = { text, verdict: 'contended', steps, blocked_percent: null, disk: null } as const; // prettier-ignore
    expect(machineSentence({ ...contended, phases: {} }, {}).text).toBe(
      'Contended: the threads waited.',
    );
    const generate = { step_ns: { p5: 9_000_000, median: 12_000_000, p95: 40_000_000 } };
    const phases = { generate } as unknown as Conditions['phases'];
    expect(machineSentence({ ...contended, phases }, {}).text).toBe(
      'Contended: the threads waited.',
    );
    expect(machineSentence({ ...contended, phases }, {}).hint).toMatch(
      /: a generated step takes 12 ms in the median \(p5 9 ms, p95 40 ms\)$/,
    );
  });
  it('does not call a session clean whose steps are not all clean', () => {
    const text = (contended: number, disk: number, clean: number) =>
      machineSentence(
        {
          text: 'clean: nothing else held up the evaluation.',
          verdict: 'clean',
          phases: {},
          blocked_percent: null,
          disk: null,
          steps: { clean, contended, throttled: 0, disk, unknown: 0 },
        },
        {},
      ).text;
    expect(text(0, 0, 41)).toBe('Clean: nothing else held up the evaluation.');
    expect(text(1, 0, 40)).toBe('Nearly all steps are clean; of 41 steps, 1 was contended.');
    expect(text(6, 2, 2)).toBe(
      'The session as a whole is clean; of 10 steps, 6 were contended and 2 waited for the disk.',
    );
  });
  it('says whether it repeats', () => {
    const none = { token: 0, 'kv-window': 0, experts: 0, graph: 0, unfinished: 0 };
    const pairs = (part: Partial<Determinism>) =>
      repeatSentence(
        { pairs: 4, same_weights: 4, differing: none, ...part } as Determinism,
        false,
        null,
      ).text;
    expect(pairs({})).toBe(
      'In all 4 pairs of consecutive generated tokens, both read the same weights.',
    );
    expect(pairs({ same_weights: 1, differing: { ...none, experts: 9 } })).toBe(
      'In 1 of 4 pairs of consecutive generated tokens, both read the same weights; in the others, the second used other experts.',
    );
    const shown = (hasExperts: boolean) =>
      repeatSentence(
        { pairs: 4, same_weights: 0, differing: none } as Determinism,
        hasExperts,
        null,
      );
    expect(shown(true).evidence.options).toBe('y:expert,v:accesses');
    expect(shown(false).evidence.options).toBe('y:tensor,v:bytes');
    expect(pairs({ pairs: 0 })).toMatch(/no two generated tokens/);
  });
  it('says how many experts a token shares with the one before', () => {
    const shared = sharedExperts([
      { followed: 30, turnover: 0.5 },
      { followed: 10, turnover: 1 },
      { followed: 0, turnover: null },
    ]);
    expect(shared).toBeCloseTo(15 / 40);
    expect(sharedExperts([{ followed: 0, turnover: null }])).toBeNull();
    const differing = { token: 0, 'kv-window': 0, experts: 9, graph: 0, unfinished: 0 };
    const text = (part: Partial<Determinism>) =>
      repeatSentence({ pairs: 4, same_weights: 0, differing, ...part } as Determinism, true, shared)
        .text;
    expect(text({})).toBe(
      'Each generated token reads the same weights as the one before, except experts: 37.5 % of its experts were used by the one before in the same layer, too. The map adds up the experts of all layers.',
    );
    expect(text({ differing: { ...differing, graph: 1 } })).toMatch(
      /other experts and other ops\. Of the experts of a token, 37\.5 % were also used by the token before, in the same layer\. The map/,
    );
    expect(text({ same_weights: 4 })).toBe(
      'In all 4 pairs of consecutive generated tokens, both read the same weights. The map adds up the experts of all layers.',
    );
  });
  it('says whether ops waited for the disk', () => {
    expect(waitSentence(breakdown({}), SESSION).text).toBe('Disk waits were not recorded.');
    const facts = { facts: { 'trace.page_faults': 'on' } } as unknown as Session;
    expect(waitSentence(breakdown({}), facts).text).toBe('No op waited for the disk.');
    expect(waitSentence(breakdown({ faults: 3 }), SESSION).text).toMatch(/disk 3 times/);
    expect(waitSentence(breakdown({ faults: 1 }), SESSION).text).toBe(
      'Ops waited for the disk once, while tokens were generated.',
    );
    const ofPrompt = { ...breakdown({ faults: 1 }) };
    ofPrompt.sums = { ...ofPrompt.sums, generate: breakdown({}).sums.generate };
    expect(waitSentence(ofPrompt, SESSION).text).toBe(
      'Ops waited for the disk once, not while tokens were generated.',
    );
  });
  it('finds the cliff of the memory', () => {
    const steep = curve([100, 0], [200, 10], [300, 90], [400, 95]);
    expect(cliffOf({ curve: steep })?.at.capacity_bytes).toBe(300);
    expect(cliffOf({ curve: curve([100, 0]) })).toBeNull();
    const reuse = { bytes_read: 100, curve: steep } as unknown as Reuse;
    const plain = { file: 300, repacked: 0, kv: 9, compute: 9, tokens: 64 };
    const again = 'they are read again from the disk: with 200 B and no memory budget, 90.0 % of what the ops read of them.'; // prettier-ignore
    expect(memorySentence(reuse, plain).text).toBe(
      `318 B of RAM in all are enough to read no weight from the disk twice: 300 B for the weights in the file, 9 B of KV cache (reserved for 64 tokens) and 9 B of compute buffers. With less memory for the weights, ${again}`,
    );
    expect(memorySentence(reuse, { ...plain, file: 100, repacked: 200 }).text).toBe(
      `318 B of RAM in all are enough to read no weight from the disk twice: 100 B for the weights in the file, 200 B of repacked weights, 9 B of KV cache (reserved for 64 tokens) and 9 B of compute buffers. With less memory for the weights, which then cannot be repacked, ${again}`,
    );
    const all = { bytes_read: 100, curve: curve([200, 0], [300, 99]) } as unknown as Reuse;
    expect(memorySentence(all, plain).text).toMatch(
      /: with 200 B and no memory budget, all of them for each token\.$/,
    );
    // Nothing smaller is known.
    const least = { bytes_read: 100, curve: curve([300, 90]) } as unknown as Reuse;
    expect(memorySentence(least, plain).text).toMatch(/compute buffers\.$/);
    const once = { bytes_read: 100, curve: curve([300, 0]) } as unknown as Reuse;
    expect(memorySentence(once, plain).text).toMatch(/No weight is read twice, so/);
  });
});
