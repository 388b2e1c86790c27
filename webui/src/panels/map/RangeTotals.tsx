// The totals of the brushed range, of each value, and for the model file how sequential its reads
// are.
import { computed } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { exactBytes, formatBytes, formatCount, formatNs, plural } from '../../format';
import type { PictureQuery } from '../../net/types';
import { ok } from '../../result';
import type { OpenSession } from '../../state/open_session';
import { filteredSums } from '../../state/range_query';
import { Resource } from '../../state/resource';
import type { Store } from '../../state/store';
import { useResource } from '../../ui/hooks';
import type { MapModel } from './map_model';
import { DEFAULT_GAP, tracksOf, type MapValue } from './map_options';

type PlaceAxis = NonNullable<PictureQuery['y']>;

interface Totals {
  readonly sums: Readonly<Record<'time' | 'bytes' | 'accesses' | 'faults', number>>;
  readonly sequential: number | null; // share of the bytes; null: not reads of files
}

const SUMMED = ['time', 'bytes', 'accesses', 'faults'] as const satisfies readonly MapValue[];

export function RangeTotals(props: { store: Store; session: OpenSession; model: MapModel }) {
  const { store, session, model } = props;
  const resource = useMemo(() => totalsOf(store, session, model), [store, session, model]);
  const { value, error } = useResource(resource);
  if (error) return <span class="bad">Its totals cannot be read.</span>;
  if (!value) return null;
  const { sums, sequential } = value;
  return (
    <span class="range-totals" role="status">
      <span>{formatNs(sums.time)}</span>
      <span title={exactBytes(Math.round(sums.bytes))}>{formatBytes(Math.round(sums.bytes))}</span>
      {sums.time > 0 && <span>{formatBytes(Math.round((sums.bytes / sums.time) * 1e9))}/s</span>}
      <span>{plural(Math.round(sums.accesses), 'access', 'accesses')}</span>
      {sums.faults > 0 && <span>{formatCount(sums.faults)} disk waits</span>}
      {sequential !== null && (
        <>
          <span title="Share of the bytes whose read starts at most the gap after the end of the previous one">
            {Math.round(100 * sequential)} % sequential
          </span>
          <Gap model={model} />
        </>
      )}
    </span>
  );
}

const GAPS = [0, 4096, 65_536, DEFAULT_GAP, 1 << 20, 8 << 20];

// A link may have another gap.
function Gap({ model }: { model: MapModel }) {
  const { gap } = model.options.value;
  return (
    <label class="choice" title="The gap between two reads that still counts as sequential">
      <span>gap</span>
      <select
        aria-label="Gap of sequential reads"
        value={String(gap)}
        onChange={(event) => {
          model.change({ gap: Number(event.currentTarget.value) });
        }}
      >
        {[...new Set([...GAPS, gap])]
          .sort((a, b) => a - b)
          .map((bytes) => (
            <option key={bytes} value={String(bytes)}>
              {bytes === 0 ? 'none' : formatBytes(bytes)}
            </option>
          ))}
      </select>
    </label>
  );
}

function totalsOf(store: Store, session: OpenSession, model: MapModel): Resource<Totals> {
  const { api, reconnects } = session.context;
  const request = computed(() => {
    const { range, phase, filter } = store.navigation.view.value;
    if (!range) return null;
    const layers = store.layers.value;
    // What the map does not show is a filter; the rest are the axes of the request.
    const { query } = filteredSums({ phase, filter, range: model.filter.value }, layers);
    const all = filteredSums({ phase, filter, range }, layers).query;
    const options = model.options.value;
    const brush = model.brush.value;
    const y: PlaceAxis = brush?.y ? (tracksOf(options.y)[brush.track] ?? 'all') : 'all';
    return {
      query,
      all,
      brush,
      x: options.x,
      y,
      gap: options.gap,
      file: options.y === 'file' || options.y === 'memory',
    };
  });
  return new Resource<Totals>({
    key: () => {
      void session.active.value; // the last steps have arrived
      return request.value && JSON.stringify(request.value);
    },
    load: async (signal) => {
      const asked = request.peek();
      const {
        query = {},
        all = {},
        brush,
        x = 'all',
        y = 'all',
        gap = 0,
        file = false,
      } = asked ?? {};
      const shown: PictureQuery = {
        ...query,
        x,
        y,
        width: 1,
        height: 1,
        ...(brush && x !== 'all' ? { x_from: brush.x.from, x_to: brush.x.to } : {}),
        ...(brush?.y && y !== 'all' ? { y_from: brush.y.from, y_to: brush.y.to } : {}),
      };
      const [pictures, order] = await Promise.all([
        Promise.all(SUMMED.map((value) => api.heatmap(session.id, { ...shown, value }, signal))),
        file ? api.sequentiality(session.id, { ...all, gap, limit: 1 }, signal) : null,
      ]);
      for (const one of pictures) if (!one.ok) return one;
      const [time = 0, bytes = 0, accesses = 0, faults = 0] = pictures.map((one) =>
        one.ok ? one.value.shown : 0,
      );
      const sums = order?.ok ? order.value.sums : null;
      const sequential = sums && sums.bytes > 0 ? sums.sequential_bytes / sums.bytes : null;
      return ok({ sums: { time, bytes, accesses, faults }, sequential });
    },
    reconnects,
  });
}
