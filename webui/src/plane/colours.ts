// Colour scales: from a fraction 0..1 to a colour. All but heat are suitable for colour blindness;
// the brightness of all but heat increases monotonically. On a light page they run the other way:
// the largest values are the darkest, and easy to see.

export type Rgb = readonly [number, number, number];
export type Palette = 'viridis' | 'cividis' | 'heat' | 'grey';
// diverging: of values with a sign, neutral at 0.
export type Colours = Palette | 'diverging';

// viridis as a polynomial fit of its 256 colours.
// prettier-ignore
const R = [0.2777273272, 0.1050930431, -0.3308618287, -4.6342304984, 6.2282699363, 4.7763849976, -5.4354558559];
// prettier-ignore
const G = [0.0054073445, 1.4046135298, 0.2148475594, -5.7991009733, 14.1799333668, -13.7451453777, 4.6458526121];
// prettier-ignore
const B = [0.3340998053, 1.3845901625, 0.0950951630, -19.3324409562, 56.6905526006, -65.3530326333, 26.3124352495];

function channel(coefficients: readonly number[], t: number): number {
  const value = coefficients.reduceRight((sum, c) => sum * t + c, 0);
  return Math.round(255 * Math.min(1, Math.max(0, value)));
}

export const viridis = (t: number): Rgb => [channel(R, t), channel(G, t), channel(B, t)];

// Colours between the given ones, which have equal distances.
function between(stops: readonly Rgb[], t: number): Rgb {
  const at = Math.min(stops.length - 1.000001, Math.max(0, t * (stops.length - 1)));
  const [a, b] = [stops[Math.floor(at)], stops[Math.floor(at) + 1]];
  const mix = (i: 0 | 1 | 2): number =>
    Math.round((a?.[i] ?? 0) + ((b?.[i] ?? 0) - (a?.[i] ?? 0)) * (at - Math.floor(at)));
  return [mix(0), mix(1), mix(2)];
}

// prettier-ignore
const CIVIDIS: readonly Rgb[] = [
  [0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115],
  [138, 134, 120], [165, 156, 116], [195, 179, 105], [225, 204, 85], [254, 232, 56],
];
// From cold, blue, to hot, red.
const HEAT: readonly Rgb[] = [
  [40, 70, 160], [60, 130, 205], [125, 190, 220], [225, 225, 195], [245, 185, 95], [230, 100, 50], [175, 20, 35],
]; // prettier-ignore
const GREY: readonly Rgb[] = [[45, 45, 48], [245, 245, 245]]; // prettier-ignore

// From negative to positive; values near 0 have almost the colour of the page.
const DIVERGING: readonly Rgb[] = [[120, 190, 255], [40, 100, 190], [34, 36, 42], [180, 84, 20], [255, 180, 100]]; // prettier-ignore
const DIVERGING_LIGHT: readonly Rgb[] = [[8, 48, 130], [90, 150, 220], [242, 242, 242], [225, 140, 60], [130, 45, 0]]; // prettier-ignore
export const NOT_FINITE: Rgb = [225, 0, 200]; // NaN and infinity, in diverging colours

export function colourOf(palette: Colours, t: number, isLight = false): Rgb {
  const at = isLight ? 1 - t : t;
  switch (palette) {
    case 'viridis':
      return viridis(at);
    case 'cividis':
      return between(CIVIDIS, at);
    case 'heat':
      return between(HEAT, t);
    case 'grey':
      return between(GREY, at);
    case 'diverging':
      return between(isLight ? DIVERGING_LIGHT : DIVERGING, t);
  }
}

// The scale from left to right, as CSS.
export function gradientOf(palette: Colours, isLight = false): string {
  const stops = Array.from(
    { length: 13 },
    (_, i) => `rgb(${colourOf(palette, i / 12, isLight).join(' ')})`,
  );
  return `linear-gradient(90deg, ${stops.join(', ')})`;
}

export const PALETTES: readonly Palette[] = ['viridis', 'cividis', 'heat', 'grey'];

const tables = new Map<string, Uint32Array>();

// By level: RGBA bytes as a little-endian number. Level 0 is "no value": transparent, or NOT_FINITE;
// 1..255 are the colours.
export function coloursOf(palette: Colours, isLight = false): Uint32Array {
  const key = `${palette} ${isLight}`;
  const known = tables.get(key);
  if (known) return known;
  const table = Uint32Array.from({ length: 256 }, (_, level) => {
    if (level === 0 && palette !== 'diverging') return 0;
    const [r, g, b] = level === 0 ? NOT_FINITE : colourOf(palette, (level - 1) / 254, isLight);
    return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  });
  tables.set(key, table);
  return table;
}

// Relative luminance, as in WCAG.
export function luminance([r, g, b]: Rgb): number {
  const [x, y, z] = [r, g, b].map((channel) => {
    const c = channel / 255;
    return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
}

// Black and white have the same contrast, 4.6, on a colour of this luminance.
const BETWEEN = 0.179;

// The one that is readable on the colour.
export const textOn = (rgb: Rgb): '#000000' | '#ffffff' =>
  luminance(rgb) > BETWEEN ? '#000000' : '#ffffff';
