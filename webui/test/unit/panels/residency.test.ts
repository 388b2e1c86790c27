import { describe, expect, it } from 'vitest';
import type { MemoryPlan, Model, Session } from '../../../src/net/types';
import {
  isModelOf,
  lanesOf,
  residencyLines,
  residencyTotals,
  shareOf,
  weightsOf,
} from '../../../src/panels/map/residency';
import { axisOf } from '../../../src/plane/axis';
import { hitAt, laneBox, planeLayout, zoneAt } from '../../../src/plane/layout';
import { wholeCamera } from '../../../src/plane/camera';
import { LANE_STATES, laneShares } from '../../../src/plane/paint_lanes';

const KIB = 1024;

// Two files: a 10 KiB tensor that is pinned in part, one that was copied, and one in the second file.
const plan: MemoryPlan = {
  tensors: [
    { tensor_name: 'a', model_file: 0, file_offset: 2 * KIB, file_bytes: 10 * KIB, mapped: true, resident_bytes: 6 * KIB, pinned_bytes: 4 * KIB, streamed_bytes: 6 * KIB },
    { tensor_name: 'b', model_file: 0, file_offset: 12 * KIB, file_bytes: 4 * KIB, mapped: false, resident_bytes: null, pinned_bytes: 0, streamed_bytes: 0 },
    { tensor_name: 'c', model_file: 1, file_offset: 0, file_bytes: 8 * KIB, mapped: true, resident_bytes: 8 * KIB, pinned_bytes: 0, streamed_bytes: 0 },
  ],
  planned_ranges: [
    { model_file: 0, file_offset: 2 * KIB, file_bytes: 4 * KIB, pinned: true },
    { model_file: 0, file_offset: 6 * KIB, file_bytes: 6 * KIB, pinned: false },
  ],
  resident_ranges: [
    { model_file: 0, file_offset: 2 * KIB, file_bytes: 6 * KIB },
    { model_file: 1, file_offset: 0, file_bytes: 8 * KIB },
  ],
  resident_unit_bytes: 1,
  residency_known: true,
  curve: [],
  disk_measured: false,
}; // prettier-ignore
const files = [
  { name: 'one', from: 0, to: 16 * KIB },
  { name: 'two', from: 16 * KIB, to: 24 * KIB },
];
const whole = { from: 0, to: 24 * KIB };

describe('the residency of the weights', () => {
  it('has lanes over all files', () => {
    expect(lanesOf(plan, files)).toEqual([
      {
        title: 'plan',
        parts: [
          { from: 2 * KIB, to: 6 * KIB, state: 'pinned' },
          { from: 6 * KIB, to: 12 * KIB, state: 'streamed' },
        ],
      },
      {
        title: 'RAM',
        parts: [
          { from: 2 * KIB, to: 8 * KIB, state: 'resident' },
          { from: 12 * KIB, to: 16 * KIB, state: 'copied' },
          { from: 16 * KIB, to: 24 * KIB, state: 'resident' },
        ],
      },
    ]);
  });

  it('has no lane of a plan without a plan, and none of memory where nothing is known', () => {
    const unknown = { ...plan, planned_ranges: [], resident_ranges: [], residency_known: false };
    expect(lanesOf({ ...unknown, tensors: [] }, files)).toEqual([]);
    expect(lanesOf(unknown, files).map(({ title }) => title)).toEqual(['RAM']);
  });

  it('has the totals of all tensors', () => {
    expect(residencyTotals(plan)).toEqual({
      size: 18 * KIB,
      resident: 14 * KIB,
      copied: 4 * KIB,
      pinned: 4 * KIB,
      streamed: 6 * KIB,
    });
    expect(residencyTotals({ ...plan, residency_known: false }).resident).toBeNull();
  });

  it('describes a tensor', () => {
    expect(residencyLines(plan, 'a', null)).toEqual([
      ['in memory now', '6 KiB of 10 KiB'],
      ['plan', '4 KiB of 10 KiB pinned'],
      ['plan', '6 KiB of 10 KiB read for every token'],
    ]);
    expect(residencyLines(plan, 'b', null)).toEqual([['in memory now', 'copied when loaded']]);
    expect(residencyLines(plan, 'c', null)).toEqual([['in memory now', 'all']]);
    expect(residencyLines(plan, 'd', null)).toEqual([]);
  });
  it('can be that of a snapshot, which has no plan', () => {
    const { tensors, resident_ranges } = plan;
    const weights = weightsOf({ step: 3, timestamp_ns: 0, resident_unit_bytes: 1, resident_ranges, tensors }); // prettier-ignore
    expect(lanesOf(weights, files).map(({ title }) => title)).toEqual(['RAM']);
    expect(residencyTotals(weights)).toMatchObject({ resident: 14 * KIB, pinned: 0, streamed: 0 });
    expect(residencyLines(weights, 'a', 3)).toEqual([
      ['in memory before step 3', '6 KiB of 10 KiB'],
    ]);
  });

  it('is that of the model with the same path and size', () => {
    const session = { model: { path: '/m.gguf', size: 7, files: [] } } as unknown as Session;
    const model = { path: '/m.gguf', size_bytes: 7 } as Model;
    expect(isModelOf(session, model)).toBe(true);
    expect(isModelOf(session, { ...model, size_bytes: 8 })).toBe(false);
    expect(isModelOf(session, { ...model, path: '/n.gguf' })).toBe(false);
    expect(isModelOf({} as Session, model)).toBe(false);
  });
});

describe('a lane', () => {
  const [planned, memory] = lanesOf(plan, files);
  if (!planned || !memory) throw new Error('no lanes');
  const row = (shares: Float32Array, at: number) =>
    Object.fromEntries(LANE_STATES.map((state, i) => [state, shares[at * LANE_STATES.length + i]]));

  it('has the share of each state in every row of pixels', () => {
    const shares = laneShares(planned, whole, 6); // 4 KiB each
    expect(row(shares, 0)).toEqual({ pinned: 0.5, streamed: 0, resident: 0, copied: 0 });
    expect(row(shares, 1)).toEqual({ pinned: 0.5, streamed: 0.5, resident: 0, copied: 0 });
    expect(row(shares, 2)).toMatchObject({ pinned: 0, streamed: 1 });
    expect(row(shares, 3)).toMatchObject({ pinned: 0, streamed: 0 });
  });

  it('keeps its sums at every zoom', () => {
    for (const rows of [1, 7, 100, 1000]) {
      const shares = laneShares(memory, whole, rows);
      const sum = (state: number) =>
        Array.from({ length: rows }, (_, at) => shares[at * LANE_STATES.length + state] ?? 0).reduce((a, b) => a + b, 0); // prettier-ignore
      expect((sum(2) / rows) * 24).toBeCloseTo(14, 3);
      expect((sum(3) / rows) * 24).toBeCloseTo(4, 3);
    }
    const zoomed = laneShares(memory, { from: 7 * KIB, to: 9 * KIB }, 2);
    expect([row(zoomed, 0).resident, row(zoomed, 1).resident]).toEqual([1, 0]);
  });

  it('has the share of a range', () => {
    expect(shareOf(memory, { from: 2 * KIB, to: 12 * KIB }, 'resident')).toBe(0.6);
    expect(shareOf(planned, { from: 12 * KIB, to: 24 * KIB }, 'pinned')).toBe(0);
  });

  it('is right of the plot, and pointing at it points at its row', () => {
    const x = axisOf('one', 'all', 1);
    const y = axisOf('bytes', 'file', 24 * KIB);
    const tracks = [{ y, share: 1, lanes: [planned, memory] }];
    const layout = planeLayout({ w: 800, h: 400 }, { x, tracks }, wholeCamera);
    const track = layout.tracks[0];
    if (!track) throw new Error('no track');
    const boxes = [laneBox(track, 0), laneBox(track, 1)];
    for (const box of boxes) {
      expect(box.x).toBeGreaterThan(layout.plot.x + layout.plot.w);
      expect(box.x + box.w).toBeLessThanOrEqual(layout.plot.x + layout.plot.w + layout.lanes + 4);
      const [at, middle] = [box.x + box.w / 2, box.y + box.h / 2];
      expect(zoneAt(layout, at, middle)).toBe('plot');
      const hit = hitAt(layout, x, at, middle);
      expect(hit?.x).toBeLessThan(1);
      expect(hit?.y).toBeCloseTo(12 * KIB);
    }
    const plain = planeLayout({ w: 800, h: 400 }, { x, tracks: [{ y, share: 1 }] }, wholeCamera);
    expect(plain.lanes).toBe(0);
  });
});
