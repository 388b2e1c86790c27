// Pointer and keys of the layer graph. The wheel zooms, dragging pans, a click
// inspects, a double click shows all; arrows go along the edges.
import { moved, zoomed, type Camera } from '../../graph/view';
import type { GraphChart } from './graph_chart';

const CLICK_PX = 4;

export function listenToGraph(canvas: HTMLCanvasElement, chart: GraphChart): () => void {
  const control = new AbortController();
  const on = <K extends keyof HTMLElementEventMap>(
    type: K,
    handle: (event: HTMLElementEventMap[K]) => void,
    passive = true,
  ): void => {
    canvas.addEventListener(type, handle, { signal: control.signal, passive });
  };
  let drag: {
    readonly x: number;
    readonly y: number;
    readonly from: Camera;
    moved: boolean;
  } | null = null;
  on('pointermove', ({ offsetX: x, offsetY: y }) => {
    if (!drag) {
      const item = chart.hitAt(x, y);
      canvas.dataset.over = item === null ? '' : 'node';
      chart.point(item, x, y);
      return;
    }
    if (Math.hypot(x - drag.x, y - drag.y) > CLICK_PX) drag.moved = true;
    if (drag.moved) chart.look(moved(drag.from, x - drag.x, y - drag.y));
  });
  on('pointerdown', ({ button, offsetX, offsetY, pointerId }) => {
    if (button !== 0) return;
    drag = { x: offsetX, y: offsetY, from: chart.camera(), moved: false };
    canvas.setPointerCapture(pointerId);
    chart.point(null, 0, 0);
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
  on('dblclick', ({ offsetX, offsetY }) => {
    if (chart.hitAt(offsetX, offsetY) === null) chart.fit();
  });
  const wheel = (event: WheelEvent): void => {
    event.preventDefault();
    const { deltaX, deltaY, shiftKey, offsetX, offsetY } = event;
    if (shiftKey || Math.abs(deltaX) > Math.abs(deltaY)) {
      chart.look(moved(chart.camera(), -(deltaX || deltaY), 0));
    } else {
      const factor = Math.exp(Math.max(-120, Math.min(120, deltaY)) / 500);
      chart.look(zoomed(chart.camera(), factor, offsetX, offsetY));
    }
  };
  const press = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.altKey || event.metaKey || !key(event.key, chart)) return;
    event.preventDefault();
  };
  on('wheel', wheel, false);
  on('keydown', press, false);
  return () => {
    control.abort();
  };
}

// Whether the key means something here; what zooms is the shell's.
function key(name: string, chart: GraphChart): boolean {
  switch (name) {
    case 'ArrowUp':
      chart.walk('up');
      return true;
    case 'ArrowDown':
      chart.walk('down');
      return true;
    case 'ArrowLeft':
      chart.walk('left');
      return true;
    case 'ArrowRight':
      chart.walk('right');
      return true;
    case 'Enter':
    case ' ':
      chart.chooseFocused();
      return true;
    default:
      return false;
  }
}
