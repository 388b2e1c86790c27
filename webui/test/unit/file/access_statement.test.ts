// The statements are those of the table; SQLite says what they give.
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { accessRows } from '../../../src/file/access_statement';
import type { HeldAccess } from '../../../src/file/answers';
import { accessSql, countSql, opCountSql, type AccessPlan } from '../../../src/panels/table/access_rows'; // prettier-ignore

const all: readonly HeldAccess[] = Array.from({ length: 40 }, (_, i) => ({
  step: 3,
  op: Math.floor(i / 4),
  access: i % 4,
  part: 0,
  tensor_name: `blk.${(i * 7) % 5}.weight`,
  write: i % 3 === 0,
  size_bytes: (i * 37) % 11,
  expert_id: i % 4 === 1 ? i % 3 : null,
}));

const database = new DatabaseSync(':memory:');
const columns = Object.keys(all[0] ?? {});
database.exec(`CREATE TABLE access (${columns.join(', ')})`);
const insert = database.prepare(`INSERT INTO access VALUES (${columns.map(() => '?').join(', ')})`);
for (const one of all)
  insert.run(...columns.map((name) => {
    const value = one[name] ?? null;
    return typeof value === 'boolean' ? Number(value) : value;
  })); // prettier-ignore

const asked = (sql: string) =>
  database
    .prepare(sql)
    .all()
    .map((row) => Object.values(row));
const plan = (...where: readonly string[]): AccessPlan => ({
  steps: [3],
  counts: null,
  where,
  missing: [],
});

describe('a statement about the accesses of a step', () => {
  it.each([
    accessSql(plan(), ['step', 'op', 'access', 'tensor_name', 'write'], null, ' LIMIT 7 OFFSET 11'),
    accessSql(plan('op = 4'), ['op', 'access', 'size_bytes'], null, ' LIMIT 200 OFFSET 0'),
    accessSql(plan(), ['op', 'expert_id'], { key: 'expert_id', descending: false }, ' LIMIT 30'),
    accessSql(plan(), ['op', 'access'], { key: 'size_bytes', descending: true }, ' LIMIT 10000'),
    accessSql(plan(), ['op'], { key: 'tensor_name', descending: false }, ' LIMIT 10000'),
    opCountSql(plan()),
    opCountSql(plan('op = 2')),
    countSql(plan('op = 2')),
  ])('%s', (sql) => {
    expect(accessRows(sql, all)?.rows).toEqual(asked(sql));
  });

  it.each([
    countSql(plan("tensor_name = 'x'")),
    'SELECT max(op) FROM access WHERE step = 3',
    accessSql(plan(), ['no_such_column'], null),
  ])('is not answered: %s', (sql) => {
    expect(accessRows(sql, all)).toBeNull();
  });
});
