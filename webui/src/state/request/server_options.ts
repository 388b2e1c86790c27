// Options of tt-server that visitors look for among the settings of a run. Pure functions.
import type { Model } from '../../net/types';

interface ServerOption {
  readonly name: string;
  readonly option: string;
  readonly value: string; // of the loaded model; empty: not known
}

// Names of the facts without "context.": those of Model.settings.
const OPTIONS = [
  ['threads', 'threads', '-t'],
  ['flash attention', 'flash_attention', '-fa'],
  ['context size', 'size', '-c'],
  ['type of K in the KV cache', 'cache_type_k', '-ctk'],
  ['type of V in the KV cache', 'cache_type_v', '-ctv'],
] as const;

// "threads -t (now 2), flash attention -fa (now auto)".
export const serverOptionsText = (model: Parameters<typeof serverOptions>[0]): string =>
  serverOptions(model)
    .map(({ name, option, value }) => `${name} ${option}${value === '' ? '' : ` (now ${value})`}`)
    .join(', ');

export function serverOptions(
  model: Pick<Model, 'settings' | 'threads'> | null,
): readonly ServerOption[] {
  return OPTIONS.map(([name, fact, option]) => {
    const threads = fact === 'threads' ? model?.threads : undefined;
    const value = model?.settings?.[`context.${fact}`] ?? threads;
    return { name, option, value: value === undefined ? '' : String(value) };
  });
}
