import { describe, expect, it } from 'vitest';
import { list, Mismatch, nullable, num, object, oneOf, optional, str } from '../../src/net/check';

interface Shape {
  readonly name: string;
  readonly sizes: readonly number[];
  readonly kind: 'a' | 'b';
  readonly note: string | null;
  readonly n?: number | undefined;
}
const shape = object<Shape>({
  name: str,
  sizes: list(num),
  kind: oneOf('a', 'b'),
  note: nullable(str),
  n: optional(num),
});
const good = { name: 'x', sizes: [1, 2], kind: 'b', note: null };

describe('checks', () => {
  it('admit what has the shape and pass it on as it came', () => {
    const value = { ...good, extra: true };
    expect(shape(value, '')).toBe(value);
    expect(shape({ ...good, n: 7, note: 'y' }, '').n).toBe(7);
  });

  it.each([
    [null, 'the answer should be an object, not null'],
    [{ ...good, name: 1 }, 'name should be text, not number'],
    [{ ...good, sizes: [1, '2'] }, 'sizes[1] should be a number, not string'],
    [{ ...good, kind: 'c' }, 'kind should be a or b, not string'],
    [{ ...good, sizes: {} }, 'sizes should be a list, not object'],
    [{ ...good, note: undefined }, 'note should be text, not undefined'],
    [{ ...good, n: null }, 'n should be a number, not null'],
  ])('name the first wrong field of %j', (value, message) => {
    expect(() => shape(value, '')).toThrow(new Mismatch(message));
  });
});
