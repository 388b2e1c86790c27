// The tensors of a model, with the statistics of their values.
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { formatBytes, plural } from '../../format';
import { nextSort, sortOf, sortText, type Column, type Sort } from '../../grid/column';
import type { WeightsOfTensor } from '../../net/types';
import { ok } from '../../result';
import { Resource } from '../../state/resource';
import { download } from '../../ui/download';
import { Grid } from '../../ui/Grid';
import { usePart, useResource } from '../../ui/hooks';
import { FailedLoad, Loading, Reading } from '../../ui/States';
import type { TensorsProps } from './tensors_props';
import { withTensor } from './weights_options';
import {
  GREATEST_FIRST,
  listColumns,
  orderOf,
  sortedWeights,
  weightColumns,
  weightsCsv,
  type ListedTensor,
} from './weights_tables';

// The statistics need all weights: of a larger model they are read when the visitor says so.
const ASK_FROM_BYTES = 256 << 20;

export function TensorsView(props: TensorsProps) {
  const { store, model } = props;
  const isWanted = useSignal(false);
  const list = store.models.list.value;
  if (list.is !== 'ready') return <Loading />;
  const size = list.value.models.find(({ id }) => id === model)?.size_bytes ?? 0;
  return size < ASK_FROM_BYTES || isWanted.value ? (
    <Statistics {...props} />
  ) : (
    <Listed
      {...props}
      size={size}
      read={() => {
        isWanted.value = true;
      }}
    />
  );
}

const NO_ROWS = [] as const;

interface Sorted<Row> {
  readonly sort: Sort | null; // null: as in the file
  readonly rows: readonly Row[];
}

function useSorted<Row extends ListedTensor>(
  { store, panel }: Pick<TensorsProps, 'store' | 'panel'>,
  columns: readonly Column<Row>[],
  all: readonly Row[],
): Sorted<Row> {
  const order = usePart(() => store.navigation.view.value.sorts[panel] ?? '');
  return useMemo(() => {
    const sort = orderOf(columns, sortOf(order), null);
    return { sort, rows: sort ? sortedWeights(all, sort) : all };
  }, [columns, all, order]);
}

function TensorGrid<Row extends ListedTensor>(
  props: TensorsProps & { label: string; columns: readonly Column<Row>[]; sorted: Sorted<Row> },
) {
  const { store, panel, options, change, label, columns, sorted } = props;
  const { sort, rows } = sorted;
  const { tensor } = options.value;
  const active = rows.findIndex(({ name }) => name === tensor);
  return (
    <div class="table">
      <Grid
        label={label}
        columns={columns}
        rows={rows}
        sort={sort}
        active={active < 0 ? null : active}
        onSort={(key) => {
          const before = sort ?? { key: '', descending: false };
          store.navigation.setSort(panel, sortText(nextSort(before, key, GREATEST_FIRST)));
        }}
        onActivate={({ name }) => {
          change(withTensor(options.peek(), name), 'push');
        }}
        onEnter={({ name }) => {
          change({ ...withTensor(options.peek(), name), show: 'picture' }, 'push');
        }}
      />
    </div>
  );
}

// The tensors, as the header of the file lists them.
function Listed(props: TensorsProps & { size: number; read: () => void }) {
  const { store, model, size, read } = props;
  const resource = useMemo(
    () =>
      new Resource<readonly ListedTensor[]>({
        key: () => model,
        load: async (signal) => {
          const found = await store.api.gguf(model, signal);
          return found.ok
            ? ok(found.value.tensors.map((one) => ({ ...one, bytes: one.file_bytes })))
            : found;
        },
        reconnects: store.connection.reconnects,
      }),
    [store, model],
  );
  const { value, error } = useResource(resource);
  const sorted = useSorted(props, listColumns, value ?? NO_ROWS);
  if (error) return <FailedLoad what="The tensors cannot be listed." resource={resource} />;
  if (!value) return <Loading />;
  return (
    <>
      <p class="weights-note">
        {plural(sorted.rows.length, 'tensor')}. Enter or a double click reads one of them and shows
        its picture. The statistics of every tensor need the whole file:{' '}
        <button type="button" class="link" onClick={read}>
          Read all weights, {formatBytes(size)}
        </button>
      </p>
      <TensorGrid {...props} label="Tensors" columns={listColumns} sorted={sorted} />
    </>
  );
}

function Statistics(props: TensorsProps) {
  const { store, model } = props;
  const resource = useMemo(
    () =>
      new Resource<{ readonly tensors: readonly WeightsOfTensor[] }>({
        key: () => model,
        load: (signal, progress) => store.api.weights(model, { signal, progress }),
        reconnects: store.connection.reconnects,
      }),
    [store, model],
  );
  const { value, error } = useResource(resource);
  const sorted = useSorted(props, weightColumns, value?.tensors ?? NO_ROWS);
  const { rows } = sorted;
  if (error) {
    return <FailedLoad what="The weights cannot be read." resource={resource} />;
  }
  if (!value) return <Reading what="Reading all weights" resource={resource} />;
  return (
    <>
      <p class="weights-note">
        {plural(rows.length, 'tensor')}. Enter or a double click shows the picture of a tensor.{' '}
        <button
          type="button"
          class="link"
          onClick={() => {
            download(`${model}-weights.csv`, new Blob([weightsCsv(rows)], { type: 'text/csv' }));
          }}
        >
          Save as CSV
        </button>
      </p>
      <TensorGrid
        {...props}
        label="Statistics of the weights"
        columns={weightColumns}
        sorted={sorted}
      />
    </>
  );
}
