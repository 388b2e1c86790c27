import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { rank } from '../../../src/commands/fuzzy';
import { findTerms, parseGlossary } from '../../../src/commands/glossary';
import { questionCommands } from '../../../src/commands/questions';
import { fakeStore } from '../fakes';

const terms = parseGlossary(
  readFileSync(new URL('../../../../docs/glossary.md', import.meta.url), 'utf8'),
);

describe('the glossary', () => {
  it('has the terms of the document as plain text', () => {
    expect(terms.length).toBeGreaterThan(40);
    expect(terms.map(({ term }) => term)).not.toContain('term');
    for (const { term, meaning } of terms) {
      expect(meaning.length, term).toBeGreaterThan(10);
      expect(`${term} ${meaning}`).not.toMatch(/[`*[\]|]|\.md|see below/);
    }
  });
  it.each([
    ['kv cache', 'KV cache'],
    ['repacked', 'repacked weights'],
    ['compute buffer', 'compute buffer'],
    ['layer', 'layer'],
    ['expert', 'expert'],
    ['learned step', 'timing'],
    ['contended', 'verdict'],
    ['pin', 'pinning'],
    ['prefetch', 'prefetch'],
    ['major fault', 'page fault'],
  ])('explains “%s”', (query, term) => {
    const { named, explained } = findTerms(terms, query);
    expect([...named, ...explained][0]?.term).toBe(term);
  });
  it('has nothing for an empty query', () => {
    expect(findTerms(terms, ' ')).toEqual({ named: [], explained: [] });
  });
});

describe('the questions', () => {
  const commands = questionCommands(fakeStore({}));
  it.each([
    ['slowest layer', 'ask-layer'],
    ['bytes per token', 'ask-bytes'],
    ['does it repeat', 'ask-repeat'],
    ['how much ram', 'ask-memory'],
    ['slowest token', 'ask-token'],
    ['hottest op', 'ask-op'],
    ['disk waits', 'ask-waits'],
    ['sequential', 'ask-order'],
    ['random', 'ask-order'],
  ])('are found by “%s”', (query, id) => {
    const [first] = rank(query, commands, ({ title }) => title, ({ words = '' }) => words); // prettier-ignore
    expect(first?.item.id).toBe(id);
  });
});
