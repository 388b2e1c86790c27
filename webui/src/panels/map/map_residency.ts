// What is in memory of the model that the session was recorded with, beside the memory map of the whole
// session: what the session says of the selected step, or what the server says now if the session
// does not say it and the model is loaded. Read while the map shows it.
import { computed, effect, type ReadonlySignal } from '@preact/signals';
import type { Model, Residency as Snapshot } from '../../net/types';
import type { OpenSession } from '../../state/session/open_session';
import { perSession } from '../../state/session/per_session';
import { Resource } from '../../state/resource';
import type { Store } from '../../state/store';
import { tracksOf, type MapOptions } from './map_options';
import { isModelOf, weightsOf, type Weights } from './residency';

export type Residency =
  | { readonly is: 'loading' }
  // `step`: just before it; null: now
  | { readonly is: 'known'; readonly weights: Weights; readonly step: number | null }
  // null: the server does not have the model.
  | { readonly is: 'not_loaded'; readonly model: Model | null };

const KEPT = 32; // snapshots

// The snapshot of the selected step.
const snapshotOf = perSession((session) => {
  const { api, reconnects } = session.context;
  return new Resource<Snapshot>({
    key: () => (session.step.value === null ? null : String(session.step.value)),
    load: (signal) => api.residency(session.id, session.step.peek() ?? 0, signal),
    reconnects,
    cacheSize: KEPT,
  });
});

export class MapResidency {
  readonly state: ReadonlySignal<Residency | null>; // null: the map does not show it
  private readonly stop: () => void;

  constructor(store: Store, session: OpenSession, options: ReadonlySignal<MapOptions>) {
    const isShown = computed(() => {
      const { x, y } = options.value;
      return x === 'all' && tracksOf(y).includes('file');
    });
    const isRecorded = computed(() => {
      void session.feed.version.value;
      const step = session.data.steps[session.step.value ?? -1];
      return typeof step?.resident_bytes === 'number';
    });
    const model = computed((): Model | null => {
      const [info, list] = [session.info.value, store.models.list.value];
      if (info.is !== 'ready' || list.is !== 'ready') return null;
      return list.value.models.find((one) => isModelOf(info.value, one)) ?? null;
    });
    const loaded = computed(() => (model.value?.state === 'loaded' ? model.value.id : null));
    this.state = computed(() => {
      if (!isShown.value) return null;
      if (isRecorded.value) {
        const { value } = snapshotOf(session).state.value;
        return value
          ? { is: 'known', weights: weightsOf(value), step: value.step }
          : { is: 'loading' };
      }
      if (loaded.value === null) return { is: 'not_loaded', model: model.value };
      const plan = store.memoryBudget(loaded.value).plan.value;
      return plan ? { is: 'known', weights: plan, step: null } : { is: 'loading' };
    });
    this.stop = effect(() => {
      if (!isShown.value) return undefined;
      if (isRecorded.value) return snapshotOf(session).use();
      return loaded.value === null ? undefined : store.memoryBudget(loaded.value).usePlan();
    });
  }

  destroy(): void {
    this.stop();
  }
}
