// Generates requests from the contract: valid and invalid values of the parameters and the body of
// each operation.
import type { Operation, Parameter } from './document';
import { invalidValues, validValues, type Json, type Schema } from './schema';

export type JsonObject = Readonly<Record<string, Json>>;

/** Unescaped text of query or path parameters, by name. */
export type TextByName = Readonly<Record<string, string>>;

/** Values by name, for parameters that a schema cannot describe: names and languages. */
export type ValuesByName = Readonly<Record<string, readonly Json[]>>;

const text = (value: Json) => (typeof value === 'string' ? value : JSON.stringify(value));

/** The request target: path and query, escaped. */
export function targetOf(operation: Operation, path: TextByName, query: TextByName = {}): string {
  const filled = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(path[name] ?? ''),
  );
  const parameters = Object.entries(query).map(
    ([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`,
  );
  return parameters.length === 0 ? filled : `${filled}?${parameters.join('&')}`;
}

const inQuery = (operation: Operation) => operation.parameters.filter((one) => one.in === 'query');

/** One query per optional parameter and value. */
export function validQueries(operation: Operation, values: ValuesByName): TextByName[] {
  return inQuery(operation)
    .filter(({ required }) => !required)
    .flatMap(({ name, schema }) =>
      (values[name] ?? validValues(schema)).map((value) => ({ [name]: text(value) })),
    );
}

/** Invalid queries: values out of range, values of another type, unknown names. */
export function invalidQueries(operation: Operation): TextByName[] {
  const wrong = inQuery(operation).flatMap(({ name, schema }) =>
    invalidTexts(schema).map((value) => ({ [name]: value })),
  );
  return [...wrong, { no_such_parameter: '1' }, { Limit: '1' }];
}

// Texts that are not valid for the schema. Strings accept any text up to their maximum length.
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

/** Path segments without a resource: malformed, out of range, or unknown. */
export function unknownSegments({ schema }: Parameter): string[] {
  if (schema.type === 'string') return ['no-such-thing', 'x'.repeat(200)];
  // The maximum is valid, but no resource has this number.
  const beyond = invalidTexts(schema).filter((value) => value !== '');
  return [...beyond, String(schema.maximum ?? 0)];
}

/** Path traversal and unusual characters; the HTTP front end may reject them as malformed. */
export const TRICKY_SEGMENTS = ['..', '.', '.hidden', 'a/b', '../../etc/passwd', '\0', 'a\\b', 'ü'];

/** Valid bodies: the base body with one property changed. */
export function validBodies(schema: Schema, base: JsonObject, values: ValuesByName): JsonObject[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]) =>
    (values[name] ?? validValues(property)).map((value) => ({ ...base, [name]: value })),
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
