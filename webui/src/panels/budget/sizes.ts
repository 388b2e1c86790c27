// How much memory is enough for the weights of a model. Pure functions.
import { formatBytes } from '../../format';
import type { Model, Session } from '../../net/types';
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

// The settings on which the memory of a run depends, with other values in the session than the loaded
// model has: what is enough for the session is not what the next run needs.
const NEEDS_MEMORY = ['size', 'ubatch', 'flash_attention', 'cache_type_k', 'cache_type_v', 'swa_full', 'repack', 'mmap', 'gpu_layers']; // prettier-ignore

export function otherSettings(session: Pick<Session, 'facts'>, model: Pick<Model, 'settings'>) {
  return NEEDS_MEMORY.flatMap((name) => {
    const [was, is] = [session.facts?.[`context.${name}`], model.settings?.[`context.${name}`]];
    if (was === undefined || is === undefined || was === is) return [];
    const label = name === 'size' ? 'context size' : name.replaceAll('_', ' ');
    return [`${label} ${is} instead of ${was}`];
  });
}

// What the size of all weights consists of.
export const weightsText = (total: number, repacked: number): string =>
  repacked === 0
    ? `${formatBytes(total)}, all weights`
    : `${formatBytes(total)}: ${formatBytes(Math.max(0, total - repacked))} in the file and ${formatBytes(repacked)} that are repacked now`;
