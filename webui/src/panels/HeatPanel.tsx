// Token by layer: as a heat map, or the same steps as a table.
import type { ReadonlySignal } from '@preact/signals';
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { plural } from '../format';
import { scaleOf } from '../raster/heat';
import { isActive, type Metric } from '../state/state';
import type { Store } from '../state/store';
import type { Theme } from '../theme';
import { Empty, Panel } from '../ui/Panel';
import { Segmented } from '../ui/Segmented';
import { HeatMap } from './HeatMap';
import { Legend } from './Legend';
import { currentModel } from './TopBar';
import { StepTable } from './StepTable';

type Form = 'map' | 'table';

export function HeatPanel({ store, theme }: { store: Store; theme: ReadonlySignal<Theme> }) {
  const form = useSignal<Form>('map');
  const id = useMemo(() => store.select(({ open }) => open?.id ?? null), [store]).value;
  const version = useMemo(() => store.select(({ open }) => open?.version ?? 0), [store]).value;
  const { metric, log } = store.settings.value;
  const scale = useMemo(() => scaleOf(store.data, metric, log), [store, id, version, metric, log]);
  const empty = store.data.rows() === 0;
  return (
    <Panel
      title="Token × layer"
      class="heat"
      note={
        empty
          ? ''
          : `${plural(store.data.tokens.length, 'token')}, ${plural(store.data.rows() - 1, 'layer')}`
      }
      tools={
        <>
          {!empty && form.value === 'map' && <Legend scale={scale} metric={metric} theme={theme} />}
          {form.value === 'map' && <Values store={store} />}
          <Segmented
            label="Form"
            value={form.value}
            options={[
              { value: 'map', text: 'Map' },
              { value: 'table', text: 'Steps', hint: 'The steps as a table' },
            ]}
            choose={(value: Form) => {
              form.value = value;
            }}
          />
        </>
      }
    >
      {empty ? (
        <Nothing store={store} />
      ) : form.value === 'map' ? (
        <HeatMap key={id} store={store} theme={theme} scale={scale} />
      ) : (
        <StepTable key={id} store={store} version={version} />
      )}
    </Panel>
  );
}

function Nothing({ store }: { store: Store }) {
  const open = useMemo(() => store.select((state) => state.open), [store]).value;
  const model = useMemo(
    () => store.select(({ models }) => (models.is === 'ready' ? currentModel(models.value) : null)),
    [store],
  ).value;
  if (!open && model?.state === 'loading') {
    return <Empty>Loading the model, {Math.round(100 * model.load_progress)} %</Empty>;
  }
  if (!open && model?.state === 'failed') {
    return <Empty error>The model could not be loaded: {model.error ?? 'no reason given'}</Empty>;
  }
  if (!open) {
    return (
      <Empty>
        Run a prompt, or choose a session. Every token becomes a column here, every layer a row.
      </Empty>
    );
  }
  if (isActive(open.run?.state)) return <Empty>Waiting for the first step…</Empty>;
  if (open.info.is === 'loading') return <Empty>Loading the session…</Empty>;
  if (open.info.is === 'failed') return <Empty error>This session cannot be shown.</Empty>;
  return (
    <Empty>This session has no steps: it was recorded with the trace off, or ended first.</Empty>
  );
}

function Values({ store }: { store: Store }) {
  const { metric, log } = store.settings.value;
  return (
    <>
      <Segmented
        label="Value"
        value={metric}
        options={[
          { value: 'ns', text: 'Time', hint: 'Time per token' },
          { value: 'bytes', text: 'Bytes', hint: 'Bytes read and written per token' },
        ]}
        choose={(value: Metric) => {
          store.set({ metric: value });
        }}
      />
      <label class="toggle" title="Equal ratios get equal distances of colour">
        <input
          type="checkbox"
          checked={log}
          onChange={(event) => {
            store.set({ log: event.currentTarget.checked });
          }}
        />
        log
      </label>
    </>
  );
}
