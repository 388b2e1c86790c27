// The output and the sources of the op at which the run is stopped, and the values of one of them.
import { signal, useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { formatCount, formatShape } from '../../format';
import { errorText, type ApiError } from '../../net/api';
import type { DebugStop, DebugValues } from '../../net/types';
import { err, ok } from '../../result';
import type { OpenSession } from '../../state/session/open_session';
import { Resource } from '../../state/resource';
import type { Store } from '../../state/store';
import { useResource } from '../../ui/hooks';
import { firstIndices, firstPlace, valueTable, valueText } from './values';

const MAX_VALUES = 2000; // that are shown

interface Props {
  readonly store: Store;
  readonly session: OpenSession;
  readonly stop: DebugStop;
}

interface Asked {
  readonly label: string;
  readonly indices: string;
  readonly stop: number;
  readonly changes: number; // so far
}

interface Read {
  readonly asked: Asked;
  readonly whole: DebugValues; // its statistics, no values
  readonly part: DebugValues | ApiError; // the elements that were asked for
}

export function StopValues({ store, session, stop }: Props) {
  const chosen = useSignal<string | null>(null); // the label of a tensor
  const typed = useSignal<string | null>(null);
  const { tensors } = stop;
  const readable = tensors.find(({ unreadable }) => unreadable === null);
  const tensor =
    tensors.find(({ label }) => label === chosen.value) ?? (stop.before ? readable : tensors[0]);
  const isRunning = store.debug.isRunning.value;
  return (
    <section aria-labelledby="debug-values" data-running={isRunning}>
      <h2 id="debug-values">
        Values <span class="dim">of {stop.place.operation_type} </span>
        <span class="mono">{stop.place.tensor_name}</span>
      </h2>
      <ul class="debug-tensors" aria-label="Tensors of the op">
        {tensors.map((one) => (
          <li key={one.label}>
            <button
              type="button"
              aria-pressed={one === tensor}
              title={one.unreadable ?? undefined}
              onClick={() => {
                chosen.value = one.label;
                typed.value = null;
              }}
            >
              <span class="dim">{one.label}</span>
              <span class="mono">{one.name}</span>
              <span class="dim">
                {one.type} {formatShape(one.shape)}
              </span>
            </button>
          </li>
        ))}
      </ul>
      {tensor &&
        (tensor.unreadable !== null ? (
          <p class="dim">
            {tensor.name} cannot be read: {tensor.unreadable}.
          </p>
        ) : (
          <Tensor
            store={store}
            session={session}
            shape={tensor.shape}
            asked={{
              label: tensor.label,
              indices: typed.value ?? firstIndices(tensor.shape),
              stop: stop.number,
              changes: store.debug.state.value?.changes.length ?? 0,
            }}
            choose={(indices) => {
              typed.value = indices;
            }}
          />
        ))}
    </section>
  );
}

function Tensor(props: {
  store: Store;
  session: OpenSession;
  shape: readonly number[];
  asked: Asked;
  choose: (indices: string) => void;
}) {
  const { store, session, shape, asked, choose } = props;
  const { label, indices, stop, changes } = asked;
  const wanted = useMemo(() => signal(asked), []);
  useEffect(() => {
    wanted.value = { label, indices, stop, changes };
  }, [label, indices, stop, changes]);
  const values = useMemo(() => valuesOf(store, session, wanted), [store, session]);
  const { value, error, loading } = useResource(values);
  const part = value && 'values' in value.part ? value.part : null;
  const problem = value && !('values' in value.part) ? value.part : error;
  return (
    <>
      {value && (
        <Statistics
          of={value.whole}
          find={async (of) => {
            const place = await firstPlace(shape, async (places) => {
              const read = await store.api.debugValues(session.id, { tensor: label, indices: places, limit: 0 }); // prettier-ignore
              return read.ok ? read.value.statistics[of] > 0 : null;
            });
            if (place !== null) choose(place);
          }}
        />
      )}
      <label class="debug-indices">
        <span>Elements</span>
        <input
          type="text"
          class="mono"
          aria-invalid={problem !== null}
          title="As numpy indexes the array: the outermost dimension first; N, N-M, N- or * of each"
          maxLength={200}
          spellcheck={false}
          value={indices}
          onChange={(event) => {
            choose(event.currentTarget.value);
          }}
        />
      </label>
      <p class="problem" role="alert">
        {problem && !loading ? errorText(problem) : ''}
      </p>
      {value && part && <Numbers shape={shape} indices={value.asked.indices} part={part} />}
    </>
  );
}

// A selection that is wrong does not hide the statistics.
const valuesOf = (
  store: Store,
  session: OpenSession,
  wanted: { readonly value: Asked; peek(): Asked },
) =>
  new Resource<Read>({
    key: () => {
      const { label, indices, stop, changes } = wanted.value;
      // At the next stop there are other tensors.
      const isThere = store.debug.state.value?.stop?.number === stop;
      return isThere ? `${stop} ${changes} ${label} ${indices}` : null;
    },
    load: async (aborted) => {
      const asked = wanted.peek();
      const { api } = store;
      const { label: tensor, indices, stop } = asked;
      const [whole, part] = await Promise.all([
        api.debugValues(session.id, { tensor, stop, limit: 0 }, aborted),
        api.debugValues(session.id, { tensor, indices, stop, limit: MAX_VALUES }, aborted),
      ]);
      if (!whole.ok) return err(whole.error);
      return ok({ asked, whole: whole.value, part: part.ok ? part.value : part.error });
    },
    reconnects: session.context.reconnects,
  });

// `find`: shows the first value that is not a number, or infinite.
function Statistics(props: { of: DebugValues; find: (of: 'nan' | 'inf') => Promise<void> }) {
  const { statistics } = props.of;
  const { elements, nan, inf, min, max, mean, std, norm } = statistics;
  const figures: readonly (readonly [string, number | null])[] = [
    ['min', min],
    ['max', max],
    ['mean', mean],
    ['std', std],
    ['norm', norm],
  ];
  return (
    <dl class="debug-statistics" aria-label="Statistics of all elements">
      {figures.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd class="mono" title={String(value)}>
            {valueText(value)}
          </dd>
        </div>
      ))}
      <div>
        <dt>elements</dt>
        <dd class="mono">{formatCount(elements)}</dd>
      </div>
      {nan > 0 && (
        <div class="bad">
          <dt>NaN</dt>
          <dd class="mono">
            <First text={formatCount(nan)} find={() => void props.find('nan')} />
          </dd>
        </div>
      )}
      {inf > 0 && (
        <div class="bad">
          <dt>Inf</dt>
          <dd class="mono">
            <First text={formatCount(inf)} find={() => void props.find('inf')} />
          </dd>
        </div>
      )}
    </dl>
  );
}

const First = ({ text, find }: { text: string; find: () => void }) => (
  <button type="button" class="link" title="Show the first one" onClick={find}>
    {text}
  </button>
);

function Numbers(props: { shape: readonly number[]; indices: string; part: DebugValues }) {
  const { shape, indices, part } = props;
  const { columns, rows } = valueTable(shape, indices, part.shape, part.values);
  const count = part.shape.reduce((all, n) => all * n, 1);
  return (
    <>
      <div class="debug-numbers" tabIndex={0} role="group" aria-label="Numbers">
        <table aria-label="Values">
          <thead>
            <tr>
              <td />
              {columns.map((column) => (
                <th key={column} scope="col">
                  {column}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(({ name, values }, i) => (
              <tr key={i}>
                {name === '' ? <td /> : <th scope="row">{name}</th>}
                {values.map((value, n) => (
                  <td
                    key={n}
                    class={typeof value === 'string' ? 'bad' : undefined}
                    title={String(value)}
                  >
                    {valueText(value)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {count > part.values.length && (
        <p class="dim">
          The first {formatCount(part.values.length)} of {formatCount(count)}
        </p>
      )}
    </>
  );
}
