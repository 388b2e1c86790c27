import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { decodeOpsFrame } from '../../../src/net/frames';

const bytes = (hex: string): ArrayBuffer =>
  Uint8Array.from(hex.match(/[0-9a-f]{2}/g) ?? [], (pair) => parseInt(pair, 16)).buffer;

interface Vector {
  readonly name: string;
  readonly subscription: number;
  readonly step: number;
  readonly first_op: number;
  readonly complete: boolean;
  readonly withdrawn: boolean;
  readonly begin_ns: readonly number[];
  readonly end_ns: readonly number[];
  readonly hex: readonly string[];
}

// The server's encoder is tested against the same bytes.
const file = new URL('../../../../tests/data/live_ops_frame.json', import.meta.url);
const { frames } = JSON.parse(readFileSync(file, 'utf8')) as { frames: readonly Vector[] };

const HEADER = '54544631 0100 0000 01000000 00000000 00000000';
const TWO_OPS = bytes(`${HEADER} 02000000 ${'0'.repeat(16)} ${'0'.repeat(16 + 64)}`);

describe('decodeOpsFrame', () => {
  it.each(frames)('decodes a frame: $name', (vector) => {
    const first = vector.first_op;
    expect(decodeOpsFrame(bytes(vector.hex.join('')))).toEqual({
      ok: true,
      value: {
        subscription: vector.subscription,
        step: vector.step,
        firstOp: first,
        complete: vector.complete,
        withdrawn: vector.withdrawn,
        op: Uint32Array.from(vector.begin_ns, (_, i) => first + i),
        beginNs: Float64Array.from(vector.begin_ns),
        endNs: Float64Array.from(vector.end_ns),
      },
    });
  });

  it.each([
    ['shorter than its header', TWO_OPS.slice(0, 31), 'shorter than its header'],
    ['of another magic', bytes(`00${'0'.repeat(62)}`), 'does not begin with TTF1'],
    ['of an unknown kind', bytes(`54544631 0900 ${'0'.repeat(52)}`), 'unknown kind 9'],
    ['cut in a column', TWO_OPS.slice(0, 71), 'of 2 rows has 71 of 72 bytes'],
  ])('rejects a frame %s', (_, buffer, reason) => {
    const frame = decodeOpsFrame(buffer);
    expect(frame.ok ? '' : frame.error).toContain(reason);
  });
});
