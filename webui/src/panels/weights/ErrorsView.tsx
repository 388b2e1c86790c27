// How far the tensors of a model are from those of a reference: what quantization lost, and which types
// a model of the same size should have.
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { formatBytes, plural } from '../../format';
import { nextSort, sortOf, sortText } from '../../grid/column';
import type { Weighing } from '../../net/api';
import type { TensorErrors, WeightsErrors, WeightsMix } from '../../net/types';
import { Resource } from '../../state/resource';
import { download } from '../../ui/download';
import { Grid } from '../../ui/Grid';
import { usePart, useResource } from '../../ui/hooks';
import { Empty, FailedLoad, Reading } from '../../ui/States';
import { BarChart } from './BarChart';
import { shortText } from './value_text';
import type { TensorsProps } from './tensors_props';
import { placeCamera, withTensor, type Place } from './weights_options';
import {
  componentErrors,
  errorColumns,
  errorsCsv,
  GREATEST_FIRST,
  layerErrors,
  orderOf,
  percentText,
  sortedWeights,
  WORST_FIRST,
  worstOf,
} from './weights_tables';

export function ErrorsView(props: TensorsProps) {
  const { reference, imatrix, session } = props.options.value;
  const weighing = useMemo(() => ({ imatrix, session }), [imatrix, session]);
  return reference === null ? (
    <Empty>
      Choose a reference: the model that this one was quantized from, or a better quantization of
      it.
    </Empty>
  ) : (
    <Errors {...props} reference={reference} weighing={weighing} />
  );
}

function Errors(props: TensorsProps & { reference: string; weighing: Weighing }) {
  const { store, panel, model, reference, weighing, options, change } = props;
  const resource = useMemo(
    () =>
      new Resource<WeightsErrors>({
        key: () => `${model} ${reference} ${keyOf(weighing)}`,
        load: (signal, progress) =>
          store.api.weightsErrors(model, reference, weighing, { signal, progress }),
        reconnects: store.connection.reconnects,
      }),
    [store, model, reference, weighing],
  );
  const { value, error } = useResource(resource);
  const order = usePart(() => store.navigation.view.value.sorts[panel] ?? '');
  const sort = useMemo(() => orderOf(errorColumns, sortOf(order), WORST_FIRST), [order]);
  const rows = useMemo(() => sortedWeights(value?.tensors ?? [], sort ?? WORST_FIRST), [value, sort]);
  const charts = useMemo(() => value && [layerErrors(value), componentErrors(value)], [value]);
  if (error) {
    return (
      <FailedLoad what="The models cannot be compared." resource={resource} />
    );
  }
  if (!value || !charts)
    return <Reading what="Comparing all weights" resource={resource} />;
  const worst = worstOf(value.tensors);
  // Without a choice: the one that lost most.
  const tensor = options.value.tensor ?? worst?.name ?? null;
  const active = rows.findIndex(({ name }) => name === tensor);
  const file = `${model}-errors`;
  return (
    <div class="weights-charts">
      <p class="weights-note">
        {worst?.relative_error !== undefined && (
          <>
            <b class="mono">{worst.name}</b> lost most: {percentText(worst.relative_error)}. All tensors
            that llama-quantize changes: {percentText(value.relative_error)}
            {value.predicted_relative_error !== null &&
              ` (predicted for these types: ${percentText(value.predicted_relative_error)})`}
            .{' '}
          </>
        )}
        {plural(rows.length, 'tensor')}
        {weighing.imatrix !== null && `, each column weighed by ${weighing.imatrix}`}
        {weighing.session !== null && `, each row by how often ${weighing.session} read it`}.{' '}
        <button
          type="button"
          class="link"
          onClick={() => {
            download(`${file}.csv`, new Blob([errorsCsv(rows)], { type: 'text/csv' }));
          }}
        >
          Save as CSV
        </button>
      </p>
      <div class="table weights-errors">
        <Grid
          label="Errors of the weights"
          columns={errorColumns}
          rows={rows}
          sort={sort}
          active={active < 0 ? null : active}
          revealActive
          onSort={(key) => {
            store.navigation.setSort(
              panel,
              sortText(nextSort(sort ?? WORST_FIRST, key, GREATEST_FIRST)),
            );
          }}
          onActivate={({ name }) => {
            change(withTensor(options.peek(), name), 'push');
          }}
          onEnter={({ name }) => {
            change({ ...withTensor(options.peek(), name), show: 'picture' }, 'push');
          }}
        />
      </div>
      {tensor !== null && rows[active]?.relative_error !== undefined && (
        <Worst
          key={tensor}
          {...{ store, model, reference, weighing, tensor }}
          show={(at) => {
            change({ tensor, show: 'picture', at, camera: placeCamera(at) }, 'push');
          }}
        />
      )}
      <Types key={reference} {...{ store, model, reference, weighing }} errors={value} />
      {charts.map((table) => (
        <BarChart
          key={table.key.name}
          store={store}
          title={`Relative error by ${table.key.name}`}
          text={`Relative error of ${plural(table.keys.length, table.key.name)}`}
          file={`${file}-by-${table.key.name}`}
          table={table}
        />
      ))}
    </div>
  );
} // prettier-ignore

interface PairProps {
  readonly store: TensorsProps['store'];
  readonly model: string;
  readonly reference: string;
  readonly weighing: Weighing;
}

const keyOf = ({ imatrix, session }: Weighing): string => `${imatrix ?? ''} ${session ?? ''}`;

// The rows and blocks of the chosen tensor that lost most. Each opens the picture there.
function Worst(props: PairProps & { tensor: string; show: (at: Place) => void }) {
  const { store, model, reference, weighing, tensor, show } = props;
  const resource = useMemo(
    () =>
      new Resource<TensorErrors>({
        key: () => tensor,
        load: (signal, progress) =>
          store.api.tensorErrors(model, reference, weighing, tensor, { signal, progress }),
        reconnects: store.connection.reconnects,
      }),
    [store, model, reference, weighing, tensor],
  );
  const { value, error } = useResource(resource);
  if (error)
    return (
      <FailedLoad what="The tensor cannot be compared." resource={resource} />
    );
  if (!value) return <Reading what="Comparing the tensor" resource={resource} />;
  const place = (at: Place, text: string, label = `Row ${text}`) => (
    <button
      type="button"
      class="link"
      aria-label={label}
      title="Show it in the picture"
      onClick={() => {
        show(at);
      }}
    >
      {text}
    </button>
  );
  return (
    <section class="weights-note" aria-label={`Worst rows and blocks of ${tensor}`}>
      <b class="mono">{tensor}</b>
      <div class="weights-worst">
        <table>
          <caption>Worst rows</caption>
          <thead>
            <tr>
              <th scope="col">row</th>
              <th scope="col">relative error</th>
            </tr>
          </thead>
          <tbody>
            {value.worst_rows.map(({ row, relative_error }) => (
              <tr key={row}>
                <td>{place({ row, column: 0 }, String(row))}</td>
                <td>{percentText(relative_error)}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <table>
          <caption>Worst blocks</caption>
          <thead>
            <tr>
              <th scope="col">row</th>
              <th scope="col">first column</th>
              <th scope="col">RMSE</th>
            </tr>
          </thead>
          <tbody>
            {value.worst_blocks.map(({ row, first, rmse }) => (
              <tr key={`${row} ${first}`}>
                <td>{row}</td>
                <td>{place({ row, column: first }, String(first), `Block of row ${row} from column ${first}`)}</td>
                <td>{shortText(rmse)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
} // prettier-ignore

// The types with which the reference takes as many bytes as the model, with the least error.
function Types({ store, model, reference, weighing, errors }: PairProps & { errors: WeightsErrors }) {
  const bytes = errors.tensors.reduce((sum, tensor) => sum + tensor.bytes, 0);
  const asked = useSignal(false);
  const resource = useMemo(
    () =>
      new Resource<WeightsMix>({
        key: () => (asked.value ? `${reference} ${bytes} ${keyOf(weighing)}` : null),
        load: (signal, progress) =>
          store.api.weightsMix(reference, bytes, weighing, { signal, progress }),
        reconnects: store.connection.reconnects,
      }),
    [store, reference, bytes, weighing],
  );
  const { value, error } = useResource(resource);
  if (error)
    return (
      <FailedLoad what="No types were found." resource={resource} />
    );
  if (!asked.value) {
    return (
      <p class="weights-note">
        <button
          type="button"
          class="link"
          onClick={() => {
            asked.value = true;
          }}
        >
          Find better types
        </button>{' '}
        with which all tensors take at most {formatBytes(bytes)}, from some rows of each tensor of the
        reference.
      </p>
    );
  }
  if (!value) return <Reading what="Trying types" resource={resource} />;
  const list = value.tensors.flatMap(({ rule }) => (rule === null ? [] : [`${rule}\n`])).join('');
  return (
    <p class="weights-note" role="status">
      With other types the relative error is {percentText(value.relative_error)} instead of{' '}
      {percentText(errors.relative_error)}, in {formatBytes(value.bytes)} instead of{' '}
      {formatBytes(bytes)}.{' '}
      <button
        type="button"
        class="link"
        onClick={() => {
          download(`${model}-types.txt`, new Blob([list], { type: 'text/plain' }));
        }}
      >
        Save the types
      </button>{' '}
      for <code>llama-quantize --tensor-type-file</code>.
    </p>
  );
} // prettier-ignore
