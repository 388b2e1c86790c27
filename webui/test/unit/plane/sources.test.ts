import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Picture } from '../../../src/net/frames';
import type { ApiResult } from '../../../src/net/api';
import { LiveSource } from '../../../src/plane/sources/live_source';
import { Pyramid } from '../../../src/plane/sources/pyramid';
import { RowFiguresSource, type FiguresWanted } from '../../../src/plane/sources/row_figures';
import {
  ServerSource,
  isEnough,
  requestFor,
  type PictureRequest,
} from '../../../src/plane/sources/server_source';
import { Mark, ColumnMarks } from '../../../src/plane/sources/column_marks';
import { ColumnValues } from '../../../src/plane/sources/column_values';
import { err, ok } from '../../../src/result';
import { TraceData } from '../../../src/state/session/trace_data';
import { op, randomOf, step, token } from '../make';

function dataOf(steps: readonly ReturnType<typeof step>[]): TraceData {
  const data = new TraceData();
  for (const one of steps) data.addStep(one);
  return data;
}
function valuesOf(
  data: TraceData,
  metric: 'ns' | 'bytes' = 'ns',
  phase: 'all' | 'prompt' | 'generate' = 'all',
): ColumnValues {
  const values = new ColumnValues(metric, phase, 'token');
  values.update(data);
  return values;
}

describe('Pyramid', () => {
  it.each(['sum', 'max'] as const)(
    'has the %s of every range, after changes anywhere',
    (combine) => {
      const random = randomOf(11);
      const pyramid = new Pyramid(2, combine);
      const plain: number[] = [];
      for (let round = 0; round < 60; round += 1) {
        for (let i = 0; i < 5; i += 1) {
          const unit = Math.floor((plain.length / 2 + 3) * random());
          while (plain.length <= 2 * unit + 1) plain.push(0);
          const value = Math.floor(100 * random());
          pyramid.set(unit, unit % 2, value);
          plain[2 * unit + (unit % 2)] = value;
        }
        pyramid.update();
        const units = plain.length / 2;
        const first = Math.floor(units * random());
        const last = first + Math.ceil((units - first) * random());
        const into = new Float32Array(2);
        pyramid.query(first, last, into);
        const wanted = [0, 1].map((i) =>
          plain
            .filter((_, at) => at % 2 === i && at >= 2 * first && at < 2 * last)
            .reduce((a, b) => (combine === 'sum' ? a + b : Math.max(a, b)), 0),
        );
        expect([...into]).toEqual(wanted);
      }
    },
  );
});

describe('ColumnValues', () => {
  it('divide a step among its tokens', () => {
    const values = valuesOf(
      dataOf([step(0, { token_id: 0, token_count: 2 }), step(1, { token_id: 2 })]),
    );
    expect([0, 1, 2].map((at) => values.value(at, 2))).toEqual([15, 15, 30]);
    expect(values.units).toBe(3);
  });

  it('have one column of each step, with all of its tokens', () => {
    const data = dataOf([step(0, { token_id: 0, token_count: 2 }), step(1, { token_id: 2 })]);
    const values = new ColumnValues('ns', 'all', 'step');
    values.update(data);
    expect([0, 1].map((at) => values.value(at, 2))).toEqual([30, 30]);
    expect(values.units).toBe(2);
  });

  it('have the sum of all cells, of the chosen phase', () => {
    const data = dataOf([
      step(0, { phase: 'prompt', token_id: 0, token_count: 2 }),
      step(1, { token_id: 2 }),
    ]);
    for (const [phase, units] of [['all', [0, 1, 2]], ['prompt', [0, 1]]] as const) {
      const values = valuesOf(data, 'ns', phase);
      const rows = Array.from({ length: values.rows }, (_, row) => row);
      const sum = units.flatMap((at) => rows.map((row) => values.value(at, row))).reduce((a, b) => a + b);
      expect(sum).toBeGreaterThan(0);
      expect(values.total()).toBe(sum);
    }
  }); // prettier-ignore

  it('have the column of the first step from its first op on', () => {
    const data = dataOf([]);
    const frame = { subscription: 1, step: 0, firstOp: 0, complete: false, withdrawn: false };
    data.addOps({ ...frame, op: Uint32Array.of(0), beginNs: Float64Array.of(0), endNs: Float64Array.of(5) }); // prettier-ignore
    for (const unit of ['step', 'token'] as const) {
      const values = new ColumnValues('ns', 'all', unit);
      values.update(data);
      expect(values.units).toBe(1);
    }
    const generated = new ColumnValues('ns', 'generate', 'step');
    generated.update(data);
    expect(generated.units).toBe(0);
  });

  it('have both steps of a token that encoder and decoder processed', () => {
    const encode = step(0, { phase: 'encode', token_id: 0, token_count: 2 });
    const decode = step(1, { phase: 'prompt', token_id: 0, token_count: 2 });
    expect(valuesOf(dataOf([encode, decode])).value(1, 0)).toBe(10);
    expect(valuesOf(dataOf([encode, decode]), 'ns', 'prompt').value(1, 0)).toBe(5);
  });

  it('have no time of a step that lost its times', () => {
    const data = dataOf([step(0, { dropped: true })]);
    expect(valuesOf(data).value(0, 0)).toBe(0);
    expect(valuesOf(data, 'bytes').value(0, 0)).toBe(1);
  });

  it('have the step in flight until its summary arrives', () => {
    const data = dataOf([step(0)]);
    data.learnTemplate(1, [op(0), op(1, { op_layer_id: 0 }), op(2, { op_layer_id: 1 })]);
    const values = valuesOf(data);
    data.addOps({
      subscription: 1,
      step: 1,
      firstOp: 0,
      complete: false,
      withdrawn: false,
      op: Uint32Array.of(0, 1),
      beginNs: Float64Array.of(0, 5),
      endNs: Float64Array.of(5, 12),
    });
    values.update(data);
    expect([values.units, values.value(1, 0), values.value(1, 2)]).toEqual([2, 7, 5]);
    expect(valuesOf(data, 'bytes').units).toBe(1);
    data.addStep(step(1));
    values.update(data);
    expect([values.units, values.value(1, 0)]).toEqual([2, 10]);
  });

  it.each([1, 2, 3])('of a growing session are those of the finished one (seed %i)', (seed) => {
    const random = randomOf(seed);
    const steps = Array.from({ length: 120 }, (_, i) =>
      step(i, {
        phase: i === 0 ? 'prompt' : 'generate',
        token_id: i === 0 ? 0 : i + 6,
        token_count: i === 0 ? 7 : 1,
        dropped: random() < 0.05,
        layers: { ns: [1, 2, 3].map(() => 1 + Math.floor(1000 * random())), bytes: [1, 2, 3] },
      }),
    );
    const order = steps.map((_, i) => i);
    for (let i = 0; i < 10; i += 1) {
      const [a, b] = [Math.floor(random() * 120), Math.floor(random() * 120)];
      [order[a], order[b]] = [order[b] ?? 0, order[a] ?? 0];
    }
    const data = new TraceData();
    const values = new ColumnValues('ns', 'all', 'token');
    for (const index of order) {
      const one = steps[index];
      if (one) data.addStep(one);
      values.update(data);
      if (random() < 0.8) continue;
      const from = Math.floor(random() * values.units);
      const x = { from, to: from + 1 + Math.floor(random() * (values.units - from)) };
      const width = 1 + Math.floor(random() * 40);
      expect(values.raster(x, width)).toEqual(valuesOf(data).raster(x, width));
    }
  });
});

describe('LiveSource', () => {
  it('makes a picture once per view', () => {
    const source = new LiveSource('ns', 'all', 'token');
    const data = dataOf([step(0), step(1)]);
    source.update(data);
    const wanted = { x: { from: 0, to: 20 }, y: { from: 0, to: 3 }, width: 500, height: 300 };
    expect(source.pictures(wanted)[0]).toBe(source.pictures({ ...wanted })[0]);
    expect(source.pictures(wanted)[0]).toMatchObject({
      x: { from: 0, to: 2 },
      width: 2,
      height: 3,
    });
    const before = source.version.value;
    data.addStep(step(2));
    source.update(data);
    expect(source.version.value).toBe(before + 1);
    expect(source.pictures(wanted)[0]?.width).toBe(3);
    expect(source.overview().width).toBe(3);
  });
});

describe('ColumnMarks', () => {
  it('have the slowest timing in a pixel, and the tokens that were not evaluated', () => {
    const marks = new ColumnMarks('token');
    const steps = Array.from({ length: 12 }, (_, i) =>
      step(i, { token_id: i + 2, timing: i === 5 ? 'learned' : 'fast' }),
    );
    marks.update(dataOf(steps));
    const { marks: codes, evaluated } = marks.pixels({ from: 0, to: 14 }, 100);
    expect([...evaluated.slice(0, 4)]).toEqual([0, 0, 1, 1]); // the first two are reused
    expect(codes[7]).toBe(Mark.learned);
    expect([...marks.pixels({ from: 2, to: 14 }, 3).marks]).toEqual([
      Mark.fast,
      Mark.learned,
      Mark.fast,
    ]);
  });
});

// ---- The server ---------------------------------------------------------------------------

const axis = (size: number, from: number, to: number, pixels: number) => ({
  axis: 'token' as const,
  unit: 'token',
  size,
  from,
  to,
  pixels,
  rows: [],
  sections: [],
});

function picture({ x, y, width, height }: PictureRequest, sizeX = 10_000, sizeY = 500): Picture {
  const [rangeX, rangeY] = [x ?? { from: 0, to: sizeX }, y ?? { from: 0, to: sizeY }];
  const [w, h] = [
    Math.min(width, rangeX.to - rangeX.from),
    Math.min(height, rangeY.to - rangeY.from),
  ];
  return {
    value: 'bytes',
    x: axis(sizeX, rangeX.from, rangeX.to, w),
    y: axis(sizeY, rangeY.from, rangeY.to, h),
    largest: 1,
    shown: 1,
    total: 1,
    damaged_steps: 0,
    left_out_steps: 0,
    width: w,
    height: h,
    cells: new Float32Array(w * h).fill(1),
  };
}

describe('ServerSource', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const view = (from: number, to: number) => ({
    x: { from, to },
    y: { from: 0, to: 500 },
    width: 800,
    height: 400,
  });

  // A server that answers after 100 ms.
  function slowServer() {
    const requests: PictureRequest[] = [];
    const aborted: PictureRequest[] = [];
    const source = new ServerSource(async (request, signal): ApiResult<Picture> => {
      requests.push(request);
      signal.addEventListener('abort', () => aborted.push(request));
      await new Promise((done) => setTimeout(done, 100));
      return ok(picture(request));
    });
    return { source, requests, aborted };
  }

  it('draws the overview until the detail of the view arrives', async () => {
    const { source, requests } = slowServer();
    void source.refresh(800, 400);
    expect(source.pictures(view(0, 10_000))).toEqual([]);
    await vi.advanceTimersByTimeAsync(100);
    expect(source.pictures(view(0, 10_000))).toHaveLength(1);
    expect(source.pictures(view(4000, 4400))).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(40);
    expect(requests[1]).toMatchObject({ x: { from: 3900, to: 4500 } });
    await vi.advanceTimersByTimeAsync(100);
    // What it covers is not drawn.
    const detail = { x: { from: 3900, to: 4500 }, width: 600 };
    expect(source.pictures(view(4000, 4400))).toMatchObject([detail]);
    expect(source.pictures(view(4300, 4700))).toMatchObject([{ width: 800 }, detail]);
    // Panning inside what was loaded in advance needs no request.
    source.pictures(view(4050, 4450));
    await vi.advanceTimersByTimeAsync(200);
    expect(requests).toHaveLength(2);
  });

  it('cancels a request that the next view supersedes', async () => {
    const { source, requests, aborted } = slowServer();
    void source.refresh(800, 400);
    await vi.advanceTimersByTimeAsync(100);
    for (let from = 1000; from < 3000; from += 100) {
      source.pictures(view(from, from + 200));
      await vi.advanceTimersByTimeAsync(10);
    }
    await vi.advanceTimersByTimeAsync(300);
    expect(aborted.length).toBe(requests.length - 2); // all but the overview and the last one
    expect(source.pictures(view(2900, 3100)).at(-1)?.x).toEqual({ from: 2850, to: 3150 });
  });

  it('loads what the lens magnifies beside what is in view', async () => {
    const { source, requests, aborted } = slowServer();
    void source.refresh(800, 400);
    await vi.advanceTimersByTimeAsync(100);
    source.pictures(view(1000, 1400));
    source.pictures(view(1200, 1220), 'lens');
    await vi.advanceTimersByTimeAsync(200);
    expect(requests).toHaveLength(3);
    expect(aborted).toEqual([]);
    expect(source.pictures(view(1000, 1400)).at(-1)?.x).toEqual({ from: 900, to: 1500 });
    expect(source.pictures(view(1200, 1220), 'lens').at(-1)?.x).toEqual({ from: 1195, to: 1225 });
    expect(requests).toHaveLength(3);
  });

  it('reports an error, and nothing of a cancelled request', async () => {
    const source = new ServerSource(() => Promise.resolve(err({ kind: 'offline', detail: 'x' })));
    await source.refresh(800, 400);
    expect(source.error.value?.kind).toBe('offline');
    source.destroy();
    expect(source.pictures(view(0, 10))).toEqual([]);
  });

  it('asks for no more pixels than the server allows', () => {
    const whole = { x: { from: 0, to: 1e6 }, y: { from: 0, to: 1e6 } };
    const wanted = { x: { from: 0, to: 1e5 }, y: { from: 0, to: 1e5 }, width: 3800, height: 2000 };
    const request = requestFor(wanted, whole);
    expect(request.width).toBe(4096);
    expect(request.x).toEqual({ from: 0, to: 125_000 });
  });

  it('is satisfied by a picture with all units of the axis', () => {
    const made = picture({ x: { from: 0, to: 100 }, y: null, width: 100, height: 500 });
    const raster = {
      x: { from: 0, to: 100 },
      y: { from: 0, to: 500 },
      width: 100,
      height: 500,
      cells: made.cells,
    };
    const wanted = { x: { from: 10, to: 20 }, y: { from: 0, to: 500 }, width: 1000, height: 400 };
    expect(isEnough(raster, wanted, made)).toBe(true);
    expect(isEnough({ ...raster, width: 50 }, wanted, made)).toBe(false);
    expect(isEnough(raster, { ...wanted, x: { from: 90, to: 120 } }, made)).toBe(false);
  });
});

describe('a token of the prompt', () => {
  it('is not needed for the values', () => {
    const data = dataOf([step(0)]);
    data.addToken(token(0));
    expect(valuesOf(data).units).toBe(1);
  });
});

describe('the figures of rows', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  // A server that answers after `ms`. Its figures count the requests.
  function figureServer(ms = 100) {
    const requests: FiguresWanted[] = [];
    const aborted: FiguresWanted[] = [];
    const load = async (wanted: FiguresWanted, signal: AbortSignal): ApiResult<Picture> => {
      requests.push(wanted);
      const units = requests.length;
      signal.addEventListener('abort', () => aborted.push(wanted));
      await new Promise((done) => setTimeout(done, ms));
      const one = [1];
      return ok({
        ...picture({ x: wanted.x, y: null, width: 1, height: 1 }),
        row_figures: { phase: 'generate', units, left_out: 0, times: null, mean: one, p5: one, median: one, p95: one }, // prettier-ignore
      });
    };
    return { source: new RowFiguresSource(load), load, requests, aborted };
  }
  const all: FiguresWanted = { x: null, y: null };
  const part = (from: number): FiguresWanted => ({ x: { from, to: from + 10 }, y: null });

  it('are asked for once for each view that stays, and shown until the next ones arrive', async () => {
    const { source, requests, aborted } = figureServer();
    for (let frame = 0; frame < 60; frame += 1) {
      source.of(all);
      await vi.advanceTimersByTimeAsync(16);
    }
    expect(requests).toEqual([all]);
    expect(source.of(all)).toMatchObject({ x: null, of: { units: 1 } });
    // A movement: no more than a request every 40 ms, all but the last cancelled.
    for (let frame = 0; frame < 60; frame += 1) {
      expect(source.of(part(frame))).toMatchObject({ of: { units: 1 } });
      await vi.advanceTimersByTimeAsync(16);
    }
    await vi.advanceTimersByTimeAsync(200);
    expect(requests.length).toBeLessThan(26);
    expect(aborted.length).toBe(requests.length - 2);
    expect(source.of(part(59))).toMatchObject({ x: part(59).x });
  });

  it('are asked for again when the session has grown, also during a slow answer', async () => {
    const { source, requests, aborted } = figureServer(3000);
    source.of(all);
    for (let second = 0; second < 10; second += 1) {
      await vi.advanceTimersByTimeAsync(1000);
      source.outdate();
    }
    expect(aborted).toEqual([]);
    expect(requests.length).toBeLessThanOrEqual(2); // half of the time is free
    await vi.advanceTimersByTimeAsync(20_000);
    const asked = requests.length;
    expect(source.of(all)).toMatchObject({ of: { units: asked } });
    await vi.advanceTimersByTimeAsync(20_000);
    expect(requests).toHaveLength(asked);
  });

  it('are not shown of a view that has no answer', async () => {
    const { load } = figureServer();
    let isOffline = false;
    const source = new RowFiguresSource((wanted, signal) =>
      isOffline ? Promise.resolve(err({ kind: 'offline', detail: '' })) : load(wanted, signal),
    );
    source.of(all);
    await vi.advanceTimersByTimeAsync(300);
    expect(source.of(all)).not.toBeNull();
    isOffline = true;
    source.of(part(1));
    await vi.advanceTimersByTimeAsync(100);
    expect(source.of(part(1))).toBeNull();
    expect(vi.getTimerCount()).toBe(0);
  });
});
