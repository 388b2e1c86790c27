// Tests the checks of the page against api/openapi.yaml: they accept all allowed values.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { Check } from '../../../src/net/check';
import * as wire from '../../../src/net/types';
import {
  emptyDraft,
  promptOf,
  requestOf,
  type Draft,
  type PromptMode,
} from '../../../src/state/request/request';
import { defaultSettings, defaultStatsPattern } from '../../../src/state/request/settings';

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly oneOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | false;
}

const file = new URL('../../../../api/openapi.yaml', import.meta.url);
const { components } = parse(readFileSync(file, 'utf8')) as {
  components: { schemas: Record<string, Schema> };
};

function resolve(schema: Schema): Schema {
  if (schema.$ref === undefined) return schema;
  const target = components.schemas[schema.$ref.replace('#/components/schemas/', '')];
  if (!target) throw new Error(`${schema.$ref} is not in the file`);
  return resolve(target);
}

// A sample value of a schema. full: has every field. Otherwise: required fields only, and null
// where allowed.
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

const CHECKS: readonly (readonly [string, Check<unknown>])[] = [
  ['Health', wire.health],
  ['Model', wire.model],
  ['Generation', wire.run],
  ['Session', wire.session],
  ['Token', wire.token],
  ['Step', wire.stepSummary],
  ['Op', wire.op],
  ['Access', wire.access],
  ['Node', wire.node],
  ['Tensor', wire.tensor],
  ['LayerSubgraph', wire.layerSubgraph],
];

describe.each(CHECKS)('%s', (name, check) => {
  const schema: Schema = { $ref: `#/components/schemas/${name}` };

  it('is accepted with all fields and with the required fields only', () => {
    expect(() => check(sample(schema, true), '')).not.toThrow();
    expect(() => check(sample(schema, false), '')).not.toThrow();
  });
});

describe('GenerateRequest', () => {
  const schema: Schema = { $ref: '#/components/schemas/GenerateRequest' };
  const properties = resolve(schema).properties ?? {};

  it('has the same defaults as the page', () => {
    expect(properties).toMatchObject({
      max_tokens: { default: defaultSettings.maxTokens },
      temperature: { default: defaultSettings.temperature },
      top_k: { default: defaultSettings.topK },
      top_p: { default: defaultSettings.topP },
      min_p: { default: defaultSettings.minP },
      repeat_penalty: { default: defaultSettings.repeatPenalty },
      repeat_last_n: { default: defaultSettings.repeatLastN },
      ignore_eos: { default: defaultSettings.ignoreEos },
      reuse_prefix: { default: defaultSettings.reusePrefix },
      level: { default: defaultSettings.level },
      timing: { default: defaultSettings.timing },
      stats_pattern: { default: defaultStatsPattern },
    });
  });

  it('has every field that the page sends', () => {
    const settings = {
      ...defaultSettings,
      level: 'verbose' as const,
      seed: '1',
      stop: 'x',
      statsPattern: '.',
    };
    const drafts: readonly [PromptMode, Partial<Draft>][] = [
      ['text', { text: 'x' }],
      ['tokens', { tokens: '1' }],
      ['chat', { message: 'x', system: 'y' }],
    ];
    for (const [mode, draft] of drafts) {
      const prompt = promptOf(mode, { ...emptyDraft, ...draft }, [], null);
      if (!prompt.ok) throw new Error(prompt.error);
      const request = requestOf(prompt.value, settings);
      if (!request.ok) throw new Error(request.error);
      expect(Object.keys(properties)).toEqual(expect.arrayContaining(Object.keys(request.value)));
    }
  });
});
