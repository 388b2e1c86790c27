// What is in memory now of the model that the session was recorded with, beside the memory map. Read
// while the map shows the files of the whole session and the model is loaded.
import { computed, effect, type ReadonlySignal } from '@preact/signals';
import type { MemoryPlan, Model } from '../../net/types';
import type { OpenSession } from '../../state/open_session';
import type { Store } from '../../state/store';
import { tracksOf, type MapOptions } from './map_options';
import { isModelOf } from './residency';

export type Residency =
  | { readonly is: 'loading' }
  | { readonly is: 'known'; readonly plan: MemoryPlan }
  // null: the server does not have the model.
  | { readonly is: 'not_loaded'; readonly model: Model | null };

export class MapResidency {
  readonly state: ReadonlySignal<Residency | null>; // null: the map does not show it
  private readonly stop: () => void;

  constructor(store: Store, session: OpenSession, options: ReadonlySignal<MapOptions>) {
    const isShown = computed(() => {
      const { x, y } = options.value;
      return x === 'all' && tracksOf(y).includes('file');
    });
    const model = computed((): Model | null => {
      const [info, list] = [session.info.value, store.models.list.value];
      if (info.is !== 'ready' || list.is !== 'ready') return null;
      return list.value.models.find((one) => isModelOf(info.value, one)) ?? null;
    });
    const loaded = computed(() => (model.value?.state === 'loaded' ? model.value.id : null));
    this.state = computed(() => {
      if (!isShown.value) return null;
      if (loaded.value === null) return { is: 'not_loaded', model: model.value };
      const plan = store.memoryBudget(loaded.value).plan.value;
      return plan ? { is: 'known', plan } : { is: 'loading' };
    });
    this.stop = effect(() => {
      if (isShown.value && loaded.value !== null) return store.memoryBudget(loaded.value).usePlan();
      return undefined;
    });
  }

  destroy(): void {
    this.stop();
  }
}
