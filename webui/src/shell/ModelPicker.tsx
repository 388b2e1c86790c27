// The menu of models: selects the model of the next run, loads and unloads.
import { useRef } from 'preact/hooks';
import { exactBytes, formatBytes } from '../format';
import { errorText } from '../net/api';
import type { Model } from '../net/types';
import { modelFacts, modelNotes } from '../state/request/model_facts';
import type { Store } from '../state/store';
import { Icon } from '../ui/icons';

export function ModelPicker({ store }: { store: Store }) {
  const menu = useRef<HTMLDivElement>(null);
  const model = store.models.current.value;
  return (
    <div class="model">
      <button
        type="button"
        class="model-button"
        popovertarget="models"
        title={model ? `${model.name}\n${modelFacts(model).join(', ')}` : 'Models'}
      >
        <Current store={store} />
        <Icon name="down" />
      </button>
      <div
        id="models"
        class="popover models"
        popover="auto"
        ref={menu}
        role="dialog"
        aria-label="Models"
        onToggle={(event) => {
          // Files may have changed, and other clients load and unload models.
          if (event.newState === 'open') void store.models.watch();
        }}
      >
        <List store={store} />
      </div>
    </div>
  );
}

function Current({ store }: { store: Store }) {
  const { list, health, current } = store.models;
  const model = current.value;
  if (!model) {
    if (list.value.is === 'failed') return <span class="bad">{errorText(list.value.error)}</span>;
    return <span>{health.value ? 'No model' : 'Model…'}</span>;
  }
  switch (model.state) {
    case 'failed':
      return <span class="bad">{model.name} failed to load</span>;
    case 'loading': {
      const { load_progress } = model;
      return (
        <>
          <b>{model.name}</b>
          <span>{Math.round(100 * load_progress)} %</span>
          <progress max={1} value={load_progress} aria-label="Loading the model" />
        </>
      );
    }
    case 'unloading':
      return <span>Unloading {model.name}…</span>;
    case 'available':
      return <span>{model.name}, not loaded</span>;
    case 'loaded':
      return (
        <>
          <span class="dim">Next run:</span>
          <b>{model.name}</b>
          <span class="dim">{model.architecture}</span>
        </>
      );
  }
}

function List({ store }: { store: Store }) {
  const list = store.models.list.value;
  switch (list.is) {
    case 'idle':
    case 'loading':
      return <p class="popover-note">Loading…</p>;
    case 'failed':
      return <p class="popover-note bad">{errorText(list.error)}</p>;
    case 'ready':
      break;
  }
  const { folder = null, models } = list.value;
  return (
    <>
      <ul>
        {models.map((model) => (
          <li key={model.id}>
            <Row store={store} model={model} />
          </li>
        ))}
      </ul>
      <p class="popover-note">
        {folder === null ? (
          <>
            The server was started with one model. Start it with <code>--models-dir</code> to list
            the models of a folder.
          </>
        ) : (
          <>
            GGUF files in <code>{folder}</code>.
          </>
        )}
      </p>
    </>
  );
}

function Row({ store, model }: { store: Store; model: Model }) {
  const { models } = store;
  const current = models.current.value?.id === model.id;
  const notes = modelNotes(model);
  return (
    <div class="model-row" data-current={current} data-state={model.state}>
      <div class="model-name">
        <b title={model.path}>{model.name}</b>
        <span class="dim" title={exactBytes(model.size_bytes)}>
          {formatBytes(model.size_bytes)}
          {model.files > 1 ? `, ${model.files} files` : ''}
        </span>
      </div>
      <ModelAction store={store} model={model} current={current} />
      <div class="model-facts dim">
        {model.state === 'loaded' ? modelFacts(model).join(' · ') : STATES[model.state]}
      </div>
      {model.state === 'loading' && (
        <progress max={1} value={model.load_progress} aria-label={`Loading ${model.name}`} />
      )}
      {model.error !== null && <p class="bad">{model.error}</p>}
      {model.warning && <p class="warn">{model.warning}</p>}
      {notes.map((note) => (
        <p key={note} class="model-note">
          {note}
        </p>
      ))}
    </div>
  );
}

const STATES: Readonly<Record<Model['state'], string>> = {
  available: 'not loaded',
  loading: 'loading',
  loaded: '',
  unloading: 'unloading',
  failed: 'cannot be loaded',
};

function ModelAction(props: { store: Store; model: Model; current: boolean }) {
  const { store, model, current } = props;
  const { models } = store;
  const load = () => void models.load(model);
  const unload = () => void models.unload(model);
  switch (model.state) {
    case 'available':
      return <ActionButton text="Load" what={model.name} run={load} />;
    case 'failed':
      return <ActionButton text="Try again" what={model.name} run={load} />;
    case 'loading':
      return <ActionButton text="Cancel" what={model.name} run={unload} />;
    case 'unloading':
      return null;
    case 'loaded':
      return (
        <span class="model-do">
          {!current && (
            <ActionButton
              text="Use"
              what={model.name}
              run={() => {
                models.select(model);
              }}
            />
          )}
          <ActionButton text="Unload" what={model.name} run={unload} />
        </span>
      );
  }
}

function ActionButton({ text, what, run }: { text: string; what: string; run: () => void }) {
  return (
    <button type="button" class="small" aria-label={`${text} ${what}`} onClick={run}>
      {text}
    </button>
  );
}
