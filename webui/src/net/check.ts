// Checks what the server sends against the shape that the page was built for.
// A check returns the value typed or throws Mismatch with the path of the first
// wrong field; net/ catches it at its door and makes it an error value.

export class Mismatch extends Error {}

export type Check<T> = (value: unknown, path: string) => T;
export type Checked<C> = C extends Check<infer T> ? T : never;

function wrong(path: string, wanted: string, value: unknown): never {
  const got = value === null ? 'null' : Array.isArray(value) ? 'a list' : typeof value;
  throw new Mismatch(`${path || 'the answer'} should be ${wanted}, not ${got}`);
}

export const str: Check<string> = (v, path) => (typeof v === 'string' ? v : wrong(path, 'text', v));

export const num: Check<number> = (v, path) =>
  typeof v === 'number' && Number.isFinite(v) ? v : wrong(path, 'a number', v);

export const bool: Check<boolean> = (v, path) =>
  typeof v === 'boolean' ? v : wrong(path, 'true or false', v);

export function nullable<T>(check: Check<T>): Check<T | null> {
  return (v, path) => (v === null || v === undefined ? null : check(v, path));
}

// A field that may be absent (a model says its shape only once it is loaded).
export function or<T>(fallback: T, check: Check<T>): Check<T> {
  return (v, path) => (v === null || v === undefined ? fallback : check(v, path));
}

export function oneOf<const T extends string>(...values: readonly T[]): Check<T> {
  return (v, path) => values.find((known) => known === v) ?? wrong(path, values.join(' or '), v);
}

export function list<T>(item: Check<T>): Check<T[]> {
  return (v, path) =>
    Array.isArray(v) ? v.map((one, i) => item(one, `${path}[${i}]`)) : wrong(path, 'a list', v);
}

function record(v: unknown, path: string): Record<string, unknown> {
  return typeof v === 'object' && v !== null && !Array.isArray(v)
    ? (v as Record<string, unknown>)
    : wrong(path, 'an object', v);
}

// Every value of an object with free names.
export function map<T>(item: Check<T>): Check<Record<string, T>> {
  return (v, path) =>
    Object.fromEntries(
      Object.entries(record(v, path)).map(([key, one]) => [key, item(one, `${path}.${key}`)]),
    );
}

type Fields = Record<string, Check<unknown>>;
type Shape<F extends Fields> = { readonly [K in keyof F]: Checked<F[K]> };

// Fields that are not named are ignored: a newer server may send more.
export function object<F extends Fields>(fields: F): Check<Shape<F>> {
  const entries = Object.entries(fields);
  return (v, path) => {
    const from = record(v, path);
    const to: Record<string, unknown> = {};
    for (const [key, check] of entries) to[key] = check(from[key], path ? `${path}.${key}` : key);
    return to as Shape<F>;
  };
}

export const anything: Check<unknown> = (v) => v;
