// The server's sentences about the causes of differences, in the words of the page. Pure functions.

// The names of facts that differ from their words only by underscores are not listed.
const NAMES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'Other settings': {
    size: 'context size',
    batch: 'batch size',
    ubatch: 'physical batch size',
    cache_type_k: 'type of K in the KV cache',
    cache_type_v: 'type of V in the KV cache',
    swa_full: 'full cache for layers with a sliding window',
    repack: 'repacked weights',
    mmap: 'mapped model file',
    mlock: 'locked memory',
    gpu_layers: 'layers on the GPU',
    memory_budget: 'memory budget (bytes)',
  },
  'Other request': {
    prompt: 'prompt text',
    repeat_last_n: 'tokens checked for repetition',
    silent: 'tokens without text',
  },
  'Other machine': {
    cpu: 'processor',
    cpu_limit: 'processor limit',
    memory_limit: 'origin of the memory limit',
    memory_limit_bytes: 'memory limit (bytes)',
    ram_bytes: 'memory (bytes)',
  },
  'Other version of llama.cpp': {
    ggml_commit: 'commit of ggml',
    features: 'processor features',
    tested: 'tested with tensor-trace',
  },
};

const MESSAGE = /^messages\.(\d+)\.(.+)$/;
const STOP = /^stop\.(\d+)$/;
const SESSION_ID = /\bsession (\d{8}-\d{6}-[0-9a-f]{6})\b/g;

// `sessionName`: of an id, "session “Title”".
export function causeText(cause: string, sessionName: (id: string) => string): string {
  const [, group = '', rest = ''] = /^([^:]+)(: .*)$/s.exec(cause) ?? [];
  const names = NAMES[group];
  if (names)
    return group + rest.replace(/([:,] )([a-z][a-z0-9_.]*[a-z0-9])/g, (_, before: string, name: string) => before + factName(names, name)); // prettier-ignore
  return cause
    .replace(/\bthe left session\b/g, 'this session')
    .replace(/\bthe right session\b/g, 'the other session')
    .replace(/\bon the left\b/, 'in this session')
    .replace(/\bon the right\b/, 'in the other session')
    .replace(SESSION_ID, (_, id: string) => sessionName(id));
}

// The first sentence of a cause: what it is. The others advise.
export const causeHead = (text: string): string => /^.*?\.(?= [A-Z]|$)/s.exec(text)?.[0] ?? text;

function factName(names: Readonly<Record<string, string>>, name: string): string {
  const [, message, role] = MESSAGE.exec(name) ?? [];
  if (message !== undefined) return `prompt text (${role ?? ''} message ${Number(message) + 1})`;
  const [, stop] = STOP.exec(name) ?? [];
  if (stop !== undefined) return `stop text ${Number(stop) + 1}`;
  return names[name] ?? name.replaceAll('_', ' ');
}
