// Pointer and keyboard input of the heat map. Arrow keys move the cursor, Enter selects its token;
// dragging pans, Ctrl+wheel zooms, a double click shows everything.
import type { View } from '../../raster/view';
import type { HeatChart } from './heat_chart';

const CLICK_PX = 4;

export function listenToHeat(canvas: HTMLCanvasElement, chart: HeatChart): () => void {
  const control = new AbortController();
  const on = <K extends keyof HTMLElementEventMap>(
    type: K,
    handle: (event: HTMLElementEventMap[K]) => void,
    passive = true,
  ): void => {
    canvas.addEventListener(type, handle, { signal: control.signal, passive });
  };
  let drag: { readonly x: number; readonly view: View; moved: boolean } | null = null;
  on('pointermove', ({ offsetX, offsetY }) => {
    if (!drag) {
      chart.setHover(chart.hitAt(offsetX, offsetY), offsetX, offsetY);
      return;
    }
    const moved = offsetX - drag.x;
    if (Math.abs(moved) > CLICK_PX) drag.moved = true;
    if (drag.moved) chart.panFrom(drag.view, -moved / chart.layout().cellW);
  });
  on('pointerdown', ({ button, offsetX, pointerId }) => {
    if (button !== 0) return;
    drag = { x: offsetX, view: chart.layout().view, moved: false };
    canvas.setPointerCapture(pointerId);
  });
  on('pointerup', ({ offsetX, offsetY }) => {
    const clicked = drag?.moved === false;
    drag = null;
    if (clicked) chart.select(chart.hitAt(offsetX, offsetY));
  });
  on('pointercancel', () => {
    drag = null;
  });
  for (const type of ['pointerleave', 'blur'] as const) {
    on(type, () => {
      chart.setHover(null, 0, 0);
    });
  }
  on('dblclick', () => {
    chart.fit();
  });
  on('wheel', (event) => {
    handleWheel(event, chart);
  }, false); // prettier-ignore
  on('keydown', (event) => {
    if (handleKey(event.key, chart)) event.preventDefault();
  }, false); // prettier-ignore
  return () => {
    control.abort();
  };
}

function handleWheel(event: WheelEvent, chart: HeatChart): void {
  const sideways = event.shiftKey ? event.deltaY : event.deltaX;
  const { view, plot, cellW } = chart.layout();
  if (event.ctrlKey || event.metaKey) {
    event.preventDefault();
    chart.zoom(event.deltaY > 0 ? 1.25 : 0.8, view.from + (event.offsetX - plot.x) / cellW);
  } else if (sideways !== 0 && !chart.isWhole) {
    event.preventDefault();
    chart.panFrom(view, sideways / cellW);
  }
}

// Returns whether the key was handled. The shell handles the zoom and pan keys.
function handleKey(name: string, chart: HeatChart): boolean {
  const { column, row } = chart.cursor();
  switch (name) {
    case 'ArrowLeft':
      chart.moveCursor(column - 1, row);
      return true;
    case 'ArrowRight':
      chart.moveCursor(column + 1, row);
      return true;
    case 'ArrowUp':
      chart.moveCursor(column, row - 1);
      return true;
    case 'ArrowDown':
      chart.moveCursor(column, row + 1);
      return true;
    case 'Home':
      chart.moveCursor(0, row);
      return true;
    case 'End':
      chart.moveCursor(chart.columnCount - 1, row);
      return true;
    case 'Enter':
    case ' ':
      chart.select({ column, row });
      return true;
    default:
      return false;
  }
}
