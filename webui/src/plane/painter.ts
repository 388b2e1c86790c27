// Paints a plane. The base (cells, axes, margins), the overlay (selection, brush) and the hover are
// separate canvases: a change paints only what depends on it, at most once per frame.
import { signal, type ReadonlySignal } from '@preact/signals';
import { positionText } from './axis';
import type { Point } from './gestures';
import { lensLayout, type Box, type Hit, type PlaneLayout } from './layout';
import { paintLabels, paintNames } from './paint_axes';
import { paintCells, paintGrid, type Ctx } from './paint_cells';
import {
  figuresOf,
  paintFigures,
  paintMarks,
  paintSums,
  paintTogether,
  type RowFigures,
} from './paint_margins';
import { paintLanes } from './paint_lanes';
import { paintBrush, paintHover, paintLens, paintSelection, type Brush } from './paint_overlay';
import type { PlaneParts } from './plane';
import { cellAt, pixelOf, pixelStart, type Raster } from './raster';
import { clip, outwards, type Range } from './range';
import { sameScale, scaleOf, type Scale } from './scale';
import type { Scene } from './scene';
import { themeOf, type PlaneTheme } from './theme';

export type CanvasPart = 'base' | 'overlay' | 'hover';

// What the plane knows while the user moves.
export interface PlaneState {
  readonly box: ReadonlySignal<Box>;
  readonly hovered: ReadonlySignal<{ readonly hit: Hit; readonly at: Point } | null>;
  readonly dragged: () => Brush | null; // while the pointer is down
  readonly layout: () => PlaneLayout | null;
}

const SCALE_MS = 300;

export class PlanePainter {
  readonly painted = signal(0); // counts the changes of the pictures in view
  paintedMs = 0; // when the base was painted
  isHoverPainted = false;
  private readonly parts: PlaneParts;
  private readonly state: PlaneState;
  private readonly dirty: Record<CanvasPart, boolean> = { base: true, overlay: true, hover: true };
  private frame = 0;
  private theme: PlaneTheme | null = null;
  // By track: the picture that scale and margins refer to, and the figures of its rows.
  private best: readonly Raster[] = [];
  private figures: readonly RowFigures[] = [];
  private scaledMs = 0; // when the scale was computed
  private scaleTimer: ReturnType<typeof setTimeout> | null = null;

  constructor(parts: PlaneParts, state: PlaneState) {
    this.parts = parts;
    this.state = state;
  }

  destroy(): void {
    cancelAnimationFrame(this.frame);
    if (this.scaleTimer !== null) clearTimeout(this.scaleTimer);
  }

  themeChanged(): void {
    this.theme = null;
    this.request('base', 'overlay', 'hover');
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

  // Paints these canvases in the next frame.
  request(...parts: readonly CanvasPart[]): void {
    for (const part of parts) this.dirty[part] = true;
    if (this.frame !== 0) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  private paint(): void {
    const [scene, layout] = [this.parts.scene.peek(), this.state.layout()];
    this.theme ??= themeOf(this.parts.base);
    const { theme, dirty } = this;
    const { base, overlay, hover } = this.parts;
    if (dirty.base) this.on(base, (ctx) => { if (scene && layout) this.paintBase(ctx, scene, layout, theme); }); // prettier-ignore
    if (dirty.overlay) this.on(overlay, (ctx) => { if (layout) this.paintOverlay(ctx, layout, theme); }); // prettier-ignore
    if (dirty.hover) this.on(hover, (ctx) => { if (scene && layout) this.paintHovered(ctx, scene, layout, theme); }); // prettier-ignore
    dirty.base = dirty.overlay = dirty.hover = false;
  }

  private on(canvas: HTMLCanvasElement, paint: (ctx: Ctx) => void): void {
    const { w, h } = this.state.box.peek();
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
    this.figures = best.map((raster) => figuresOf(raster, layout.x, scene.medians));
    let scale = this.parts.scale.peek();
    if (isNew || scale.log !== scene.log) scale = this.scaleFor(best, scene.log);
    const { palette, shown, marks } = scene;
    const columnEnds = marks?.columnEnds ?? (() => true);
    scene.tracks.forEach(({ title, lanes = [] }, i) => {
      const track = layout.tracks[i];
      if (!track) return;
      paintCells(ctx, layout, track, pictures[i] ?? [], { palette, scale, shown }, theme);
      paintGrid(ctx, layout, track, scene.x, columnEnds, theme);
      paintNames(ctx, layout, track, title, theme);
      paintLanes(ctx, track, lanes, theme);
      const raster = this.best[i];
      const figures = this.figures[i];
      if (!raster || !figures || raster.width === 0) return;
      paintFigures(
        ctx,
        layout,
        track,
        {
          title: i === 0 && scene.x.kind !== 'one' ? figures.title : '',
          values: figures.values,
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
    if (marks) paintTogether(ctx, layout, marks.together, theme);
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
    const brush = this.state.dragged() ?? this.parts.brush.peek();
    if (brush) paintBrush(ctx, layout, brush, theme);
    const marked = this.parts.marked.peek();
    paintSelection(ctx, layout, marked.compared, theme, theme.text);
    paintSelection(ctx, layout, marked, theme);
  }

  private paintHovered(ctx: Ctx, scene: Scene, layout: PlaneLayout, theme: PlaneTheme): void {
    const pointed = this.parts.pointed.peek();
    const hit =
      this.state.hovered.peek()?.hit ??
      (pointed === null ? null : { track: 0, x: pointed + 0.5, y: null });
    this.isHoverPainted = hit !== null;
    // An empty canvas costs the compositor as much as a full one.
    this.parts.hover.style.visibility = hit ? '' : 'hidden';
    if (!hit) return;
    const cell = this.cellOf(hit);
    const axis = scene.tracks[hit.track]?.y;
    const raster = this.best[hit.track];
    const row = raster && hit.y !== null ? pixelOf(raster.y, raster.height, hit.y) : -1;
    const value = row >= 0 ? (this.figures[hit.track]?.values[row] ?? 0) : 0;
    const name = axis && hit.y !== null ? positionText(axis, hit.y) : '';
    const figure = value > 0 ? scene.valueText(value, hit.track) : '';
    paintHover(ctx, layout, { hit, ...cell, name, figure }, theme);
    const at = this.state.hovered.peek()?.at;
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
