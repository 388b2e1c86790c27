import { describe, expect, it } from 'vitest';
import {
  beginnings,
  gainsByPlan,
  isInForce,
  lineOf,
  mapColumns,
  polyline,
  predictionAt,
  predictionFor,
  runningTime,
} from '../../../src/panels/budget/curve';
import { expertParts } from '../../../src/panels/budget/experts';
import { runFigures, runPair, runRows } from '../../../src/panels/budget/runs';
import { enoughOf, enoughText, weightsText } from '../../../src/panels/budget/sizes';
import { MemoryBudget } from '../../../src/state/request/memory_budget';
import { SpeedHistory } from '../../../src/state/session/speed_history';
import { Toasts } from '../../../src/state/toasts';
import type { Memory, Model, Session } from '../../../src/net/types';

const tensor = (
  name: string,
  size: number,
  pinned: number,
  streamed: number,
  resident: number | null,
) => ({
  tensor_name: name,
  model_file: 0,
  file_offset: 0,
  file_bytes: size,
  mapped: true,
  resident_bytes: resident,
  pinned_bytes: pinned,
  streamed_bytes: streamed,
});

const state = (over: Partial<Memory>): Memory => ({
  phase: 'active',
  message: '',
  budget: 100 << 20,
  pin: true,
  prefetch: true,
  limit_bytes: 0,
  limit_used_bytes: 0,
  limit_source: '',
  lock_limit_bytes: null,
  plan: {
    budget_bytes: 0,
    weight_bytes: 0,
    pinned_bytes: 0,
    streamed_bytes: 0,
    expert_bytes: 0,
    expert_cache_bytes: 0,
    window_bytes: 0,
    bytes_per_token: 0,
    tokens_per_second: null,
    plain_bytes_per_token: 0,
    plain_tokens_per_second: null,
  },
  locked_bytes: 0,
  resident_bytes: 0,
  disk_bytes_per_second: null,
  compute_seconds_per_token: null,
  tokens_per_second: 2,
  bytes_per_token: 10,
  bytes_read_ahead: 0,
  late_ranges: 0,
  expert_hits: 0,
  expert_misses: 0,
  experts_predicted: 0,
  experts_predicted_right: 0,
  expert_bytes_ahead: 0,
  expert_bytes_wasted: 0,
  budget_reductions: 0,
  ...over,
});

describe('the map of the weights', () => {
  it('divides tensors among columns by bytes', () => {
    const columns = mapColumns([tensor('a', 100, 100, 0, 100), tensor('b', 300, 0, 300, 150)], 4);
    expect(columns.map(({ pinned }) => pinned)).toEqual([1, 0, 0, 0]);
    expect(columns.map(({ streamed }) => streamed)).toEqual([0, 1, 1, 1]);
    expect(columns.map(({ resident }) => resident)).toEqual([1, 0.5, 0.5, 0.5]);
    expect(columns.map(({ name }) => name)).toEqual(['a', 'b', 'b', 'b']);
  });

  it('says where residency is not known', () => {
    expect(mapColumns([tensor('a', 10, 0, 0, null)], 2).map(({ resident }) => resident)).toEqual([
      null,
      null,
    ]);
    expect(mapColumns([], 3)).toEqual([]);
  });
});

describe('the curve', () => {
  const point = (budget: number) => ({
    budget_bytes: budget,
    bytes_per_token: 0,
    tokens_per_second: budget,
    plain_bytes_per_token: 0,
    plain_tokens_per_second: 1,
  });
  it('predicts with the nearest point', () => {
    const curve = [point(10), point(20), point(30)];
    expect(predictionAt(curve, 14)?.budget_bytes).toBe(10);
    expect(predictionAt(curve, 99)?.budget_bytes).toBe(30);
    expect(predictionAt([], 1)).toBeNull();
  });
  it('predicts what the plan in force does, not its nearest point', () => {
    const { plan } = state({});
    const active = state({ budget: 100, plan: { ...plan, budget_bytes: 96, bytes_per_token: 7 } });
    const curve = [point(90)];
    const bytesAt = (budget: number, of: Memory) =>
      predictionFor(curve, budget, of)?.bytes_per_token;
    expect([bytesAt(100, active), bytesAt(96, active), bytesAt(99, active)]).toEqual([7, 7, 0]);
    expect(bytesAt(100, { ...active, phase: 'learning' })).toBe(0);
    expect(isInForce({ ...active, budget: 'auto' }, 96)).toBe(true);
  });
  it('says whether a plan gains something', () => {
    expect(gainsByPlan([point(1), point(1)])).toBe(false);
    expect(gainsByPlan([point(1), point(2)])).toBe(true);
    expect(gainsByPlan([{ ...point(2), tokens_per_second: null }])).toBe(false);
  });
  it('draws upwards', () => {
    const points = [
      { x: 0, y: 0 },
      { x: 2, y: 4 },
    ];
    expect(polyline(points, { x: 2, y: 4 }, 100, 50)).toBe('0.0,50.0 100.0,0.0');
    expect(polyline(points, { x: 0, y: 0 }, 100, 50)).toBe('0.0,50.0 0.0,50.0');
  });
});

describe('the history', () => {
  it('has the mean of every setting, and no sample without a new token', () => {
    let run = 'first';
    const budget = new MemoryBudget(
      'm',
      {} as never,
      new Toasts(),
      () => undefined,
      () => run,
      () => 7,
    );
    budget.accept(state({ phase: 'off', budget: 'off', tokens_per_second: null }));
    expect(budget.history.length).toBe(0);
    budget.accept(
      state({ phase: 'off', budget: 'off', tokens_per_second: 1, bytes_per_token: 40 }),
    );
    budget.accept(
      state({ phase: 'off', budget: 'off', tokens_per_second: 3, bytes_per_token: 20 }),
    );
    budget.accept(
      state({ phase: 'off', budget: 'off', tokens_per_second: 3, bytes_per_token: 20 }),
    );
    run = 'second';
    budget.accept(state({ tokens_per_second: 8 }));
    expect([...budget.history.setting]).toEqual([0, 0, 1]);
    expect([...budget.history.tokensPerSecond]).toEqual([1, 3, 8]);
    expect([...budget.history.bytesPerToken]).toEqual([40, 20, 10]);
    // The figures are not those of a budget that has just been set.
    expect(budget.isMeasured(state({}))).toBe(true);
    expect(budget.isMeasured(state({ budget: 50 << 20 }))).toBe(false);
    // No line joins two runs.
    expect(beginnings(budget.history.runs)).toEqual([0, 2]);
    // A second and a third of a second: two tokens in 4/3 s.
    expect(budget.settings.value).toEqual([
      { text: 'no plan', samples: 2, tokensPerSecond: 1.5, bytesPerToken: 30 },
      { text: '100 MiB, pinned and read ahead', samples: 1, tokensPerSecond: 8, bytesPerToken: 10 },
    ]);
  });
});

describe('the samples', () => {
  const sample = (i: number, run: string) => ({
    atMs: 10 * i,
    setting: i % 3,
    run,
    tokensPerSecond: i,
    bytesPerToken: 2 * i,
  });
  it('are the newest 480, in the same arrays', () => {
    const history = new SpeedHistory();
    history.push(sample(0, 'r0'));
    const before = history.atMs.buffer;
    for (let i = 1; i < 1000; i += 1) history.push(sample(i, `r${Math.floor(i / 100)}`));
    expect(history.length).toBe(480);
    expect(history.atMs.buffer).toBe(before);
    expect(Array.from(history.atMs)).toEqual(Array.from({ length: 480 }, (_, i) => 5200 + 10 * i));
    expect([history.tokensPerSecond.at(-1), history.bytesPerToken.at(-1)]).toEqual([999, 1998]);
    expect(history.setting.at(0)).toBe(520 % 3);
    expect(beginnings(history.runs)).toEqual([0, 80, 180, 280, 380]);
  });
  it('are a line per run, also of a run that is opened again', () => {
    const history = new SpeedHistory();
    ['a', 'a', 'b', 'a'].forEach((run, i) => {
      history.push(sample(i, run));
    });
    const starts = beginnings(history.runs);
    const { x, ms, gap } = runningTime(history.atMs, history.runs);
    expect(ms).toBe(10);
    const lines = starts.map((from, i) => lineOf(x, history.tokensPerSecond, from, starts[i + 1]));
    expect(lines.map((line) => line.map((one) => [one.x, one.y]))).toEqual([
      [[0, 0], [0, 0], [10, 1]],
      [[10 + gap, 2], [10 + gap, 2]],
      [[10 + gap + gap, 3], [10 + gap + gap, 3]],
    ]); // prettier-ignore
  });
  it('are over the time in which something ran', () => {
    const time = (atMs: readonly number[], runs: readonly number[]) =>
      runningTime(Float64Array.from(atMs), Int32Array.from(runs));
    const hour = 3_600_000;
    const of = time([100, 1100, hour, hour + 4000], [1, 1, 2, 2]);
    expect(of.ms).toBe(5000);
    expect(Array.from(of.x)).toEqual([0, 1000, 1000 + of.gap, 5000 + of.gap]);
    expect(of.gap).toBeCloseTo(60);
    // Runs with one sample each.
    expect(Array.from(time([5, hour, 2 * hour], [1, 2, 3]).x)).toEqual([0, 1, 2]);
  });
});

describe('the runs', () => {
  const model = { path: '/m/a.gguf', size_bytes: 9 } as Model;
  const run = (id: string, facts: Record<string, string>, more: Partial<Session> = {}) =>
    ({
      id,
      state: 'done',
      model: { path: '/m/a.gguf', size: 9, files: [] },
      facts: { 'result.generated_tokens': '8', ...facts },
      ...more,
    }) as Session;
  it('are the newest ones of the model that generated, with and without a plan', () => {
    const active = { 'memory.state': 'active', 'memory.budget': '5' };
    const pair = runPair(
      [
        run('runs', active, { state: 'running' }),
        run('other', {}, { model: { path: '/m/b.gguf', size: 9, files: [] } }),
        run('prompt', { 'result.generated_tokens': '1' }),
        run('learning', { 'memory.state': 'learning' }),
        run('new', active),
        run('old', active),
        run('plain', {}),
      ],
      model,
    );
    expect(pair.planned?.id).toBe('new');
    expect(pair.plain?.id).toBe('learning');
    expect(pair.isSamePrompt).toBe(false); // no prompt was recorded
    expect(runPair([], model)).toEqual({ plain: null, planned: null, isSamePrompt: false });
  });
  it('are of the same prompt, if there are such runs', () => {
    const active = { 'memory.state': 'active' };
    const of = (id: string, prompt: string, facts = {}) =>
      run(id, { 'request.prompt': prompt, ...facts });
    const runs = [
      of('new', 'a', active),
      of('plain', 'b'),
      of('planned', 'b', active),
      of('older', 'b'),
    ];
    const ids = ({ plain, planned, isSamePrompt }: ReturnType<typeof runPair>) => [
      planned?.id,
      plain?.id,
      isSamePrompt,
    ];
    expect(ids(runPair(runs, model))).toEqual(['planned', 'plain', true]);
    expect(ids(runPair(runs.slice(0, 2), model))).toEqual(['new', 'plain', false]);
    // Of a chat, all messages count.
    const chat = (id: string, system: string, facts = {}) =>
      run(id, { 'request.messages.0.system': system, 'request.messages.1.user': 'u', ...facts });
    expect(ids(runPair([chat('p', 's', active), chat('q', 't')], model))).toEqual([
      'p',
      'q',
      false,
    ]);
  });
  it('are compared per generated token', () => {
    const speedOf = (tokens_per_second: number) => ({
      speed: {
        tokens_per_second,
        tokens: 8,
        ns: 1,
        first_token_ns: 1,
        sample_share: null,
        prompt_tokens_per_second: null,
        prompt_tokens: 0,
        prompt_ns: 0,
      },
    });
    const plain = runFigures(speedOf(2), { rows: [[8, 8192, 80]] });
    expect(plain).toEqual({ tokensPerSecond: 2, bytesPerToken: 1024, faultsPerToken: 10 });
    const planned = runFigures(speedOf(4), { rows: [[8, 4096, null]] });
    expect(runRows(plain, planned).map((row) => [row.plain, row.planned, row.ratio])).toEqual([
      ['2 tokens/s', '4 tokens/s', '2.00 ×'],
      ['1 KiB', '512 B', '0.50 ×'],
      ['10', 'not recorded', ''],
    ]);
    expect(runRows(plain, null)[0]?.name).toBe('speed, whole run');
    expect(runRows(plain, null).map((row) => row.planned)).toEqual(['', '', '']);
    expect(runFigures({}, { rows: [[null, null, null]] }).tokensPerSecond).toBeNull();
  });
});

describe('the experts', () => {
  it('are parts of what was used, predicted and read ahead', () => {
    const of = state({
      expert_hits: 30,
      expert_misses: 10,
      experts_predicted: 0,
      expert_bytes_ahead: 4096,
      expert_bytes_wasted: 1024,
    });
    expect(expertParts(of)).toEqual([]);
    const moe = { ...of, plan: { ...of.plan, expert_bytes: 1 } };
    expect(expertParts(moe).map(({ part, whole, share }) => [part, whole, share])).toEqual([
      ['30', 'of 40 used', 0.75],
      ['0', 'of 0 predicted', null],
      ['1 KiB', 'of 4 KiB read ahead', 0.25],
    ]);
  });
});

describe('how much memory is enough', () => {
  const MIB = 1 << 20;
  const at = (mib: number, bytes: number, planned: number, plain: number) => ({
    budget_bytes: mib * MIB,
    bytes_per_token: bytes,
    tokens_per_second: planned,
    plain_bytes_per_token: bytes,
    plain_tokens_per_second: plain,
  });
  const same = [at(1, 900, 10, 10), at(2, 0, 40, 40), at(3, 0, 40, 40)];
  it('is the least with which nothing is read again', () => {
    expect(enoughOf(same)).toBe(2 * MIB);
    expect(enoughOf([at(1, 900, 10, 10)])).toBeNull();
  });
  it('says what it is of', () => {
    expect(enoughText(2 * MIB)).toMatch(/^Enough memory to read no weight twice: 2 MiB for the/);
    expect(enoughText(null)).toBe('');
    expect(weightsText(7 * MIB, 4 * MIB)).toBe(
      '7 MiB: 3 MiB in the file and 4 MiB that are repacked now',
    );
  });
});
