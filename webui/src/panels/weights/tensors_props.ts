// What the views of the panel take.
import type { ReadonlySignal } from '@preact/signals';
import type { Store } from '../../state/store';
import type { WeightsOptions } from './weights_options';

export type Change = (part: Partial<WeightsOptions>, how: 'push' | 'debounced') => void;

export interface TensorsProps {
  readonly store: Store;
  readonly panel: string;
  readonly model: string;
  readonly options: ReadonlySignal<WeightsOptions>;
  readonly change: Change;
}
