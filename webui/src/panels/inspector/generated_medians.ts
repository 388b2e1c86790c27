// The median of a generated step, as in the margin of the map.
import type { Picture } from '../../net/frames';
import { pixelStart } from '../../plane/raster';
import type { ApiResult } from '../../net/api';
import { ok } from '../../result';
import type { OpenSession } from '../../state/session/open_session';
import { bothOf } from '../../state/view/range_query';
import type { SumQuery } from '../../state/view/sum_query';
import type { ComparedValue } from './compare';
import { median } from './place';

export const MAX_STEPS = 1024; // beyond: means of consecutive steps
export const MAX_ROWS = 1024;

// By layer. `api` may read another session than the open one.
export async function generatedMedians(
  api: OpenSession['context']['api'],
  id: string,
  value: ComparedValue,
  query: SumQuery,
  signal: AbortSignal,
): ApiResult<ReadonlyMap<string, number>> {
  const asked = bothOf(query, { phase: 'generate' });
  const size = { width: MAX_STEPS, height: MAX_ROWS };
  const picture = await api.heatmap(
    id,
    { ...asked, ...size, x: 'step', y: 'layer', value },
    signal,
  );
  return picture.ok ? ok(rowMedians(picture.value)) : picture;
}

// Rows without a value are left out.
export function rowMedians({ x, y, width, cells }: Pick<Picture, 'x' | 'y' | 'width' | 'cells'>): ReadonlyMap<string, number> {
  const medians = new Map<string, number>();
  y.rows.forEach((name, row) => {
    const steps = Array.from(cells.subarray(row * width, (row + 1) * width), (sum, i) => {
      return sum / Math.max(1, pixelStart(x, width, i + 1) - pixelStart(x, width, i));
    });
    const value = median(steps);
    if (value > 0) medians.set(name, value);
  });
  return medians;
} // prettier-ignore
