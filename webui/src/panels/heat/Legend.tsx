// The colour scale with its end values.
import type { ReadonlySignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { exactBytes, exactNs, formatBytes, formatNs } from '../../format';
import type { Scale } from '../../raster/heat';
import { viridis } from '../../raster/lut';
import type { Metric } from '../../state/settings';

const WIDTH = 96;

export function Legend({ scale, metric }: { scale: ReadonlySignal<Scale>; metric: Metric }) {
  return scale.value.max > 0 ? <Colours scale={scale.value} metric={metric} /> : null;
}

function Colours(props: { scale: Scale; metric: Metric }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const ctx = canvas.current?.getContext('2d');
    if (!ctx) return;
    for (let x = 0; x < WIDTH; x += 1) {
      ctx.fillStyle = `rgb(${viridis(x / (WIDTH - 1)).join(' ')})`;
      ctx.fillRect(x, 0, 1, 1);
    }
  }, []);
  const { scale, metric } = props;
  const text = (value: number): string =>
    metric === 'ns' ? formatNs(value) : formatBytes(Math.round(value));
  const exact = (value: number): string => (metric === 'ns' ? exactNs(value) : exactBytes(value));
  const what = metric === 'ns' ? 'time per token' : 'bytes per token';
  return (
    <div
      class="legend"
      role="img"
      aria-label={`Colours: ${what} from ${text(scale.min)} to ${text(scale.max)}, ${scale.log ? 'logarithmic' : 'linear'}`}
    >
      <span>{what}</span>
      <span class="legend-end" title={exact(scale.min)}>
        {text(scale.min)}
      </span>
      <canvas ref={canvas} width={WIDTH} height={1} />
      <span class="legend-end" title={exact(scale.max)}>
        {scale.clips ? '≥ ' : ''}
        {text(scale.max)}
      </span>
    </div>
  );
}
