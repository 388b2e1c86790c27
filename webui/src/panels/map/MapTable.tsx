// The rows of the map in view, with their totals, as a table: the accessible form of the picture.
import { useSignal, type ReadonlySignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { nextSort, type Column, type Sort } from '../../grid/column';
import { positionText } from '../../plane/axis';
import { basisOfRows } from '../../plane/paint_margins';
import type { Plane } from '../../plane/plane';
import {
  pixelStart,
  rowMeans,
  rowQuantiles,
  sectionTotals,
  type RowQuantiles,
} from '../../plane/raster';
import { overlaps, spanOf, type Range } from '../../plane/range';
import type { Lane, Scene } from '../../plane/scene';
import { formatCount, plural } from '../../format';
import { cleanFilter, isDisturbed, machineOf } from '../../state/view/answer';
import { CLEAN_STEPS, parseFilter, toggleWord } from '../../state/view/filter';
import type { OpenSession } from '../../state/session/open_session';
import type { Store } from '../../state/store';
import { Grid } from '../../ui/Grid';
import { usePart, useResource } from '../../ui/hooks';
import type { MapModel } from './map_model';
import { tracksOf, type MapOptions } from './map_options';
import { shareOf, STATE_NAMES } from './residency';
import { axisName, sumText, valueName } from './units';

interface Row {
  readonly name: string;
  readonly track: number;
  readonly y: number;
  readonly sum: number;
  readonly median: number; // 0: none
  // Over the units of x; null: the figures are means.
  readonly quantiles: Readonly<Record<Quantile, string>> | null;
  readonly share: number;
  readonly range: Range; // of y
}

export function MapTable({
  store,
  session,
  model,
  plane,
}: {
  store: Store;
  session: OpenSession;
  model: MapModel;
  plane: ReadonlySignal<Plane | null>;
}) {
  const chosen = useSignal<Sort | null>(null);
  const scene = model.scene.value;
  const shown = model.shown.value;
  const camera = model.camera.value;
  const of = plane.value;
  void of?.painted.value;
  const { rows, quantilesOf, basis } = of && scene ? rowsOf(of, model) : NO_ROWS;
  // Medians first: single disturbed steps do not change them.
  const sort = chosen.value ?? { key: quantilesOf ? 'median' : 'sum', descending: true };
  const { key, descending } = sort;
  const sorted = useMemo(
    () =>
      [...rows].sort((a, b) => {
        const order =
          key === 'name'
            ? a.name.localeCompare(b.name, 'en', { numeric: true })
            : key === 'median'
              ? a.median - b.median
              : a.sum - b.sum;
        return descending ? -order : order;
      }),
    [rows, key, descending],
  );
  const lanes = scene?.tracks.find((track) => (track.lanes?.length ?? 0) > 0)?.lanes ?? [];
  const axis = rowName(shown, scene);
  const value = valueName(shown.value);
  const columns = useMemo((): readonly Column<Row>[] => {
    const largest = rows.reduce((most, { sum }) => Math.max(most, sum), 0);
    return [
      { key: 'name', title: axis, width: 160, mono: true, text: (row) => row.name },
      { key: 'sum', title: value, width: 110, align: 'right', text: (row) => sumText(shown.value, row.sum), bar: (row) => (largest > 0 ? row.sum / largest : 0) },
      ...(quantilesOf === null ? [] : quantileColumns(quantilesOf, basis)),
      ...lanes.map((lane) => laneColumn(lane)),
      { key: 'share', title: 'share in view', width: 90, align: 'right', unsortable: true, text: (row) => `${Number((100 * row.share).toPrecision(3))} %` },
    ]; // prettier-ignore
  }, [rows, axis, shown.value, value, quantilesOf, basis, lanes]);
  void camera;
  return (
    <div class="map-table">
      <Disturbed store={store} session={session} />
      <Grid
        label={`${value} of each ${axis} in view`}
        columns={columns}
        rows={sorted}
        sort={sort}
        active={null}
        onSort={(column) => {
          chosen.value = nextSort(sort, column, ['sum', 'median']);
        }}
        onActivate={(row) => {
          model.select({ track: row.track, x: NaN, y: row.y });
        }}
      />
    </div>
  );
}

// The sums have disturbed steps among them, which the summary leaves out.
function Disturbed({ store, session }: { store: Store; session: OpenSession }) {
  const isClean = usePart(() =>
    parseFilter(store.navigation.view.value.filter).some(({ text }) => text === CLEAN_STEPS),
  );
  const { value } = useResource(machineOf(session));
  if (isClean || !value || !isDisturbed(value)) return null;
  const { disturbed, all, impossible } = cleanFilter(value);
  return (
    <p class="map-table-note">
      Sums of all steps in view; medians of clean ones, if there are some. The machine disturbed{' '}
      {formatCount(disturbed)} of {plural(all, 'step')}.{' '}
      <button
        type="button"
        class="link"
        disabled={impossible !== null}
        title={impossible ?? undefined}
        onClick={() => {
          const { filter } = store.navigation.view.peek();
          store.setFilter(toggleWord(filter, CLEAN_STEPS), 'push');
        }}
      >
        Only clean steps
      </button>
    </p>
  );
}

// The selection that a click on a row of the shown picture makes.
export function rowName({ y }: MapOptions, scene: Scene | null): string {
  const axis = scene?.tracks[0]?.y;
  return axis?.kind === 'bytes' && axis.parts.length > 0
    ? 'tensor'
    : axisName(tracksOf(y)[0] ?? '');
}

type Quantile = 'median' | 'p5' | 'p95';

const quantileColumns = (of: RowQuantiles['of'], basis: string): readonly Column<Row>[] =>
  (['median', 'p5', 'p95'] as const).map((key) => ({
    key,
    title: key === 'median' ? `median, ${of}` : key,
    width: key === 'median' ? 120 : 84,
    align: 'right',
    ...(basis === '' ? {} : { hint: `${key}, ${of}, ${basis}` }),
    ...(key === 'median' ? {} : { unsortable: true }),
    text: ({ quantiles }) => quantiles?.[key] ?? '',
  }));

// The share of each row of the file that is in the first state of a lane.
function laneColumn(lane: Lane): Column<Row> {
  const state = lane.title === 'plan' ? 'pinned' : 'resident';
  return {
    key: lane.title,
    title: STATE_NAMES[state],
    width: 90,
    align: 'right',
    unsortable: true,
    text: ({ track, range }) =>
      track === 0 ? `${Math.round(100 * shareOf(lane, range, state))} %` : '',
  };
}

interface Rows {
  readonly rows: readonly Row[];
  readonly quantilesOf: RowQuantiles['of'] | null;
  readonly basis: string; // of the quantiles, if not of all units
}

const NO_ROWS: Rows = { rows: [], quantilesOf: null, basis: '' };

function rowsOf(plane: Plane, model: MapModel): Rows {
  const scene = model.scene.peek();
  const layout = plane.layout();
  if (!scene || !layout) return NO_ROWS;
  let quantilesOf: Rows['quantilesOf'] = null;
  let basis = '';
  const all = scene.tracks.flatMap(({ y: axis }, track): Omit<Row, 'share'>[] => {
    const raster = plane.raster(track);
    const view = layout.tracks[track]?.y;
    if (!raster || !view) return [];
    const means = rowMeans(raster, layout.x);
    const columns =
      Math.min(layout.x.to, scene.x.whole.to) - Math.max(layout.x.from, scene.x.whole.from);
    if (axis.kind === 'bytes' && axis.parts.length > 0) {
      return sectionTotals(raster, means, axis.parts).map(({ section, value }) => {
        const middle = (section.from + section.to) / 2;
        return {
          name: model.tensorAt(axis, middle) ?? section.name,
          track,
          y: middle,
          range: section,
          sum: value * columns,
          median: 0,
          quantiles: null,
        };
      });
    }
    const all = scene.medians && rowQuantiles(raster, layout.x, scene.medians);
    if (all) [quantilesOf, basis] = [all.of, basisOfRows(all, scene.x.name)];
    // A row without time has none; one that is not read has 0 bytes.
    const isTime = scene.medians?.worth !== null;
    const text = (value: number | undefined): string =>
      value === undefined || (value === 0 && isTime) ? '' : scene.valueText(value, track);
    return Array.from({ length: raster.height }, (_, row) => row).flatMap((row) => {
      const range = {
        from: pixelStart(raster.y, raster.height, row),
        to: pixelStart(raster.y, raster.height, row + 1),
      };
      if (!overlaps(range, axis.whole)) return []; // the picture has more than the axis
      const more = spanOf(range) > 1 && axis.kind === 'rows' ? ' …' : '';
      return {
        name: positionText(axis, range.from) + more,
        track,
        y: range.from,
        range,
        sum: (means[row] ?? 0) * spanOf(range) * columns,
        median: all?.median[row] ?? 0,
        quantiles: all && {
          median: text(all.median[row]),
          p5: text(all.p5[row]),
          p95: text(all.p95[row]),
        },
      };
    });
  });
  const total = all.reduce((sum, row) => sum + row.sum, 0);
  return {
    rows: all.map((row) => ({ ...row, share: total > 0 ? row.sum / total : 0 })),
    quantilesOf,
    basis,
  };
}
