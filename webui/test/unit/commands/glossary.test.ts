import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { rank, topicOf } from '../../../src/commands/fuzzy';
import { findTerms, parseGlossary } from '../../../src/commands/glossary';
import { isEnabled } from '../../../src/commands/command';
import { questionCommands } from '../../../src/commands/questions';
import { componentName, layerName, sourceName } from '../../../src/format';
import { GROUP_NAMES } from '../../../src/panels/table/table_options';
import { TOTAL_TITLES } from '../../../src/state/view/total_titles';
import { MEMORY_NAMES } from '../../../src/strip/strip_chart';
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
  // Read from the code: a new label without an entry fails.
  it('explains what the page prints as labels', () => {
    const figures = readFileSync(new URL('../../../src/strip/figures.ts', import.meta.url), 'utf8');
    const labels = [
      ...Object.values(TOTAL_TITLES),
      ...Object.values(GROUP_NAMES),
      ...[...figures.matchAll(/name: '([^']+)'/g)].map(([, name = '']) => name),
      ...Object.values(MEMORY_NAMES),
      ...['disk', 'kv', 'repacked', 'compute', 'input', 'device', 'buffer'].map(sourceName),
      componentName('kv-cache'),
      layerName('none'),
      'DISK',
      'BUFFER',
    ];
    expect(labels).toContain('bandwidth');
    const unexplained = labels.filter((label) => {
      const { named, explained } = findTerms(terms, label);
      return named.length + explained.length === 0;
    });
    expect(unexplained).toEqual([]);
    expect(findTerms(terms, 'emb+out').named).toHaveLength(1);
    expect(findTerms(terms, 'bandwidth').named).toHaveLength(1);
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
    ['optimize first', 'ask-bound'],
    ['optimise first', 'ask-bound'],
    ['memory-bound', 'ask-bound'],
    ['what changed', 'ask-changed'],
    ['difference between two runs', 'ask-changed'],
    ['prompt against generation', 'ask-phases'],
    ['quantization', 'ask-lost'],
    ['quantisation', 'ask-lost'],
    ['tensor type', 'ask-types'],
    ['memory needed', 'ask-memory'],
    ['previous token', 'ask-heads'],
    ['attention head', 'ask-heads'],
    ['logit lens', 'ask-lens'],
    ['zero', 'ask-zeros'],
    ['nan', 'ask-nan'],
  ])('are found by “%s”', (query, id) => {
    const [first] = rank(query, commands, ({ title }) => title, ({ words = '' }) => words); // prettier-ignore
    expect(first?.item.id).toBe(id);
  });
  it('are there before a session, and say which ones need it', () => {
    expect(commands.every((one) => isEnabled(one))).toBe(true);
    const free = commands.filter(({ text }) => text === undefined).map(({ id }) => id);
    expect(free).toEqual(['ask-memory', 'ask-lost', 'ask-zeros']);
  });
  it('are about some words of a sentence', () => {
    expect(topicOf('Which tokens used expert 3?')).toBe('tokens expert');
    expect(topicOf('how much is it')).toBe('');
    expect(topicOf('expert 999 layer 1')).toBe('');
  });
});
