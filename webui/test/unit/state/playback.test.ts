import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { StepSummary } from '../../../src/net/types';
import { advance, opAt, passageOf, type Moment } from '../../../src/state/view/playback_time';
import { SPEEDS, readableSpeed, speedName, speedText } from '../../../src/state/view/speeds';
import { TraceData } from '../../../src/state/session/trace_data';
import type { RangeFilter } from '../../../src/state/view/view';
import { Playback } from '../../../src/state/view/playback';
import type { Store } from '../../../src/state/store';
import { server, session, startStore } from '../fake_server';
import { FakeBrowser, fails, rejected, succeeds } from '../fakes';
import { op, randomOf, step } from '../make';

// Steps of 100 ns with pauses of 50 ns: a prompt of four tokens, then one token each.
function dataOf(count: number, part: (i: number) => Partial<StepSummary> = () => ({})): TraceData {
  const data = new TraceData();
  for (let i = 0; i < count; i += 1) {
    data.addStep(
      step(i, {
        phase: i === 0 ? 'prompt' : 'generate',
        token_id: i === 0 ? 0 : i + 3,
        token_count: i === 0 ? 4 : 1,
        begin_ns: 150 * i,
        end_ns: 150 * i + 100,
        ...part(i),
      }),
    );
  }
  return data;
}

const range = (axis: string, from: number, to: number): RangeFilter => ({
  x: { axis, from, to },
  y: null,
});

describe('what is played', () => {
  const data = dataOf(6);
  it('is everything, or the phase', () => {
    expect(passageOf(data, 'all', null)).toEqual({ first: 0, last: 5, fromNs: 0, toNs: 850 });
    expect(passageOf(data, 'generate', null)).toMatchObject({ first: 1, last: 5, fromNs: 150 });
    expect(passageOf(data, 'prompt', null)).toMatchObject({ first: 0, last: 0, toNs: 100 });
    expect(passageOf(new TraceData(), 'all', null)).toBeNull();
  });

  it('is the brushed range of tokens, steps or time', () => {
    expect(passageOf(data, 'all', range('token', 5, 7))).toMatchObject({ first: 2, last: 3 });
    expect(passageOf(data, 'all', range('token', 1, 2))).toMatchObject({ first: 0, last: 0 });
    expect(passageOf(data, 'all', range('step', 1, 3))).toMatchObject({ first: 1, last: 2 });
    expect(passageOf(data, 'all', range('time', 170, 310))).toEqual({
      first: 1,
      last: 2,
      fromNs: 170,
      toNs: 310,
    });
    expect(passageOf(data, 'all', range('layer', 0, 1))).toMatchObject({ first: 0, last: 5 });
    expect(passageOf(data, 'prompt', range('step', 1, 3))).toBeNull();
  });
});

describe('time', () => {
  const data = dataOf(6);
  const whole = passageOf(data, 'all', null);
  if (!whole) throw new Error('no steps');
  const from = (at: Moment, by: number, loop = false): Moment | null =>
    advance(data, 'all', at, by, whole, loop);

  it('passes in a step, and skips the pauses between steps', () => {
    expect(from({ step: 0, ns: 20 }, 30)).toEqual({ step: 0, ns: 50 });
    expect(from({ step: 0, ns: 90 }, 30)).toEqual({ step: 1, ns: 170 });
    expect(from({ step: 0, ns: 0 }, 320)).toEqual({ step: 3, ns: 470 });
  });

  it('ends, or starts again', () => {
    expect(from({ step: 5, ns: 840 }, 30)).toBeNull();
    expect(from({ step: 5, ns: 840 }, 30, true)).toEqual({ step: 0, ns: 0 });
    const part = { first: 1, last: 2, fromNs: 170, toNs: 310 };
    expect(advance(data, 'all', { step: 2, ns: 305 }, 5, part, true)).toEqual({ step: 1, ns: 170 });
  });

  it('passes steps of other phases', () => {
    const mixed = dataOf(5, (i) => ({ phase: i % 2 === 0 ? 'prompt' : 'generate' }));
    const passage = passageOf(mixed, 'prompt', null);
    if (!passage) throw new Error('no steps');
    expect(advance(mixed, 'prompt', { step: 0, ns: 90 }, 20, passage, false)).toEqual({
      step: 2,
      ns: 310,
    });
  });

  it('ends also if no step has a time', () => {
    const empty = dataOf(5, () => ({ begin_ns: 0, end_ns: 0 }));
    const passage = passageOf(empty, 'all', null);
    if (!passage) throw new Error('no steps');
    expect(advance(empty, 'all', { step: 0, ns: 0 }, 1, passage, false)).toBeNull();
  });

  it.each([1, 2, 3])('adds up: many small advances are one large one (seed %i)', (seed) => {
    const random = randomOf(seed);
    let at: Moment = { step: 0, ns: 0 };
    let sum = 0;
    for (let i = 0; i < 40; i += 1) {
      const by = Math.floor(14 * random());
      sum += by;
      at = from(at, by) ?? at;
    }
    expect(at).toEqual(from({ step: 0, ns: 0 }, sum));
  });
});

describe('the op at a time', () => {
  const ops = [0, 1, 2].map((i) => op(i, { timestamp_ns: 100 + 10 * i }));
  it.each([
    [0, 0],
    [100, 0],
    [109, 0],
    [110, 1],
    [125, 2],
    [1e9, 2],
  ])('%d is op %d', (ns, index) => {
    expect(opAt(ops, ns)?.op).toBe(index);
  });
  it('is none if the times were lost', () => {
    expect(opAt([], 3)).toBeNull();
    expect(opAt([op(0, { duration_ns: null })], 3)).toBeNull();
  });
});

describe('speeds', () => {
  it('are chosen so that a step can be watched', () => {
    expect(readableSpeed(100e6)).toBe(0.02); // 100 ms take 5 s
    expect(readableSpeed(1e6)).toBe(0.0002);
    expect(readableSpeed(0)).toBe(SPEEDS[0]);
    expect(readableSpeed(60e9)).toBe(10);
  });
  it.each([
    [0.0001, '1/10 000'],
    [0.05, '1/20'],
    [1, '1×'],
    [10, '10×'],
  ])('%d is %s', (speed, text) => {
    expect(speedText(speed)).toBe(text);
  });

  it('keeps the words of slow motion', () => {
    expect(speedName(0.0001)).toBe('slow motion (1/10 000)');
    expect(speedName(1)).toBe('1× real time');
    expect(speedName(2)).toBe('2× speed');
  });
});

describe('playback', () => {
  let store: Store;
  let playback: Playback;
  let frames: ((nowMs: number) => void)[] = [];
  let nowMs = 0;

  // Passes time in frames of 50 ms.
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 50) {
      nowMs += 50;
      const now = frames;
      frames = [];
      for (const frame of now) frame(nowMs);
      await vi.advanceTimersByTimeAsync(0);
    }
  };
  const view = () => store.navigation.view.peek();

  beforeEach(async () => {
    vi.useFakeTimers();
    [frames, nowMs] = [[], 1000];
    // Three steps of 1 ms with ten ops of 0.1 ms.
    const steps = [0, 1, 2].map((i) =>
      step(i, { begin_ns: 2e6 * i, end_ns: 2e6 * i + 1e6, ops_timed: 10 }),
    );
    const api = server({ sessions: [session('a', { steps: 3 })], steps });
    store = await startStore(
      {
        ...api,
        ops: (_id, index) =>
          succeeds(
            Array.from({ length: 10 }, (_, i) =>
              op(i, { step: index, timestamp_ns: 2e6 * index + 1e5 * i, op_layer_id: i >> 2 }),
            ),
          ),
      },
      new FakeBrowser('#1&session=a'),
    );
    playback = new Playback(store.open, store.navigation, {
      request: (frame) => frames.push(frame),
      cancel: () => {
        frames = [];
      },
    });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('plays the ops from the start, with their layers, and ends with the last one', async () => {
    playback.play();
    expect(playback.playing.value).toBe(true);
    expect(view()).toMatchObject({ step: 0, speed: 0.0002 }); // 1 ms takes 5 s
    await pass(150);
    expect(view().selection).toEqual({ kind: 'op', op: 0 });
    await pass(2000);
    expect(view()).toMatchObject({ step: 0, selection: { kind: 'op', op: 4 }, layer: 1 });
    await pass(13_000);
    expect(view()).toMatchObject({ step: 2, selection: { kind: 'op', op: 9 } });
    expect(playback.playing.value).toBe(false);
  });

  it('of fast steps shows their tokens', async () => {
    store.navigation.change({ speed: 0.01 }, 'replace'); // a step takes 0.1 s
    playback.play();
    await pass(200);
    expect(view()).toMatchObject({ step: 1, selection: { kind: 'token', token: 1 } });
    await pass(300);
    expect(playback.playing.value).toBe(false);
  });

  it('repeats the brushed range in a loop, until it is paused', async () => {
    store.navigation.change({
      range: { x: { axis: 'step', from: 1, to: 2 }, y: null },
      loop: true,
    });
    playback.play();
    expect(view().step).toBe(1);
    const seen = new Set<number>();
    for (let i = 0; i < 24; i += 1) {
      await pass(500);
      expect(view().step).toBe(1);
      const { selection } = view();
      if (selection?.kind === 'op') seen.add(selection.op);
    }
    expect(seen.size).toBe(10);
    playback.toggle();
    const before = view();
    await pass(500);
    expect(view()).toBe(before);
  });

  it('of a video begins at the start, also from the middle, and ends once, also of a loop', async () => {
    store.navigation.change({ step: 2, loop: true }, 'replace');
    playback.playOnce();
    expect(view()).toMatchObject({ step: 0, loop: false });
    await pass(20_000);
    expect(view()).toMatchObject({ step: 2, selection: { kind: 'op', op: 9 } });
    expect(playback.playing.value).toBe(false);
  });

  it('goes on from the op or step that the user selects', async () => {
    playback.play();
    await pass(300);
    store.navigation.change({ step: 1, selection: { kind: 'op', op: 6 } });
    await pass(300);
    expect(view()).toMatchObject({ step: 1, selection: { kind: 'op', op: 6 } });
    await pass(400);
    expect(view()).toMatchObject({ step: 1, selection: { kind: 'op', op: 7 } });
    store.navigation.toStep(null); // follows the newest step
    await pass(100);
    expect(playback.playing.value).toBe(false);
  });

  it('moves by single ops, also to the next and the previous step', async () => {
    store.navigation.toStep(0);
    playback.moveOp(1, 'push');
    expect(view().selection).toEqual({ kind: 'op', op: 0 });
    await vi.advanceTimersByTimeAsync(0);
    playback.moveOp(-1, 'push'); // there is no earlier step
    expect(view()).toMatchObject({ step: 0, selection: { op: 0 } });
    for (let i = 0; i < 10; i += 1) playback.moveOp(1, 'push');
    expect(view()).toMatchObject({ step: 1, selection: { op: 0 } });
    playback.moveOp(-1, 'push');
    expect(view()).toMatchObject({ step: 0, selection: { op: 9 }, layer: 2 });
  });

  it('goes to a part of a step', () => {
    playback.seek(1.45);
    expect(view()).toMatchObject({ step: 1, selection: { op: 4 } });
    playback.seek(99);
    expect(view()).toMatchObject({ step: 2, selection: { op: 9 } });
  });

  it('the layer keys move a selected op to the next layer', async () => {
    playback.seek(0);
    await vi.advanceTimersByTimeAsync(0);
    store.moveLayer(1, false);
    expect(view()).toMatchObject({ layer: 1, selection: { kind: 'op', op: 4 } });
  });

  it('waits while the ops of a step cannot be read', async () => {
    const { api } = store.open.peek()?.context ?? {};
    if (!api) throw new Error('no session');
    const isBroken = vi.spyOn(api, 'ops').mockReturnValue(fails(rejected(404)));
    store.navigation.change({ step: 1, selection: null });
    playback.play();
    await pass(1000);
    expect(view()).toMatchObject({ step: 1, selection: null });
    isBroken.mockRestore();
    await pass(1000);
    expect(view().selection).toEqual({ kind: 'op', op: 1 });
  });
});
