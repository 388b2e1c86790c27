// Time or bytes of every token in every layer, from the steps that arrived: what the server's
// raster of tokens and layers contains, without asking it. The total of a step with several tokens
// is divided equally among them (docs/heat.md). The step in flight is included as far as it got.
import type { StepSummary } from '../../net/types';
import type { TraceData } from '../../state/trace_data';
import type { PhaseFilter } from '../../state/view';
import { pixelStart, type Raster } from '../raster';
import { clip, type Range } from '../range';
import { Pyramid } from './pyramid';

export type LayerMetric = 'ns' | 'bytes';

export class TokenValues {
  readonly metric: LayerMetric;
  readonly phase: PhaseFilter;
  private sums = new Pyramid(1, 'sum');
  private read = 0; // number of steps, in the order of their arrival
  private rewrites = 0;
  private flightToken: number | null = null;

  constructor(metric: LayerMetric, phase: PhaseFilter) {
    this.metric = metric;
    this.phase = phase;
  }

  get rows(): number {
    return this.sums.stride;
  }

  get tokens(): number {
    return this.sums.units;
  }

  update(data: TraceData): void {
    const rows = Math.max(1, data.rows());
    if (rows !== this.rows || data.stepRewrites !== this.rewrites) {
      this.sums = new Pyramid(rows, 'sum');
      this.read = 0;
      this.flightToken = null;
    }
    this.rewrites = data.stepRewrites;
    this.removeFlight();
    for (const step of data.arrivedAfter(this.read)) this.add(step);
    this.read = data.stepArrivals.length;
    this.addFlight(data);
    this.sums.update();
  }

  // The value of a cell.
  value(token: number, row: number): number {
    return token < this.tokens ? this.sums.get(token, row) : 0;
  }

  // A picture of the tokens in at most `width` pixels; all rows.
  raster(x: Range, maxWidth: number): Raster {
    const inside = clip(x, { from: 0, to: this.tokens });
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
    const { token_id, token_count } = step;
    if (token_id + token_count > this.tokens) this.sums.resize(token_id + token_count);
    if (this.phase !== 'all' && step.phase !== this.phase) return;
    if (this.metric === 'ns' && step.dropped) return;
    const values = step.layers[this.metric];
    for (let row = 0; row < values.length; row += 1) {
      const each = (values[row] ?? 0) / token_count;
      for (let token = token_id; token < token_id + token_count; token += 1)
        this.sums.set(token, row, this.sums.get(token, row) + each);
    }
  }

  // Assumes that the step in flight processes one token, as nearly all generated steps do.
  private addFlight({ flight, steps }: TraceData): void {
    if (!flight?.layersNs || flight.step !== steps.length || this.phase === 'prompt') return;
    if (this.metric !== 'ns') return;
    const last = steps[steps.length - 1];
    const token = last ? last.token_id + last.token_count : 0;
    if (token < this.tokens) return;
    this.flightToken = token;
    this.sums.resize(token + 1);
    flight.layersNs.forEach((ns, row) => {
      this.sums.set(token, row, ns);
    });
  }

  private removeFlight(): void {
    if (this.flightToken !== null) this.sums.resize(this.flightToken);
    this.flightToken = null;
  }
}
