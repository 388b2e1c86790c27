import { describe, expect, it } from 'vitest';
import { paintVideo, VIDEO, wrapped, type Piece } from '../../../src/shell/video_picture';
import type { PlaneTheme } from '../../../src/plane/theme';

const eight = (text: string): number => 8 * text.length;
const textOf = (lines: readonly (readonly Piece[])[]): readonly string[] =>
  lines.map((line) => line.map(({ text, isNow }) => (isNow ? `[${text}]` : text)).join(''));

describe('the text of a video', () => {
  it('breaks at spaces and line feeds, and marks the tokens of the step', () => {
    expect(textOf(wrapped('Once upon a time', ' there', 80, eight))).toEqual([
      'Once upon ',
      'a time[ ]',
      '[there]',
    ]);
    expect(textOf(wrapped('One.\nTwo', ' three', 800, eight))).toEqual(['One.', 'Two[ three]']);
  });

  it('cuts a word that is longer than a line', () => {
    expect(textOf(wrapped('', 'abcdefghij', 32, eight))).toEqual(['[abcd]', '[efgh]', '[ij]']);
  });

  it('has every character once, whatever the width is', () => {
    const before = 'Es war einmal\n ein  Mädchen, 那个 very_long_word_without_any_space ';
    for (let width = 16; width < 400; width += 24) {
      const lines = wrapped(before, ' now', width, eight);
      const all = lines.flat().map(({ text }) => text);
      expect(all.join('')).toBe(`${before} now`.replaceAll('\n', ''));
      for (const line of lines)
        expect(
          eight(
            line
              .map(({ text }) => text)
              .join('')
              .trimEnd(),
          ),
        ).toBeLessThanOrEqual(width);
    }
  });
});

describe('a picture of a video', () => {
  it('has the clock, the op, the scale and the tokens, the last lines of a long text', () => {
    const texts: string[] = [];
    const drawn: unknown[][] = [];
    const ctx = {
      fillRect: () => undefined,
      fillText: (text: string) => texts.push(text),
      measureText: (text: string) => ({ width: eight(text) }),
      drawImage: (...args: unknown[]) => drawn.push(args.slice(1)),
    } as unknown as CanvasRenderingContext2D;
    const box = (x: number, y: number, width: number, height: number) => ({
      getBoundingClientRect: () => ({ left: x, top: y, width, height }),
      width,
      height,
    });
    const canvas = box(110, 70, 200, 100) as unknown as HTMLCanvasElement;
    const filmed = {
      host: box(100, 50, 616, 215) as unknown as HTMLElement,
      canvases: [canvas],
      legend: { what: 'bytes', least: '0 B', most: '1 MiB', colour: () => '#fff' },
    };
    const frame = { title: 'A title', clock: 'step 3 of 9', op: 'ffn_out', speed: 'real time' };
    const before = Array.from({ length: 12 }, (_, i) => `line ${i}\n`).join('');
    paintVideo(ctx, { ...frame, before, now: ' now', filmed }, {} as PlaneTheme);
    expect(texts).toEqual([
      ...Object.values(frame),
      ...['bytes: 0 B', '1 MiB'],
      ...['line 8', 'line 9', 'line 10', 'line 11', ' now'],
    ]);
    // Twice as large, in the place of the map.
    expect(drawn).toEqual([[24 + 2 * 10, 84 + 2 * 20, 400, 200]]);
    expect([VIDEO.w, VIDEO.h]).toEqual([1280, 720]);
  });
});
