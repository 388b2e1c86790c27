// The options of a panel in a link, "t:name,show:picture,at:3:40,cx:0:64": their parts. Pure functions.
import type { Range } from '../plane/range';

export interface Place {
  readonly row: number;
  readonly column: number;
}

export const rangeText = ({ from, to }: Range): string => `${Number(from.toFixed(3))}:${Number(to.toFixed(3))}`; // prettier-ignore

// What is missing or wrong is null, or `other`.
export function optionParts(text: string) {
  const parts = new Map(
    text.split(',').map((part): [string, string] => {
      const at = part.indexOf(':');
      return [part.slice(0, at), part.slice(at + 1)];
    }),
  );
  const numbers = (key: string): readonly [number, number] | null => {
    const [a = NaN, b = NaN, ...more] = (parts.get(key) ?? '').split(':').map(Number);
    return more.length === 0 && a >= 0 && b >= 0 && Math.max(a, b) < 2 ** 53 ? [a, b] : null;
  };
  return {
    name: (key: string): string | null => {
      try {
        return decodeURIComponent(parts.get(key) ?? '') || null;
      } catch {
        return null; // not percent-encoded
      }
    },
    oneOf: <T extends string>(key: string, known: readonly T[], other: T): T =>
      known.find((one) => one === parts.get(key)) ?? other,
    range: (key: string): Range | null => {
      const found = numbers(key);
      return found && found[1] > found[0] ? { from: found[0], to: found[1] } : null;
    },
    // Two whole numbers.
    pair: (key: string): readonly [number, number] | null => {
      const found = numbers(key);
      return found?.every(Number.isInteger) ? found : null;
    },
  };
}
