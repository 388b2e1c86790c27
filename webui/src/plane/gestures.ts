// Pointer, touch and keyboard input of a plane.
//
//   wheel, pinch         zoom at the pointer; over the names only the rows
//   Shift+wheel          pan; so does a sideways wheel
//   drag                 select a range; over the labels or the sums only of x, over the names of y
//   Shift+drag, middle   pan; so does one finger
//   click                select what is there; double click: zoom in
//   Shift+click          compare the selection with what is there
//   arrows, Enter        move the cursor, select; Shift+Enter: compare
//
// They work where the pointer is, without a click first. The shell handles W A S D, Z, 0 and Escape.
import type { Zone } from './layout';

export interface PlaneInput {
  zoneAt(x: number, y: number): Zone;
  hover(x: number, y: number): void;
  leave(): void;
  zoom(factor: number, x: number, y: number, zone: Zone): void;
  pan(dx: number, dy: number, y: number): void; // pixels that the content moves
  brush(from: Point, to: Point, zone: Zone, done: boolean): void;
  click(x: number, y: number, shift: boolean): void;
  doubleClick(x: number, y: number): void;
  key(name: string, shift: boolean): boolean; // whether it was handled
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

const CLICK_PX = 4;
const WHEEL_UNIT = 350; // pixels of wheel movement for a factor of e

export function listenToPlane(canvas: HTMLElement, input: PlaneInput): () => void {
  const control = new AbortController();
  const on = <K extends keyof HTMLElementEventMap>(
    type: K,
    handle: (event: HTMLElementEventMap[K]) => void,
    passive = true,
  ): void => {
    canvas.addEventListener(type, handle, { signal: control.signal, passive });
  };
  const pointers = new Map<number, Point>();
  let drag: {
    readonly from: Point;
    readonly zone: Zone;
    readonly how: 'brush' | 'pan';
    last: Point;
    moved: boolean;
  } | null = null;
  let pinched = false;

  const pinch = (before: readonly Point[], after: readonly Point[]): void => {
    const [a0, b0] = before;
    const [a1, b1] = after;
    if (!a0 || !b0 || !a1 || !b1) return;
    const distance = (a: Point, b: Point): number => Math.max(20, Math.hypot(a.x - b.x, a.y - b.y));
    const middle = { x: (a1.x + b1.x) / 2, y: (a1.y + b1.y) / 2 };
    const moved = { x: middle.x - (a0.x + b0.x) / 2, y: middle.y - (a0.y + b0.y) / 2 };
    input.pan(moved.x, moved.y, middle.y);
    input.zoom(
      distance(a0, b0) / distance(a1, b1),
      middle.x,
      middle.y,
      input.zoneAt(middle.x, middle.y),
    );
  };

  on('pointerdown', ({ button, offsetX: x, offsetY: y, pointerId, pointerType, shiftKey }) => {
    if (button !== 0 && button !== 1) return;
    canvas.setPointerCapture(pointerId);
    pointers.set(pointerId, { x, y });
    if (pointers.size === 2) {
      pinched = true;
      drag = null;
      return;
    }
    pinched = false;
    const how = button === 1 || shiftKey || pointerType === 'touch' ? 'pan' : 'brush';
    drag = { from: { x, y }, zone: input.zoneAt(x, y), how, last: { x, y }, moved: false };
  });
  on('pointermove', ({ offsetX: x, offsetY: y, pointerId }) => {
    if (pinched && pointers.size === 2) {
      const before = [...pointers.values()];
      pointers.set(pointerId, { x, y });
      pinch(before, [...pointers.values()]);
      return;
    }
    if (!drag) {
      input.hover(x, y);
      return;
    }
    if (Math.hypot(x - drag.from.x, y - drag.from.y) > CLICK_PX) drag.moved = true;
    if (!drag.moved) return;
    if (drag.how === 'pan') input.pan(x - drag.last.x, y - drag.last.y, drag.from.y);
    else input.brush(drag.from, { x, y }, drag.zone, false);
    drag.last = { x, y };
  });
  on('pointerup', ({ offsetX: x, offsetY: y, pointerId, button, shiftKey }) => {
    pointers.delete(pointerId);
    const ended = drag;
    drag = null;
    if (!ended || pinched) return;
    if (ended.moved && ended.how === 'brush') input.brush(ended.from, { x, y }, ended.zone, true);
    else if (!ended.moved && button === 0) input.click(x, y, shiftKey);
  });
  on('pointercancel', ({ pointerId }) => {
    pointers.delete(pointerId);
    drag = null;
  });
  for (const type of ['pointerleave', 'blur'] as const) {
    on(type, () => {
      input.leave();
    });
  }
  on('dblclick', ({ offsetX, offsetY }) => {
    input.doubleClick(offsetX, offsetY);
  });
  const wheel = (event: WheelEvent): void => {
    event.preventDefault();
    const { deltaX, deltaY, shiftKey, offsetX: x, offsetY: y } = event;
    if (shiftKey || Math.abs(deltaX) > Math.abs(deltaY)) input.pan(-(deltaX || deltaY), 0, y);
    else input.zoom(Math.exp(clamp(deltaY) / WHEEL_UNIT), x, y, input.zoneAt(x, y));
  };
  const press = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (input.key(event.key, event.shiftKey)) event.preventDefault();
  };
  // Else Shift would select the text between here and the last click.
  const mouseDown = (event: MouseEvent): void => {
    if (!event.shiftKey) return;
    event.preventDefault();
    canvas.focus({ preventScroll: true });
  };
  on('mousedown', mouseDown, false);
  on('wheel', wheel, false);
  on('keydown', press, false);
  return () => {
    control.abort();
  };
}

const clamp = (delta: number): number => Math.max(-120, Math.min(120, delta));
