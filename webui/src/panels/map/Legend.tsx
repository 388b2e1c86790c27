// The colour scale with its end values. Dragging on it hides the cells outside a range of values;
// a double click, or the button, shows all again.
import type { ReadonlySignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { colourOf, type Palette } from '../../plane/colours';
import type { ValueRange } from '../../plane/raster';
import { fractionOf, valueAt, type Scale } from '../../plane/scale';
import type { Unit } from './units';

const WIDTH = 110;
const NO_LIMIT = 1e15; // larger than every value

interface Props {
  readonly scale: ReadonlySignal<Scale>;
  readonly palette: Palette;
  readonly isLight: boolean; // the page
  readonly unit: Unit;
  readonly shown: ValueRange;
  readonly show: (shown: ValueRange) => void;
}

export function Legend(props: Props) {
  return props.scale.value.max > 0 ? <Bar {...props} of={props.scale.value} /> : null;
}

function Bar({ of: scale, palette, isLight, unit, shown, show }: Props & { of: Scale }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const from = useRef<number | null>(null);
  useLayoutEffect(() => {
    const ctx = canvas.current?.getContext('2d');
    if (!ctx) return;
    const [low, high] = shown ? shown.map((value) => fractionOf(value, scale)) : [0, 1];
    for (let x = 0; x < WIDTH; x += 1) {
      const at = x / (WIDTH - 1);
      const isShown = !shown || (at >= (low ?? 0) - 0.005 && at <= (high ?? 1) + 0.005);
      ctx.globalAlpha = isShown ? 1 : 0.15;
      ctx.clearRect(x, 0, 1, 1);
      ctx.fillStyle = `rgb(${colourOf(palette, at, isLight).join(' ')})`;
      ctx.fillRect(x, 0, 1, 1);
    }
  }, [palette, isLight, shown, shown && scale]);
  const select = (x: number): void => {
    if (from.current === null) return;
    const [a, b] = [from.current, x / WIDTH].sort((p, q) => p - q) as [number, number];
    if (b - a < 0.02) return;
    // The ends of the scale stand for everything beyond them.
    const low = a <= 0.01 ? 0 : valueAt(a, scale);
    show([low, b >= 0.99 ? NO_LIMIT : valueAt(b, scale)]);
  };
  return (
    <div class="legend">
      <span class="legend-what">{unit.what}</span>
      <span class="legend-end">{unit.text(scale.min)}</span>
      <canvas
        ref={canvas}
        width={WIDTH}
        height={1}
        role="img"
        title="Drag to show only a range of values; double click shows all"
        aria-label={`Colours: ${unit.what} from ${unit.text(scale.min)} to ${unit.text(scale.max)}, ${scale.log ? 'logarithmic' : 'linear'}`}
        onPointerDown={(event) => {
          from.current = event.offsetX / WIDTH;
          event.currentTarget.setPointerCapture(event.pointerId);
        }}
        onPointerMove={(event) => {
          select(event.offsetX);
        }}
        onPointerUp={() => {
          from.current = null;
        }}
        onDblClick={() => {
          show(null);
        }}
      />
      <span class="legend-end">
        {scale.clips ? '≥ ' : ''}
        {unit.text(scale.max)}
      </span>
      {shown && (
        <button
          type="button"
          class="link"
          onClick={() => {
            show(null);
          }}
        >
          all values
        </button>
      )}
    </div>
  );
}
