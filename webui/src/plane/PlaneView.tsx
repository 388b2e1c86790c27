// A plane as a component: its canvases and the tooltip.
import { useSignal, type ReadonlySignal, type Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Viewport } from '../state/shell';
import type { Camera } from './layout';
import type { Brush, Marked } from './paint_overlay';
import { Plane, type HoverPlace, type PlaneEvents } from './plane';
import type { Scale } from './scale';
import type { Scene } from './scene';

export interface PlaneModel extends PlaneEvents {
  readonly scene: ReadonlySignal<Scene | null>;
  readonly camera: ReadonlySignal<Camera>;
  readonly marked: ReadonlySignal<Marked>;
  readonly brush: ReadonlySignal<Brush | null>;
  readonly pointed: ReadonlySignal<number | null>;
  readonly theme: ReadonlySignal<unknown>;
}

export function PlaneView(props: {
  label: string;
  model: PlaneModel;
  scale: Signal<Scale>;
  plane: Signal<Plane | null>; // set while it exists
  tip: (place: HoverPlace, plane: Plane) => ComponentChildren;
  register: (viewport: Viewport) => () => void;
}) {
  const { model, scale } = props;
  const host = useRef<HTMLDivElement>(null);
  const canvases = [
    useRef<HTMLCanvasElement>(null),
    useRef<HTMLCanvasElement>(null),
    useRef<HTMLCanvasElement>(null),
  ] as const;
  const input = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const [base, overlay, hover] = canvases.map(({ current }) => current);
    if (!host.current || !input.current || !base || !overlay || !hover) return;
    const plane = new Plane({
      ...model,
      host: host.current,
      input: input.current,
      base,
      overlay,
      hover,
      scale,
      events: model,
    });
    props.plane.value = plane;
    const unregister = props.register(viewportOf(plane, model));
    return () => {
      unregister();
      props.plane.value = null;
      plane.destroy();
    };
  }, [model]);
  return (
    <div class="plane" ref={host}>
      <canvas ref={canvases[0]} class="plane-base" aria-hidden="true" />
      <canvas ref={canvases[1]} aria-hidden="true" />
      <canvas ref={canvases[2]} aria-hidden="true" />
      <div
        ref={input}
        class="plane-input"
        tabIndex={0}
        role="application"
        aria-roledescription="heat map"
        aria-label={props.label}
      />
      <Tip plane={props.plane} content={props.tip} />
    </div>
  );
}

function viewportOf(plane: Plane, model: PlaneModel): Viewport {
  return {
    zoom: (factor) => {
      plane.zoomMiddle(factor);
    },
    pan: (share) => {
      plane.panBy(share);
    },
    fit: () => {
      plane.fit();
    },
    zoomToSelection: () => {
      const brush = model.brush.peek();
      const { x, ys } = model.marked.peek();
      const track = Math.max(
        0,
        ys.findIndex((range) => range !== null),
      );
      const y = ys[track];
      if (brush) plane.show(brush.x, brush.y && { track: brush.track, range: brush.y });
      else if (x || y) plane.show(x && { from: x.from - 2, to: x.to + 2 }, null);
    },
  };
}

const WIDTH = 300; // as in map.css
const GAP = 14;

// Below the pointer, above it if there is no room, else where most of it is visible.
export function tipTop(y: number, height: number, room: number): number {
  if (y + GAP + height <= room) return y + GAP;
  const above = y - GAP - height;
  return above >= 0 ? above : Math.max(0, room - height);
}

function Tip(props: {
  plane: ReadonlySignal<Plane | null>;
  content: (place: HoverPlace, plane: Plane) => ComponentChildren;
}) {
  const box = useRef<HTMLDivElement>(null);
  const height = useSignal(150);
  const plane = props.plane.value;
  const place = plane?.hovered.value ?? null;
  const size = plane?.box.value ?? { w: 0, h: 0 };
  useEffect(() => {
    // The next placement uses the height of this content.
    const now = box.current?.offsetHeight ?? 0;
    if (place && now > 0 && Math.abs(now - height.peek()) > 2) height.value = now;
  }, [place]);
  const { x, y } = place?.at ?? { x: 0, y: 0 };
  const left = x + GAP + WIDTH > size.w ? Math.max(0, x - WIDTH - GAP) : x + GAP;
  const top = tipTop(y, height.value, size.h);
  return (
    <div
      ref={box}
      class="tip"
      role="status"
      hidden={!place}
      style={{ transform: `translate(${left}px, ${top}px)` }}
    >
      {place && plane && props.content(place, plane)}
    </div>
  );
}
