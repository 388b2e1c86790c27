// Checks what the server sends before the page leans on it. The types are those
// of the contract (schema.d.ts); a check looks at the fields without which the
// page would break, and passes the value on as it came: fields that it does not
// name may be absent or new. A check that fails throws Mismatch with the path of
// the first wrong field; net/ catches it at its door and makes it an error value.

export class Mismatch extends Error {}

export type Check<T> = (value: unknown, path: string) => T;

function wrong(path: string, wanted: string, value: unknown): never {
  const got = value === null ? 'null' : Array.isArray(value) ? 'a list' : typeof value;
  throw new Mismatch(`${path || 'the answer'} should be ${wanted}, not ${got}`);
}

export const num: Check<number> = (v, path) =>
  typeof v === 'number' && Number.isFinite(v) ? v : wrong(path, 'a number', v);

export const bool: Check<boolean> = (v, path) =>
  typeof v === 'boolean' ? v : wrong(path, 'true or false', v);

// Text, also a word of a list that a newer server may have made longer.
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- so it fits any such list
export function str<T extends string = string>(v: unknown, path: string): T {
  return typeof v === 'string' ? (v as T) : wrong(path, 'text', v);
}

// A word that the page decides by.
export function oneOf<const T extends string>(...values: readonly T[]): Check<T> {
  return (v, path) => values.find((known) => known === v) ?? wrong(path, values.join(' or '), v);
}

export function nullable<T>(check: Check<T>): Check<T | null> {
  return (v, path) => (v === null ? null : check(v, path));
}

export function optional<T>(check: Check<T>): Check<T | undefined> {
  return (v, path) => (v === undefined ? undefined : check(v, path));
}

export function list<T>(item: Check<T>): Check<readonly T[]> {
  return (v, path) => {
    if (!Array.isArray(v)) return wrong(path, 'a list', v);
    v.forEach((one, i) => item(one, `${path}[${i}]`));
    return v as readonly T[];
  };
}

// An object of the contract's type T, of which the named fields are looked at.
export function object<T extends object>(fields: {
  readonly [K in keyof T]?: Check<T[K]>;
}): Check<T> {
  const checks = Object.entries(fields) as [string, Check<unknown>][];
  return (v, path) => {
    if (typeof v !== 'object' || v === null || Array.isArray(v)) return wrong(path, 'an object', v);
    const from = v as Record<string, unknown>;
    for (const [key, check] of checks) check(from[key], path ? `${path}.${key}` : key);
    return v as T;
  };
}
