// Time or bytes of every step or token in every layer, from the steps that arrived: what the server's
// raster of them and of layers contains, without asking it. The total of a step with several tokens
// is divided equally among them (docs/heat.md). The step in flight is included as far as it got.
import type { StepSummary } from '../../net/types';
import type { TraceData } from '../../state/session/trace_data';
import type { PhaseFilter } from '../../state/view/view';
import { pixelStart, type Raster } from '../raster';
import { clip, type Range } from '../range';
import { Pyramid } from './pyramid';

export type LayerMetric = 'ns' | 'bytes';
export type ColumnUnit = 'step' | 'token';

export class ColumnValues {
  readonly metric: LayerMetric;
  readonly phase: PhaseFilter;
  readonly unit: ColumnUnit;
  private sums = new Pyramid(1, 'sum');
  private read = 0; // number of steps, in the order of their arrival
  private rewrites = 0;
  private inFlight: number | null = null; // the unit of the step in flight

  constructor(metric: LayerMetric, phase: PhaseFilter, unit: ColumnUnit) {
    this.metric = metric;
    this.phase = phase;
    this.unit = unit;
  }

  get rows(): number {
    return this.sums.stride;
  }

  get units(): number {
    return this.sums.units;
  }

  update(data: TraceData): void {
    const rows = Math.max(1, data.rows());
    if (rows !== this.rows || data.stepRewrites !== this.rewrites) {
      this.sums = new Pyramid(rows, 'sum');
      this.read = 0;
      this.inFlight = null;
    }
    this.rewrites = data.stepRewrites;
    this.removeFlight();
    for (const step of data.arrivedAfter(this.read)) this.add(step);
    this.read = data.stepArrivals.length;
    this.addFlight(data);
    this.sums.update();
  }

  // The value of a cell.
  value(unit: number, row: number): number {
    return unit < this.units ? this.sums.get(unit, row) : 0;
  }

  // The sum of all cells.
  total(): number {
    const rows = new Float32Array(this.rows);
    this.sums.query(0, this.units, rows);
    return rows.reduce((sum, value) => sum + value, 0);
  }

  // A picture of the units in at most `width` pixels; all rows.
  raster(x: Range, maxWidth: number): Raster {
    const inside = clip(x, { from: 0, to: this.units });
    const width = Math.min(inside.to - inside.from, Math.max(1, maxWidth));
    const { rows } = this;
    const cells = new Float32Array(width * rows);
    const into = new Float32Array(rows);
    for (let column = 0; column < width; column += 1) {
      const first = pixelStart(inside, width, column);
      const last = pixelStart(inside, width, column + 1);
      this.sums.query(first, last, into);
      for (let row = 0; row < rows; row += 1)
        cells[row * width + column] = (into[row] ?? 0) / (last - first);
    }
    return { x: inside, y: { from: 0, to: rows }, width, height: rows, cells };
  }

  private add(step: StepSummary): void {
    const isStep = this.unit === 'step';
    const first = isStep ? step.step : step.token_id;
    const count = isStep ? 1 : step.token_count;
    if (first + count > this.units) this.sums.resize(first + count);
    if (this.phase !== 'all' && step.phase !== this.phase) return;
    if (this.metric === 'ns' && step.dropped) return;
    const values = step.layers[this.metric];
    for (let row = 0; row < values.length; row += 1) {
      const each = (values[row] ?? 0) / count;
      for (let unit = first; unit < first + count; unit += 1)
        this.sums.set(unit, row, this.sums.get(unit, row) + each);
    }
  }

  // Assumes that the step in flight processes one token, as nearly all generated steps do. Its column
  // is there from its first op on, also before the layers of its ops are known.
  private addFlight({ flight, steps }: TraceData): void {
    const phase = steps.length === 0 ? 'prompt' : 'generate';
    const isOther = this.phase !== 'all' && this.phase !== phase;
    if (flight?.step !== steps.length || isOther || this.metric !== 'ns') return;
    const last = steps[steps.length - 1];
    const token = last ? last.token_id + last.token_count : 0;
    const unit = this.unit === 'step' ? steps.length : token;
    if (unit < this.units) return;
    this.inFlight = unit;
    this.sums.resize(unit + 1);
    flight.layersNs?.forEach((ns, row) => {
      this.sums.set(unit, row, ns);
    });
  }

  private removeFlight(): void {
    if (this.inFlight !== null) this.sums.resize(this.inFlight);
    this.inFlight = null;
  }
}
