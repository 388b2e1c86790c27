// Decodes the binary frames of /api/v1/live: what a step has by the thousand, as
// columns. Layout (little-endian, columns padded to 8 bytes; api/live.md):
//
//   u32 magic "TTF1" | u16 kind | u16 flags | u32 subscription | u32 step
//   u32 first row of the step | u32 rows | i32 layer | u32 reserved
//   ops:     u32 op[rows] | f64 begin_ns[rows] | f64 end_ns[rows]
//   routing: u32 token[rows] | u32 expert[rows] | u32 rank[rows] | f32 score[rows]
//
// The columns are views over the frame's own memory: nothing is copied.
import { err, ok, type Result } from '../result';

// The ops of a step, also of the step in flight.
export interface OpsFrame {
  readonly kind: 'op';
  readonly subscription: number; // the number that "subscribed" gave
  readonly step: number;
  readonly firstOp: number;
  readonly complete: boolean; // the step's last op is in this frame
  readonly withdrawn: boolean; // forget the step's ops: these stand, and what follows
  readonly op: Uint32Array;
  readonly beginNs: Float64Array;
  readonly endNs: Float64Array;
}

// What the router of one layer chose in a step, a row per token and rank.
export interface RoutingFrame {
  readonly kind: 'routing';
  readonly subscription: number;
  readonly step: number;
  readonly firstRow: number; // of the step's, over all layers
  readonly complete: boolean; // the step has no more
  readonly layer: number; // -1: outside of any
  readonly token: Uint32Array; // index in the session; UNKNOWN_TOKEN
  readonly expert: Uint32Array;
  readonly rank: Uint32Array; // 0: the first choice
  readonly score: Float32Array; // NaN: not recorded
}
export type LiveFrame = OpsFrame | RoutingFrame;

export const UNKNOWN_TOKEN = 0xffffffff;

const MAGIC = 0x31465454;
const HEADER = 32;
const KIND_OPS = 1;
const KIND_ROUTING = 2;
const FLAG_COMPLETE = 1;
const FLAG_WITHDRAWN = 2;

const padded = (bytes: number): number => (bytes + 7) & ~7;

export function decodeLiveFrame(buffer: ArrayBuffer): Result<LiveFrame, string> {
  if (buffer.byteLength < HEADER) return err('a live frame is shorter than its header');
  const head = new DataView(buffer);
  if (head.getUint32(0, true) !== MAGIC) return err('a live frame does not begin with TTF1');
  const kind = head.getUint16(4, true);
  if (kind !== KIND_OPS && kind !== KIND_ROUTING) {
    return err(`a live frame has the unknown kind ${kind}`);
  }
  const rows = head.getUint32(20, true);
  const column = padded(4 * rows); // of four bytes a row
  const need = HEADER + (kind === KIND_OPS ? column + 16 * rows : 4 * column);
  if (buffer.byteLength < need) {
    return err(`a live frame of ${rows} rows has ${buffer.byteLength} of ${need} bytes`);
  }
  const flags = head.getUint16(6, true);
  const subscription = head.getUint32(8, true);
  const step = head.getUint32(12, true);
  const first = head.getUint32(16, true);
  const complete = (flags & FLAG_COMPLETE) !== 0;
  if (kind === KIND_ROUTING) {
    return ok({
      kind: 'routing',
      subscription,
      step,
      firstRow: first,
      complete,
      layer: head.getInt32(24, true),
      token: new Uint32Array(buffer, HEADER, rows),
      expert: new Uint32Array(buffer, HEADER + column, rows),
      rank: new Uint32Array(buffer, HEADER + 2 * column, rows),
      score: new Float32Array(buffer, HEADER + 3 * column, rows),
    });
  }
  return ok({
    kind: 'op',
    subscription,
    step,
    firstOp: first,
    complete,
    withdrawn: (flags & FLAG_WITHDRAWN) !== 0,
    op: new Uint32Array(buffer, HEADER, rows),
    beginNs: new Float64Array(buffer, HEADER + column, rows),
    endNs: new Float64Array(buffer, HEADER + column + 8 * rows, rows),
  });
}
