// What the colours of a picture of values mean, and what a cell is.
import type { ReadonlySignal } from '@preact/signals';
import { gradientOf } from '../../plane/colours';
import type { Plane } from '../../plane/plane';
import type { Scale } from '../../plane/scale';
import type { Store } from '../../state/store';
import type { CellText } from './value_picture';
import { shortText } from './value_text';

export function PictureLegend(props: {
  store: Store;
  scale: ReadonlySignal<Scale>;
  plane: ReadonlySignal<Plane | null>;
  cells: CellText;
}) {
  const { store, scale, plane, cells } = props;
  void plane.value?.painted.value;
  const raster = plane.value?.raster(0);
  const { max, clips } = scale.value;
  if (!raster || max === 0) return null;
  const per = (size: number, pixels: number): number => Math.ceil(size / pixels);
  const columns = per(raster.x.to - raster.x.from, raster.width);
  const rows = per(raster.y.to - raster.y.from, raster.height);
  const { ofOne, ofSeveral } = cells;
  const each =
    columns * rows > 1
      ? `each cell is the ${ofSeveral} of up to ${rows} × ${columns} values`
      : `each cell is ${ofOne === '' ? 'one value' : `the ${ofOne} of one value`}`;
  const end = `${clips ? '≥ ' : ''}${shortText(max)}`;
  return (
    <p class="chart-scale dim">
      <span>{each}</span>
      <span>−{shortText(max)}</span>
      <i
        class="colour-scale"
        style={{ background: gradientOf('diverging', store.theme.value === 'light') }}
      />
      <span>{end}</span>
    </p>
  );
}
