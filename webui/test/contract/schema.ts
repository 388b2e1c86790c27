// JSON schemas of the contract: resolves references, closes objects, and generates valid and
// invalid values.
export type Json = null | boolean | number | string | readonly Json[] | { [key: string]: Json };

export interface Schema {
  readonly type?: string | readonly string[];
  readonly const?: Json;
  readonly enum?: readonly Json[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly pattern?: string;
  readonly default?: Json;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | false;
  readonly unevaluatedProperties?: false;
}

/** The document with every `$ref` replaced by its target; sibling keys take precedence. */
export function inlined(document: unknown): unknown {
  const walk = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(walk);
    if (node === null || typeof node !== 'object') return node;
    const { $ref, ...rest } = node as { $ref?: string };
    const own = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, walk(value)]));
    if ($ref === undefined) return own;
    return { ...(walk(target(document, $ref)) as object), ...own };
  };
  return walk(document);
}

function target(document: unknown, ref: string): unknown {
  let node = document as Record<string, unknown> | undefined;
  for (const part of ref.replace(/^#\//, '').split('/')) {
    node = node?.[part.replaceAll('~1', '/').replaceAll('~0', '~')] as typeof node;
  }
  if (node === undefined) throw new Error(`${ref} does not exist`);
  return node;
}

/**
 * The schema without additional properties. The contract allows them because clients ignore
 * unknown fields, but a field that the server sends must be documented.
 */
export function closed(schema: Schema): Schema {
  return close(schema, false);
}

function close(schema: Schema, inAllOf: boolean): Schema {
  const made: Record<string, unknown> = { ...schema };
  if (schema.properties) {
    made.properties = Object.fromEntries(
      Object.entries(schema.properties).map(([key, value]) => [key, closed(value)]),
    );
  }
  if (schema.items) made.items = closed(schema.items);
  if (schema.anyOf) made.anyOf = schema.anyOf.map(closed);
  if (schema.oneOf) made.oneOf = schema.oneOf.map((one) => (one.required ? one : closed(one)));
  if (schema.allOf) {
    made.allOf = schema.allOf.map((one) => close(one, true));
    made.unevaluatedProperties = false;
  } else if (schema.properties && schema.additionalProperties === undefined && !inAllOf) {
    made.additionalProperties = false;
  }
  return made;
}

const types = (schema: Schema): readonly string[] => [schema.type ?? []].flat();

/** Valid values at the limits: minimum, maximum, default, each enum value. */
export function validValues(schema: Schema): Json[] {
  if (schema.const !== undefined) return [schema.const];
  if (schema.enum) return [...schema.enum];
  if (schema.oneOf) return schema.oneOf.flatMap(validValues);
  const found: Json[] = schema.default === undefined ? [] : [schema.default];
  for (const type of types(schema)) {
    switch (type) {
      case 'integer':
      case 'number': {
        const [min, max] = [schema.minimum ?? -1, schema.maximum ?? 1];
        found.push(min, Math.min(min + 1, max), max);
        if (type === 'number') found.push((min + max) / 2);
        break;
      }
      case 'boolean':
        found.push(true, false);
        break;
      case 'null':
        found.push(null);
        break;
      case 'string': {
        const [min, max] = [schema.minLength ?? 0, schema.maxLength ?? 300];
        // Lengths count characters, not bytes.
        found.push('x'.repeat(min), 'a b', 'x'.repeat(max), 'ä'.repeat(max), '%_\\"\'');
        break;
      }
      default:
        break;
    }
  }
  return [...new Set(found)];
}

/** Invalid values: just out of range, and of every other type. */
export function invalidValues(schema: Schema): Json[] {
  const allowed = kinds(schema);
  const found = SAMPLES.filter(([kind]) => !allowed.has(kind)).map(([, value]) => value);
  if (schema.enum) found.push('no-such-word', '');
  if (schema.minimum !== undefined) found.push(schema.minimum - 1);
  if (schema.maximum !== undefined) found.push(schema.maximum + 1, 1e300);
  if (schema.minLength) found.push('x'.repeat(schema.minLength - 1));
  if (schema.maxLength !== undefined) found.push('x'.repeat(schema.maxLength + 1));
  if (schema.maxItems !== undefined && schema.items) {
    const [item] = validValues(schema.items).filter((value) => value !== '');
    found.push(Array.from({ length: schema.maxItems + 1 }, () => item ?? 'x'));
  }
  if (schema.items) found.push(...invalidValues(schema.items).map((value): Json => [value]));
  return found;
}

type Kind = 'null' | 'boolean' | 'integer' | 'fraction' | 'string' | 'array' | 'object';

const SAMPLES: readonly (readonly [Kind, Json])[] = [
  ['null', null],
  ['boolean', true],
  ['integer', 1],
  ['fraction', 1.5],
  ['string', '1'],
  ['array', [1]],
  ['object', { a: 1 }],
];

function kinds(schema: Schema): Set<Kind> {
  if (schema.enum) return new Set(schema.enum.map(kindOf));
  if (schema.const !== undefined) return new Set([kindOf(schema.const)]);
  if (schema.oneOf && !schema.properties) {
    return new Set(schema.oneOf.flatMap((one) => [...kinds(one)]));
  }
  return new Set(
    types(schema).flatMap((type): Kind[] =>
      type === 'number' ? ['integer', 'fraction'] : [type as Kind],
    ),
  );
}

function kindOf(value: Json): Kind {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'fraction';
  return typeof value as 'boolean' | 'string' | 'object';
}
