import { signal, type Signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { Scale } from '../../raster/heat';
import { ZoomButtons } from '../../ui/ZoomButtons';
import { usePart } from '../../ui/hooks';
import type { SessionProps } from '../panel';
import { CellTip } from './CellTip';
import { HeatChart, type Tip } from './heat_chart';
import { listenToHeat } from './heat_input';

export function HeatMap({ store, session, panel, scale }: SessionProps & { scale: Signal<Scale> }) {
  const host = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const chart = useRef<HeatChart | null>(null);
  const tip = useRef(signal<Tip | null>(null)).current;
  const whole = usePart(() => store.navigation.view.value.windows[panel] === undefined);

  useEffect(() => {
    if (!host.current || !canvas.current) return;
    const parts = { store, session, panel, host: host.current, canvas: canvas.current, tip, scale };
    const made = new HeatChart(parts);
    chart.current = made;
    const stopListening = listenToHeat(canvas.current, made);
    const unregister = store.shell.registerViewport(panel, made);
    return () => {
      unregister();
      stopListening();
      made.destroy();
    };
  }, [store, session]);

  return (
    <div class="heatmap" ref={host}>
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-roledescription="heat map"
        aria-label="Time or bytes of every token in every layer. Arrow keys move, Enter selects the token. The Steps panel shows the steps as a table."
      />
      <ZoomButtons viewport={() => chart.current} whole={whole} />
      <CellTip tip={tip} />
    </div>
  );
}
