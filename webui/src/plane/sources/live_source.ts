// The pictures of steps or tokens, and layers, of an open session, from the steps that arrived.
import { signal, type ReadonlySignal } from '@preact/signals';
import type { TraceData } from '../../state/session/trace_data';
import type { PhaseFilter } from '../../state/view/view';
import type { Raster } from '../raster';
import { sameRange, type Range } from '../range';
import type { Source, Wanted } from './source';
import { ColumnValues, type ColumnUnit, type LayerMetric } from './column_values';

const OVERVIEW_PIXELS = 1024;

export class LiveSource implements Source {
  readonly version: ReadonlySignal<number>;
  readonly error = signal(null);
  readonly busy = signal(false);
  readonly values: ColumnValues;
  private readonly changes = signal(0);
  private made: { readonly x: Range; readonly width: number; readonly raster: Raster } | null =
    null;
  private whole: Raster | null = null;

  constructor(metric: LayerMetric, phase: PhaseFilter, unit: ColumnUnit) {
    this.version = this.changes;
    this.values = new ColumnValues(metric, phase, unit);
  }

  update(data: TraceData): void {
    this.values.update(data);
    this.made = this.whole = null;
    this.changes.value += 1;
  }

  pictures({ x, width }: Wanted, by: 'plane' | 'lens' = 'plane'): readonly Raster[] {
    const whole = { from: Math.floor(x.from), to: Math.ceil(x.to) };
    if (by === 'lens') return [this.values.raster(whole, width)];
    if (this.made?.width !== width || !sameRange(this.made.x, whole))
      this.made = { x: whole, width, raster: this.values.raster(whole, width) };
    return [this.made.raster];
  }

  overview(): Raster {
    this.whole ??= this.values.raster({ from: 0, to: this.values.units }, OVERVIEW_PIXELS);
    return this.whole;
  }
}
