// A plane as a component: its elements. The plane updates them without rendering again.
import type { ReadonlySignal, Signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { Viewport } from '../state/shell';
import type { Camera } from './camera';
import type { Brush, Marked } from './paint_overlay';
import type { HoverPlace, PlaneEvents } from './parts';
import { Plane } from './plane';
import type { Scale } from './scale';
import type { Scene } from './scene';
import type { TipText } from '../ui/tip';

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
  tip: (place: HoverPlace, plane: Plane) => TipText | null; // null: none
  register: (viewport: Viewport) => () => void;
}) {
  const { model, scale } = props;
  const host = useRef<HTMLDivElement>(null);
  const base = useRef<HTMLCanvasElement>(null);
  const overlay = useRef<HTMLCanvasElement>(null);
  const lens = useRef<HTMLCanvasElement>(null);
  const rows = useRef<HTMLCanvasElement>(null);
  const marks = useRef<HTMLDivElement>(null);
  const input = useRef<HTMLDivElement>(null);
  const tip = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!host.current || !base.current || !overlay.current || !lens.current) return;
    if (!rows.current || !marks.current || !input.current || !tip.current) return;
    const plane = new Plane({
      ...model,
      host: host.current,
      base: base.current,
      overlay: overlay.current,
      lens: lens.current,
      rows: rows.current,
      marks: marks.current,
      input: input.current,
      tip: tip.current,
      describe: (place): TipText | null => props.tip(place, plane),
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
    <>
      <div class="plane" ref={host}>
        <canvas ref={base} class="plane-base" aria-hidden="true" />
        <canvas ref={overlay} class="plane-overlay" aria-hidden="true" />
        <canvas ref={lens} class="plane-lens" aria-hidden="true" />
        <canvas ref={rows} class="plane-rows" aria-hidden="true" />
        <div ref={marks} class="plane-marks" aria-hidden="true" />
        <div
          ref={input}
          class="plane-input"
          tabIndex={0}
          role="application"
          aria-roledescription="heat map"
          aria-label={props.label}
        />
      </div>
      <div ref={tip} class="tip" role="status" hidden />
    </>
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
