// How each step, or the step of each token, was timed, and which ones were evaluated at all: drawn over
// every picture whose x axis has steps or tokens.
import type { TraceData } from '../../state/session/trace_data';
import { clip, type Range } from '../range';
import { pixelStart } from '../raster';
import { Pyramid } from './pyramid';
import type { ColumnUnit } from './column_values';

export const Mark = { fast: 1, learned: 2, exact: 3 } as const;
const MARKS: Readonly<Record<string, number>> = Mark;
const MARK = 0;
const EVALUATED = 1; // 1: by a step with times

export interface MarkedPixels {
  readonly x: Range;
  readonly marks: Uint8Array; // by pixel: the greatest Mark; 0: no step
  readonly evaluated: Uint8Array; // by pixel: 1 or 0
}

export class ColumnMarks {
  private readonly unit: ColumnUnit;
  private values = new Pyramid(2, 'max');
  private read = 0; // number of steps, in the order of their arrival
  private rewrites = 0;

  constructor(unit: ColumnUnit) {
    this.unit = unit;
  }

  get units(): number {
    return this.values.units;
  }

  update(data: TraceData): void {
    if (data.stepRewrites !== this.rewrites) {
      this.values = new Pyramid(2, 'max');
      this.read = 0;
    }
    this.rewrites = data.stepRewrites;
    for (const step of data.arrivedAfter(this.read)) {
      const mark = MARKS[step.timing] ?? 0;
      const isStep = this.unit === 'step';
      const first = isStep ? step.step : step.token_id;
      const end = first + (isStep ? 1 : step.token_count);
      for (let unit = first; unit < end; unit += 1) {
        const before = unit < this.values.units ? this.values.get(unit, MARK) : 0;
        this.values.set(unit, MARK, Math.max(before, mark));
        if (!step.dropped) this.values.set(unit, EVALUATED, 1);
      }
    }
    this.read = data.stepArrivals.length;
    this.values.update();
  }

  // At most `maxWidth` pixels.
  pixels(x: Range, maxWidth: number): MarkedPixels {
    const inside = clip(x, { from: 0, to: this.units });
    const width = Math.min(inside.to - inside.from, Math.max(1, maxWidth));
    const marks = new Uint8Array(width);
    const evaluated = new Uint8Array(width);
    const into = new Float32Array(2);
    for (let pixel = 0; pixel < width; pixel += 1) {
      const last = pixelStart(inside, width, pixel + 1);
      this.values.query(pixelStart(inside, width, pixel), last, into);
      marks[pixel] = into[MARK] ?? 0;
      evaluated[pixel] = into[EVALUATED] ?? 0;
    }
    return { x: inside, marks, evaluated };
  }
}
