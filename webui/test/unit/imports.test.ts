// No file of the page imports itself through others: such circles load in an order that nobody chose.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../../src', import.meta.url));
const IMPORT = /\bfrom\s+'(\.[^']*)'|\bimport\(\s*'(\.[^']*)'/g;

const files: readonly string[] = readdirSync(ROOT, { recursive: true, encoding: 'utf8' })
  .filter((name) => /\.tsx?$/.test(name) && !name.endsWith('.d.ts'))
  .map((name) => join(ROOT, name));

function importsOf(file: string): readonly string[] {
  return [...readFileSync(file, 'utf8').matchAll(IMPORT)].flatMap(([, first, second]) => {
    const path = join(dirname(file), first ?? second ?? '');
    return files.filter((one) => one === `${path}.ts` || one === `${path}.tsx`);
  });
}

// The circles of a graph, each once: by depth-first search, from a file back to one that is open.
function circlesOf(edges: ReadonlyMap<string, readonly string[]>): readonly (readonly string[])[] {
  const found: (readonly string[])[] = [];
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    const at = path.indexOf(file);
    if (at >= 0) found.push([...path.slice(at), file]);
    if (at >= 0 || done.has(file)) return;
    for (const next of edges.get(file) ?? []) visit(next, [...path, file]);
    done.add(file);
  };
  for (const file of edges.keys()) visit(file, []);
  return found;
}

it('a circle is found', () => {
  const edges = new Map([
    ['a', ['b']],
    ['b', ['c']],
    ['c', ['b']],
  ]);
  expect(circlesOf(edges)).toEqual([['b', 'c', 'b']]);
});

it('the files of the page import each other without circles', () => {
  const edges = new Map(files.map((file) => [file, importsOf(file)]));
  expect([...edges.values()].flat().length).toBeGreaterThan(files.length);
  const circles = circlesOf(edges).map((one) =>
    one.map((file) => relative(ROOT, file)).join(' > '),
  );
  expect(circles).toEqual([]);
});
