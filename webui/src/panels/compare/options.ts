// What the Compare panel shows, in links "of:layers,a:1,b:3,value:bytes,by:tensor". Pure functions.
import { COMPARED_VALUES, type ComparedValue } from '../inspector/compare';

export const KINDS = ['sessions', 'values', 'phases', 'steps', 'tokens', 'layers'] as const;
export type Kind = (typeof KINDS)[number];

export const KIND_NAMES: Readonly<Record<Kind, string>> = {
  sessions: 'Sessions',
  values: 'Values',
  phases: 'Phases',
  steps: 'Steps',
  tokens: 'Tokens',
  layers: 'Layers',
};

// Whether the right side is another session.
export const isOfSessions = (of: Kind): boolean => of === 'sessions' || of === 'values';

export const ROWS = ['op_kind', 'layer', 'component', 'tensor'] as const;
export type Rows = (typeof ROWS)[number];

export const PHASES = ['generate', 'prompt'] as const;
export type Phase = (typeof PHASES)[number];

export const UNITS = ['token', 'step'] as const;
export type Per = (typeof UNITS)[number];

// Relative errors of values from which an output counts as different; the first one is the server's.
export const TOLERANCES = [1e-5, 0, 1e-6, 1e-4, 1e-3, 0.01, 0.1] as const;

export interface CompareOptions {
  readonly of: Kind;
  readonly a: number; // of steps, tokens and layers: the left one
  readonly b: number; // the right one
  readonly value: ComparedValue;
  readonly by: Rows;
  readonly phase: Phase; // of sessions and layers
  readonly per: Per;
  readonly tolerance: number; // of values
  readonly output: number | null; // its index among the compared ones; null: the one that matters most
}

const DEFAULTS: CompareOptions = {
  of: 'sessions',
  a: 0,
  b: 1,
  value: 'time',
  by: 'op_kind',
  phase: 'generate',
  per: 'token',
  tolerance: TOLERANCES[0],
  output: null,
};

export function decodeCompare(text: string): CompareOptions {
  const parts = new Map(text.split(',').map((part) => part.split(':', 2) as [string, string]));
  const one = <T extends string>(key: keyof CompareOptions, all: readonly T[], other: T): T =>
    all.find((value) => value === parts.get(key)) ?? other;
  const index = <T extends number | null>(key: keyof CompareOptions, other: T): number | T => {
    const value = Number(parts.get(key) ?? NaN);
    return Number.isSafeInteger(value) && value >= 0 ? value : other;
  };
  return {
    of: one('of', KINDS, DEFAULTS.of),
    a: index('a', DEFAULTS.a),
    b: index('b', DEFAULTS.b),
    value: one('value', COMPARED_VALUES, DEFAULTS.value),
    by: one('by', ROWS, DEFAULTS.by),
    phase: one('phase', PHASES, DEFAULTS.phase),
    per: one('per', UNITS, DEFAULTS.per),
    tolerance:
      TOLERANCES.find((value) => String(value) === parts.get('tolerance')) ?? DEFAULTS.tolerance,
    output: index('output', null),
  };
}

export const encodeCompare = (options: CompareOptions): string =>
  (Object.keys(DEFAULTS) as (keyof CompareOptions)[])
    .filter((key) => options[key] !== DEFAULTS[key])
    .map((key) => `${key}:${options[key]}`)
    .join(',');
