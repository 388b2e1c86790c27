// The captured values of the session: a list of them, and one as a histogram and as a picture.
import { computed, signal, type ReadonlySignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import '../weights/weights.css';
import { formatCount, formatShape } from '../../format';
import { nextSort, sortOf, sortText } from '../../grid/column';
import type { CapturedOutputs, CapturedOutputValues } from '../../net/types';
import { isWholeCamera, wholeCamera } from '../../plane/camera';
import type { Plane } from '../../plane/plane';
import { emptyScale, type Scale } from '../../plane/scale';
import { Resource } from '../../state/resource';
import type { OpenSession } from '../../state/session/open_session';
import type { Store } from '../../state/store';
import { finishedSteps } from '../../state/view/answer';
import { IconButton } from '../../ui/Button';
import { Grid } from '../../ui/Grid';
import { usePart, useResource } from '../../ui/hooks';
import { Segmented } from '../../ui/Segmented';
import { Empty, FailedLoad, Loading } from '../../ui/States';
import type { SessionProps } from '../panel';
import { BarChart } from '../weights/BarChart';
import { PictureLegend } from '../weights/PictureLegend';
import { PicturePlane } from '../weights/PicturePlane';
import { ValuePicture } from '../weights/value_picture';
import { floatText, shortText } from '../weights/value_text';
import { binsTable } from '../weights/weights_tables';
import {
  askCaptured,
  askOutput,
  capturedColumns,
  capturedText,
  FIGURES,
  GREATEST_FIRST,
  outputPath,
  sortedCaptured,
  type OutputPlace,
} from './captured';
import {
  ALL_CELLS,
  CELLS,
  decodeValues,
  encodeValues,
  isSameOutput,
  VIEWS,
  withOutput,
  type ValuesOptions,
  type ValuesView,
} from './values_options';

const VIEW_NAMES: Readonly<Record<ValuesView, string>> = {
  outputs: 'Outputs',
  histogram: 'Histogram',
  picture: 'Picture',
};

type Change = (part: Partial<ValuesOptions>, how: 'push' | 'replace' | 'debounced') => void;

interface Props extends SessionProps {
  readonly options: ReadonlySignal<ValuesOptions>;
  readonly change: Change;
}

export function ValuesPanel({ store, session, panel }: SessionProps) {
  const options = useMemo(
    () => computed(() => decodeValues(store.navigation.view.value.options[panel] ?? '')),
    [store, panel],
  );
  const change: Change = (part, how) => {
    store.navigation.setOptions(panel, encodeValues({ ...options.peek(), ...part }), how);
  };
  const { of, cells, camera } = options.value;
  const views = viewsOf(store);
  const show = views.includes(options.value.show) ? options.value.show : 'histogram';
  const props = { store, session, panel, options, change };
  return (
    <>
      <div class="toolbar">
        <Segmented
          label="View of the captured values"
          value={show}
          options={views.map((one) => ({ value: one, text: VIEW_NAMES[one] }))}
          choose={(one) => {
            change({ show: one }, 'push');
          }}
        />
        {show === 'picture' && (
          <Segmented
            label="Cells show"
            value={cells}
            options={ALL_CELLS.map((one) => ({ value: one, text: CELLS[one].button }))}
            choose={(one) => {
              change({ cells: one }, 'push');
            }}
          />
        )}
        <span class="toolbar-end" />
        {store.hasServer && show !== 'outputs' && of && (
          <SaveNpy store={store} session={session} of={of} />
        )}
        {show === 'picture' && (
          <IconButton
            icon="fit"
            label="Show all values"
            hint="0"
            disabled={isWholeCamera(camera)}
            onClick={() => {
              change({ camera: wholeCamera }, 'push');
            }}
          />
        )}
      </div>
      {show === 'outputs' ? (
        <Outputs {...props} />
      ) : of === null ? (
        <Empty>Choose an output in the list of outputs.</Empty>
      ) : show === 'histogram' ? (
        <Histogram key={keyOf(of)} {...props} of={of} />
      ) : (
        <Picture key={`${keyOf(of)} ${cells}`} {...props} of={of} />
      )}
    </>
  );
}

// A file holds the statistics and histograms, not each value.
const viewsOf = ({ hasServer }: Store): readonly ValuesView[] =>
  VIEWS.filter((one) => hasServer || one !== 'picture');

const keyOf = ({ step, op, output }: OutputPlace): string => `${step} ${op} ${output}`;

function SaveNpy(props: { store: Store; session: OpenSession; of: OutputPlace }) {
  const { store, session, of } = props;
  return (
    <button
      type="button"
      class="small"
      title="The values of this output, for numpy.load()"
      onClick={() => {
        void store.saves.save('Values', `${session.id}-step${of.step}-${of.output}.npy`, {
          path: `sessions/${encodeURIComponent(session.id)}/${outputPath(of)}/file`,
          query: { output: of.output },
        });
      }}
    >
      Save as .npy
    </button>
  );
}

// ---- The list -------------------------------------------------------------------------

function Outputs(props: Props) {
  const { store, session, panel, options, change } = props;
  const resource = useMemo(
    () =>
      new Resource<CapturedOutputs>({
        key: () => String(finishedSteps(session)),
        load: () => askCaptured(session, null),
        reconnects: session.context.reconnects,
      }),
    [session],
  );
  const { value, error } = useResource(resource);
  const order = usePart(() => store.navigation.view.value.sorts[panel] ?? '');
  const sort = useMemo(() => sortOf(order), [order]);
  const rows = useMemo(() => sortedCaptured(value?.rows ?? [], sort), [value, sort]);
  if (error) return <FailedLoad what="The captured values cannot be listed." resource={resource} />; // prettier-ignore
  if (!value) return <Loading>Reading the values…</Loading>;
  if (value.missing !== undefined) {
    return (
      <Empty>
        <span>
          {value.missing} In the page: “Values of” in the settings of a run. On the command line:{' '}
          <span class="mono">tt record -m model.gguf -p "Once upon a time" --capture l_out</span>
        </span>
      </Empty>
    );
  }
  const { of } = options.value;
  const active = of ? rows.findIndex((row) => isSameOutput(of, row)) : -1;
  return (
    <>
      <p class="weights-note">
        <span class={value.not_captured > 0 ? 'warn' : ''}>{capturedText(value)}</span>{' '}
        {store.hasServer ? (
          <>
            Enter or a double click shows a picture.{' '}
            <button
              type="button"
              class="link"
              onClick={() => {
                void store.saves.save('Values', `${session.id}.safetensors`, {
                  path: `sessions/${encodeURIComponent(session.id)}/values/file`,
                });
              }}
            >
              Save all as .safetensors
            </button>
          </>
        ) : (
          'Enter or a double click shows a histogram. The values themselves are not in this file: open the session with tt-server to see them as a picture and to save them.'
        )}
      </p>
      <div class="table">
        <Grid
          label="Captured values"
          columns={capturedColumns}
          rows={rows}
          sort={sort.key === '' ? null : sort}
          active={active < 0 ? null : active}
          onSort={(key) => {
            store.navigation.setSort(panel, sortText(nextSort(sort, key, GREATEST_FIRST)));
          }}
          onActivate={(row) => {
            change(withOutput(options.peek(), row), 'push');
          }}
          onEnter={(row) => {
            // Without the picture, the histogram.
            change({ ...withOutput(options.peek(), row), show: 'picture' }, 'push');
          }}
        />
      </div>
    </>
  );
}

// ---- One output -----------------------------------------------------------------------

function useOutput({ session }: Props, of: OutputPlace) {
  return useMemo(
    () =>
      new Resource<CapturedOutputValues>({
        key: () => keyOf(of),
        load: () => askOutput(session, of),
        reconnects: session.context.reconnects,
      }),
    [session, keyOf(of)],
  );
}

function Histogram(props: Props & { of: OutputPlace }) {
  const { store, session, of } = props;
  const resource = useOutput(props, of);
  const { value, error } = useResource(resource);
  const table = useMemo(() => value && binsTable('values', value.histogram), [value]);
  if (error) return <FailedLoad what="The values cannot be read." resource={resource} />;
  if (!value || !table) return <Loading>Reading the values…</Loading>;
  return (
    <div class="weights-charts">
      <p class="weights-note">
        <b class="mono">{value.output}</b> {value.operation}, step {value.step}, op {value.op}:{' '}
        {value.part}, {value.type} {formatShape(value.shape)}.{' '}
        {FIGURES.flatMap((key) => (value[key] === null ? [] : [`${key} ${shortText(value[key])}`])).join(', ')}
        , {formatCount(value.nan)} NaN, {formatCount(value.inf)} infinite.
      </p>
      {table.keys.length > 0 && (
        <BarChart
          {...{ store, table }}
          title="Values"
          counts="number of values by value"
          text={`Values: histogram of ${table.keys.length} bins`}
          file={`${session.id}-step${of.step}-${of.output}`}
        />
      )}
    </div>
  );
} // prettier-ignore

function Picture(props: Props & { of: OutputPlace }) {
  const { store, session, panel, options, change, of } = props;
  const parts = useMemo(() => {
    const { cells } = options.peek();
    return {
      picture: new ValuePicture(
        store,
        ({ x, y, width, height }, aborted) =>
          session.context.api.capturedPicture(
            session.id,
            of.step,
            of.op,
            {
              output: of.output,
              value: cells,
              width,
              height,
              ...(x ? { x_from: Math.floor(x.from), x_to: Math.ceil(x.to) } : {}),
              ...(y ? { y_from: Math.floor(y.from), y_to: Math.ceil(y.to) } : {}),
            },
            aborted,
          ),
        CELLS[cells],
        options,
        change,
      ),
      scale: signal<Scale>(emptyScale),
      plane: signal<Plane | null>(null),
    };
  }, [store, session, keyOf(of)]);
  const { picture, scale, plane } = parts;
  return (
    <>
      <PicturePlane {...{ store, panel, picture, scale, plane }} of={of.output} />
      <div class="weights-foot">
        <Readout {...props} picture={picture} />
        <PictureLegend {...{ store, scale, plane }} cells={CELLS[options.value.cells]} />
      </div>
    </>
  );
}

// The selected value with all its digits, and what it is of.
function Readout(props: Props & { of: OutputPlace; picture: ValuePicture }) {
  const { session, of, picture } = props;
  const value = useMemo(
    () =>
      new Resource<CapturedOutputValues>({
        key: () => {
          const place = picture.place.value;
          const width = picture.source.picture.value?.x.size;
          return place && width !== undefined ? String(place.row * width + place.column) : null;
        },
        load: () => {
          const { row, column } = picture.place.peek() ?? { row: 0, column: 0 };
          const width = picture.source.picture.peek()?.x.size ?? 0;
          return askOutput(session, of, row * width + column);
        },
        reconnects: session.context.reconnects,
        cacheSize: 256,
      }),
    [session, picture],
  );
  const { value: found, key, loadedKey } = useResource(value);
  const place = picture.place.value;
  return (
    <p role="status" class="weights-readout" tabIndex={0}>
      <b class="mono">
        {of.output}
        {place && `[${place.row}, ${place.column}]`}
      </b>{' '}
      {place && found && key === loadedKey ? (
        <>
          = <b class="weights-value">{numberText(found.values[0])}</b>
        </>
      ) : (
        !place && 'Zoom in and point at a value, or select one.'
      )}{' '}
      <span class="dim">
        step {of.step}, op {of.op}
      </span>
    </p>
  );
}

const numberText = (value: number | null | undefined): string =>
  typeof value === 'number' ? floatText(value) : 'not finite';
