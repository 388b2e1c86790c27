// How the memory of a model is made up, and how much of it is enough. Pure functions.
import { formatBytes, formatCount } from '../../format';
import type { ModelMemory } from '../../strip/bands';
import type { CurvePoint } from './curve';

// The least budget that the server can act on (docs/memory.md, "The least budget").
export const LEAST_BUDGET = 8 << 20;

// The least memory for the weights in the file with which no token reads any of them again; null: not
// predicted.
export function enoughOf(curve: readonly CurvePoint[]): number | null {
  const enough = curve.filter(({ plain_bytes_per_token: bytes }) => bytes < 1);
  return enough.length === 0 ? null : Math.min(...enough.map((point) => point.budget_bytes));
}

// How much RAM is enough, in one sentence: the same in the summary and in the budget panel.
// `predicted`: enoughOf(), for a model of which no session is open.
export function enoughText(memory: ModelMemory | null, predicted: number | null): string {
  if (!memory) {
    return predicted === null
      ? ''
      : `Enough memory to read no weight twice: ${formatBytes(predicted)} for the weights in the file, besides the KV cache and the compute buffers.`;
  }
  const { file, repacked, kv, compute, tokens } = memory;
  const reserved = tokens > 0 ? ` (reserved for ${formatCount(tokens)} tokens)` : '';
  const parts = [
    `${formatBytes(file)} for the weights in the file`,
    repacked > 0 ? `${formatBytes(repacked)} of repacked weights` : '',
    kv > 0 ? `${formatBytes(kv)} of KV cache${reserved}` : '',
    `${formatBytes(compute)} of compute buffers`,
  ].filter(Boolean);
  const last = parts.pop() ?? '';
  const all = formatBytes(file + repacked + kv + compute);
  return `${all} of RAM in all are enough to read no weight from the disk twice: ${parts.join(', ')} and ${last}.`;
}

// What the size of all weights consists of.
export function weightsText(total: number, memory: ModelMemory | null): string {
  if (!memory || memory.repacked === 0) return `${formatBytes(total)}, all weights`;
  const { repacked } = memory;
  return `${formatBytes(total)}: ${formatBytes(Math.max(0, total - repacked))} in the file and ${formatBytes(repacked)} that are repacked now`;
}
