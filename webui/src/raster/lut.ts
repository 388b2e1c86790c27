// The colour map viridis (perceptually uniform, suitable for colour blindness), as a polynomial
// fit of its 256 colours. Level 0 is "no value" and transparent; 1..255 are dark to bright.

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

export type Rgb = readonly [number, number, number];

// t in 0..1.
export function viridis(t: number): Rgb {
  return [channel(R, t), channel(G, t), channel(B, t)];
}

// By level: RGBA bytes as a little-endian number.
export const LUT: Uint32Array = Uint32Array.from({ length: 256 }, (_, level) => {
  if (level === 0) return 0;
  const [r, g, b] = viridis((level - 1) / 254);
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
});
