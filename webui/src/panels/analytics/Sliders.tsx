// Sliders over the points of a curve that is loaded once: what one amount of memory would serve.
import { signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { formatBytes, formatCount, plural } from '../../format';
import { MAX_PAGE_ROWS } from '../../net/api';
import * as wire from '../../net/types';
import { formatValue, labelOf, type ChartTable } from '../../charts/table';
import type { OpenSession } from '../../state/session/open_session';
import { Resource } from '../../state/resource';
import type { Store } from '../../state/store';
import { useResource } from '../../ui/hooks';
import { scopeNow } from './ChartCard';
import { cachesRequest } from './pages/experts';
import { pinnedIn, reuseRequest } from './pages/reuse';
import type { ChartRequest } from './spec';

export function useTable(session: OpenSession, steps: number, key: string, request: ChartRequest) {
  // What is shown of fewer steps stays until that of more is there.
  const known = useMemo(() => signal(steps), []);
  useEffect(() => {
    known.value = steps;
  }, [steps]);
  const resource = useMemo(
    () =>
      new Resource<ChartTable>({
        key: () => `${known.value} ${session.active.value} ${key}`,
        load: () => request.load(session),
        reconnects: session.context.reconnects,
      }),
    [session, key],
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

const SHOWN = 40;

function usePinOrder(session: OpenSession, steps: number) {
  const resource = useMemo(
    () =>
      new Resource<wire.PinOrder>({
        key: () => 'pin-order',
        load: () =>
          session.context.api.analysis(session.id, 'pin-order', wire.pinOrder, {
            limit: MAX_PAGE_ROWS,
          }),
        reconnects: session.context.reconnects,
      }),
    [session, steps],
  );
  return useResource(resource).value;
}

// Which weights to keep in memory of this size.
export function MemorySlider(props: Props) {
  const { store, session, steps } = props;
  const curve = useTable(session, steps, 'reuse', reuseRequest());
  const order = usePinOrder(session, steps);
  if (!curve || curve.keys.length === 0 || !order) return null;
  const bytes = Number(curve.keys[nearest(curve, props.value ?? Number(curve.keys[Math.floor(curve.keys.length / 2)] ?? 0))] ?? 0); // prettier-ignore
  const kept = pinnedIn(order, bytes);
  const parts = order.parts.filter(({ memory_bytes }) => memory_bytes <= bytes).length;
  const atLeast = parts === MAX_PAGE_ROWS ? 'at least ' : ''; // of the parts that were asked for
  return (
    <section role="group" class="chart-card" data-size="wide" aria-label="What fits into memory">
      <header>
        <h2>What fits into memory</h2>
      </header>
      <p class="chart-about dim">
        Bytes that must be read from the disk with this much memory for weights, as a share of all
        bytes read. The list has what pinning keeps, the most read parts first: a tensor, or the
        slices of experts that are read separately.
      </p>
      <Slider {...props} table={curve} label="Memory for weights" unit="" />
      <p>
        Pinned: {atLeast}
        {formatCount(parts)} of {plural(order.total, 'part')} in {formatBytes(bytes)}.{' '}
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
      <ul class="pinned" aria-label="Weights to pin">
        {kept.slice(0, SHOWN).map(({ tensor, experts }) => (
          <li key={tensor}>
            <button
              type="button"
              class="link mono"
              onClick={() => {
                store.select({ kind: 'tensor', name: tensor });
              }}
            >
              {tensor}
            </button>
            {experts.length > 0 &&
              ` expert${experts.length === 1 ? '' : 's'} ${experts.join(', ')}`}
          </li>
        ))}
        {kept.length > SHOWN && <li class="dim">and {formatCount(kept.length - SHOWN)} more</li>}
      </ul>
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
