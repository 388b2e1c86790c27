// Sliders over the points of a curve that is loaded once: what one amount of memory would serve.
import { useMemo } from 'preact/hooks';
import { formatBytes, plural } from '../../format';
import { formatValue, labelOf, type ChartTable } from '../../charts/table';
import type { OpenSession } from '../../state/session/open_session';
import { Resource } from '../../state/resource';
import type { Store } from '../../state/store';
import { useResource } from '../../ui/hooks';
import { scopeNow } from './ChartCard';
import { cachesRequest } from './pages/experts';
import { pinnedRequest, reuseRequest } from './pages/reuse';
import type { ChartRequest } from './spec';

export function useTable(session: OpenSession, steps: number, key: string, request: ChartRequest) {
  const resource = useMemo(
    () =>
      new Resource<ChartTable>({
        key: () => key,
        load: () => request.load(session),
        reconnects: session.context.reconnects,
      }),
    [session, steps, key],
  );
  return useResource(resource).value;
}

// The point of the curve whose key is nearest.
const nearest = (table: ChartTable, wanted: number): number =>
  table.keys.reduce<number>(
    (best, key, row) =>
      Math.abs(Number(key) - wanted) < Math.abs(Number(table.keys[best]) - wanted) ? row : best,
    0,
  );

interface Props {
  readonly store: Store;
  readonly session: OpenSession;
  readonly steps: number;
  readonly value: number | null; // a key of the curve
  readonly set: (value: number) => void;
}

function Slider(props: Props & { table: ChartTable; label: string; unit: string }) {
  const { table, label, unit } = props;
  const row = nearest(table, props.value ?? Number(table.keys[Math.floor(table.keys.length / 2)] ?? 0)); // prettier-ignore
  return (
    <div class="chart-slider">
      <label>
        <span>{label}</span>
        <input
          type="range"
          min={0}
          max={table.keys.length - 1}
          value={row}
          aria-valuetext={`${labelOf(table, row)} ${unit}`}
          onInput={(event) => {
            props.set(Number(table.keys[Number(event.currentTarget.value)] ?? 0));
          }}
        />
        <output>
          {labelOf(table, row)} {unit}
        </output>
      </label>
      <ul>
        {table.series.map((series) => (
          <li key={series.name} data-policy={series.name}>
            {series.name} <b>{formatValue(series.unit, series.values[row] ?? 0)}</b>
          </li>
        ))}
      </ul>
    </div>
  );
}

// Which weights to keep in memory of this size.
export function MemorySlider(props: Props) {
  const { store, session, steps } = props;
  const curve = useTable(session, steps, 'reuse', reuseRequest());
  const weights = useTable(session, steps, 'pinned', pinnedRequest());
  if (!curve || curve.keys.length === 0 || !weights) return null;
  const bytes = Number(curve.keys[nearest(curve, props.value ?? Number(curve.keys[Math.floor(curve.keys.length / 2)] ?? 0))] ?? 0); // prettier-ignore
  const size = weights.more?.find(({ name }) => name === 'memory so far')?.values ?? [];
  const kept = weights.keys.filter((_, row) => (size[row] ?? Infinity) <= bytes).map(String);
  return (
    <section role="group" class="chart-card" data-size="wide" aria-label="What fits into memory">
      <header>
        <h2>What fits into memory</h2>
      </header>
      <p class="chart-about dim">
        Bytes that must be read from the disk with this much memory for weights, as a share of all
        bytes read. The list has the weights in the order in which they would be pinned: the most
        read first.
      </p>
      <Slider {...props} table={curve} label="Memory for weights" unit="" />
      <p>
        Pinned: {kept.length} of {plural(weights.keys.length, 'weight')} in {formatBytes(bytes)}.{' '}
        <button
          type="button"
          class="link"
          onClick={() => {
            store.navigation.setOptions('map', 'y:memory,x:all,v:bytes', 'push');
            store.reveal('map');
          }}
        >
          Show the memory in the map
        </button>
      </p>
      <ol class="pinned" aria-label="Weights to pin">
        {kept.slice(0, 40).map((name) => (
          <li key={name}>
            <button
              type="button"
              class="link mono"
              onClick={() => {
                store.select({ kind: 'tensor', name });
              }}
            >
              {name}
            </button>
          </li>
        ))}
        {kept.length > 40 && <li class="dim">and {plural(kept.length - 40, 'more')}</li>}
      </ol>
    </section>
  );
}

export function SlotSlider(props: Props) {
  const { store, session, steps } = props;
  const request = cachesRequest(scopeNow(store, session));
  const caches = useTable(session, steps, request.text, request);
  if (!caches || caches.keys.length === 0) return null;
  return (
    <section
      role="group"
      class="chart-card"
      data-size="wide"
      aria-label="What a cache of experts serves"
    >
      <header>
        <h2>What a cache of experts serves</h2>
      </header>
      <p class="chart-about dim">
        Share of the requests of the second half of the tokens that are served without a read.
      </p>
      <Slider {...props} table={caches} label="Slots in each layer" unit="slots" />
    </section>
  );
}
