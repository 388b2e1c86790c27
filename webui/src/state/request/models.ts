// The server's models, the model of the next request, loading and unloading.
import { computed, signal, type ReadonlySignal } from '@preact/signals';
import { errorText, type Api, type ApiError } from '../../net/api';
import type { Health, Model, Models as ModelList } from '../../net/types';
import { idle, toLoadable, type Loadable } from '../../result';
import type { Toasts } from '../toasts';

const POLL_MS = 1000;
const TRANSITION_POLL_MS = 250;

export type ModelsApi = Pick<Api, 'health' | 'models' | 'load' | 'unload'>;

export class Models {
  readonly health: ReadonlySignal<Health | null>; // null: no response
  readonly list: ReadonlySignal<Loadable<ModelList, ApiError>>;
  // The model of the next request: the selected one unless it is unloaded, else a loaded one, else
  // a loading one, else one whose load failed, else any that may be loaded.
  readonly current: ReadonlySignal<Model | null>;
  private readonly latestHealth = signal<Health | null>(null);
  private readonly latest = signal<Loadable<ModelList, ApiError>>(idle);
  private readonly selectedId = signal<string | null>(null);
  private readonly api: ModelsApi;
  private readonly toasts: Toasts;
  private watching = false;
  private watchCalls = 0;

  constructor(api: ModelsApi, toasts: Toasts) {
    this.api = api;
    this.toasts = toasts;
    this.health = this.latestHealth;
    this.list = this.latest;
    this.current = computed(() => {
      const list = this.latest.value;
      if (list.is !== 'ready') return null;
      const hasFailed = this.latestHealth.value?.model_state === 'failed';
      return currentModel(list.value.models, this.selectedId.value, hasFailed);
    });
  }

  // Polls until no model is loading or unloading. A response to a request that was sent before the
  // last watch() call does not end the polling.
  async watch(): Promise<void> {
    this.watchCalls += 1;
    if (this.watching) return;
    this.watching = true;
    for (;;) {
      const { watchCalls } = this;
      const inTransition = await this.refresh();
      if (inTransition === false && watchCalls === this.watchCalls) break;
      const wait = inTransition === null ? POLL_MS : TRANSITION_POLL_MS;
      await new Promise((done) => setTimeout(done, wait));
    }
    this.watching = false;
  }

  async load(model: Model): Promise<void> {
    this.selectedId.value = model.id;
    await this.applyAction(this.api.load(model.id), `Cannot load ${model.name}`);
  }

  async unload(model: Model): Promise<void> {
    await this.applyAction(this.api.unload(model.id), `Cannot unload ${model.name}`);
  }

  select(model: Model): void {
    this.selectedId.value = model.id;
  }

  private async applyAction(answer: ReturnType<Api['load']>, failed: string): Promise<void> {
    const result = await answer;
    if (!result.ok) this.toasts.error(`${failed}: ${errorText(result.error)}`);
    await this.watch();
  }

  // Whether a model is loading or unloading; null if the server does not respond.
  private async refresh(): Promise<boolean | null> {
    const [health, models] = await Promise.all([this.api.health(), this.api.models()]);
    this.latestHealth.value = health.ok ? health.value : null;
    // Keep the last list while the server is not reachable.
    if (models.ok) {
      const value = { ...models.value, models: withDistinctNames(models.value.models) };
      this.latest.value = { is: 'ready', value };
    } else if (this.latest.peek().is !== 'ready') {
      this.latest.value = toLoadable(models);
    }
    if (!health.ok || !models.ok) return null;
    return models.value.models.some(isInTransition);
  }
}

const isInTransition = ({ state }: Model): boolean => state === 'loading' || state === 'unloading';

// A name is what the file says of itself, and the quantizations of a model often say the same. These
// have the file in their name, too.
export function withDistinctNames(models: readonly Model[]): Model[] {
  const count = new Map<string, number>();
  for (const { name } of models) count.set(name, (count.get(name) ?? 0) + 1);
  return models.map((model) =>
    count.get(model.name) === 1 || model.id === model.name
      ? model
      : { ...model, name: `${model.name} (${model.id})` },
  );
}

// `hasFailed`: the model of the last load failed. Other models of the state failed are files that
// cannot be loaded.
export function currentModel(
  models: readonly Model[],
  chosen: string | null,
  hasFailed = false,
): Model | null {
  const selected = models.find((model) => model.id === chosen && model.state !== 'available');
  const order: readonly Model['state'][] = hasFailed
    ? ['loaded', 'loading', 'failed', 'unloading', 'available']
    : ['loaded', 'loading', 'unloading', 'available', 'failed'];
  const first = order.map((state) => models.find((model) => model.state === state)).find(Boolean);
  return selected ?? first ?? null;
}
