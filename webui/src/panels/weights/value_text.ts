// Values of weights as text. Pure functions.
import { formatCount } from '../../format';
import type { WeightsValue } from '../../net/types';

// With all digits that a 32-bit float has; -0 and values that are not finite included.
export const floatText = (value: number): string =>
  Number.isFinite(value) ? String(Number(value.toPrecision(8))) : String(value);

export const shortText = (value: number): string =>
  Number.isFinite(value) ? String(Number(value.toPrecision(4))) : String(value);

// "5 × 0.0025 − 0.01"; null: the type has no blocks.
export function formulaText({ quant, scale, minimum }: WeightsValue): string | null {
  if (quant === null || scale === null) return null;
  const product = `${quant} × ${floatText(scale)}`;
  return minimum === null ? product : `${product} − ${floatText(minimum)}`;
}

export function blockText({ type, block: { first, values, bytes } }: WeightsValue): string {
  const hex = bytes.replace(/../g, '$& ').trim();
  return values === 1
    ? `${type}: ${hex}`
    : `${type} block of ${formatCount(values)} values from column ${formatCount(first)}: ${hex}`;
}
