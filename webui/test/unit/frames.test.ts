import { describe, expect, it } from 'vitest';
import { decodeOpsFrame } from '../../src/net/frames';

const bytes = (hex: string): ArrayBuffer =>
  Uint8Array.from(hex.match(/[0-9a-f]{2}/g) ?? [], (pair) => parseInt(pair, 16)).buffer;

// Ops 378, 379, 380 of step 7 for subscription 2, the last of their step.
const THREE_OPS = bytes(`
  54544631 0100 0100 02000000 07000000 7a010000 03000000 0000000000000000
  7a010000 7b010000 7c010000 00000000
  0000000000005940 0000000000006940 000000000000f03f
  0000000000006940 0000000000c07240 0000000000000040
`);

describe('decodeOpsFrame', () => {
  it('gives the columns of a frame', () => {
    const frame = decodeOpsFrame(THREE_OPS);
    expect(frame).toEqual({
      ok: true,
      value: {
        subscription: 2,
        step: 7,
        firstOp: 378,
        complete: true,
        withdrawn: false,
        op: Uint32Array.of(378, 379, 380),
        beginNs: Float64Array.of(100, 200, 1),
        endNs: Float64Array.of(200, 300, 2),
      },
    });
  });

  it('reads a frame without rows, of a step that goes on', () => {
    const frame = decodeOpsFrame(
      bytes('54544631 0100 0000 01000000 00000000 00000000 00000000 0000000000000000'),
    );
    expect(frame.ok && frame.value.complete).toBe(false);
    expect(frame.ok && frame.value.op.length).toBe(0);
  });

  it('reads that a step is withdrawn', () => {
    const frame = decodeOpsFrame(
      bytes('54544631 0100 0200 01000000 03000000 00000000 00000000 0000000000000000'),
    );
    expect(frame).toMatchObject({ ok: true, value: { withdrawn: true, complete: false, step: 3 } });
  });

  it.each([
    ['shorter than its header', THREE_OPS.slice(0, 31), 'shorter than its header'],
    ['of another magic', bytes(`00${'0'.repeat(62)}`), 'does not begin with TTF1'],
    ['of an unknown kind', bytes(`54544631 0900 ${'0'.repeat(52)}`), 'unknown kind 9'],
    ['cut in a column', THREE_OPS.slice(0, 95), 'of 3 rows has 95 of 96 bytes'],
  ])('refuses a frame %s', (_, buffer, reason) => {
    const frame = decodeOpsFrame(buffer);
    expect(frame.ok ? '' : frame.error).toContain(reason);
  });
});
