// Pointer and keyboard input of the layer graph. The wheel zooms, dragging pans, a click selects,
// a double click opens a box of the model or fits the graph, a right click sets or removes a
// breakpoint; arrow keys follow the edges.
import { panCamera, zoomCamera, type Camera } from '../../graph/view';
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
      chart.hover(item, x, y);
      return;
    }
    if (Math.hypot(x - drag.x, y - drag.y) > CLICK_PX) drag.moved = true;
    if (drag.moved) chart.setCamera(panCamera(drag.from, x - drag.x, y - drag.y));
  });
  on('pointerdown', ({ button, offsetX, offsetY, pointerId }) => {
    if (button !== 0) return;
    drag = { x: offsetX, y: offsetY, from: chart.camera(), moved: false };
    canvas.setPointerCapture(pointerId);
    chart.hover(null, 0, 0);
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
      chart.hover(null, 0, 0);
    });
  }
  on(
    'contextmenu',
    (event) => {
      const item = chart.hitAt(event.offsetX, event.offsetY);
      if (item === null) return;
      event.preventDefault();
      chart.select(item);
      chart.toggleBreakpoint(item);
    },
    false,
  );
  on('dblclick', ({ offsetX, offsetY }) => {
    const item = chart.hitAt(offsetX, offsetY);
    if (item === null) chart.fit();
    else chart.toggle(item);
  });
  const wheel = (event: WheelEvent): void => {
    event.preventDefault();
    const { deltaX, deltaY, shiftKey, offsetX, offsetY } = event;
    if (shiftKey || Math.abs(deltaX) > Math.abs(deltaY)) {
      chart.setCamera(panCamera(chart.camera(), -(deltaX || deltaY), 0));
    } else {
      const factor = Math.exp(Math.max(-120, Math.min(120, deltaY)) / 500);
      chart.setCamera(zoomCamera(chart.camera(), factor, offsetX, offsetY));
    }
  };
  const press = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.altKey || event.metaKey || !handleKey(event.key, chart)) return;
    event.preventDefault();
  };
  on('wheel', wheel, false);
  on('keydown', press, false);
  return () => {
    control.abort();
  };
}

// Returns whether the key was handled. The shell handles the zoom keys.
function handleKey(name: string, chart: GraphChart): boolean {
  switch (name) {
    case 'ArrowUp':
      chart.moveFocus('up');
      return true;
    case 'ArrowDown':
      chart.moveFocus('down');
      return true;
    case 'ArrowLeft':
      chart.moveFocus('left');
      return true;
    case 'ArrowRight':
      chart.moveFocus('right');
      return true;
    case 'o':
      return chart.toggleFocused();
    case 'Enter':
    case ' ':
      chart.selectFocused();
      return true;
    default:
      return false;
  }
}
