// The totals of the brushed range, of each value.
import { computed, type ReadonlySignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { exactBytes, formatBytes, formatCount, formatNs, plural } from '../../format';
import type { PictureQuery } from '../../net/types';
import type { Plane } from '../../plane/plane';
import { ok } from '../../result';
import type { OpenSession } from '../../state/session/open_session';
import { filteredSums } from '../../state/view/range_query';
import { Resource } from '../../state/resource';
import type { Store } from '../../state/store';
import { usePart, useResource } from '../../ui/hooks';
import type { MapModel } from './map_model';
import { tracksOf, type MapValue } from './map_options';

type PlaceAxis = NonNullable<PictureQuery['y']>;

interface Totals {
  readonly sums: Readonly<Record<'time' | 'bytes' | 'accesses' | 'faults', number>>;
}

const SUMMED = ['time', 'bytes', 'accesses', 'faults'] as const satisfies readonly MapValue[];

export function RangeTotals(props: {
  store: Store;
  session: OpenSession;
  model: MapModel;
  plane: ReadonlySignal<Plane | null>;
}) {
  const { store, session, model } = props;
  const resource = useMemo(() => totalsOf(store, session, model), [store, session, model]);
  const { value, error } = useResource(resource);
  const isDragged = usePart(() => (props.plane.value?.dragged.value ?? null) !== null);
  if (isDragged) return null; // they are those of the range before
  if (error) return <span class="bad">Its totals cannot be read.</span>;
  if (!value) return null;
  const { sums } = value;
  return (
    <span class="range-totals" role="status">
      <span>{formatNs(sums.time)}</span>
      <span title={exactBytes(Math.round(sums.bytes))}>{formatBytes(Math.round(sums.bytes))}</span>
      {sums.time > 0 && <span>{formatBytes(Math.round((sums.bytes / sums.time) * 1e9))}/s</span>}
      <span>{plural(Math.round(sums.accesses), 'access', 'accesses')}</span>
      {sums.faults > 0 && <span>{formatCount(sums.faults)} disk waits</span>}
    </span>
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
    const options = model.options.value;
    const brush = model.brush.value;
    const y: PlaceAxis = brush?.y ? (tracksOf(options.y)[brush.track] ?? 'all') : 'all';
    return { query, brush, x: options.x, y };
  });
  return new Resource<Totals>({
    key: () => {
      void session.active.value; // the last steps have arrived
      return request.value && JSON.stringify(request.value);
    },
    load: async (signal) => {
      const asked = request.peek();
      const { query = {}, brush, x = 'all', y = 'all' } = asked ?? {};
      const shown: PictureQuery = {
        ...query,
        x,
        y,
        width: 1,
        height: 1,
        ...(brush && x !== 'all' ? { x_from: brush.x.from, x_to: brush.x.to } : {}),
        ...(brush?.y && y !== 'all' ? { y_from: brush.y.from, y_to: brush.y.to } : {}),
      };
      const pictures = await Promise.all(
        SUMMED.map((value) => api.heatmap(session.id, { ...shown, value }, signal)),
      );
      for (const one of pictures) if (!one.ok) return one;
      const [time = 0, bytes = 0, accesses = 0, faults = 0] = pictures.map((one) =>
        one.ok ? one.value.shown : 0,
      );
      return ok({ sums: { time, bytes, accesses, faults } });
    },
    reconnects,
  });
}
