// Paints the strip: bands coloured by the time of their layer in the newest (or selected) step, and
// the memory that the running op touches, which glows and fades.
import { formatBytes, sourceName } from '../format';
import { coloursOf } from '../plane/colours';
import { themeOf, type PlaneTheme } from '../plane/theme';
import { levelOf, type Scale } from '../plane/scale';
import type { Numbers } from '../net/types';
import type { Bands, Memory } from './bands';

const FADE_MS = 400;

export const STRIP_PALETTE = 'viridis';

export const MEMORY_NAMES = {
  file: sourceName('disk'),
  repacked: 'repacked',
  kv: 'KV cache',
  recurrent: 'recurrent state',
  compute: sourceName('compute'),
} as const;

const SHORT_NAMES = {
  file: 'file',
  repacked: 'repacked',
  kv: 'KV',
  recurrent: 'state',
  compute: 'results',
} as const;

// The time of a layer is that of its weights: reading its part of the KV cache or its state takes little of it.
export const isTimed = (memory: Memory): boolean => memory === 'file' || memory === 'repacked';

export class StripChart {
  private readonly canvas: HTMLCanvasElement;
  private readonly glow = new Map<number, number>(); // by band: when it was touched, ms
  private readonly reduced = matchMedia('(prefers-reduced-motion: reduce)');
  private theme: PlaneTheme | null = null;
  private size = { w: 0, h: 0 };

  constructor(canvas: HTMLCanvasElement) {
    this.canvas = canvas;
  }

  resize(): void {
    const { clientWidth: w, clientHeight: h } = this.canvas;
    this.size = { w, h };
  }

  themeChanged(): void {
    this.theme = null;
  }

  touch(bands: readonly number[], nowMs: number): void {
    for (const band of bands) this.glow.set(band, nowMs);
  }

  // Whether some band still fades.
  isGlowing(nowMs: number): boolean {
    return (
      !this.reduced.matches && [...this.glow.values()].some((since) => nowMs - since < FADE_MS)
    );
  }

  // 1 when a band is touched, then fading. With reduced motion nothing fades: only what the running
  // op touches glows.
  private glowAt(elapsedMs: number): number {
    return this.reduced.matches ? Number(elapsedMs <= 0) : Math.max(0, 1 - elapsedMs / FADE_MS);
  }

  // `times`: by layer, the last one for ops without a layer. `marked`: bands of the selected op.
  paint(bands: Bands, times: Numbers, marked: readonly number[], nowMs: number): void {
    const { w, h } = this.size;
    const ctx = this.canvas.getContext('2d');
    if (!ctx || w === 0) return;
    this.theme ??= themeOf(this.canvas);
    const { theme } = this;
    const ratio = devicePixelRatio;
    if (this.canvas.width !== Math.round(w * ratio)) this.canvas.width = Math.round(w * ratio);
    if (this.canvas.height !== Math.round(h * ratio)) this.canvas.height = Math.round(h * ratio);
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, w, h);
    const colours = coloursOf(STRIP_PALETTE, theme.isLight);
    const largest = times.reduce((a, b) => Math.max(a, b), 0);
    const least = times.reduce((a, b) => (b > 0 ? Math.min(a, b) : a), largest);
    const scale: Scale = { min: least * 0.8, max: largest, clips: false, log: true };
    const top = 15;
    bands.bands.forEach(({ from, to, layer, memory }, i) => {
      const [x0, x1] = [from * w, Math.max(from * w + 1, to * w)];
      const gap = x1 - x0 >= 5 ? 1 : 0;
      const time = layer === null ? times.at(-1) : times[layer];
      const level = isTimed(memory) ? levelOf(time ?? 0, scale) : 0;
      ctx.fillStyle = level === 0 ? theme.bar : cssColour(colours[level] ?? 0);
      ctx.fillRect(x0, top, x1 - x0 - gap, h - top - 1);
      const since = this.glow.get(i);
      const glow = since === undefined ? 0 : this.glowAt(nowMs - since);
      if (glow > 0) {
        ctx.globalAlpha = 0.85 * glow;
        ctx.fillStyle = theme.glow;
        ctx.fillRect(x0, top - 2, x1 - x0 - gap, h - top + 1);
        ctx.globalAlpha = 1;
      }
      if (marked.includes(i)) {
        ctx.strokeStyle = theme.accent;
        ctx.lineWidth = 2;
        ctx.strokeRect(x0, top - 1, Math.max(2, x1 - x0 - gap), h - top);
      }
    });
    ctx.font = `11px ${theme.sans}`;
    ctx.textBaseline = 'alphabetic';
    ctx.fillStyle = theme.dim;
    if (bands.groups.length === 0)
      ctx.fillText('The memory of the model appears here with its first step', 0, h / 2 + 4);
    for (const { memory, bytes, from, to } of bands.groups) {
      const room = (to - from) * w - 2;
      ctx.fillText(groupText(memory, bytes, (text) => ctx.measureText(text).width <= room), from * w, 11); // prettier-ignore
    }
  }
}

// The longest text that fits. The bytes are a size, not what was read.
export function groupText(memory: Memory, bytes: number, fits: (text: string) => boolean): string {
  const name = MEMORY_NAMES[memory];
  const size = formatBytes(bytes);
  // The compute buffers are larger than the tensors in them.
  const texts = memory === 'compute' ? [name] : [`${name}, size ${size}`, `${name} ${size}`, name];
  const short = SHORT_NAMES[memory];
  const whole = [...texts, short].find(fits);
  if (whole !== undefined) return whole;
  let part: string = short;
  while (part !== '' && !fits(`${part}…`)) part = part.slice(0, -1);
  return `${part}…`;
}

// From RGBA bytes as a little-endian number.
const cssColour = (rgba: number): string =>
  `rgb(${rgba & 255} ${(rgba >> 8) & 255} ${(rgba >> 16) & 255})`;
