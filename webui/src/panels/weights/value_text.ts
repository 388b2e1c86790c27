// Values of weights as text. Pure functions.
import { formatCount, plural } from '../../format';
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

// "scale 0.0025 = 0.0001 × 25, minimum 0.01 = 0.002 × 5"; null: the type has no super-blocks.
export function superBlockText({ scale, minimum, super_block: of }: WeightsValue): string | null {
  if (of === null) return null;
  const product = (name: string, value: number | null, of: number | null, factor: number | null) =>
    value === null || of === null || factor === null
      ? []
      : [`${name} ${floatText(value)} = ${floatText(of)} × ${floatText(factor)}`];
  return [
    ...product('scale', scale, of.scale, of.scale_factor),
    ...product('minimum', minimum, of.minimum, of.minimum_factor),
  ].join(', ');
}

// "−0.3 to 0.2, mean 0.01, 2 zeros"; null: the type has no blocks.
export const blockValuesText = ({ block }: WeightsValue): string | null =>
  block.values === 1
    ? null
    : `${shortText(block.min)} to ${shortText(block.max)}, mean ${shortText(block.mean)}, ` +
      `${plural(block.zeros, 'zero')}, ${plural(block.outliers, 'outlier')}`;

export function blockText({ type, block: { first, values, bytes } }: WeightsValue): string {
  const hex = bytes.replace(/../g, '$& ').trim();
  return values === 1
    ? `${type}: ${hex}`
    : `${type} block of ${formatCount(values)} values from column ${formatCount(first)}: ${hex}`;
}
