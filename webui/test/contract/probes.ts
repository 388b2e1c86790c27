// Requests made from the contract: for each operation the values that its
// parameters and its body may have, and those that they may not.
import type { Operation, Parameter } from './document';
import { invalidValues, validValues, type Json, type Schema } from './schema';

export type JsonObject = Readonly<Record<string, Json>>;

/** Text as it stands in a query or a path. */
export type Values = Readonly<Record<string, string>>;

/** Values by name, of what no schema tells: those that name something, or are a language. */
export type Given = Readonly<Record<string, readonly Json[]>>;

const text = (value: Json) => (typeof value === 'string' ? value : JSON.stringify(value));

/** The target of a request. */
export function targetOf(operation: Operation, path: Values, query: Values = {}): string {
  const filled = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(path[name] ?? ''),
  );
  const asked = Object.entries(query).map(
    ([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`,
  );
  return asked.length === 0 ? filled : `${filled}?${asked.join('&')}`;
}

const inQuery = (operation: Operation) => operation.parameters.filter((one) => one.in === 'query');

/** Each optional parameter alone, at each of its values. */
export function validQueries(operation: Operation, given: Given): Values[] {
  return inQuery(operation)
    .filter(({ required }) => !required)
    .flatMap(({ name, schema }) =>
      (given[name] ?? validValues(schema)).map((value) => ({ [name]: text(value) })),
    );
}

/** Queries that are not: each parameter beyond each bound, of another type; an unknown name. */
export function invalidQueries(operation: Operation): Values[] {
  const wrong = inQuery(operation).flatMap(({ name, schema }) =>
    invalidTexts(schema).map((value) => ({ [name]: value })),
  );
  return [...wrong, { no_such_parameter: '1' }, { Limit: '1' }];
}

// What is no text of any allowed value. Everything is a string that can be.
export function invalidTexts(schema: Schema): string[] {
  if (schema.enum) {
    const words = schema.enum.map(String);
    return ['', 'no-such-word', ` ${words[0] ?? ''}`, (words[0] ?? '').toUpperCase()];
  }
  if (schema.oneOf) {
    const each = schema.oneOf.filter(({ type }) => type === 'integer').flatMap(invalidTexts);
    return each.filter((value) => !schema.oneOf?.some((one) => one.const === value));
  }
  if (schema.type === 'integer') {
    const { minimum = 0, maximum = 0 } = schema;
    const words = ['', 'x', '1x', '1.5', '1e3', '0x10', ' 1', '+1', '1,2', '\u0661', 'null', 'NaN'];
    return [...words, String(minimum - 1), String(maximum + 1), '9'.repeat(40)];
  }
  if (schema.type === 'boolean') return ['', '1', 'TRUE', 'yes', 'null'];
  return schema.maxLength === undefined ? [] : ['x'.repeat(schema.maxLength + 1)];
}

/** Segments that no resource has: of a wrong form, out of bounds, or just unknown. */
export function unknownSegments({ schema }: Parameter): string[] {
  if (schema.type === 'string') return ['no-such-thing', 'x'.repeat(200)];
  // The largest number of its range is allowed; there is just nothing of that number.
  const beyond = invalidTexts(schema).filter((value) => value !== '');
  return [...beyond, String(schema.maximum ?? 0)];
}

/** Segments that might lead elsewhere; the door may refuse them as not well-formed. */
export const TRICKY_SEGMENTS = ['..', '.', '.hidden', 'a/b', '../../etc/passwd', '\0', 'a\\b', 'ü'];

/** Bodies with one property changed, of a body that is allowed. */
export function validBodies(schema: Schema, base: JsonObject, given: Given): JsonObject[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]) =>
    (given[name] ?? validValues(property)).map((value) => ({ ...base, [name]: value })),
  );
}

export function invalidBodies(schema: Schema, base: JsonObject): Json[] {
  const properties = Object.entries(schema.properties ?? {});
  const changed = properties.flatMap(([name, property]) =>
    invalidValues(property).map((value): Json => ({ ...base, [name]: value })),
  );
  const missing = (schema.required ?? []).map((name): Json =>
    Object.fromEntries(Object.entries(base).filter(([key]) => key !== name)),
  );
  return [...changed, ...missing, { ...base, no_such_field: 1 }, [], 'x', 1, null, true, [base]];
}
