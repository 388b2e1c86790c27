// The rows of the map in view, with their totals, as a table: the accessible form of the picture.
import { useSignal, type ReadonlySignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { nextSort, type Column, type Sort } from '../../grid/column';
import { positionText } from '../../plane/axis';
import { basisOf, phaseOf, unitsOf } from '../../plane/paint_margins';
import type { Plane } from '../../plane/plane';
import type { RowFigures } from '../../plane/sources/row_figures';
import { pixelStart, rowMeans, sectionTotals } from '../../plane/raster';
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
  const { rows, quantiles, hint } = of && scene ? rowsOf(of, model) : NO_ROWS;
  // Medians first: single disturbed steps do not change them.
  const sort = chosen.value ?? { key: quantiles === null ? 'sum' : 'median', descending: true };
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
      ...(quantiles === null ? [] : quantileColumns(quantiles, hint)),
      ...lanes.map((lane) => laneColumn(lane)),
      { key: 'share', title: 'share in view', width: 90, align: 'right', unsortable: true, text: (row) => `${Number((100 * row.share).toPrecision(3))} %` },
    ]; // prettier-ignore
  }, [rows, axis, shown.value, value, quantiles, hint, lanes]);
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

const quantileColumns = (of: string, hint: string): readonly Column<Row>[] =>
  (['median', 'p5', 'p95'] as const).map((key) => ({
    key,
    title: key === 'median' ? `median, ${of}` : key,
    width: key === 'median' ? 120 : 84,
    align: 'right',
    ...(hint === '' ? {} : { hint: `${key}, ${of}, ${hint}` }),
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
  readonly quantiles: string | null; // of which phase; null: there are none
  readonly hint: string; // which units these are of, if not of all
}

const NO_ROWS: Rows = { rows: [], quantiles: null, hint: '' };

type RowOfTrack = Omit<Row, 'share'>;

function rowsOf(plane: Plane, model: MapModel): Rows {
  const scene = model.scene.peek();
  if (!scene) return NO_ROWS;
  const all = scene.tracks.flatMap(({ y }, track) => {
    if (y.kind === 'bytes' && y.parts.length > 0) return sectionsOf(plane, model, scene, track);
    const figures = plane.rowFigures(track);
    return figures ? answeredRows(figures, scene, track) : summedRows(plane, scene, track);
  });
  const total = all.reduce((sum, row) => sum + row.sum, 0);
  const of = scene.tracks.map((_, track) => plane.rowFigures(track)?.of).find((one) => one);
  return {
    rows: all.map((row) => ({ ...row, share: total > 0 ? row.sum / total : 0 })),
    quantiles: of && all.some(({ quantiles }) => quantiles) ? phaseOf(of) : null,
    hint: of ? basisOf(of, scene.x.name) : '',
  };
}

// The tensors in memory.
function sectionsOf(
  plane: Plane,
  model: MapModel,
  scene: Scene,
  track: number,
): readonly RowOfTrack[] {
  const [raster, axis, layout] = [plane.raster(track), scene.tracks[track]?.y, plane.layout()];
  if (!raster || axis?.kind !== 'bytes' || !layout) return [];
  const columns = unitsInView(scene, layout.x);
  return sectionTotals(raster, rowMeans(raster, layout.x), axis.parts).map(({ section, value }) => {
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

const unitsInView = ({ x }: Scene, view: Range): number =>
  Math.min(view.to, x.whole.to) - Math.max(view.from, x.whole.from);

// The rows with the figures of the server.
function answeredRows(
  { of, sums, y }: RowFigures,
  scene: Scene,
  track: number,
): readonly RowOfTrack[] {
  const count = sums.length;
  // A row without time has none; one that is not read has 0 bytes.
  const text = (value: number | null | undefined, row: number): string =>
    typeof value === 'number' ? scene.valueText(value / unitsOf(y, count, row), track) : '';
  return placesOf(scene, track, y, count).map(({ row, ...place }) => ({
    ...place,
    sum: sums[row] ?? 0,
    median: of.median[row] ?? 0,
    quantiles: {
      median: text(of.median[row], row),
      p5: text(of.p5[row], row),
      p95: text(of.p95[row], row),
    },
  }));
}

// The rows with the sums of the picture.
function summedRows(plane: Plane, scene: Scene, track: number): readonly RowOfTrack[] {
  const [raster, layout] = [plane.raster(track), plane.layout()];
  if (!raster || !layout) return [];
  const means = rowMeans(raster, layout.x);
  const columns = unitsInView(scene, layout.x);
  return placesOf(scene, track, raster.y, raster.height).map(({ row, ...place }) => ({
    ...place,
    sum: (means[row] ?? 0) * spanOf(place.range) * columns,
    median: 0,
    quantiles: null,
  }));
}

// The rows of which a part is on the axis.
function placesOf(
  scene: Scene,
  track: number,
  y: Range,
  count: number,
): readonly (Pick<Row, 'name' | 'track' | 'y' | 'range'> & { readonly row: number })[] {
  const axis = scene.tracks[track]?.y;
  if (!axis) return [];
  return Array.from({ length: count }, (_, row) => row).flatMap((row) => {
    const range = { from: pixelStart(y, count, row), to: pixelStart(y, count, row + 1) };
    if (!overlaps(range, axis.whole)) return []; // the picture has more than the axis
    const more = spanOf(range) > 1 && axis.kind === 'rows' ? ' …' : '';
    return { row, name: positionText(axis, range.from) + more, track, y: range.from, range };
  });
}
