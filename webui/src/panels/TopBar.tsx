// The program, the model that it runs, and whether the page is connected.
import type { ReadonlySignal } from '@preact/signals';
import { useSignal, useSignalEffect } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { exactBytes, formatBytes, formatCount, plural } from '../format';
import { sentence } from '../net/api';
import type { LiveStatus } from '../net/live';
import type { Model } from '../net/types';
import type { Store } from '../state/store';
import type { Theme } from '../theme';

export function TopBar({ store, theme }: { store: Store; theme: ReadonlySignal<Theme> }) {
  const other = theme.value === 'dark' ? 'light' : 'dark';
  return (
    <header class="top">
      <h1>
        <Mark />
        tensor-trace
      </h1>
      <ModelInfo store={store} />
      <Connection store={store} />
      <button
        type="button"
        class="quiet"
        title={`Change to the ${other} theme`}
        aria-label={`Change to the ${other} theme`}
        onClick={() => {
          store.set({ theme: other });
        }}
      >
        {theme.value === 'dark' ? <Sun /> : <Moon />}
      </button>
    </header>
  );
}

function ModelInfo({ store }: { store: Store }) {
  const models = useMemo(() => store.select((state) => state.models), [store]).value;
  const health = useMemo(() => store.select((state) => state.health), [store]).value;
  if (models.is === 'failed' && models.error.kind !== 'offline') {
    return <div class="model model-failed">{sentence(models.error)}</div>;
  }
  const model = models.is === 'ready' ? currentModel(models.value) : undefined;
  if (!model) return <div class="model">{health ? 'no model' : ''}</div>;
  switch (model.state) {
    case 'failed':
      return (
        <div class="model model-failed" role="alert">
          {model.name} could not be loaded: {model.error ?? 'no reason given'}
        </div>
      );
    case 'available':
      return <div class="model">{model.name}</div>;
    case 'loading': {
      const share = Math.max(model.load_progress, health?.load_progress ?? 0);
      return (
        <div class="model">
          <b>{model.name}</b>
          <span>loading {Math.round(100 * share)} %</span>
          <progress max={1} value={share} aria-label="Loading the model" />
        </div>
      );
    }
    case 'unloading':
      return <div class="model">{model.name}, unloading</div>;
    case 'loaded':
      return <LoadedModel model={model} />;
  }
}

function LoadedModel({ model }: { model: Model }) {
  const { n_heads = 0, n_heads_kv = 0, n_experts = 0, n_experts_used = 0 } = model;
  const facts = [
    model.architecture ?? '',
    plural(model.n_layers ?? 0, 'layer'),
    `${formatCount(model.n_embd ?? 0)} wide`,
    n_heads_kv > 0 && n_heads_kv !== n_heads
      ? `${n_heads} heads, ${n_heads_kv} KV`
      : plural(n_heads, 'head'),
    n_experts > 0 ? `${n_experts_used} of ${n_experts} experts` : '',
    kindOf(model),
    `context ${formatCount(model.context ?? 0)}`,
    plural(model.threads ?? 0, 'thread'),
  ];
  return (
    <div
      class="model"
      title={model.description ? `${model.description}\n${model.path}` : model.path}
    >
      <b>{model.name}</b>
      {facts.filter(Boolean).map((fact) => (
        <span key={fact}>{fact}</span>
      ))}
      <span title={exactBytes(model.size_bytes)}>{formatBytes(model.size_bytes)}</span>
    </div>
  );
}

function kindOf(model: Model): string {
  if (model.embedding_only) return 'embeddings only';
  if (model.has_encoder) return 'encoder and decoder';
  if (model.hybrid) return 'hybrid';
  return model.recurrent ? 'recurrent' : '';
}

export function currentModel(models: readonly Model[]): Model | undefined {
  return models.find((model) => model.state !== 'available') ?? models[0];
}

function Connection({ store }: { store: Store }) {
  const live = useMemo(() => store.select((state) => state.live), [store]).value;
  return (
    <div class="connection" data-live={live.is} role="status">
      <i aria-hidden="true" />
      <LiveText live={live} />
    </div>
  );
}

function LiveText({ live }: { live: LiveStatus }) {
  const seconds = useSignal(0);
  useSignalEffect(() => {
    if (live.is !== 'waiting') return;
    const tick = (): void => {
      seconds.value = Math.max(0, Math.ceil((live.retryAtMs - Date.now()) / 1000));
    };
    tick();
    const timer = setInterval(tick, 250);
    return () => {
      clearInterval(timer);
    };
  });
  switch (live.is) {
    case 'open':
      return <span>live</span>;
    case 'connecting':
      return <span>connecting…</span>;
    case 'waiting':
      return <span>disconnected, next try in {seconds} s</span>;
  }
}

function Mark() {
  return (
    <svg class="mark" viewBox="0 0 20 20" width="18" height="18" aria-hidden="true">
      <rect x="0" y="0" width="6" height="6" rx="1" fill="#443a83" />
      <rect x="7" y="0" width="6" height="6" rx="1" fill="#31688e" />
      <rect x="14" y="0" width="6" height="6" rx="1" fill="#21918c" />
      <rect x="0" y="7" width="6" height="6" rx="1" fill="#31688e" />
      <rect x="7" y="7" width="6" height="6" rx="1" fill="#35b779" />
      <rect x="14" y="7" width="6" height="6" rx="1" fill="#90d743" />
      <rect x="0" y="14" width="6" height="6" rx="1" fill="#21918c" />
      <rect x="7" y="14" width="6" height="6" rx="1" fill="#90d743" />
      <rect x="14" y="14" width="6" height="6" rx="1" fill="#fde725" />
    </svg>
  );
}

function Sun() {
  return (
    <svg viewBox="0 0 16 16" width="15" height="15" aria-hidden="true" class="line-icon">
      <circle cx="8" cy="8" r="3" />
      <path d="M8 1v2M8 13v2M1 8h2M13 8h2M3 3l1.5 1.5M11.5 11.5 13 13M3 13l1.5-1.5M11.5 4.5 13 3" />
    </svg>
  );
}

function Moon() {
  return (
    <svg viewBox="0 0 16 16" width="15" height="15" aria-hidden="true" class="line-icon">
      <path d="M13.5 9.8A6 6 0 0 1 6.2 2.5a6 6 0 1 0 7.3 7.3Z" />
    </svg>
  );
}
