// Paints the heat map into a canvas. Layout, levels and selection are computed before.
import { visibleText } from '../format';
import type { TraceData } from '../state/trace_data';
import type { Columns } from './columns';
import type { Raster } from './heat';
import { Mark } from './layer_values';
import { LUT } from './lut';
import { columnX, MIN_TEXT_CELL_W, tickStep, type HeatLayout, type Hit, type Rect } from './view';

export interface HeatScene {
  readonly layout: HeatLayout;
  readonly columns: Columns;
  readonly data: TraceData;
  readonly raster: Raster;
  readonly first: number; // column of the raster's left edge
  readonly last: number; // one past its right edge
  readonly medians: readonly number[]; // by row
  readonly valueText: (value: number) => string;
  readonly selectedStep: number | null;
  readonly selectedRow: number | null; // the selected layer
  readonly hover: Hit | null;
}

export interface Palette {
  readonly back: string;
  readonly text: string;
  readonly dim: string;
  readonly line: string;
  readonly bar: string;
  readonly accent: string;
  readonly learned: string;
  readonly exact: string;
  readonly sans: string;
  readonly mono: string;
}

export function paletteOf(element: Element): Palette {
  const style = getComputedStyle(element);
  const of = (name: string): string => style.getPropertyValue(name).trim();
  return {
    back: of('--panel'),
    text: of('--text'),
    dim: of('--text-dim'),
    line: of('--line'),
    bar: of('--bar'),
    accent: of('--accent'),
    learned: of('--learned'),
    exact: of('--exact'),
    sans: of('--sans'),
    mono: of('--mono'),
  };
}

const MIN_LINE_CELL_W = 4; // minimum column width for lines between steps

type Ctx = CanvasRenderingContext2D;

export function paintHeat(ctx: Ctx, scene: HeatScene, palette: Palette): void {
  const ratio = ctx.getTransform().a;
  ctx.clearRect(0, 0, ctx.canvas.width / ratio, ctx.canvas.height / ratio);
  clipped(ctx, spanX(scene.layout), () => {
    paintGaps(ctx, scene, palette);
    paintRaster(ctx, scene);
    paintGrid(ctx, scene, palette);
    paintSums(ctx, scene, palette);
    paintMarks(ctx, scene, palette);
    paintTokens(ctx, scene, palette);
    paintSelection(ctx, scene, palette);
  });
  paintLayers(ctx, scene, palette);
  paintMedians(ctx, scene, palette);
}

// The clip rectangle for everything that belongs to columns: the plot's width, unlimited height.
function spanX({ plot }: HeatLayout): Rect {
  return { x: plot.x - 1, y: 0, w: plot.w + 2, h: 10_000 };
}

function clipped(ctx: Ctx, { x, y, w, h }: Rect, paint: () => void): void {
  ctx.save();
  ctx.beginPath();
  ctx.rect(x, y, w, h);
  ctx.clip();
  paint();
  ctx.restore();
}

function paintRaster(ctx: Ctx, { raster, layout, first, last }: HeatScene): void {
  if (raster.width === 0 || raster.rows === 0) return;
  const image = new ImageData(raster.width, raster.rows);
  const pixels = new Uint32Array(image.data.buffer);
  raster.levels.forEach((level, i) => {
    pixels[i] = LUT[level] ?? 0;
  });
  const cells = new OffscreenCanvas(raster.width, raster.rows);
  cells.getContext('2d')?.putImageData(image, 0, 0);
  ctx.imageSmoothingEnabled = false;
  const x = columnX(layout, first);
  ctx.drawImage(cells, x, layout.plot.y, columnX(layout, last) - x, layout.plot.h);
}

// Hatches columns without a step and steps whose times were lost, to distinguish "no value" from a
// low value.
function paintGaps(ctx: Ctx, scene: HeatScene, palette: Palette): void {
  const { plot } = scene.layout;
  for (const { x0, x1, code } of runs(scene, scene.raster.evaluated)) {
    if (code === 1) continue;
    clipped(ctx, { x: x0, y: plot.y, w: x1 - x0, h: plot.h }, () => {
      ctx.strokeStyle = palette.line;
      ctx.lineWidth = 1;
      ctx.beginPath();
      for (let x = x0 - plot.h; x < x1; x += 6) {
        ctx.moveTo(x, plot.y + plot.h);
        ctx.lineTo(x + plot.h, plot.y);
      }
      ctx.stroke();
    });
  }
}

interface Run {
  readonly x0: number;
  readonly x1: number;
  readonly code: number;
}

// Adjacent raster pixels with the same code; wide columns also end where their step ends.
function* runs(scene: HeatScene, codes: Uint8Array): Generator<Run> {
  const { layout, columns, raster, first, last } = scene;
  const each = (columnX(layout, last) - columnX(layout, first)) / raster.width;
  const steps = layout.cellW >= MIN_LINE_CELL_W ? columns.step : null;
  let from = 0;
  for (let at = 1; at <= raster.width; at += 1) {
    const isEnd =
      at === raster.width ||
      codes[at] !== codes[from] ||
      (steps && steps.at(first + at) !== steps.at(first + from));
    if (!isEnd) continue;
    const x0 = columnX(layout, first) + from * each;
    yield { x0, x1: x0 + (at - from) * each, code: codes[from] ?? 0 };
    from = at;
  }
}

function paintGrid(ctx: Ctx, scene: HeatScene, palette: Palette): void {
  const { layout } = scene;
  const { plot, cellW, cellH, rows } = layout;
  ctx.fillStyle = palette.back;
  if (cellH >= 5) {
    for (let row = 1; row < rows; row += 1) {
      // A wider gap before the row of ops without a layer.
      const thick = row === rows - 1 ? 3 : 1;
      ctx.fillRect(plot.x, Math.round(plot.y + row * cellH) - (thick >> 1), plot.w, thick);
    }
  }
  if (cellW < MIN_LINE_CELL_W) return;
  for (const { x0 } of runs(scene, scene.raster.evaluated)) {
    ctx.fillRect(Math.round(x0) - 1, plot.y, 1, plot.h);
  }
}

function paintSums(ctx: Ctx, scene: HeatScene, palette: Palette): void {
  const { layout, first, last, raster } = scene;
  const max = raster.totals.reduce((a, b) => Math.max(a, b), 0);
  if (!(max > 0)) return;
  const each = (columnX(layout, last) - columnX(layout, first)) / raster.width;
  const gap = each >= 4 ? 1 : 0;
  ctx.fillStyle = palette.bar;
  raster.totals.forEach((sum, i) => {
    const h = (sum / max) * layout.sums.h;
    const x = columnX(layout, first) + i * each;
    ctx.fillRect(x, layout.sums.y + layout.sums.h - h, each - gap, h);
  });
}

// Marks how each step was timed, by shape and colour: fast (the default) is a thin line, learned a
// low bar, exact a full bar.
function paintMarks(ctx: Ctx, scene: HeatScene, palette: Palette): void {
  const { marks } = scene.layout;
  for (const { x0, x1, code } of runs(scene, scene.raster.marks)) {
    if (code === 0) continue;
    const h = code === Mark.exact ? marks.h : code === Mark.learned ? 4 : 1.5;
    ctx.fillStyle =
      code === Mark.exact ? palette.exact : code === Mark.learned ? palette.learned : palette.line;
    ctx.fillRect(x0, marks.y + marks.h - h, Math.max(1, x1 - x0 - 1), h);
  }
}

function paintTokens(ctx: Ctx, scene: HeatScene, palette: Palette): void {
  const { layout, columns, data } = scene;
  const top = layout.plot.y + layout.plot.h;
  ctx.fillStyle = palette.dim;
  if (layout.cellW < MIN_TEXT_CELL_W) {
    const step = tickStep(layout.cellW, 56);
    ctx.font = `11px ${palette.sans}`;
    ctx.textAlign = 'center';
    ctx.textBaseline = 'top';
    for (let column = Math.ceil(scene.first / step) * step; column < scene.last; column += step) {
      const x = columnX(layout, column + 0.5);
      ctx.fillRect(Math.round(x), top + 2, 1, 4);
      ctx.fillText(String(columns.token.at(column) ?? ''), x, top + 9);
    }
    return;
  }
  ctx.font = `11px ${palette.mono}`;
  ctx.textAlign = 'right';
  ctx.textBaseline = 'middle';
  for (let column = scene.first; column < scene.last; column += 1) {
    const index = columns.token.at(column) ?? -1;
    const token = data.tokens[index];
    const text = token ? visibleText(token.text) || `#${token.id}` : '';
    ctx.save();
    ctx.translate(columnX(layout, column + 0.5), top + 9);
    ctx.rotate(-Math.PI / 2);
    ctx.fillStyle = token?.generated ? palette.text : palette.dim;
    ctx.fillText(text.length > 8 ? `${text.slice(0, 7)}…` : text, 0, 0);
    ctx.restore();
  }
}

function paintSelection(ctx: Ctx, scene: HeatScene, palette: Palette): void {
  const { layout, columns, data, hover, selectedStep } = scene;
  const { plot } = layout;
  if (hover) {
    const x = columnX(layout, hover.column);
    ctx.strokeStyle = palette.text;
    ctx.lineWidth = 1;
    ctx.globalAlpha = 0.35;
    ctx.strokeRect(x - 0.5, plot.y - 0.5, layout.cellW, plot.h + 1);
    ctx.globalAlpha = 1;
    if (hover.row !== null) {
      ctx.strokeStyle = '#fff';
      ctx.lineWidth = 1.5;
      ctx.strokeRect(x, plot.y + hover.row * layout.cellH, layout.cellW - 1, layout.cellH - 1);
    }
  }
  const step = selectedStep === null ? undefined : data.steps[selectedStep];
  const from = step && columns.firstOfStep.at(step.step);
  if (step && from !== undefined && from >= 0) {
    const x = Math.round(columnX(layout, from)) - 1;
    const w = Math.max(2, Math.round(step.token_count * layout.cellW));
    // White with a black outline is visible on every colour of the map.
    for (const [width, colour] of [
      [4, '#000'],
      [2, '#fff'],
    ] as const) {
      ctx.lineWidth = width;
      ctx.strokeStyle = colour;
      ctx.strokeRect(x, plot.y - 1, w, plot.h + 2);
    }
    ctx.fillStyle = palette.accent;
    ctx.beginPath();
    ctx.moveTo(x + w / 2 - 5, plot.y + plot.h + 7);
    ctx.lineTo(x + w / 2 + 5, plot.y + plot.h + 7);
    ctx.lineTo(x + w / 2, plot.y + plot.h + 1);
    ctx.fill();
  }
}

function paintLayers(ctx: Ctx, scene: HeatScene, palette: Palette): void {
  const { layout, hover, selectedRow } = scene;
  const { plot, cellH, rows } = layout;
  const every = [1, 2, 4, 8, 16].find((n) => n * cellH >= 13) ?? 32;
  ctx.font = `11px ${palette.sans}`;
  ctx.textAlign = 'right';
  ctx.textBaseline = 'middle';
  for (let row = 0; row < rows; row += 1) {
    const outside = row === rows - 1;
    // Skip the last layers where their labels would overlap the label of the last row.
    if (!outside && (row % every !== 0 || (rows - 1 - row) * cellH < 13)) continue;
    ctx.fillStyle = hover?.row === row ? palette.text : palette.dim;
    ctx.fillText(outside ? 'emb+out' : String(row), plot.x - 8, plot.y + (row + 0.5) * cellH);
  }
  if (selectedRow !== null && selectedRow < rows) {
    const y = plot.y + (selectedRow + 0.5) * cellH;
    ctx.fillStyle = palette.accent;
    ctx.beginPath();
    ctx.moveTo(plot.x - 6, y - 4);
    ctx.lineTo(plot.x - 6, y + 4);
    ctx.lineTo(plot.x - 1, y);
    ctx.fill();
  }
  ctx.textAlign = 'left';
  ctx.textBaseline = 'alphabetic';
  ctx.fillStyle = palette.dim;
  ctx.fillText('layer', 10, plot.y - 4);
}

function paintMedians(ctx: Ctx, scene: HeatScene, palette: Palette): void {
  const { medians: box, cellH } = scene.layout;
  const max = scene.medians.reduce((a, b) => Math.max(a, b), 0);
  if (!(max > 0)) return;
  ctx.font = `11px ${palette.sans}`;
  ctx.textAlign = 'left';
  ctx.textBaseline = 'alphabetic';
  ctx.fillStyle = palette.dim;
  ctx.fillText('median / token', box.x, box.y - 4);
  scene.medians.forEach((median, row) => {
    const y = box.y + row * cellH;
    const h = Math.max(1, Math.min(14, cellH - (cellH >= 5 ? 1 : 0)));
    ctx.fillStyle = palette.bar;
    ctx.fillRect(box.x, y + (cellH - h) / 2, (median / max) * box.w, h);
    if (scene.hover?.row === row && median > 0) {
      ctx.fillStyle = palette.text;
      ctx.textBaseline = 'middle';
      ctx.fillText(scene.valueText(median), box.x + 4, y + cellH / 2);
    }
  });
}
