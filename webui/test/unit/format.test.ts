import { describe, expect, it } from 'vitest';
import {
  formatAgo,
  formatBytes,
  formatCount,
  formatNs,
  formatShape,
  kindName,
  partName,
  plural,
  positionOf,
  sourceName,
  timingName,
  timingText,
  tokenText,
  visibleText,
} from '../../src/format';

describe('formatNs', () => {
  it.each([
    [0, '0 ns'],
    [812, '812 ns'],
    [999.6, '1.00 µs'],
    [1240, '1.24 µs'],
    [45_000, '45 µs'],
    [999_960, '1.00 ms'],
    [12_340_000, '12.3 ms'],
    [3_410_000_000, '3.41 s'],
    [90_000_000_000, '1 min 30 s'],
    [120_000_000_000, '2 min'],
  ])('%d ns is %s', (ns, text) => {
    expect(formatNs(ns)).toBe(text);
  });
});

describe('formatBytes', () => {
  it.each([
    [0, '0 B'],
    [1023, '1023 B'],
    [1024, '1 KiB'],
    [1536, '1.50 KiB'],
    [1024 * 1024 - 1, '1.00 MiB'],
    [667_814_368, '637 MiB'],
    [5 * 1024 ** 4, '5 TiB'],
  ])('%d is %s', (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });
});

describe('text', () => {
  it('separates thousands with a narrow space', () => {
    expect(formatCount(1234567)).toBe('1\u202f234\u202f567');
    expect(formatCount(999)).toBe('999');
  });
  it('selects singular or plural', () => {
    expect(plural(1, 'access', 'accesses')).toBe('1 access');
    expect(plural(2, 'step')).toBe('2 steps');
  });
  it('omits the padding dimensions of ggml', () => {
    expect(formatShape([64, 1, 32, 1])).toBe('64 × 1 × 32');
    expect(formatShape([1, 1, 1, 1])).toBe('1');
    expect(formatShape([])).toBe('');
  });
  it('counts positions from 0', () => {
    expect(positionOf(6, 1040)).toBe('6 of 0–1\u202f039');
    expect(positionOf(0, 1)).toBe('0');
  });
  it('says how op times were measured, not that they are fast', () => {
    expect(timingName('fast')).toBe('in passing');
    expect(timingText('exact')).toBe('measured op by op: slower');
    expect(timingText('none')).toBe('not measured');
  });
  it('names the KV cache as a component and as memory', () => {
    expect(partName('kv-cache', 'K')).toBe('KV cache, K');
    expect(partName('ffn', 'ffn', ' · ')).toBe('ffn');
    expect(sourceName('kv')).toBe('KV cache or state');
    expect(kindName('weight')).toBe('weight');
  });
  it('does not call a recurrent state a KV cache', () => {
    expect(partName('kv-cache', 'state')).toBe('recurrent state');
    expect(kindName('kv', 'state')).toBe('recurrent state');
    expect(kindName('kv', 'K')).toBe('KV cache');
  });
  it('replaces whitespace by visible symbols', () => {
    expect(visibleText(' a\n\t')).toBe('␣a⏎⇥');
    expect(visibleText('\r\u0000\u007f')).toBe('␍␀␡');
    expect(tokenText({ text: ' the', id: 7 })).toBe('␣the');
    expect(tokenText({ text: '', id: 7 })).toBe('#7');
    expect(tokenText(undefined)).toBe('');
  });
  it.each([
    [2, 'now'],
    [42, '42 s ago'],
    [150, '2 min ago'],
    [7300, '2 h ago'],
    [200_000, '2024-12-29'],
  ])('%d s ago', (seconds, text) => {
    const now = Date.UTC(2025, 0, 1, 0, 0, 0);
    expect(formatAgo((now - 1000 * seconds) * 1e6, now)).toBe(text);
  });
});
