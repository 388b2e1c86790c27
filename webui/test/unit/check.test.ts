import { describe, expect, it } from 'vitest';
import { list, Mismatch, nullable, num, object, oneOf, or, str } from '../../src/net/check';

const shape = object({
  name: str,
  sizes: list(num),
  kind: oneOf('a', 'b'),
  note: nullable(str),
  n: or(7, num),
});

describe('checks', () => {
  it('admit what has the shape, drop what is unknown and fill what may be absent', () => {
    expect(shape({ name: 'x', sizes: [1, 2], kind: 'b', extra: true }, '')).toEqual({
      name: 'x',
      sizes: [1, 2],
      kind: 'b',
      note: null,
      n: 7,
    });
  });

  it.each([
    [null, 'the answer should be an object, not null'],
    [{ name: 1 }, 'name should be text, not number'],
    [{ name: 'x', sizes: [1, '2'] }, 'sizes[1] should be a number, not string'],
    [{ name: 'x', sizes: [], kind: 'c' }, 'kind should be a or b, not string'],
    [{ name: 'x', sizes: {}, kind: 'a' }, 'sizes should be a list, not object'],
  ])('name the first wrong field of %j', (value, message) => {
    expect(() => shape(value, '')).toThrow(new Mismatch(message));
  });
});
