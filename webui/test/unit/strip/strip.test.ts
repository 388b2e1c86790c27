// The names of the parts of the strip.
import { describe, expect, it } from 'vitest';
import type { Tensor } from '../../../src/net/types';
import { bandsOf } from '../../../src/strip/bands';
import { groupText } from '../../../src/strip/strip_chart';

const WIDTH_AT_1440 = 751; // pixels of the strip
const measure = (text: string): number => 5.5 * text.length;

const tensor = (kind: string, source: string, tensor_bytes: number): Tensor =>
  ({ tensor_name: `${kind} ${source}`, tensor_kind: kind, memory_source: source, view_of: null, role: null, layer_id: 0, tensor_bytes }) as unknown as Tensor; // prettier-ignore

describe('the names in the strip', () => {
  const file = tensor('weight', 'disk', 1.6e6);
  const repacked = tensor('weight', 'repacked', 6e6);
  const kv = tensor('kv', 'kv', 3e6);
  const results = tensor('intermediate', 'compute', 2e4);

  it.each([
    ['of a model', [file, kv, results], ['mapped file', 'KV cache', 'intermediate results']],
    ['of a repacked model', [file, repacked, kv, results], ['mapped file', 'repacked', 'KV cache', 'results']],
  ])('%s are not cut at 1440x900', (_, tensors, names) => {
    const { groups } = bandsOf(tensors);
    const texts = groups.map(({ memory, bytes, from, to }) =>
      groupText(memory, bytes, (text) => measure(text) <= (to - from) * WIDTH_AT_1440 - 2),
    );
    expect(texts.map((text) => text.replace(/,? (size )?[\d.]+ \w+$/, ''))).toEqual(names);
  }); // prettier-ignore

  it('are short where they have no room, and cut only then', () => {
    const textIn = (pixels: number): string =>
      groupText('compute', 2e4, (text) => measure(text) <= pixels);
    expect(textIn(110)).toBe('intermediate results');
    expect(textIn(60)).toBe('results');
    expect(textIn(20)).toMatch(/^r.*…$/);
  });
});
