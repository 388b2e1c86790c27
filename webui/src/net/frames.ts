// Decodes binary frames: rasters, and those of /api/v1/live, which carry the rows of a step as
// columns. The page subscribes to ops frames only. Layout (little-endian, columns padded to 8 bytes; api/live.md):
//
//   u32 magic "TTF1" | u16 kind | u16 flags | u32 subscription | u32 step
//   u32 first row of the step | u32 rows | u32 reserved[2]
//   u32 op[rows] | f64 begin_ns[rows] | f64 end_ns[rows]
//
// The columns are views of the frame's buffer; nothing is copied.
import { err, ok, type Result } from '../result';
import { Mismatch, MAX_COUNT } from './check';
import type { Check } from './check';
import {
  pictureHead,
  weightsPictureHead,
  type PictureHead,
  type WeightsPictureHead,
} from './types';

// Ops of a step, possibly of the step in flight.
export interface OpsFrame {
  readonly subscription: number; // `number` of the "subscribed" message
  readonly step: number;
  readonly firstOp: number;
  readonly complete: boolean; // the step's last op is in this frame
  readonly withdrawn: boolean; // discard the step's earlier ops
  readonly op: Uint32Array;
  readonly beginNs: Float64Array;
  readonly endNs: Float64Array;
}

const MAGIC = 0x31465454;
export const HEADER = 32; // bytes
const KIND_OPS = 1;
const FLAG_COMPLETE = 1;
const FLAG_WITHDRAWN = 2;

const padded = (bytes: number): number => (bytes + 7) & ~7;

// Whether a response begins with a header of this kind.
export function hasKind(buffer: ArrayBuffer, kind: number): boolean {
  if (buffer.byteLength < HEADER) return false;
  const head = new DataView(buffer);
  return head.getUint32(0, true) === MAGIC && head.getUint16(4, true) === kind;
}

export function decodeOpsFrame(buffer: ArrayBuffer): Result<OpsFrame, string> {
  if (buffer.byteLength < HEADER) return err('a live frame is shorter than its header');
  const head = new DataView(buffer);
  if (head.getUint32(0, true) !== MAGIC) return err('a live frame does not begin with TTF1');
  const kind = head.getUint16(4, true);
  if (kind !== KIND_OPS) return err(`a live frame has the unknown kind ${kind}`);
  const rows = head.getUint32(20, true);
  const [step, firstOp] = [head.getUint32(12, true), head.getUint32(16, true)];
  if (step > MAX_COUNT || firstOp > MAX_COUNT) return err('a live frame has an invalid step or op');
  const column = padded(4 * rows); // 4 bytes per row
  const need = HEADER + column + 16 * rows;
  if (buffer.byteLength < need) {
    return err(`a live frame of ${rows} rows has ${buffer.byteLength} of ${need} bytes`);
  }
  const flags = head.getUint16(6, true);
  return ok({
    subscription: head.getUint32(8, true),
    step,
    firstOp,
    complete: (flags & FLAG_COMPLETE) !== 0,
    withdrawn: (flags & FLAG_WITHDRAWN) !== 0,
    op: new Uint32Array(buffer, HEADER, rows),
    beginNs: new Float64Array(buffer, HEADER + column, rows),
    endNs: new Float64Array(buffer, HEADER + column + 8 * rows, rows),
  });
}

// A raster (api/raster_format.md): the sums of all pixels, and the description of both axes.
interface Cells {
  readonly width: number;
  readonly height: number;
  readonly cells: Float32Array; // row by row, y ascending; a view of the frame's buffer
}
export type Picture = PictureHead & Cells;
// The same of the values of weights, which are not sums.
export type WeightsPicture = WeightsPictureHead & Cells;

const KIND_RASTER = 3;
const utf8 = new TextDecoder();

export const decodePicture = (buffer: ArrayBuffer): Result<Picture, string> =>
  decodeRaster(buffer, pictureHead);
export const decodeWeightsPicture = (buffer: ArrayBuffer): Result<WeightsPicture, string> =>
  decodeRaster(buffer, weightsPictureHead);

function decodeRaster<Head extends object>(
  buffer: ArrayBuffer,
  headOf: Check<Head>,
): Result<Head & Cells, string> {
  if (buffer.byteLength < HEADER) return err('a raster is shorter than its header');
  const head = new DataView(buffer);
  if (!hasKind(buffer, KIND_RASTER)) return err('a raster does not begin with its kind');
  const [width, height] = [head.getUint32(8, true), head.getUint32(12, true)];
  const end = HEADER + padded(4 * width * height);
  if (buffer.byteLength < end) return err(`a raster of ${width} x ${height} pixels is truncated`);
  return withDescription(buffer, end, 'raster', (json) => ({
    ...headOf(json, ''),
    width,
    height,
    cells: new Float32Array(buffer, HEADER, width * height),
  }));
}

// The raster as the server sends it (api/raster_format.md).
export function pictureFrame({ width, height, cells, ...head }: Picture): ArrayBuffer {
  const text = new TextEncoder().encode(JSON.stringify(head));
  const end = HEADER + padded(4 * width * height);
  const frame = new ArrayBuffer(end + text.length);
  const header = new DataView(frame);
  header.setUint32(0, MAGIC, true);
  header.setUint16(4, KIND_RASTER, true);
  header.setUint32(8, width, true);
  header.setUint32(12, height, true);
  header.setFloat64(16, head.largest, true);
  header.setFloat64(24, head.total, true);
  new Float32Array(frame, HEADER, width * height).set(cells);
  new Uint8Array(frame, end).set(text);
  return frame;
}

// What `decode` makes of the JSON text that begins at `end`; an error if it throws a Mismatch.
export function withDescription<T>(
  buffer: ArrayBuffer,
  end: number,
  noun: string,
  decode: (json: unknown) => T,
): Result<T, string> {
  try {
    return ok(decode(JSON.parse(utf8.decode(new Uint8Array(buffer, end)))));
  } catch (cause) {
    if (!(cause instanceof Mismatch) && !(cause instanceof SyntaxError)) throw cause;
    return err(`invalid ${noun}: ${cause.message}`);
  }
}
