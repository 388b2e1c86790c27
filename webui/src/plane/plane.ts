// A plane: the picture of a source over two axes, which is zoomed, panned, hovered and selected.
// One class behind every heat map. The owner describes the plane by a scene and receives what the
// user does as events.
import { effect, signal, untracked, type ReadonlySignal } from '@preact/signals';
import { leastSpan, type Axis } from './axis';
import { listenToPlane, type PlaneInput, type Point } from './gestures';
import {
  cameraWith,
  fullX,
  hitAt,
  planeLayout,
  positionIn,
  trackAt,
  xOf,
  yOf,
  zoneAt,
  type Box,
  type Hit,
  type PlaneLayout,
  type Zone,
} from './layout';
import { wholeCamera, type Camera } from './camera';
import type { Brush } from './paint_overlay';
import { PlanePainter } from './painter';
import type { HoverPlace, PlaneParts } from './parts';
import type { Raster } from './raster';
import { clip, outwards, panRange, spanOf, zoomRange, type Range } from './range';
import type { Scene } from './scene';
import type { RowFigures } from './sources/row_figures';

const GROWTH_MS = 125;

export class Plane implements PlaneInput {
  readonly hovered = signal<HoverPlace | null>(null);
  readonly box = signal<Box>({ w: 0, h: 0 });
  readonly dragged = signal<Brush | null>(null); // while the pointer is down
  private readonly painter: PlanePainter;
  private readonly parts: PlaneParts;
  private readonly stops: (() => void)[] = [];
  private room: Box = { w: 0, h: 0 };
  private pointer: Point | null = null; // null: outside, or the cursor was moved by keys
  private growthTimer: ReturnType<typeof setTimeout> | null = null;
  // The newest layout and what it was made of: each movement of the pointer asks for it repeatedly.
  private made: {
    readonly scene: Scene;
    readonly box: Box;
    readonly camera: Camera;
    readonly layout: PlaneLayout;
  } | null = null;

  constructor(parts: PlaneParts) {
    this.parts = parts;
    this.painter = new PlanePainter(parts, {
      box: this.box,
      room: () => this.room,
      hovered: this.hovered,
      dragged: this.dragged,
      layout: () => this.layout(),
    });
    this.watch();
  }

  destroy(): void {
    this.painter.destroy();
    if (this.growthTimer !== null) clearTimeout(this.growthTimer);
    for (const stop of this.stops) stop();
  }

  // For a picture of what is shown, without what follows the pointer.
  get shown(): { readonly host: HTMLElement; readonly canvases: readonly HTMLCanvasElement[] } {
    const { host, base, overlay, rows } = this.parts;
    return { host, canvases: [base, overlay, rows] };
  }

  // Counts the changes of the pictures in view.
  get painted(): ReadonlySignal<number> {
    return this.painter.painted;
  }

  // The figures of the rows of a track that are shown; null: none have arrived.
  rowFigures(track: number): RowFigures | null {
    return this.painter.rowFigures(track);
  }

  // The picture that the scale refers to, by track.
  raster(track: number): Raster | null {
    return this.painter.raster(track);
  }

  // What the tooltip says has changed.
  describeAgain(): void {
    this.painter.request('hover');
  }

  cellOf(hit: Hit): ReturnType<PlanePainter['cellOf']> {
    return this.painter.cellOf(hit);
  }

  // ---- What is in view ---------------------------------------------------------------

  layout(): PlaneLayout | null {
    const scene = this.parts.scene.peek();
    const box = this.box.peek();
    const camera = this.parts.camera.peek();
    if (!scene || box.w === 0) return null;
    const known = this.made;
    if (known?.scene === scene && known.box === box && known.camera === camera) return known.layout;
    const layout = planeLayout(box, scene, camera);
    this.made = { scene, box, camera, layout };
    return layout;
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
    this.dragged.value = done ? null : { x, track: index, y };
    this.leave();
    if (done) this.parts.events.brushed({ x, track: index, y });
    this.painter.request('overlay');
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

  // ---- Changes ------------------------------------------------------------------------

  private watch(): void {
    const { host, scene, camera, marked, brush, pointed, theme, input } = this.parts;
    const size = new ResizeObserver(() => {
      const { clientWidth: w, clientHeight: h } = host.parentElement ?? host;
      this.room = { w, h };
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
        this.painter.themeChanged();
      }),
      effect(() => {
        void [camera.value, this.box.value];
        this.changed();
      }),
      // A growing session: less often than the user's own movements.
      effect(() => {
        void scene.value;
        for (const { source, figures } of scene.value?.tracks ?? [])
          void [source.version.value, figures?.version.value];
        if (performance.now() - this.painter.paintedMs > GROWTH_MS) {
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
        this.painter.request('overlay');
      }),
      effect(() => {
        void [this.hovered.value, pointed.value];
        // The picture of the lens may have arrived.
        if (scene.value?.lens)
          for (const { source } of scene.value.tracks) void source.version.value;
        this.painter.request('hover');
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
    this.painter.request('base', 'overlay');
    if (this.painter.isHoverPainted) this.painter.request('hover');
  }
}

// Whether zooming with the wheel also zooms the rows: they do not all have room.
const isTall = ({ kind, whole }: Axis): boolean =>
  kind === 'bytes' || kind === 'index' || (kind === 'rows' && spanOf(whole) > 64);
