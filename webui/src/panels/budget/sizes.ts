// How much memory is enough for the weights of a model. Pure functions.
import { formatBytes } from '../../format';
import type { CurvePoint } from './curve';

// The least budget that the server can act on (docs/memory.md, "The least budget").
export const LEAST_BUDGET = 8 << 20;

// The least memory for the weights in the file with which no token reads any of them again; null: not
// predicted.
export function enoughOf(curve: readonly CurvePoint[]): number | null {
  const enough = curve.filter(({ plain_bytes_per_token: bytes }) => bytes < 1);
  return enough.length === 0 ? null : Math.min(...enough.map((point) => point.budget_bytes));
}

// How much memory is enough for a model of which no session is open; the server says it of a session.
export const enoughText = (predicted: number | null): string =>
  predicted === null
    ? ''
    : `Enough memory to read no weight twice: ${formatBytes(predicted)} for the weights in the file, besides the KV cache or recurrent state and the compute buffers.`;

// What the size of all weights consists of.
export const weightsText = (total: number, repacked: number): string =>
  repacked === 0
    ? `${formatBytes(total)}, all weights`
    : `${formatBytes(total)}: ${formatBytes(Math.max(0, total - repacked))} in the file and ${formatBytes(repacked)} that are repacked now`;
