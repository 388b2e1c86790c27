// A token is spelled in one way: only format.ts decides how.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

it('the text of a single token is that of tokenText()', () => {
  const folder = join(import.meta.dirname, '../../src');
  const own = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name) && !name.endsWith('schema.d.ts'))
    .filter((name) => /\bvisibleText\(/.test(readFileSync(join(folder, name), 'utf8')));
  // format.ts has it; the table draws the text of a whole prompt in one cell.
  expect(own.toSorted()).toEqual(['format.ts', 'panels/table/columns.ts']);
});
