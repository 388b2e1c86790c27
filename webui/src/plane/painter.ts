// Paints a plane. The base (cells, axes, margins) and the overlay (selection, brush) are separate
// canvases, and what moves with the pointer are small elements: a change paints only what depends on
// it, at most once per frame. Canvases are no larger than what they show, because the browser composes
// whatever lies over a pixel that has changed.
import { signal, type ReadonlySignal } from '@preact/signals';
import { positionText } from './axis';
import type { Ctx } from './canvas';
import { HoverMarks } from './hover_marks';
import { lensLayout, type Box, type Hit, type LensLayout, type PlaneLayout } from './layout';
import { paintLabels, paintNames } from './paint_axes';
import { paintCells, paintGrid } from './paint_cells';
import {
  figuresOf,
  meansOf,
  paintFigures,
  paintMarks,
  paintSums,
  paintTogether,
  type Figures,
} from './paint_margins';
import { paintLanes } from './paint_lanes';
import {
  columnsBox,
  paintBrush,
  paintColumns,
  paintFrame,
  paintLens,
  paintRows,
  rowsBox,
  type Brush,
} from './paint_overlay';
import type { HoverPlace, PlaneParts } from './parts';
import { cellAt, pixelOf, pixelStart, type Raster } from './raster';
import { clip, outwards, type Range } from './range';
import { sameScale, scaleOf, type Scale } from './scale';
import type { Scene } from './scene';
import type { RowFigures } from './sources/row_figures';
import type { Source } from './sources/source';
import { themeOf, type PlaneTheme } from './theme';
import { paintInto, within } from '../ui/paint_into';
import { Tip } from '../ui/tip';

export type PlanePart = 'base' | 'overlay' | 'hover';

// What the plane knows while the user moves.
export interface PlaneState {
  readonly box: ReadonlySignal<Box>;
  readonly room: () => Box; // for the tooltip beside the lens: what is beside the plane, too
  readonly hovered: ReadonlySignal<HoverPlace | null>;
  readonly dragged: ReadonlySignal<Brush | null>; // while the pointer is down
  readonly layout: () => PlaneLayout | null;
}

const SCALE_MS = 300;

export class PlanePainter {
  readonly painted = signal(0); // counts the changes of the pictures in view
  paintedMs = 0; // when the base was painted
  isHoverPainted = false;
  private readonly parts: PlaneParts;
  private readonly state: PlaneState;
  private readonly dirty: Record<PlanePart, boolean> = { base: true, overlay: true, hover: true };
  private frame = 0;
  private theme: PlaneTheme | null = null;
  // By track: the picture that scale and margins refer to, and the figures of the rows.
  private best: readonly Raster[] = [];
  private figures: readonly (Figures | null)[] = [];
  private answers: readonly (RowFigures | null)[] = []; // of which the figures are
  private scaledMs = 0; // when the scale was computed
  private scaledOf: readonly Source[] = []; // and of what
  private scaleTimer: ReturnType<typeof setTimeout> | null = null;
  private readonly marks: HoverMarks;
  private readonly tip: Tip;

  constructor(parts: PlaneParts, state: PlaneState) {
    this.parts = parts;
    this.state = state;
    this.marks = new HoverMarks(parts.marks);
    this.tip = new Tip(parts.tip);
  }

  destroy(): void {
    cancelAnimationFrame(this.frame);
    if (this.scaleTimer !== null) clearTimeout(this.scaleTimer);
    this.marks.destroy();
    this.tip.destroy();
  }

  themeChanged(): void {
    this.theme = null;
    this.request('base', 'overlay', 'hover');
  }

  // The figures of the rows of a track that are shown; null: none have arrived.
  rowFigures(track: number): RowFigures | null {
    return this.answers[track] ?? null;
  }

  // The picture that the scale refers to, by track.
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

  // Paints these parts in the next frame.
  request(...parts: readonly PlanePart[]): void {
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
    const { w, h } = this.state.box.peek();
    const isShown = scene !== null && layout !== null && w > 0 && h > 0;
    if (dirty.base) {
      paintInto(this.parts.base, w > 0 && h > 0 ? { x: 0, y: 0, w, h } : null, (ctx) => {
        if (isShown) this.paintBase(ctx, scene, layout, theme);
      });
    }
    if (dirty.overlay) this.paintOverlay(isShown ? layout : null, theme);
    if (dirty.hover) this.paintHovered(isShown ? scene : null, layout, theme);
    dirty.base = dirty.overlay = dirty.hover = false;
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
    const { x, ys } = this.parts.camera.peek();
    const answers = scene.tracks.map(({ y, figures }, i) => {
      const track = layout.tracks[i];
      const isPartOfBytes = y.kind === 'bytes' && (ys[i] ?? null) !== null;
      if (!figures || !track) return null;
      return figures.of({
        x: x && outwards(layout.x, scene.x.whole),
        y: isPartOfBytes ? outwards(track.y, y.whole) : null,
      });
    });
    const isAnswered = answers.some((one, i) => one !== this.answers[i]);
    if (isNew || isAnswered) this.painted.value += 1;
    this.figures = scene.tracks.map(({ figures }, i) => {
      const [raster, answer] = [best[i], answers[i]];
      if (!figures) return raster ? meansOf(raster, layout.x, x !== null, scene.x.name) : null;
      if (answer && answer === this.answers[i]) return this.figures[i] ?? null;
      return answer ? figuresOf(answer, scene.x.name) : null;
    });
    this.answers = answers;
    let scale = this.parts.scale.peek();
    if (isNew || scale.log !== scene.log) scale = this.scaleFor(best, scene);
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
      if (!raster || !figures || raster.width === 0 || scene.bare) return;
      paintFigures(
        ctx,
        layout,
        track,
        i === 0 && scene.x.kind !== 'one' ? figures : { ...figures, title: [] },
        (value) => scene.valueText(value, i),
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
    if (scene.x.kind !== 'one' && !scene.bare) paintSums(ctx, layout, ofTracks, theme);
    if (marks) paintTogether(ctx, layout, marks.together, theme);
    paintLabels(ctx, layout, scene.x, theme);
  }

  // The colours of a growing session change at most every SCALE_MS.
  private scaleFor(best: readonly Raster[], { log, tracks, palette }: Scene): Scale {
    const scale = this.parts.scale.peek();
    const isSame =
      tracks.length === this.scaledOf.length &&
      tracks.every(({ source }, i) => source === this.scaledOf[i]);
    const wait = this.scaledMs + SCALE_MS - performance.now();
    if (this.scaleTimer !== null) clearTimeout(this.scaleTimer);
    this.scaleTimer = null;
    if (wait > 0 && isSame && scale.log === log && scale.max > 0) {
      // With the next picture, or if none follows, by itself.
      this.scaleTimer = setTimeout(() => {
        this.best = [];
        this.request('base');
      }, wait);
      return scale;
    }
    this.scaledMs = performance.now();
    this.scaledOf = tracks.map(({ source }) => source);
    const next = scaleOf(
      best.map(({ cells }) => cells),
      log,
      palette === 'diverging' ? 'both' : 'positive',
    );
    if (!sameScale(next, scale)) this.parts.scale.value = next;
    return next;
  }

  private paintOverlay(layout: PlaneLayout | null, theme: PlaneTheme): void {
    const brush = this.state.dragged.peek() ?? this.parts.brush.peek();
    const marked = this.parts.marked.peek();
    const { compared } = marked;
    const { w, h } = this.state.box.peek();
    const all = { x: 0, y: 0, w, h };
    // The brush dims what is outside.
    const columns =
      layout && (brush ? all : columnsBox(layout, [marked.x, compared.x, marked.frame?.x ?? null]));
    paintInto(this.parts.overlay, columns && within(columns, all), (ctx) => {
      if (!layout) return;
      if (brush) paintBrush(ctx, layout, brush, theme);
      paintColumns(ctx, layout, compared.x, theme, 'compared');
      paintColumns(ctx, layout, marked.x, theme, 'selected', !marked.frame);
      if (marked.frame) paintFrame(ctx, layout, marked.frame);
    });
    const rows = layout && rowsBox(layout, [marked.ys, compared.ys]);
    paintInto(this.parts.rows, rows && within(rows, all), (ctx) => {
      if (!layout) return;
      paintRows(ctx, layout, compared.ys, theme.dim);
      paintRows(ctx, layout, marked.ys, theme.accent);
    });
  }

  private paintHovered(scene: Scene | null, layout: PlaneLayout | null, theme: PlaneTheme): void {
    const place = this.state.hovered.peek();
    const pointed = this.parts.pointed.peek();
    const hit = place?.hit ?? (pointed === null ? null : { track: 0, x: pointed + 0.5, y: null });
    this.isHoverPainted = hit !== null;
    if (!scene || !layout || !hit) {
      this.marks.hide();
      this.tip.hide();
      paintInto(this.parts.lens, null);
      return;
    }
    const cell = this.cellOf(hit);
    const axis = scene.tracks[hit.track]?.y;
    const figures = this.figures[hit.track];
    const row = figures && hit.y !== null ? pixelOf(figures.y, figures.values.length, hit.y) : -1;
    const value = row >= 0 ? (figures?.values[row] ?? 0) : 0;
    const name = axis && hit.y !== null ? positionText(axis, hit.y) : '';
    const figure = value > 0 ? scene.valueText(value, hit.track) : '';
    this.marks.show(layout, { hit, ...cell, name, figure });
    const lens = place && lensAt(scene, layout, place, this.state.room().w);
    const room = lens ? this.state.room() : this.state.box.peek();
    const text = place && this.parts.describe(place);
    if (text) this.tip.show(text, place.at, room, lens?.box);
    else this.tip.hide();
    if (lens) this.paintLens(scene, lens, hit, theme);
    else paintInto(this.parts.lens, null);
  }

  private paintLens(scene: Scene, lens: LensLayout, hit: Hit, theme: PlaneTheme): void {
    const track = scene.tracks[hit.track];
    if (!track) return;
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
    const { x, y, w, h } = lens.box;
    paintInto(this.parts.lens, { x: x - 1, y: y - 1, w: w + 2, h: h + 2 }, (ctx) => {
      paintLens(ctx, lens, pictures, { palette, scale: this.parts.scale.peek(), shown }, theme);
    });
  }
}

// Null: the scene has no lens, or the pointer is beside the tracks.
function lensAt(
  scene: Scene,
  layout: PlaneLayout,
  { hit, at }: HoverPlace,
  room: number,
): LensLayout | null {
  const track = layout.tracks[hit.track];
  if (!scene.lens || !track || hit.y === null) return null;
  return lensLayout(layout, track, scene.x, { ...hit, y: hit.y }, at, room);
}
