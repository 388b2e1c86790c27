// What a selection cost over the session: its time, bytes and accesses in each step, and their share
// of everything. Read from the same raster as the map: one row, step by step.
import type { PictureQuery } from '../../net/types';
import { pixelStart } from '../../plane/raster';
import { ok, type Result } from '../../result';
import type { ApiError } from '../../net/api';
import type { OpenSession } from '../../state/open_session';
import { perSession } from '../../state/per_session';
import { Resource } from '../../state/resource';

// A row of an axis of the map.
export interface Place {
  readonly axis: 'op' | 'tensor' | 'layer' | 'expert' | 'head';
  readonly name: string; // of the row
  readonly index: number | null; // where it is expected; null: found by its name
}

export interface Course {
  readonly value: PlaceValue;
  readonly sum: number;
  readonly share: number; // of all rows
  readonly steps: number;
  readonly perStep: readonly number[]; // beyond MAX_STEPS: means of consecutive steps
}

export const PLACE_VALUES = ['time', 'bytes', 'accesses', 'faults'] as const;
export type PlaceValue = (typeof PLACE_VALUES)[number];

const WIDTH = 120; // pixels of a sparkline
const MAX_STEPS = 4096; // the server's limit of pixels in x

// The names of the rows of an axis.
const rowsOf = perSession((session) => {
  const known = new Map<string, Promise<Result<readonly string[], ApiError>>>();
  return (axis: Place['axis']) => {
    const key = `${axis} ${session.data.steps.length}`;
    const before = known.get(key);
    if (before) return before;
    const query: PictureQuery = { x: 'all', y: axis, value: 'bytes', width: 1, height: 1 };
    const loaded = session.context.api
      .heatmap(session.id, query)
      .then((picture) => (picture.ok ? ok(picture.value.y.rows) : picture));
    known.set(key, loaded);
    return loaded;
  };
});

export function rowIndex({ name, index }: Place, rows: readonly string[]): number {
  return index !== null && rows[index] === name ? index : rows.indexOf(name);
}

export function coursesOf(session: OpenSession, place: Place): Resource<readonly Course[] | null> {
  const { api, reconnects } = session.context;
  return new Resource<readonly Course[] | null>({
    // Read again once a second while the session grows.
    key: () => {
      const info = session.info.value;
      return info.is === 'ready' ? `${info.value.state} ${info.value.steps ?? 0}` : 'unknown';
    },
    load: async (signal) => {
      const rows = await rowsOf(session)(place.axis);
      if (!rows.ok) return rows;
      const row = rowIndex(place, rows.value);
      if (row < 0) return ok(null);
      const answers = await Promise.all(
        PLACE_VALUES.map((value) =>
          api.heatmap(
            session.id,
            {
              x: 'step',
              y: place.axis,
              y_from: row,
              y_to: row + 1,
              value,
              width: MAX_STEPS,
              height: 1,
            },
            signal,
          ),
        ),
      );
      const courses: Course[] = [];
      for (const [i, answer] of answers.entries()) {
        if (!answer.ok) return answer;
        const { shown, total, cells, x } = answer.value;
        const begin = (pixel: number): number => pixelStart(x, cells.length, pixel);
        courses.push({
          value: PLACE_VALUES[i] ?? 'time',
          sum: shown,
          share: total > 0 ? shown / total : 0,
          steps: x.to - x.from,
          perStep: Array.from(cells, (cell, i) => cell / (begin(i + 1) - begin(i))),
        });
      }
      return ok(courses);
    },
    reconnects,
  });
}

// By nearest rank, as everywhere (docs/glossary.md). Values of 0 are missing.
export function median(values: readonly number[]): number {
  const sorted = values.filter((value) => value > 0).sort((a, b) => a - b);
  return sorted[Math.ceil(sorted.length / 2) - 1] ?? 0;
}

// The values of steps, as means of at most `WIDTH` groups.
export function grouped(values: readonly number[]): readonly number[] {
  if (values.length <= WIDTH) return values;
  return Array.from({ length: WIDTH }, (_, i) => {
    const from = Math.floor((i * values.length) / WIDTH);
    const to = Math.max(from + 1, Math.floor(((i + 1) * values.length) / WIDTH));
    const part = values.slice(from, to);
    return part.reduce((sum, value) => sum + value, 0) / part.length;
  });
}

// "1.4 × the median"; empty if there is none.
export function againstMedian(value: number, of: number): string {
  if (of <= 0 || value <= 0) return '';
  const ratio = value / of;
  if (ratio > 0.95 && ratio < 1.05) return 'near the median';
  return `${ratio >= 10 ? ratio.toFixed(0) : ratio.toFixed(1)} × the median`;
}
