// The rows of the map in view, with their totals, as a table: the accessible form of the picture.
import { useSignal, type ReadonlySignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { nextSort, type Column, type Sort } from '../../grid/vgrid';
import { positionText } from '../../plane/axis';
import type { Plane } from '../../plane/plane';
import { pixelStart, rowFigures, sectionTotals } from '../../plane/raster';
import { spanOf } from '../../plane/range';
import { Grid } from '../../ui/Grid';
import type { MapModel } from './map_model';
import { tracksOf } from './map_options';
import { axisName, sumText, valueName } from './units';

interface Row {
  readonly name: string;
  readonly track: number;
  readonly y: number;
  readonly sum: number;
  readonly share: number;
}

export function MapTable({
  model,
  plane,
}: {
  model: MapModel;
  plane: ReadonlySignal<Plane | null>;
}) {
  const sort = useSignal<Sort>({ key: 'sum', descending: true });
  const scene = model.scene.value;
  const options = model.options.value;
  const camera = model.camera.value;
  const of = plane.value;
  void of?.painted.value;
  const rows = of && scene ? rowsOf(of, model) : [];
  const { key, descending } = sort.value;
  const sorted = useMemo(
    () =>
      [...rows].sort((a, b) => {
        const order =
          key === 'name' ? a.name.localeCompare(b.name, 'en', { numeric: true }) : a.sum - b.sum;
        return descending ? -order : order;
      }),
    [rows, key, descending],
  );
  const axis = axisName(tracksOf(options.y)[0] ?? '');
  const columns = useMemo((): readonly Column<Row>[] => {
    const largest = rows.reduce((most, { sum }) => Math.max(most, sum), 0);
    return [
      { key: 'name', title: axis, width: 160, grow: 1, mono: true, text: (row) => row.name },
      { key: 'sum', title: valueName(options.value), width: 110, align: 'right', text: (row) => sumText(options.value, row.sum), bar: (row) => (largest > 0 ? row.sum / largest : 0) },
      { key: 'share', title: 'share in view', width: 90, align: 'right', unsortable: true, text: (row) => `${Number((100 * row.share).toPrecision(3))} %` },
    ]; // prettier-ignore
  }, [rows, axis, options.value]);
  void camera;
  return (
    <div class="map-table">
      <Grid
        label={`${valueName(options.value)} of each ${axis} in view`}
        columns={columns}
        rows={sorted}
        sort={sort.value}
        active={null}
        onSort={(column) => {
          sort.value = nextSort(sort.value, column, ['sum']);
        }}
        onActivate={(row) => {
          model.select({ track: row.track, x: NaN, y: row.y });
        }}
      />
    </div>
  );
}

function rowsOf(plane: Plane, model: MapModel): readonly Row[] {
  const scene = model.scene.peek();
  const layout = plane.layout();
  if (!scene || !layout) return [];
  const all = scene.tracks.flatMap(({ y: axis }, track): Omit<Row, 'share'>[] => {
    const raster = plane.raster(track);
    const view = layout.tracks[track]?.y;
    if (!raster || !view) return [];
    const { means } = rowFigures(raster, layout.x);
    const columns =
      Math.min(layout.x.to, scene.x.whole.to) - Math.max(layout.x.from, scene.x.whole.from);
    if (axis.kind === 'bytes' && axis.parts.length > 0) {
      return sectionTotals(raster, means, axis.parts).map(({ section, value }) => {
        const middle = (section.from + section.to) / 2;
        return {
          name: model.tensorAt(axis, middle) ?? section.name,
          track,
          y: middle,
          sum: value * columns,
        };
      });
    }
    return Array.from({ length: raster.height }, (_, row) => {
      const [from, to] = [
        pixelStart(raster.y, raster.height, row),
        pixelStart(raster.y, raster.height, row + 1),
      ];
      const name =
        positionText(axis, from) + (spanOf({ from, to }) > 1 && axis.kind === 'rows' ? ' …' : '');
      return { name, track, y: from, sum: (means[row] ?? 0) * (to - from) * columns };
    });
  });
  const total = all.reduce((sum, row) => sum + row.sum, 0);
  return all.map((row) => ({ ...row, share: total > 0 ? row.sum / total : 0 }));
}
