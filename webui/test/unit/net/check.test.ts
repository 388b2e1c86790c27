import { describe, expect, it } from 'vitest';
import {
  list,
  Mismatch,
  nullable,
  num,
  object,
  oneOf,
  optional,
  str,
} from '../../../src/net/check';

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
  it('return a valid value unchanged', () => {
    const value = { ...good, extra: true };
    expect(shape(value, '')).toBe(value);
    expect(shape({ ...good, n: 7, note: 'y' }, '').n).toBe(7);
  });

  it.each([
    [null, 'the response must be an object, not null'],
    [{ ...good, name: 1 }, 'name must be text, not number'],
    [{ ...good, sizes: [1, '2'] }, 'sizes[1] must be a number, not string'],
    [{ ...good, kind: 'c' }, 'kind must be a or b, not string'],
    [{ ...good, sizes: {} }, 'sizes must be a list, not object'],
    [{ ...good, note: undefined }, 'note must be text, not undefined'],
    [{ ...good, n: null }, 'n must be a number, not null'],
  ])('report the first invalid field of %j', (value, message) => {
    expect(() => shape(value, '')).toThrow(new Mismatch(message));
  });
});
