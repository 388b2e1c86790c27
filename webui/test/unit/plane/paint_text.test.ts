import { describe, expect, it } from 'vitest';
import type { Ctx } from '../../../src/plane/paint_cells';
import { fittedOf } from '../../../src/plane/paint_text';

const ctx = { font: '11px', measureText: (text: string) => ({ width: 6 * text.length }) } as Ctx;

describe('a text of several lengths', () => {
  const texts = ['step 0: 10 tokens, equal shares', 'step 0: 10 tokens', 'step 0'];
  it.each([
    [190, 'step 0: 10 tokens, equal shares'],
    [110, 'step 0: 10 tokens'],
    [100, 'step 0'],
    [24, 'ste…'],
  ])('in %i pixels is complete if one of them has room', (width, text) => {
    expect(fittedOf(ctx, texts, width)).toBe(text);
  });
});
