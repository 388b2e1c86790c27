// The page's checks against the schema that the server's side is written to:
// what the schema allows is admitted, and no field is read that it does not
// have.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { Check } from '../../src/net/check';
import * as wire from '../../src/net/types';
import { emptyDraft, requestOf } from '../../src/state/request';
import { defaultSettings } from '../../src/state/settings';

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly oneOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | false;
}

const file = new URL('../../../api/openapi.yaml', import.meta.url);
const { components } = parse(readFileSync(file, 'utf8')) as {
  components: { schemas: Record<string, Schema> };
};

function resolve(schema: Schema): Schema {
  if (schema.$ref === undefined) return schema;
  const target = components.schemas[schema.$ref.replace('#/components/schemas/', '')];
  if (!target) throw new Error(`${schema.$ref} is not in the file`);
  return resolve(target);
}

// The fullest value of a schema has every field, the barest only what is
// required, and null wherever that is allowed.
function sample(from: Schema, full: boolean): unknown {
  const schema = resolve(from);
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return full ? schema.enum.at(-1) : schema.enum[0];
  if (schema.oneOf && !schema.properties) {
    const [first, last] = [schema.oneOf[0], schema.oneOf.at(-1)];
    return sample((full ? last : first) ?? {}, full);
  }
  const types = [schema.type ?? 'object'].flat();
  if (!full && types.includes('null')) return null;
  switch (types[0]) {
    case 'string':
      return 'x';
    case 'integer':
    case 'number':
      return 1;
    case 'boolean':
      return true;
    case 'array':
      return full ? [sample(schema.items ?? {}, full)] : [];
    default:
      break;
  }
  const names = Object.keys(schema.properties ?? {});
  const kept = full ? names : names.filter((name) => schema.required?.includes(name));
  return Object.fromEntries(
    kept.map((name) => [name, sample(schema.properties?.[name] ?? {}, full)]),
  );
}

// Paths of what a check read that the schema does not have.
function strangers(value: unknown, from: Schema, path: string): readonly string[] {
  const schema = resolve(from);
  const object = schema.oneOf && !schema.properties ? (schema.oneOf.at(-1) ?? {}) : schema;
  if (Array.isArray(value)) {
    return value.flatMap((one) => strangers(one, object.items ?? {}, `${path}[]`));
  }
  if (typeof value !== 'object' || value === null || object.additionalProperties) return [];
  return Object.entries(value).flatMap(([name, field]) => {
    const known = object.properties?.[name];
    return known ? strangers(field, known, `${path}.${name}`) : [`${path}.${name}`];
  });
}

const CHECKS: readonly (readonly [string, Check<unknown>])[] = [
  ['Health', wire.health],
  ['Model', wire.model],
  ['Generation', wire.run],
  ['Generation', wire.accepted],
  ['Session', wire.session],
  ['Token', wire.token],
  ['StepSummary', wire.stepSummary],
  ['Op', wire.op],
  ['Access', wire.access],
];

describe.each(CHECKS)('%s', (name, check) => {
  const schema: Schema = { $ref: `#/components/schemas/${name}` };

  it('is admitted with every field and with the fewest', () => {
    expect(() => check(sample(schema, true), '')).not.toThrow();
    expect(() => check(sample(schema, false), '')).not.toThrow();
  });

  it('has every field that the page reads', () => {
    expect(strangers(check(sample(schema, true), ''), schema, name)).toEqual([]);
  });
});

describe('GenerateRequest', () => {
  it('has every field that the page sends', () => {
    const settings = {
      ...defaultSettings,
      level: 'verbose' as const,
      seed: '1',
      statsPattern: '.',
    };
    const drafts = [
      { ...emptyDraft, text: 'x' },
      { ...emptyDraft, mode: 'tokens' as const, tokens: '1' },
      { ...emptyDraft, mode: 'chat' as const, messages: [{ role: 'user' as const, content: 'x' }] },
    ];
    for (const draft of drafts) {
      const request = requestOf(draft, settings);
      if (!request.ok) throw new Error(request.error);
      const schema: Schema = { $ref: '#/components/schemas/GenerateRequest' };
      const properties = resolve(schema).properties ?? {};
      expect(Object.keys(properties)).toEqual(expect.arrayContaining(Object.keys(request.value)));
    }
  });
});
