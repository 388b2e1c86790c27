// Below the map: the ranges in view as a breadcrumb, the totals of the brushed range, the overview
// strip when zoomed, and the zoom buttons.
import { useComputed, type ReadonlySignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { plural } from '../../format';
import { namesIn, rangeText, type Axis } from '../../plane/axis';
import { fullX } from '../../plane/layout';
import { isWholeCamera } from '../../plane/camera';
import type { Plane } from '../../plane/plane';
import { columnSums, pixelStart } from '../../plane/raster';
import { moveInto, spanOf, type Range } from '../../plane/range';
import type { Scale } from '../../plane/scale';
import type { OpenSession } from '../../state/session/open_session';
import type { Store } from '../../state/store';
import type { AxisRange } from '../../state/view/view';
import { IconButton } from '../../ui/Button';
import { Menu } from '../../ui/Menu';
import { usePart } from '../../ui/hooks';
import { ZoomButtons } from '../../ui/ZoomButtons';
import type { MapModel } from './map_model';
import { tracksOf } from './map_options';
import { rangeOf } from './map_range';
import { FileOrder } from './FileOrder';
import { Legend } from './Legend';
import { ResidencyLegend } from './ResidencyLegend';
import { RangeTotals } from './RangeTotals';
import { axisName, unitOf } from './units';

interface Props {
  readonly store: Store;
  readonly session: OpenSession;
  readonly model: MapModel;
  readonly plane: ReadonlySignal<Plane | null>;
  readonly scale: ReadonlySignal<Scale>;
}

export function MapFooter({ store, session, model, plane, scale }: Props) {
  const options = model.options.value;
  // The camera changes with each movement: only what shows it is rendered again.
  const isZoomed = usePart(() => model.camera.value.x !== null);
  const isWhole = usePart(() => isWholeCamera(model.camera.value));
  return (
    <>
      {isZoomed && <Overview model={model} plane={plane} />}
      <div class="map-foot">
        <Legend
          scale={scale}
          palette={options.palette}
          isLight={store.theme.value === 'light'}
          unit={unitOf(options, tracksOf(options.y)[0] ?? 'layer')}
          shown={options.shown}
          show={(shown) => {
            model.change({ shown }, 'debounced');
          }}
        />
        <ResidencyLegend store={store} model={model} />
        <Breadcrumb model={model} />
        <ZoomButtons
          whole={isWhole}
          viewport={() => {
            const of = plane.peek();
            return (
              of && {
                zoom: (factor) => {
                  of.zoomMiddle(factor);
                },
                pan: (share) => {
                  of.panBy(share);
                },
                fit: () => {
                  of.fit();
                },
              }
            );
          }}
        />
        {/* Always there: a selected range moves no cell under the pointer. */}
        <div class="map-range">
          <RangeChip store={store} model={model} plane={plane} />
          <RangeTotals store={store} session={session} model={model} plane={plane} />
          <FileOrder store={store} session={session} model={model} />
        </div>
      </div>
    </>
  );
}

// "All › tokens 20 – 48 › blk.5": what is in view. Each part can be removed.
function Breadcrumb({ model }: { model: MapModel }) {
  const camera = model.camera.value;
  const scene = model.scene.value;
  if (!scene || isWholeCamera(camera)) return null;
  const crumbs = [
    ...(camera.x ? [{ text: rangeText(scene.x, camera.x), clear: { ...camera, x: null } }] : []),
    ...camera.ys.flatMap((range, i) => {
      const axis = scene.tracks[i]?.y;
      if (!range || !axis) return [];
      const ys = camera.ys.map((one, j) => (j === i ? null : one));
      return [{ text: rangeText(axis, range), clear: { ...camera, ys } }];
    }),
  ];
  return (
    <nav class="crumbs" aria-label="In view">
      <button
        type="button"
        class="link"
        title="Show everything (0)"
        onClick={() => {
          model.change({ camera: { x: null, ys: [] } });
        }}
      >
        All
      </button>
      {crumbs.map(({ text, clear }) => (
        <span key={text} class="crumb">
          › {text}
          <IconButton
            icon="close"
            label={`Zoom out of ${text}`}
            onClick={() => {
              model.change({ camera: clear });
            }}
          />
        </span>
      ))}
    </nav>
  );
}

// The range that is being dragged, else the brushed one, which filters all views.
function RangeChip({ store, model, plane }: Pick<Props, 'store' | 'model' | 'plane'>) {
  const dragged = usePart(() => plane.value?.dragged.value ?? null);
  const selected = usePart(() => store.navigation.view.value.range);
  const range = dragged ? rangeOf(dragged, model.options.value) : selected;
  const scene = model.scene.value;
  if (!range) return <span>Drag over the map to select a range.</span>;
  const axisOfPart = (part: AxisRange): Axis | undefined =>
    [scene?.x, ...(scene?.tracks ?? []).map(({ y }) => y)].find(
      (one) => one && (one.name === axisName(part.axis) || one.kind === part.axis),
    );
  const text = (part: AxisRange): string => {
    const axis = axisOfPart(part);
    return axis ? rangeText(axis, part) : `${axisName(part.axis)} ${part.from} – ${part.to - 1}`;
  };
  const parts = [range.x, range.y].flatMap((part) => (part ? [text(part)] : []));
  return (
    <span class="range-chip">
      <b>{parts.join(' × ')}</b>
      {!dragged && range.y && <Names axis={axisOfPart(range.y)} range={range.y} />}
      {!dragged && (
        <IconButton
          icon="close"
          label="Clear the range"
          hint="Esc"
          onClick={() => {
            model.setBrush(null);
          }}
        />
      )}
    </span>
  );
}

const ENDS = 2; // rows, whose names are in the text

// All names of a range of which the text has the first and the last one. Numbers need no list.
function Names({ axis, range }: { axis: Axis | undefined; range: AxisRange }) {
  const names = axis ? namesIn(axis, range).filter((name) => !/^\d+$/.test(name)) : [];
  if (!axis || names.length <= ENDS) return null;
  const noun = axis.kind === 'bytes' ? 'tensor' : axis.name;
  return (
    <Menu label={plural(names.length, noun)} title="The names of all that is in the range">
      <ol class="range-names mono" tabIndex={0} aria-label="Names in the range">
        {names.map((name) => (
          <li key={name}>{name}</li>
        ))}
      </ol>
    </Menu>
  );
}

const HEIGHT = 22;

// Everything on the x axis in one strip, with a window of what is in view, which can be dragged.
function Overview({ model, plane }: { model: MapModel; plane: ReadonlySignal<Plane | null> }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const drag = useRef<{ readonly x: number; readonly view: Range } | null>(null);
  const camera = model.camera.value;
  const scene = model.scene.value;
  const source = scene?.tracks[0]?.source;
  const version = useComputed(() => model.scene.value?.tracks[0]?.source.version.value ?? 0).value;
  const width = plane.value?.box.value.w ?? 0;
  useEffect(() => {
    const ctx = canvas.current?.getContext('2d');
    const raster = source?.overview();
    if (!ctx || !canvas.current || !raster || !scene || width === 0) return;
    const ratio = devicePixelRatio;
    canvas.current.width = Math.round(width * ratio);
    canvas.current.height = Math.round(HEIGHT * ratio);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    const style = getComputedStyle(canvas.current);
    const colour = (name: string): string => style.getPropertyValue(name);
    const sums = columnSums(raster, raster.y);
    const max = sums.reduce((a, b) => Math.max(a, b), 0);
    const at = (unit: number): number =>
      ((unit - scene.x.whole.from) * width) / spanOf(scene.x.whole);
    ctx.clearRect(0, 0, width, HEIGHT);
    ctx.fillStyle = colour('--bar');
    for (let i = 0; i < raster.width; i += 1) {
      const h = max > 0 ? ((sums[i] ?? 0) / max) * (HEIGHT - 4) : 0;
      const [x0, x1] = [
        at(pixelStart(raster.x, raster.width, i)),
        at(pixelStart(raster.x, raster.width, i + 1)),
      ];
      ctx.fillRect(x0, HEIGHT - h, Math.max(0.5, x1 - x0), h);
    }
    const view = camera.x ?? scene.x.whole;
    const [x0, x1] = [at(view.from), Math.max(at(view.from) + 3, at(view.to))];
    ctx.fillStyle = colour('--accent');
    ctx.globalAlpha = 0.25;
    ctx.fillRect(x0, 0, x1 - x0, HEIGHT);
    ctx.globalAlpha = 1;
    ctx.strokeStyle = colour('--accent');
    ctx.strokeRect(x0 + 0.5, 0.5, x1 - x0 - 1, HEIGHT - 1);
  }, [scene, camera, version, width]);
  const move = (to: Range): void => {
    const of = plane.peek();
    const layout = of?.layout();
    if (!of || !layout || !scene) return;
    of.show(moveInto(to, fullX(scene.x, layout.plot.w)), null);
  };
  const unitsPerPixel = scene && width > 0 ? spanOf(scene.x.whole) / width : 0;
  return (
    <canvas
      ref={canvas}
      class="map-overview"
      role="img"
      aria-label="Overview of everything; the frame is what is in view"
      title="Drag the frame to move what is in view"
      onPointerDown={(event) => {
        if (!camera.x || !scene) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        const at = scene.x.whole.from + event.offsetX * unitsPerPixel;
        const inside = at >= camera.x.from && at < camera.x.to;
        const half = spanOf(camera.x) / 2;
        const view = inside ? camera.x : { from: at - half, to: at + half };
        if (!inside) move(view);
        drag.current = { x: event.offsetX, view };
      }}
      onPointerMove={(event) => {
        const { current } = drag;
        if (!current) return;
        const by = (event.offsetX - current.x) * unitsPerPixel;
        move({ from: current.view.from + by, to: current.view.to + by });
      }}
      onPointerUp={() => {
        drag.current = null;
      }}
    />
  );
}
