import { describe, expect, it } from 'vitest';
import { nextSort, sortOf, sortText } from '../../../src/grid/column';
import type { OpSource } from '../../../src/net/types';
import {
  excludes,
  filterOps,
  meantFilter,
  parseFilter,
  unknownKey,
  restFilter,
  sqlFilter,
  stepMatches,
} from '../../../src/state/view/filter';
import { complete } from '../../../src/state/view/filter_completion';
import { op, step } from '../make';

const weight: OpSource = {
  tensor: 1,
  tensor_name: 'blk.0.attn_q.weight',
  tensor_type: 'Q4_K',
  tensor_kind: 'weight',
  memory_source: 'disk',
  ne0: 8,
  ne1: 1,
  ne2: 1,
  ne3: 1,
};
const OPS = [
  op(0, { operation_type: 'GET_ROWS', tensor_name: 'embd' }),
  op(1, {
    tensor_name: 'Qcur-0',
    op_layer_id: 0,
    component: 'attention',
    role: 'Q',
    sources: [weight],
  }),
  op(2, { tensor_name: 'ffn_up-1', op_layer_id: 1, component: 'ffn' }),
  op(3, { operation_type: 'ADD', tensor_name: 'l_out-11', op_layer_id: 11 }),
];
const found = (filter: string): number[] =>
  filterOps(OPS, parseFilter(filter)).rows.map((one) => one.op);

describe('a key that does not exist', () => {
  it('is reported with the one that it is close to', () => {
    expect(unknownKey('layr:2')).toEqual({ key: 'layr', meant: 'layer' });
    expect(unknownKey('-Tensr:q')).toEqual({ key: 'tensr', meant: 'tensor' });
    expect(unknownKey('exp:3')).toEqual({ key: 'exp', meant: 'expert' });
    expect(unknownKey('colour:red')).toEqual({ key: 'colour', meant: null });
  });
  it('is none of a known key or of a word without a key', () => {
    expect(['layer:2', '-n:3', 'attn_q', 'blk.0:x', '0:1'].map(unknownKey)).toEqual([
      null,
      null,
      null,
      null,
      null,
    ]);
  });
});

describe('a filter of ops', () => {
  it.each([
    ['', [0, 1, 2, 3]],
    ['mul_mat', [1, 2]],
    ['op:mul_mat -layer:0', [2]],
    ['layer:1', [2]],
    ['layer:none', [0]],
    ['layer:none,11', [0, 3]],
    ['layer:1-11', [2, 3]],
    ['-layer:0-5', [0, 3]],
    ['attn_q', [1]],
    ['tensor:blk.*.attn_?.weight', [1]],
    ['tensor:blk.0.attn_q', [1]],
    ['source:disk', [1]],
    ['kind:weight', [1]],
    ['Component:ATTENTION', [1]],
    ['mul_mat ffn', [2]],
    ['-mul_mat', [0, 3]],
    ['blk:0', []],
    ['n:2', [2]],
    ['op:', [0, 1, 2, 3]],
    ['-', [0, 1, 2, 3]], // while typing -layer:0
    ['layer:x', []],
  ])('“%s” matches %j', (filter, ops) => {
    expect(found(filter)).toEqual(ops);
  });

  it('returns the words that ops do not have', () => {
    const { rows, missing } = filterOps(OPS, parseFilter('expert:3 layer:0 access:read'));
    expect(rows.map((one) => one.op)).toEqual([1]);
    expect(missing.map(({ text }) => text)).toEqual(['expert:3', 'access:read']);
  });
});

describe('a filter as SQL', () => {
  const where = (filter: string): readonly string[] =>
    sqlFilter('access', parseFilter(filter)).where;
  it.each([
    ['layer:3', ['op_layer_id = 3']],
    ['layer:2-5,none', ['(op_layer_id BETWEEN 2 AND 5 OR op_layer_id IS NULL)']],
    ['kind:weight access:write', ["tensor_kind = 'weight'", 'write = 1']],
    ['-tensor:a_b%', ["coalesce(NOT tensor_name LIKE '%a\\_b\\%%' ESCAPE '\\', 1)"]],
    ["tensor:it's", ["tensor_name LIKE '%it''s%' ESCAPE '\\'"]],
    ['blk.*.q', ["(operation_type LIKE '%blk.%.q%' ESCAPE '\\' OR tensor_name LIKE '%blk.%.q%' ESCAPE '\\')"]], // prettier-ignore
    ['layer:x', ['0']],
    ['kernel:amx', ["(template, op) IN (SELECT template, op FROM op WHERE step IN (SELECT step FROM (SELECT step, max(ops_timed) FROM step GROUP BY template)) AND kernel = 'amx')"]], // prettier-ignore
  ])('“%s” is %j', (filter, sql) => {
    expect(where(filter)).toEqual(sql);
  });
  it('returns the words that a table has no column for', () => {
    const { where: ops, missing } = sqlFilter('op', parseFilter('layer:1 expert:2'));
    expect(ops).toEqual(['op_layer_id = 1']);
    expect(missing.map(({ text }) => text)).toEqual(['expert:2']);
  });
});

describe('a filter as REST parameters', () => {
  it.each([
    ['op:mul_mat tensor:q kind:kv source:disk component:ffn', { op: 'mul_mat', tensor: 'q', kind: 'kv', source: 'disk', component: 'ffn' }, []], // prettier-ignore
    ['layer:1-2,none', { layers: '1-2,outside' }, []],
    ['-layer:1-2', { layers: '0,3,outside' }, []],
    ['step:4 token:2-3', { from_step: 4, to_step: 5, from_token: 2, to_token: 4 }, []],
    ['-op:add kind:kv,weight word', {}, ['-op:add', 'kind:kv,weight', 'word']],
    ['op:a op:b', { op: 'a' }, ['op:b']],
    ['kernel:repacked', { kernel: 'repacked' }, []],
    ['kernel:unknown -kernel:plain', {}, ['kernel:unknown', '-kernel:plain']],
  ])('“%s”', (filter, query, missing) => {
    const rest = restFilter(parseFilter(filter), 4);
    expect(rest.query).toEqual(query);
    expect(rest.missing.map(({ text }) => text)).toEqual(missing);
  });
});

describe('a filter of steps', () => {
  const one = step(3, { token_id: 10, token_count: 4, phase: 'prompt' });
  it.each([
    ['step:3', true],
    ['step:0-2', false],
    ['token:13', true],
    ['token:14-20', false],
    ['-phase:prompt', false],
  ])('“%s”: %s', (filter, matches) => {
    expect(parseFilter(filter).every((term) => stepMatches(one, term))).toBe(matches);
  });
});

describe('completion', () => {
  const names = { layer: ['0', '1', '10'], tensor: ['blk.0.attn_q.weight', 'output.weight'] };
  const options = (text: string, caret = text.length): readonly string[] =>
    complete(text, caret, names).options.map((one) => one.text);
  it('offers keys, then values of the session', () => {
    expect(options('la')).toEqual(['layer:']);
    expect(options('-la')).toEqual(['-layer:']);
    expect(options('layer:1')).toEqual(['layer:10 ']);
    expect(options('layer:0,1')).toEqual(['layer:0,10 ']);
    expect(options('attn')).toEqual(['tensor:blk.0.attn_q.weight ']);
  });
  it('replaces the word at the cursor', () => {
    expect(complete('op:add lay tensor:x', 10, names)).toMatchObject({ from: 7, to: 10 });
  });
});

describe('a sort', () => {
  const next = (text: string, column: string): string =>
    sortText(nextSort(sortOf(text), column, ['duration']));

  it('starts descending for the given columns and reverses on a second click', () => {
    expect(next('op', 'duration')).toBe('-duration');
    expect(next('-duration', 'duration')).toBe('duration');
    expect(next('-duration', 'name')).toBe('name');
  });
});

describe('clean steps', () => {
  it('are a parameter of REST and a condition of SQL', () => {
    const terms = parseFilter('verdict:clean');
    expect(restFilter(terms, 4)).toEqual({ query: { clean: true }, missing: [] });
    expect(sqlFilter('access', terms).where).toEqual([
      "step IN (SELECT step FROM step WHERE coalesce(verdict, 'clean') = 'clean')",
    ]);
    expect(sqlFilter('step', terms).where).toEqual(["coalesce(verdict, 'clean') = 'clean'"]);
    expect(restFilter(parseFilter('-verdict:clean verdict:disk'), 4).missing).toHaveLength(2);
  });
});

describe('a filter by experts', () => {
  it.each([
    ['expert:3', []],
    ['expert:0-2,5', ['expert:0-2,5']],
    ['-expert:3 layer:2', ['-expert:3']],
    ['-expert:4', []],
    ['layer:2', []],
  ])('“%s” excludes expert 3 by %s', (filter, words) => {
    expect(excludes(parseFilter(filter), 'expert', 3).map(({ text }) => text)).toEqual(words);
  });
});

describe('words without a colon', () => {
  it('are named with one', () => {
    expect(meantFilter(['layer', '2', 'expert', '3'])).toBe('layer:2 expert:3');
    expect(meantFilter(['attn_q', 'layer'])).toBeNull();
    expect(meantFilter(['layer', 'kind:weight'])).toBeNull();
  });
});
