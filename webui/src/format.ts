// Formats numbers with about three digits and a unit. Show the exact value in the element's
// `title` (exactNs, exactBytes).

import type { Kernel } from './net/types';

function threeDigits(value: number): string {
  const size = Math.abs(value);
  if (size >= 100 || Number.isInteger(value)) return value.toFixed(0);
  // 0.085 is not 0.09.
  return size >= 10 ? value.toFixed(1) : size >= 0.1 ? value.toFixed(2) : value.toPrecision(2);
}

const TIME_UNITS = [
  [1e9, 's'],
  [1e6, 'ms'],
  [1e3, 'µs'],
] as const;

export function formatNs(ns: number): string {
  if (ns >= 60e9) {
    const seconds = Math.round(ns / 1e9);
    const rest = seconds % 60;
    return `${Math.floor(seconds / 60)} min${rest === 0 ? '' : ` ${rest} s`}`;
  }
  // 999.96 µs would print as "1000 µs", so the next unit begins at the rounding limit.
  const unit = TIME_UNITS.find(([size]) => ns >= size * 0.9995);
  return unit ? `${threeDigits(ns / unit[0])} ${unit[1]}` : `${Math.round(ns)} ns`;
}

const BYTE_UNITS = ['KiB', 'MiB', 'GiB', 'TiB'] as const;

export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  let value = bytes / 1024;
  let unit = 0;
  while (value >= 1023.5 && unit < BYTE_UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${threeDigits(value)} ${BYTE_UNITS[unit] ?? ''}`;
}

// Thousands are separated by a narrow no-break space.
export function formatCount(count: number): string {
  return Math.round(count)
    .toString()
    .replace(/\B(?=(\d{3})+(?!\d))/g, '\u202f');
}

export const fileName = (path: string): string => path.split('/').at(-1) ?? path;

// Ops without a layer belong to the embedding or the output.
export const layerName = (name: string): string =>
  name === 'none' || name === 'outside' ? 'emb+out' : name;

// Memory sources, kinds and components as the page names them (docs/glossary.md has the values of
// the data, which filters use). A model has a KV cache or, as Mamba and RWKV, a recurrent state; hybrid
// models have both: "KV cache or state" is the name for either. The strip and the sentences of the server
// use the same names.
const KV_OR_STATE = 'KV cache or state';
export const sourceName = (source: string): string => SOURCE_NAMES[source] ?? source;
const SOURCE_NAMES: Readonly<Record<string, string>> = {
  disk: 'mapped file',
  kv: KV_OR_STATE,
  compute: 'intermediate results',
  input: 'inputs',
};
// What a memory source is; '': the name says it.
export const sourceText = (source: string): string => SOURCE_TEXTS[source] ?? '';
const SOURCE_TEXTS: Readonly<Record<string, string>> = {
  disk: 'pages of the model file: in RAM while there is room, else read from the disk when an op needs them (a disk wait)',
  repacked: 'copies of weights in RAM, made at load',
  kv: 'keys and values, or the state, of earlier tokens, in RAM',
  compute: 'outputs of ops, in the compute buffers, in RAM',
  buffer: 'other memory, in RAM',
};
// `role`: of the tensor; absent: not known.
export function kindName(kind: string, role?: string): string {
  if (kind !== 'kv') return kind;
  if (role === undefined) return KV_OR_STATE;
  return role === 'state' ? 'recurrent state' : 'KV cache';
}
export const componentName = (component: string): string =>
  component === 'kv-cache' ? KV_OR_STATE : component;

// A component and the purpose inside it: "attention, Q".
export const partName = (component: string, role: string, between = ', '): string =>
  component === 'kv-cache' && role !== ''
    ? role === 'state'
      ? 'recurrent state'
      : `KV cache${between}${role}`
    : role === '' || role === component
      ? componentName(component)
      : `${componentName(component)}${between}${role}`;

// How the op times of a step were measured, beside the name "op times". Not the values of the data:
// "fast" beside a slow step would read as a verdict on the step.
export const timingName = (timing: string): string => TIMING_NAMES[timing] ?? timing;
export const timingText = (timing: string): string =>
  timing === 'learned'
    ? 'measured while learning: the first step with this graph, slower'
    : timing === 'exact'
      ? 'measured op by op: slower'
      : timing === 'fast'
        ? 'measured in passing'
        : timingName(timing);
const TIMING_NAMES: Readonly<Record<string, string>> = {
  fast: 'in passing',
  learned: 'while learning',
  exact: 'op by op',
  none: 'not measured',
};

// A position among numbered items: "6 of 0–39". Steps, tokens, ops and layers count from 0, as in
// REST, SQL and the command line.
export const positionOf = (index: number, count: number): string =>
  count > 1 ? `${formatCount(index)} of 0–${formatCount(count - 1)}` : formatCount(index);

// What a kernel is; null: not known.
export function kernelText(kernel: Kernel | null): string {
  return kernel === null ? 'not known: plain or llamafile' : `${kernel}: ${KERNEL_TEXTS[kernel]}`;
}
const KERNEL_TEXTS: Readonly<Record<Kernel, string>> = {
  plain: 'ggml’s CPU code for weights as they are in the file',
  repacked: 'weights that were copied into another layout when the model was loaded',
  amx: 'weights that were copied into the layout of AMX when the model was loaded',
  llamafile: 'matrix multiplication of llamafile (tinyBLAS), for several tokens',
  device: 'chosen by another device, such as a GPU',
};

// Generated tokens per second.
export const formatSpeed = (perSecond: number): string =>
  `${perSecond >= 100 ? formatCount(perSecond) : threeDigits(perSecond)} tokens/s`;

export const exactNs = (ns: number): string => `${formatCount(ns)} ns`;
export const exactBytes = (bytes: number): string => `${formatCount(bytes)} bytes`;

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

// ggml pads shapes to four dimensions with ones. Trailing ones are left out.
export function formatShape(shape: readonly number[]): string {
  let used = shape.length;
  while (used > 1 && shape[used - 1] === 1) used -= 1;
  return shape.slice(0, used).join(' × ');
}

// The text of tokens outside of running text: white space and control characters as symbols.
export function visibleText(text: string): string {
  return text
    .replaceAll('\n', '⏎')
    .replaceAll('\t', '⇥')
    .replaceAll(' ', '␣')
    .replace(/\p{Cc}/gu, (c) => String.fromCodePoint(controlPicture(c.codePointAt(0) ?? 0)));
}
const controlPicture = (code: number): number =>
  code < 0x20 ? 0x2400 + code : code === 0x7f ? 0x2421 : 0xfffd;

// The label of a single token: on an axis, in a table row, a title or a tooltip. A token without text,
// such as a part of a character or a control token, is named by its ID. '': not known.
export const tokenText = (
  token: { readonly text: string; readonly id?: number } | null | undefined,
): string =>
  token ? visibleText(token.text) || (token.id === undefined ? '' : `#${token.id}`) : '';

export function formatAgo(utcNs: number, nowMs: number): string {
  const seconds = Math.max(0, Math.round(nowMs / 1000 - utcNs / 1e9));
  if (seconds < 5) return 'now';
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return new Date(utcNs / 1e6).toISOString().slice(0, 10);
}
