// Pointer and keys of the heat map. Arrows move the cell, Enter selects its
// token; dragging pans, Ctrl and the wheel zoom, a double click shows all.
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
      chart.point(chart.hitAt(offsetX, offsetY), offsetX, offsetY);
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
    if (clicked) chart.choose(chart.hitAt(offsetX, offsetY));
  });
  on('pointercancel', () => {
    drag = null;
  });
  for (const type of ['pointerleave', 'blur'] as const) {
    on(type, () => {
      chart.point(null, 0, 0);
    });
  }
  on('dblclick', () => {
    chart.fit();
  });
  on('wheel', (event) => {
    turn(event, chart);
  }, false); // prettier-ignore
  on('keydown', (event) => {
    if (key(event.key, chart)) event.preventDefault();
  }, false); // prettier-ignore
  return () => {
    control.abort();
  };
}

function turn(event: WheelEvent, chart: HeatChart): void {
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

// Whether the key means something here; what zooms and pans is the shell's.
function key(name: string, chart: HeatChart): boolean {
  const { column, row } = chart.cursor();
  switch (name) {
    case 'ArrowLeft':
      chart.goTo(column - 1, row);
      return true;
    case 'ArrowRight':
      chart.goTo(column + 1, row);
      return true;
    case 'ArrowUp':
      chart.goTo(column, row - 1);
      return true;
    case 'ArrowDown':
      chart.goTo(column, row + 1);
      return true;
    case 'Home':
      chart.goTo(0, row);
      return true;
    case 'End':
      chart.goTo(chart.columnCount - 1, row);
      return true;
    case 'Enter':
    case ' ':
      chart.choose({ column, row });
      return true;
    default:
      return false;
  }
}
