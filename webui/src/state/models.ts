// The models that the server has, which of them runs the next request, and
// loading and unloading them.
import { computed, signal, type ReadonlySignal } from '@preact/signals';
import { sentence, type Api, type ApiError } from '../net/api';
import type { Health, Model, Models as Shelf } from '../net/types';
import { idle, settled, type Loadable } from '../result';
import type { Toasts } from './toasts';

const POLL_MS = 1000;
const MOVING_MS = 250;

export type ModelsApi = Pick<Api, 'health' | 'models' | 'load' | 'unload'>;

export class Models {
  readonly health: ReadonlySignal<Health | null>; // null: no answer
  readonly shelf: ReadonlySignal<Loadable<Shelf, ApiError>>;
  // What the next request goes to: the one chosen of those that are loaded, else
  // the one that is about to be, else any.
  readonly current: ReadonlySignal<Model | null>;
  private readonly latestHealth = signal<Health | null>(null);
  private readonly latest = signal<Loadable<Shelf, ApiError>>(idle);
  private readonly chosen = signal<string | null>(null);
  private readonly api: ModelsApi;
  private readonly toasts: Toasts;
  private watching = false;
  private wishes = 0;

  constructor(api: ModelsApi, toasts: Toasts) {
    this.api = api;
    this.toasts = toasts;
    this.health = this.latestHealth;
    this.shelf = this.latest;
    this.current = computed(() => {
      const shelf = this.latest.value;
      return shelf.is === 'ready' ? currentModel(shelf.value.models, this.chosen.value) : null;
    });
  }

  // Asks until nothing moves any more: every model loaded, failed or at rest. An
  // answer to a question from before the last wish does not end it.
  async watch(): Promise<void> {
    this.wishes += 1;
    if (this.watching) return;
    this.watching = true;
    for (;;) {
      const { wishes } = this;
      const moving = await this.refresh();
      if (moving === false && wishes === this.wishes) break;
      const wait = moving === null ? POLL_MS : MOVING_MS;
      await new Promise((done) => setTimeout(done, wait));
    }
    this.watching = false;
  }

  async load(model: Model): Promise<void> {
    this.chosen.value = model.id;
    await this.ask(this.api.load(model.id), `${model.name} is not loaded`);
  }

  async unload(model: Model): Promise<void> {
    await this.ask(this.api.unload(model.id), `${model.name} is not unloaded`);
  }

  choose(model: Model): void {
    this.chosen.value = model.id;
  }

  private async ask(answer: ReturnType<Api['load']>, failed: string): Promise<void> {
    const result = await answer;
    if (!result.ok) this.toasts.fault(`${failed}: ${sentence(result.error)}`);
    await this.watch();
  }

  // Whether something moves; null when the server does not answer.
  private async refresh(): Promise<boolean | null> {
    const [health, models] = await Promise.all([this.api.health(), this.api.models()]);
    this.latestHealth.value = health.ok ? health.value : null;
    // What is known of the models outlives a server that is away.
    if (models.ok || this.latest.peek().is !== 'ready') this.latest.value = settled(models);
    if (!health.ok || !models.ok) return null;
    return models.value.models.some(isMoving);
  }
}

const isMoving = ({ state }: Model): boolean => state === 'loading' || state === 'unloading';

export function currentModel(models: readonly Model[], chosen: string | null): Model | null {
  const wanted = models.find((model) => model.id === chosen && model.state !== 'available');
  const order: readonly Model['state'][] = ['loaded', 'loading', 'failed', 'unloading'];
  const first = order.map((state) => models.find((model) => model.state === state)).find(Boolean);
  return wanted ?? first ?? models[0] ?? null;
}
