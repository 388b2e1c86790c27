// A plane: the picture of a source over two axes, which is zoomed, panned, hovered and selected.
// One class behind every heat map. The base (cells, axes, margins), the overlay (selection, brush)
// and the hover are separate canvases: a change paints only what depends on it, at most once per
// frame. The owner describes the plane by a scene and receives what the user does as events.
import { effect, signal, untracked, type ReadonlySignal, type Signal } from '@preact/signals';
import { leastSpan, positionText, type Axis } from './axis';
import type { Palette } from './colours';
import { listenToPlane, type PlaneInput, type Point } from './gestures';
import {
  cameraWith,
  fullX,
  hitAt,
  lensLayout,
  planeLayout,
  positionIn,
  trackAt,
  wholeCamera,
  xOf,
  yOf,
  zoneAt,
  type Box,
  type Camera,
  type Hit,
  type PlaneLayout,
  type Zone,
} from './layout';
import {
  figuresOf,
  paintBrush,
  paintCells,
  paintFigures,
  paintGrid,
  paintHover,
  paintLabels,
  paintLens,
  paintMarks,
  paintNames,
  paintSelection,
  paintSums,
  type Brush,
  type Ctx,
  type Marked,
} from './paint';
import { cellAt, pixelOf, pixelStart, type Raster, type ValueRange } from './raster';
import { clip, outwards, panRange, spanOf, zoomRange, type Range } from './range';
import { sameScale, scaleOf, type Scale } from './scale';
import type { Source } from './sources/source';
import type { MarkedPixels } from './sources/token_marks';
import { themeOf, type PlaneTheme } from './theme';

export interface Track {
  readonly title: string; // above its names
  readonly y: Axis;
  readonly share: number; // of the height
  readonly source: Source;
}

export interface Scene {
  readonly x: Axis;
  readonly tracks: readonly Track[];
  readonly log: boolean;
  readonly palette: Palette;
  readonly shown: ValueRange;
  readonly lens: boolean;
  readonly figure: 'median' | 'mean'; // of the rows
  readonly figureTitle: string;
  readonly valueText: (value: number, track: number) => string;
  // Timing of the units of x, and whether a line follows a unit; null: none.
  readonly marks: {
    readonly pixels: (x: Range, width: number) => MarkedPixels;
    readonly columnEnds: (unit: number) => boolean;
  } | null;
}

export interface Tip<Text> {
  readonly text: Text;
  readonly x: number; // position in the host
  readonly y: number;
  readonly width: number; // size of the host
  readonly height: number;
}

export interface PlaneEvents {
  move(camera: Camera): void;
  select(hit: Hit, compare: boolean): void; // compare: with what is selected
  brushed(brush: Brush | null): void; // null: cleared by a click
  pointsAt(hit: Hit | null): void;
}

export interface PlaneParts {
  readonly host: HTMLElement;
  readonly base: HTMLCanvasElement;
  readonly overlay: HTMLCanvasElement;
  readonly hover: HTMLCanvasElement;
  readonly input: HTMLElement; // on top
  readonly scene: ReadonlySignal<Scene | null>;
  readonly camera: ReadonlySignal<Camera>;
  readonly marked: ReadonlySignal<Marked>; // the selection
  readonly brush: ReadonlySignal<Brush | null>;
  readonly pointed: ReadonlySignal<number | null>; // unit of x that another view points at
  readonly theme: ReadonlySignal<unknown>; // changes with the colours of the page
  readonly scale: Signal<Scale>; // set by the plane
  readonly events: PlaneEvents;
}

export interface HoverPlace {
  readonly hit: Hit;
  readonly at: Point;
}

const SCALE_MS = 300;
const GROWTH_MS = 125;

export class Plane implements PlaneInput {
  readonly hovered = signal<HoverPlace | null>(null);
  readonly box = signal<Box>({ w: 0, h: 0 });
  readonly painted = signal(0); // counts the changes of the pictures in view
  private readonly parts: PlaneParts;
  private readonly stops: (() => void)[] = [];
  private readonly dirty = { base: true, overlay: true, hover: true };
  private frame = 0;
  private theme: PlaneTheme | null = null;
  // By track: the picture that scale and margins refer to, and the figures of its rows.
  private best: readonly Raster[] = [];
  private figures: readonly Float32Array[] = [];
  private isHoverPainted = false;
  private pointer: Point | null = null; // null: outside, or the cursor was moved by keys
  private paintedMs = 0;
  private growthTimer: ReturnType<typeof setTimeout> | null = null;
  private scaledMs = 0; // when the scale was computed
  private scaleTimer: ReturnType<typeof setTimeout> | null = null;
  private dragged: Brush | null = null; // while the pointer is down

  constructor(parts: PlaneParts) {
    this.parts = parts;
    this.watch();
  }

  destroy(): void {
    cancelAnimationFrame(this.frame);
    if (this.scaleTimer !== null) clearTimeout(this.scaleTimer);
    if (this.growthTimer !== null) clearTimeout(this.growthTimer);
    for (const stop of this.stops) stop();
  }

  // ---- What is in view ---------------------------------------------------------------

  layout(): PlaneLayout | null {
    const scene = this.parts.scene.peek();
    const box = this.box.peek();
    return scene && box.w > 0 ? planeLayout(box, scene, this.parts.camera.peek()) : null;
  }

  // Shows a range of both axes; null: everything.
  show(x: Range | null, y: { readonly track: number; readonly range: Range } | null): void {
    const [scene, layout] = [this.parts.scene.peek(), this.layout()];
    if (!scene || !layout) return;
    const change = { ...(x ? { x } : {}), ...(y ? { y } : {}) };
    this.parts.events.move(cameraWith(this.parts.camera.peek(), change, layout, scene.x));
  }

  fit(): void {
    this.parts.events.move(wholeCamera);
  }

  zoomMiddle(factor: number): void {
    const layout = this.layout();
    if (!layout) return;
    const at = this.hovered.peek()?.at ?? {
      x: layout.plot.x + layout.plot.w / 2,
      y: layout.plot.y + layout.plot.h / 2,
    };
    this.zoom(factor, at.x, at.y, 'plot');
  }

  panBy(share: number): void {
    const layout = this.layout();
    if (!layout) return;
    const scene = this.parts.scene.peek();
    if (scene?.x.kind === 'one') this.pan(0, -share * layout.plot.h, layout.plot.y);
    else this.pan(-share * layout.plot.w, 0, layout.plot.y);
  }

  // The picture that the margins refer to, by track.
  raster(track: number): Raster | null {
    return this.best[track] ?? null;
  }

  // The cell at a position: its range on both axes. A unit is a whole row or token, or a pixel of
  // an axis that has more units than pixels.
  cellOf(hit: Hit): { readonly x: Range; readonly y: Range | null; readonly value: number } {
    const raster = this.best[hit.track];
    if (!raster || raster.width === 0) {
      const x = Math.floor(hit.x);
      return { x: { from: x, to: x + 1 }, y: null, value: NaN };
    }
    const cell = (range: Range, pixels: number, at: number): Range => {
      const pixel = pixelOf(range, pixels, at);
      if (pixel < 0) return { from: Math.floor(at), to: Math.floor(at) + 1 };
      return { from: pixelStart(range, pixels, pixel), to: pixelStart(range, pixels, pixel + 1) };
    };
    return {
      x: cell(raster.x, raster.width, hit.x),
      y: hit.y === null ? null : cell(raster.y, raster.height, hit.y),
      value: hit.y === null ? NaN : cellAt(raster, hit.x, hit.y),
    };
  }

  // ---- Input -------------------------------------------------------------------------

  zoneAt(x: number, y: number): Zone {
    const layout = this.layout();
    return layout ? zoneAt(layout, x, y) : 'outside';
  }

  hover(x: number, y: number): void {
    this.pointer = { x, y };
    const [scene, layout] = [this.parts.scene.peek(), this.layout()];
    const hit = scene && layout ? hitAt(layout, scene.x, x, y) : null;
    this.hoverAt(hit, { x, y });
  }

  leave(): void {
    this.pointer = null;
    this.hoverAt(null, { x: 0, y: 0 });
  }

  zoom(factor: number, x: number, y: number, zone: Zone): void {
    const [scene, layout] = [this.parts.scene.peek(), this.layout()];
    if (!scene || !layout) return;
    const track = layout.tracks[trackAt(layout, y)];
    if (!track) return;
    const { plot } = layout;
    const at = layout.x.from + ((x - plot.x) * spanOf(layout.x)) / plot.w;
    const zoomsX = zone !== 'names' && scene.x.kind !== 'one';
    const zoomsY =
      zone === 'names' || (zone === 'plot' && (isTall(track.axis) || scene.x.kind === 'one'));
    this.parts.events.move(
      cameraWith(
        this.parts.camera.peek(),
        {
          ...(zoomsX
            ? { x: zoomRange(layout.x, at, factor, fullX(scene.x, plot.w), leastSpan(scene.x)) }
            : {}),
          ...(zoomsY
            ? {
                y: {
                  track: trackAt(layout, y),
                  range: zoomRange(
                    track.y,
                    positionIn(track, y),
                    factor,
                    track.axis.whole,
                    leastSpan(track.axis),
                  ),
                },
              }
            : {}),
        },
        layout,
        scene.x,
      ),
    );
  }

  pan(dx: number, dy: number, y: number): void {
    const [scene, layout] = [this.parts.scene.peek(), this.layout()];
    const index = layout ? trackAt(layout, y) : 0;
    const track = layout?.tracks[index];
    const camera = this.parts.camera.peek();
    if (!scene || !layout || !track) return;
    const byX = (-dx * spanOf(layout.x)) / layout.plot.w;
    const byY = (-dy * spanOf(track.y)) / track.plot.h;
    this.parts.events.move({
      x: camera.x && panRange(layout.x, byX, fullX(scene.x, layout.plot.w)),
      ys: layout.tracks.map((one, i) =>
        camera.ys[i] && i === index ? panRange(one.y, byY, one.axis.whole) : (camera.ys[i] ?? null),
      ),
    });
  }

  brush(from: Point, to: Point, zone: Zone, done: boolean): void {
    const [scene, layout] = [this.parts.scene.peek(), this.layout()];
    if (!scene || !layout || zone === 'outside') return;
    const { plot } = layout;
    const index = trackAt(layout, from.y);
    const track = layout.tracks[index];
    if (!track) return;
    const unit = (x: number): number => layout.x.from + ((x - plot.x) * spanOf(layout.x)) / plot.w;
    const order = (a: number, b: number): Range => ({ from: Math.min(a, b), to: Math.max(a, b) });
    const x =
      zone === 'names' || scene.x.kind === 'one'
        ? scene.x.whole
        : outwards(order(unit(from.x), unit(to.x)), scene.x.whole);
    const within = (at: number): number =>
      Math.max(track.plot.y, Math.min(track.plot.y + track.plot.h, at));
    const y =
      zone === 'plot' || zone === 'names'
        ? outwards(
            order(positionIn(track, within(from.y)), positionIn(track, within(to.y))),
            track.axis.whole,
          )
        : null;
    this.dragged = done ? null : { x, track: index, y };
    this.leave();
    if (done) this.parts.events.brushed({ x, track: index, y });
    this.request('overlay');
  }

  click(x: number, y: number, shift: boolean): void {
    const [scene, layout] = [this.parts.scene.peek(), this.layout()];
    if (this.parts.brush.peek()) this.parts.events.brushed(null);
    if (!scene || !layout) return;
    const inX = zoneAt(layout, x, y) === 'names' ? layout.plot.x + 1 : x;
    const hit = hitAt(layout, scene.x, inX, y);
    if (!hit) return;
    this.parts.events.select(zoneAt(layout, x, y) === 'names' ? { ...hit, x: NaN } : hit, shift);
  }

  doubleClick(x: number, y: number): void {
    this.zoom(0.35, x, y, this.zoneAt(x, y));
  }

  key(name: string, shift: boolean): boolean {
    const moves: Readonly<Record<string, readonly [number, number]>> = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, -1],
      ArrowDown: [0, 1],
      Home: [-Infinity, 0],
      End: [Infinity, 0],
      PageUp: [0, -10],
      PageDown: [0, 10],
    };
    const move = moves[name];
    if (move) this.moveCursor(...move);
    else if (name === 'Enter') {
      const hit = this.hovered.peek()?.hit;
      if (hit) this.parts.events.select(hit, shift);
    } else return false;
    return true;
  }

  // Moves the cursor by cells and scrolls it into view.
  private moveCursor(columns: number, rows: number): void {
    const [scene, layout] = [this.parts.scene.peek(), this.layout()];
    if (!scene || !layout) return;
    const { whole } = scene.x;
    const before = this.hovered.peek()?.hit;
    const end = Math.min(layout.x.to, whole.to);
    const at: Hit = before ?? { track: 0, x: end - 0.5, y: (layout.tracks[0]?.y.from ?? 0) + 0.5 };
    const cell = this.cellOf(at);
    let x = (cell.x.from + cell.x.to) / 2 + columns * spanOf(cell.x);
    if (!before && Number.isFinite(columns) && columns !== 0) x = at.x; // starts at the end
    x = Math.min(whole.to - spanOf(cell.x) / 2, Math.max(whole.from + spanOf(cell.x) / 2, x));
    const axis = scene.tracks[at.track]?.y;
    if (!axis) return;
    const yCell = cell.y ?? { from: axis.whole.from, to: axis.whole.from + 1 };
    const y = clip(
      { from: (yCell.from + yCell.to) / 2 + rows * spanOf(yCell), to: Infinity },
      { from: axis.whole.from + spanOf(yCell) / 2, to: axis.whole.to - spanOf(yCell) / 2 },
    ).from;
    const camera = this.parts.camera.peek();
    const into = (view: Range, to: number): Range | null =>
      to < view.from || to >= view.to
        ? panRange(view, to < view.from ? to - view.from - 0.5 : to - view.to + 0.5, {
            from: -Infinity,
            to: Infinity,
          })
        : null;
    const track = layout.tracks[at.track];
    const [moveX, moveY] = [into(layout.x, x), track ? into(track.y, y) : null];
    if ((moveX && camera.x) || (moveY && camera.ys[at.track])) {
      this.parts.events.move({
        x: moveX && camera.x ? moveX : camera.x,
        ys: layout.tracks.map((_, i) => (i === at.track && moveY ? moveY : (camera.ys[i] ?? null))),
      });
    }
    this.pointer = null;
    const after = this.layout() ?? layout;
    const seen = after.tracks[at.track];
    this.hoverAt(
      { track: at.track, x, y },
      { x: xOf(after, x + spanOf(cell.x) / 2), y: seen ? yOf(seen, y + spanOf(yCell) / 2) : 0 },
    );
  }

  private hoverAt(hit: Hit | null, at: Point): void {
    this.hovered.value = hit && { hit, at };
    this.parts.events.pointsAt(hit);
  }

  // ---- Painting ------------------------------------------------------------------------

  private watch(): void {
    const { host, scene, camera, marked, brush, pointed, theme, input } = this.parts;
    const size = new ResizeObserver(() => {
      this.box.value = { w: host.clientWidth, h: host.clientHeight };
    });
    size.observe(host);
    this.stops.push(
      () => {
        size.disconnect();
      },
      listenToPlane(input, this),
      effect(() => {
        void theme.value;
        this.theme = null;
        this.request('base', 'overlay', 'hover');
      }),
      effect(() => {
        void [camera.value, this.box.value];
        this.changed();
      }),
      // A growing session: less often than the user's own movements.
      effect(() => {
        void scene.value;
        for (const { source } of scene.value?.tracks ?? []) void source.version.value;
        if (performance.now() - this.paintedMs > GROWTH_MS) {
          this.changed(); // in the same frame as the other views
          if (this.growthTimer !== null) clearTimeout(this.growthTimer);
          this.growthTimer = null;
        } else {
          this.growthTimer ??= setTimeout(() => {
            this.growthTimer = null;
            this.changed();
          }, 2 * GROWTH_MS);
        }
      }),
      effect(() => {
        void [marked.value, brush.value];
        this.request('overlay');
      }),
      effect(() => {
        void [this.hovered.value, pointed.value];
        // The picture of the lens may have arrived.
        if (scene.value?.lens)
          for (const { source } of scene.value.tracks) void source.version.value;
        this.request('hover');
      }),
    );
  }

  private changed(): void {
    // Another cell may be under the pointer.
    const { pointer } = this;
    if (pointer)
      untracked(() => {
        this.hover(pointer.x, pointer.y);
      });
    this.request('base', 'overlay');
    if (this.isHoverPainted) this.request('hover');
  }

  private request(...parts: readonly (keyof Plane['dirty'])[]): void {
    for (const part of parts) this.dirty[part] = true;
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  private paint(): void {
    const [scene, layout] = [this.parts.scene.peek(), this.layout()];
    this.theme ??= themeOf(this.parts.base);
    const { theme, dirty } = this;
    const { base, overlay, hover } = this.parts;
    if (dirty.base) this.on(base, (ctx) => { if (scene && layout) this.paintBase(ctx, scene, layout, theme); }); // prettier-ignore
    if (dirty.overlay) this.on(overlay, (ctx) => { if (layout) this.paintOverlay(ctx, layout, theme); }); // prettier-ignore
    if (dirty.hover) this.on(hover, (ctx) => { if (scene && layout) this.paintHovered(ctx, scene, layout, theme); }); // prettier-ignore
    dirty.base = dirty.overlay = dirty.hover = false;
  }

  private on(canvas: HTMLCanvasElement, paint: (ctx: Ctx) => void): void {
    const { w, h } = this.box.peek();
    const ctx = canvas.getContext('2d');
    if (!ctx || w === 0 || h === 0) return;
    const ratio = devicePixelRatio;
    const [pixelsW, pixelsH] = [Math.round(w * ratio), Math.round(h * ratio)];
    if (canvas.width !== pixelsW || canvas.height !== pixelsH) {
      canvas.width = pixelsW;
      canvas.height = pixelsH;
    }
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, w, h);
    paint(ctx);
  }

  private paintBase(ctx: Ctx, scene: Scene, layout: PlaneLayout, theme: PlaneTheme): void {
    this.paintedMs = performance.now();
    const ratio = devicePixelRatio;
    const pictures = scene.tracks.map(({ source }, i) => {
      const track = layout.tracks[i];
      if (!track) return [];
      return source.pictures({
        x: clip(layout.x, scene.x.whole),
        y: track.y,
        width: Math.round(track.plot.w * ratio),
        height: Math.round(track.plot.h * ratio),
      });
    });
    const best = pictures.flatMap((list) => list.at(-1) ?? []);
    const isNew = best.length !== this.best.length || best.some((one, i) => one !== this.best[i]);
    this.best = best;
    if (isNew) this.painted.value += 1;
    this.figures = best.map((raster) => figuresOf(raster, layout.x, scene.figure));
    let scale = this.parts.scale.peek();
    if (isNew || scale.log !== scene.log) scale = this.scaleFor(best, scene.log);
    const { palette, shown, marks } = scene;
    const columnEnds = marks?.columnEnds ?? (() => true);
    scene.tracks.forEach(({ title }, i) => {
      const track = layout.tracks[i];
      if (!track) return;
      paintCells(ctx, layout, track, pictures[i] ?? [], { palette, scale, shown }, theme);
      paintGrid(ctx, layout, track, scene.x, columnEnds, theme);
      paintNames(ctx, layout, track, title, theme);
      const raster = this.best[i];
      if (!raster || raster.width === 0) return;
      paintFigures(
        ctx,
        layout,
        track,
        {
          title: i === 0 ? scene.figureTitle : '',
          values: this.figures[i] ?? new Float32Array(),
          raster,
          text: (value) => scene.valueText(value, i),
        },
        theme,
      );
    });
    if (marks) {
      const width = Math.round(layout.plot.w * ratio);
      const view = outwards(layout.x, scene.x.whole);
      paintMarks(ctx, layout, marks.pixels(view, width), columnEnds, theme);
    }
    const ofTracks = this.best.flatMap((raster, i) => {
      const track = layout.tracks[i];
      return track ? [{ track, raster }] : [];
    });
    if (scene.x.kind !== 'one') paintSums(ctx, layout, ofTracks, theme);
    paintLabels(ctx, layout, scene.x, theme);
  }

  // The colours of a growing session change at most every SCALE_MS.
  private scaleFor(best: readonly Raster[], log: boolean): Scale {
    const scale = this.parts.scale.peek();
    const wait = this.scaledMs + SCALE_MS - performance.now();
    if (this.scaleTimer !== null) clearTimeout(this.scaleTimer);
    this.scaleTimer = null;
    if (wait > 0 && scale.log === log && scale.max > 0) {
      // With the next picture, or if none follows, by itself.
      this.scaleTimer = setTimeout(() => {
        this.best = [];
        this.request('base');
      }, 2 * SCALE_MS);
      return scale;
    }
    this.scaledMs = performance.now();
    const next = scaleOf(
      best.map(({ cells }) => cells),
      log,
    );
    if (!sameScale(next, scale)) this.parts.scale.value = next;
    return next;
  }

  private paintOverlay(ctx: Ctx, layout: PlaneLayout, theme: PlaneTheme): void {
    const brush = this.dragged ?? this.parts.brush.peek();
    if (brush) paintBrush(ctx, layout, brush, theme);
    const marked = this.parts.marked.peek();
    paintSelection(ctx, layout, marked.compared, theme, theme.text);
    paintSelection(ctx, layout, marked, theme);
  }

  private paintHovered(ctx: Ctx, scene: Scene, layout: PlaneLayout, theme: PlaneTheme): void {
    const pointed = this.parts.pointed.peek();
    const hit =
      this.hovered.peek()?.hit ??
      (pointed === null ? null : { track: 0, x: pointed + 0.5, y: null });
    this.isHoverPainted = hit !== null;
    // An empty canvas costs the compositor as much as a full one.
    this.parts.hover.style.visibility = hit ? '' : 'hidden';
    if (!hit) return;
    const cell = this.cellOf(hit);
    const axis = scene.tracks[hit.track]?.y;
    const raster = this.best[hit.track];
    const row = raster && hit.y !== null ? pixelOf(raster.y, raster.height, hit.y) : -1;
    const value = row >= 0 ? (this.figures[hit.track]?.[row] ?? 0) : 0;
    const name = axis && hit.y !== null ? positionText(axis, hit.y) : '';
    const figure = value > 0 ? scene.valueText(value, hit.track) : '';
    paintHover(ctx, layout, { hit, ...cell, name, figure }, theme);
    const at = this.hovered.peek()?.at;
    if (scene.lens && at && hit.y !== null) this.paintLens(ctx, scene, layout, hit, at, theme);
  }

  private paintLens(
    ctx: Ctx,
    scene: Scene,
    layout: PlaneLayout,
    hit: Hit,
    at: Point,
    theme: PlaneTheme,
  ): void {
    const [track, shownTrack] = [scene.tracks[hit.track], layout.tracks[hit.track]];
    if (!track || !shownTrack || hit.y === null) return;
    const lens = lensLayout(layout, shownTrack, scene.x, { ...hit, y: hit.y }, at);
    const ratio = devicePixelRatio;
    const pictures = track.source.pictures(
      {
        x: clip(lens.layout.x, scene.x.whole),
        y: lens.track.y,
        width: Math.round(lens.track.plot.w * ratio),
        height: Math.round(lens.track.plot.h * ratio),
      },
      'lens',
    );
    const { palette, shown } = scene;
    paintLens(ctx, lens, pictures, { palette, scale: this.parts.scale.peek(), shown }, theme);
  }
}

// Whether zooming with the wheel also zooms the rows: they do not all have room.
const isTall = ({ kind, whole }: Axis): boolean =>
  kind === 'bytes' || (kind === 'rows' && spanOf(whole) > 64);
