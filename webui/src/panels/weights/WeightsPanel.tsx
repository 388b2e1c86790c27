// The values of a model's weights: all tensors, and one as a histogram and as a picture. Read from the
// files of the model; nothing is run.
import { computed, signal, useSignal, type ReadonlySignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import './weights.css';
import { formatBytes, formatCount, formatShape, plural } from '../../format';
import { nextSort, sortOf, sortText, type Column, type Sort } from '../../grid/column';
import { errorText } from '../../net/api';
import type { TensorWeights, WeightBins, WeightsOfTensor, WeightsValue } from '../../net/types';
import { isWholeCamera, wholeCamera } from '../../plane/camera';
import type { Plane } from '../../plane/plane';
import { emptyScale, type Scale } from '../../plane/scale';
import { ok } from '../../result';
import { Resource } from '../../state/resource';
import type { Store } from '../../state/store';
import { IconButton } from '../../ui/Button';
import { download } from '../../ui/download';
import { Grid } from '../../ui/Grid';
import { usePart, useResource } from '../../ui/hooks';
import { Segmented } from '../../ui/Segmented';
import { Empty, FailedLoad, Loading, Reading } from '../../ui/States';
import type { PanelProps } from '../panel';
import {
  blockText,
  blockValuesText,
  floatText,
  formulaText,
  shortText,
  superBlockText,
} from './value_text';
import {
  ALL_CELLS,
  CELLS,
  decodeWeights,
  encodeWeights,
  VIEWS,
  withTensor,
  type WeightsView,
  type CellsOf,
} from './weights_options';
import { BarChart } from './BarChart';
import { ErrorsView } from './ErrorsView';
import { PictureLegend } from './PictureLegend';
import { PicturePlane } from './PicturePlane';
import type { Change, TensorsProps } from './tensors_props';
import { TensorPicture } from './weights_picture';
import {
  binsTable,
  GREATEST_FIRST,
  listColumns,
  orderOf,
  sortedWeights,
  weightColumns,
  weightsCsv,
  type ListedTensor,
} from './weights_tables';

const VIEW_NAMES: Readonly<Record<WeightsView, string>> = {
  tensors: 'Tensors',
  errors: 'Errors',
  histogram: 'Histogram',
  picture: 'Picture',
};

export function WeightsPanel({ store, panel }: PanelProps) {
  const options = useMemo(
    () => computed(() => decodeWeights(store.navigation.view.value.options[panel] ?? '')),
    [store, panel],
  );
  const change: Change = (part, how) => {
    store.navigation.setOptions(panel, encodeWeights({ ...options.peek(), ...part }), how);
  };
  const { show, tensor, cells } = options.value;
  const model = usePart(() => options.value.model ?? store.models.current.value?.id ?? null);
  if (model === null) return <Empty>The server has no model whose weights could be shown.</Empty>;
  return (
    <>
      <div class="toolbar">
        <ModelChoice
          store={store}
          label="Model"
          model={model}
          choose={(one) => {
            change({ model: one, at: null }, 'push');
          }}
        />
        <Segmented
          label="View of the weights"
          value={show}
          options={VIEWS.map((one) => ({ value: one, text: VIEW_NAMES[one] }))}
          choose={(one) => {
            change({ show: one }, 'push');
          }}
        />
        {show === 'errors' && (
          <>
            <ModelChoice
              store={store}
              label="Reference"
              model={options.value.reference}
              choose={(reference) => {
                change({ reference }, 'push');
              }}
            />
            <MatrixChoice
              store={store}
              imatrix={options.value.imatrix}
              choose={(imatrix) => {
                change({ imatrix }, 'push');
              }}
            />
            <ReadsChoice
              store={store}
              session={options.value.session}
              choose={(session) => {
                change({ session }, 'push');
              }}
            />
          </>
        )}
        {show === 'picture' && (
          <CellsChoice
            cells={cells}
            choose={(one) => {
              change({ cells: one }, 'push');
            }}
          />
        )}
        <span class="toolbar-end" />
        {show === 'picture' && (
          <IconButton
            icon="fit"
            label="Show the whole tensor"
            hint="0"
            disabled={isWholeCamera(options.value.camera)}
            onClick={() => {
              change({ camera: wholeCamera }, 'push');
            }}
          />
        )}
      </div>
      {show === 'tensors' ? (
        <Tensors key={model} {...{ store, panel, model, options, change }} />
      ) : show === 'errors' ? (
        <ErrorsView
          key={`${model} ${options.value.reference ?? ''} ${options.value.imatrix ?? ''} ${options.value.session ?? ''}`}
          {...{ store, panel, model, options, change }}
        />
      ) : tensor === null ? (
        <Empty>Choose a tensor in the list of tensors.</Empty>
      ) : show === 'histogram' ? (
        <Histograms key={`${model} ${tensor}`} {...{ store, model, tensor }} />
      ) : (
        <Picture
          key={`${model} ${tensor} ${cells}`}
          {...{ store, panel, model, tensor, options, change }}
        />
      )}
    </>
  );
}

function ModelChoice(props: {
  store: Store;
  label: string;
  model: string | null; // null: none is chosen
  choose: (model: string) => void;
}) {
  const { store, label, model, choose } = props;
  const list = store.models.list.value;
  const models =
    list.is === 'ready' ? list.value.models.filter((one) => !one.importance_matrix) : [];
  return (
    <label>
      {label}{' '}
      <select
        value={model ?? ''}
        onChange={({ currentTarget }) => {
          choose(currentTarget.value);
        }}
      >
        {model === null && <option value="">choose…</option>}
        {models.map(({ id, name }) => (
          <option key={id} value={id}>
            {/* The name of one of several of this name has the id. */}
            {name.includes(id) ? name : `${id} (${name})`}
          </option>
        ))}
      </select>
    </label>
  );
}

// By which importances errors are weighed; nothing if the server has no file of llama-imatrix.
function MatrixChoice(props: {
  store: Store;
  imatrix: string | null;
  choose: (imatrix: string | null) => void;
}) {
  const { store, imatrix, choose } = props;
  const list = store.models.list.value;
  const files = list.is === 'ready' ? list.value.models.filter((one) => one.importance_matrix) : [];
  if (files.length === 0 && imatrix === null) return null;
  return (
    <label title="Weigh the error of each column by how large its inputs were when llama-imatrix observed them">
      Weighed by{' '}
      <select
        value={imatrix ?? ''}
        onChange={({ currentTarget: { value } }) => {
          choose(value === '' ? null : value);
        }}
      >
        <option value="">nothing</option>
        {imatrix !== null && !files.some(({ id }) => id === imatrix) && (
          <option value={imatrix}>{imatrix}</option>
        )}
        {files.map(({ id }) => (
          <option key={id} value={id}>
            {id}
          </option>
        ))}
      </select>
    </label>
  );
}

// By the reads of which session errors are weighed.
function ReadsChoice(props: {
  store: Store;
  session: string | null;
  choose: (session: string | null) => void;
}) {
  const { store, session, choose } = props;
  const list = store.sessions.page.value;
  const sessions = list.is === 'ready' ? list.value.sessions : [];
  if (sessions.length === 0 && session === null) return null;
  return (
    <label title="Weigh the error of each row by how often this session read it: of experts, those that are often chosen count most">
      Reads of{' '}
      <select
        class="weights-session"
        value={session ?? ''}
        onChange={({ currentTarget: { value } }) => {
          choose(value === '' ? null : value);
        }}
      >
        <option value="">no session</option>
        {session !== null && !sessions.some(({ id }) => id === session) && (
          <option value={session}>{session}</option>
        )}
        {sessions.map(({ id, title }) => (
          <option key={id} value={id}>
            {title === '' ? id : `${title} (${id})`}
          </option>
        ))}
      </select>
    </label>
  );
}

function CellsChoice({ cells, choose }: { cells: CellsOf; choose: (cells: CellsOf) => void }) {
  return (
    <label>
      Cells show{' '}
      <select
        value={cells}
        onChange={({ currentTarget: { value } }) => {
          const found = ALL_CELLS.find((one) => one === value);
          if (found) choose(found);
        }}
      >
        {ALL_CELLS.map((one) => (
          <option key={one} value={one}>
            {CELLS[one].button}
          </option>
        ))}
      </select>
    </label>
  );
}

// The statistics need all weights: of a larger model they are read when the visitor says so.
const ASK_FROM_BYTES = 256 << 20;

function Tensors(props: TensorsProps) {
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

// ---- Histograms -----------------------------------------------------------------------

function Histograms({ store, model, tensor }: { store: Store; model: string; tensor: string }) {
  const resource = useMemo(
    () =>
      new Resource<TensorWeights>({
        key: () => tensor,
        load: (signal, progress) => store.api.tensorWeights(model, tensor, { signal, progress }),
        reconnects: store.connection.reconnects,
      }),
    [store, model, tensor],
  );
  const { value, error } = useResource(resource);
  if (error)
    return (
      <FailedLoad what="The tensor cannot be read." resource={resource} />
    );
  if (!value) return <Reading what="Reading the tensor" resource={resource} />;
  const rows = value.largest_rows.slice(0, 5);
  return (
    <div class="weights-charts">
      <p class="weights-note">
        <b class="mono">{value.name}</b> {value.type} {formatShape(value.shape)}: {shortText(value.min)}{' '}
        to {shortText(value.max)}, mean {shortText(value.mean)}, std {shortText(value.std)},{' '}
        {plural(value.zeros, 'zero')}, {plural(value.outliers, 'outlier')},{' '}
        {formatCount(value.not_finite)} not finite. Quantiles:{' '}
        {value.quantiles.map(({ share, value: at }) => `${100 * share} % ${shortText(at)}`).join(', ')}. Rows with the largest root mean square:{' '}
        {rows.map(({ row, rms }) => `${row} (${shortText(rms)})`).join(', ')}.
      </p>
      <Chart store={store} title="Values" file={`${model}-${tensor}`} bins={value.histogram} />
      <Chart store={store} title="Block scales" file={`${model}-${tensor}-scales`} bins={value.scales} />
      <Chart store={store} title="Block minima" file={`${model}-${tensor}-minima`} bins={value.minima} />
    </div>
  );
} // prettier-ignore

function Chart(props: { store: Store; title: string; file: string; bins: WeightBins | null }) {
  const { store, title, file, bins } = props;
  const table = useMemo(() => bins && binsTable('values', bins), [bins]);
  return (
    table && <BarChart {...{ store, title, file, table }} text={`${title}: histogram of ${table.keys.length} bins`} />
  );
} // prettier-ignore

// ---- The picture ----------------------------------------------------------------------

function Picture(props: TensorsProps & { tensor: string }) {
  const { store, panel, model, tensor, options, change } = props;
  const parts = useMemo(() => {
    const { cells } = options.peek();
    return {
      picture: new TensorPicture(store, { model, tensor, cells }, options, change),
      scale: signal<Scale>(emptyScale),
      plane: signal<Plane | null>(null),
    };
  }, [store, model, tensor]);
  const { picture, scale, plane } = parts;
  const { reference } = options.value;
  return (
    <>
      <PicturePlane {...{ store, panel, picture, scale, plane }} of={tensor} />
      <div class="weights-foot">
        <Readout picture={picture} tensor={tensor} plane={plane} />
        {reference !== null && reference !== model && (
          <OfReference key={reference} {...{ store, picture, reference, tensor }} />
        )}
        <PictureLegend {...{ store, scale, plane }} cells={CELLS[options.value.cells]} />
      </div>
    </>
  );
}

// The value where the pointer rests, or that is selected, and what it is decoded from.
function Readout(props: {
  picture: TensorPicture;
  tensor: string;
  plane: ReadonlySignal<Plane | null>;
}) {
  const { picture, tensor, plane } = props;
  const { value } = useResource(picture.value);
  useEffect(() => {
    plane.peek()?.describeAgain();
  }, [value]);
  if (!value) {
    return (
      <p role="status" class="weights-readout" tabIndex={0}>
        <b class="mono">{tensor}</b> Zoom in and point at a value, or select one.
      </p>
    );
  }
  const formula = formulaText(value);
  const superBlock = superBlockText(value);
  const blockValues = blockValuesText(value);
  return (
    <p role="status" class="weights-readout" tabIndex={0}>
      <b class="mono">
        {value.tensor}[{value.row}, {value.column}]
      </b>{' '}
      = <b class="weights-value">{floatText(value.value ?? NaN)}</b>
      {formula !== null && ` = ${formula}`}
      {superBlock !== null && ` (${superBlock})`} <span class="mono dim">{blockText(value)}</span>{' '}
      {blockValues !== null && <span class="dim">Values of the block: {blockValues}.</span>}
    </p>
  );
}

// The same value in the model that errors are against.
function OfReference(props: { store: Store; picture: TensorPicture; reference: string; tensor: string }) {
  const { store, picture, reference, tensor } = props;
  const resource = useMemo(
    () =>
      new Resource<WeightsValue>({
        key: () => {
          const place = picture.place.value;
          return place && `${place.row} ${place.column}`;
        },
        load: (signal) => {
          const { row, column } = picture.place.peek() ?? { row: 0, column: 0 };
          return store.api.weightsValue(reference, tensor, row, column, signal);
        },
        reconnects: store.connection.reconnects,
      }),
    [store, picture, reference, tensor],
  );
  const { value: other, error } = useResource(resource);
  const { value } = useResource(picture.value);
  const isSame = value !== null && other?.row === value.row && other.column === value.column;
  const [mine, its] = [value?.value ?? NaN, other?.value ?? NaN];
  return (
    <p class="weights-reference">
      <span class="dim">reference {reference}:</span>{' '}
      {error ? (
        <span class="dim">{errorText(error)}</span>
      ) : (
        isSame && (
          <>
            <b>{floatText(its)}</b> <span class="dim">difference {shortText(mine - its)}</span>
          </>
        )
      )}
    </p>
  );
} // prettier-ignore
