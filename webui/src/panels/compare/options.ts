// What the Compare panel shows, in links "of:layers,a:1,b:3,value:bytes,by:tensor". Pure functions.
import { COMPARED_VALUES, type ComparedValue } from '../inspector/compare';

export const KINDS = ['sessions', 'phases', 'steps', 'tokens', 'layers'] as const;
export type Kind = (typeof KINDS)[number];

export const KIND_NAMES: Readonly<Record<Kind, string>> = {
  sessions: 'Sessions',
  phases: 'Phases',
  steps: 'Steps',
  tokens: 'Tokens',
  layers: 'Layers',
};

export const ROWS = ['op_kind', 'layer', 'component', 'tensor'] as const;
export type Rows = (typeof ROWS)[number];

export const PHASES = ['generate', 'prompt'] as const;
export type Phase = (typeof PHASES)[number];

export const UNITS = ['token', 'step'] as const;
export type Per = (typeof UNITS)[number];

export interface CompareOptions {
  readonly of: Kind;
  readonly a: number; // of steps, tokens and layers: the left one
  readonly b: number; // the right one
  readonly value: ComparedValue;
  readonly by: Rows;
  readonly phase: Phase; // of sessions and layers
  readonly per: Per;
}

const DEFAULTS: CompareOptions = {
  of: 'sessions',
  a: 0,
  b: 1,
  value: 'time',
  by: 'op_kind',
  phase: 'generate',
  per: 'token',
};

export function decodeCompare(text: string): CompareOptions {
  const parts = new Map(text.split(',').map((part) => part.split(':', 2) as [string, string]));
  const one = <T extends string>(key: keyof CompareOptions, all: readonly T[], other: T): T =>
    all.find((value) => value === parts.get(key)) ?? other;
  const index = (key: 'a' | 'b'): number => {
    const value = Number(parts.get(key) ?? NaN);
    return Number.isSafeInteger(value) && value >= 0 ? value : DEFAULTS[key];
  };
  return {
    of: one('of', KINDS, DEFAULTS.of),
    a: index('a'),
    b: index('b'),
    value: one('value', COMPARED_VALUES, DEFAULTS.value),
    by: one('by', ROWS, DEFAULTS.by),
    phase: one('phase', PHASES, DEFAULTS.phase),
    per: one('per', UNITS, DEFAULTS.per),
  };
}

export const encodeCompare = (options: CompareOptions): string =>
  (Object.keys(DEFAULTS) as (keyof CompareOptions)[])
    .filter((key) => options[key] !== DEFAULTS[key])
    .map((key) => `${key}:${options[key]}`)
    .join(',');
