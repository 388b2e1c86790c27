// Run-time checks of server responses. The types are those of the API (schema.d.ts). A check
// validates the fields that the page requires and returns the value unchanged; other fields may
// be missing or unknown. A failed check throws Mismatch with the path of the first invalid field;
// net/ catches it and returns an error value.

export class Mismatch extends Error {}

export type Check<T> = (value: unknown, path: string) => T;

function mismatch(path: string, expected: string, value: unknown): never {
  const got = value === null ? 'null' : Array.isArray(value) ? 'a list' : typeof value;
  throw new Mismatch(`${path || 'the response'} must be ${expected}, not ${got}`);
}

export const num: Check<number> = (v, path) =>
  typeof v === 'number' && Number.isFinite(v) ? v : mismatch(path, 'a number', v);

// An index or a number of records: at most the largest context (docs/limits.md).
export const MAX_COUNT = 2 ** 24;
export const isCount = (v: unknown): v is number =>
  typeof v === 'number' && Number.isInteger(v) && v >= 0 && v <= MAX_COUNT;
export const count: Check<number> = (v, path) =>
  isCount(v) ? v : mismatch(path, 'a whole number up to 16777216', v);

export const bool: Check<boolean> = (v, path) =>
  typeof v === 'boolean' ? v : mismatch(path, 'true or false', v);

// A string. Also used for enums that a newer server may extend.
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- T is the enum type
export function str<T extends string = string>(v: unknown, path: string): T {
  return typeof v === 'string' ? (v as T) : mismatch(path, 'text', v);
}

// An enum of which the page must know every value.
export function oneOf<const T extends string>(...values: readonly T[]): Check<T> {
  return (v, path) => values.find((known) => known === v) ?? mismatch(path, values.join(' or '), v);
}

export function nullable<T>(check: Check<T>): Check<T | null> {
  return (v, path) => (v === null ? null : check(v, path));
}

export function optional<T>(check: Check<T>): Check<T | undefined> {
  return (v, path) => (v === undefined ? undefined : check(v, path));
}

export function list<T>(item: Check<T>): Check<readonly T[]> {
  return (v, path) => {
    if (!Array.isArray(v)) return mismatch(path, 'a list', v);
    v.forEach((one, i) => item(one, `${path}[${i}]`));
    return v as readonly T[];
  };
}

// An object of the API type T. Checks the named fields.
export function object<T extends object>(fields: {
  readonly [K in keyof T]?: Check<T[K]>;
}): Check<T> {
  const checks = Object.entries(fields) as [string, Check<unknown>][];
  return (v, path) => {
    if (typeof v !== 'object' || v === null || Array.isArray(v))
      return mismatch(path, 'an object', v);
    const from = v as Record<string, unknown>;
    for (const [key, check] of checks) check(from[key], path ? `${path}.${key}` : key);
    return v as T;
  };
}
