import { describe, expect, it } from 'vitest';
import type { BreakdownRow } from '../../../../src/net/types';
import { choicesOf } from '../../../../src/panels/compare/SessionChoice';
import { decodeCompare, encodeCompare, KINDS, ROWS } from '../../../../src/panels/compare/options';
import {
  aroundDifference,
  differenceOf,
  differenceTable,
  isSame,
  pairRows,
  sidesOf,
  sidesTable,
  withoutLayer,
  type Side,
} from '../../../../src/panels/compare/pair';

import { session } from '../../fake_server';

// One slow step makes the sum of its times the greater.
const row = (name: string, time_ns: number, median = time_ns / 10): BreakdownRow =>
  ({
    name,
    step_ns: { p5: 0, median, p95: time_ns, steps: 10 },
    all: { time_ns, bytes_read: 2 * time_ns, bytes_written: 0, reads: 3, writes: 1 },
  }) as BreakdownRow;
const side = (rows: readonly BreakdownRow[], steps: number, tokens: number): Side => ({
  rows,
  sums: row('all', rows.reduce((sum, { all }) => sum + all.time_ns, 0), rows.reduce((sum, { step_ns }) => sum + (step_ns?.median ?? 0), 0)), // prettier-ignore
  counts: { steps, tokens },
});
const same = (name: string): string => name;

describe('a comparison in the middle', () => {
  it('is in the link', () => {
    expect(encodeCompare(decodeCompare(''))).toBe('');
    for (const of of KINDS)
      for (const by of ROWS) {
        const options = { ...decodeCompare(''), of, by, a: 3, b: 17 };
        expect(decodeCompare(encodeCompare(options))).toEqual(options);
      }
    expect(decodeCompare('of:nothing,a:-1,b:x,by:,per:')).toEqual(decodeCompare(''));
  });

  it('compares runs of different lengths per token', () => {
    const left = side([row('MUL_MAT', 100), row('ROPE', 10)], 10, 10);
    const right = side([row('MUL_MAT', 5000, 20), row('ADD', 50, 1)], 50, 50);
    const { rows, total } = pairRows(left, right, decodeCompare(''), same);
    expect(total).toEqual({ name: 'all', left: 11, right: 21 });
    expect(rows).toEqual([
      { name: 'MUL_MAT', left: 10, right: 20 },
      { name: 'ROPE', left: 1, right: null },
      { name: 'ADD', left: null, right: 1 },
    ]);
    expect(rows.map(differenceOf)).toEqual([10, -1, 1]);
    expect(isSame(rows, total)).toBe(false);
    // A prompt of 2 steps of 25 tokens.
    const prompt = side([row('MUL_MAT', 9000, 50)], 2, 50);
    const perStep = pairRows(prompt, right, { ...decodeCompare(''), per: 'step' }, same);
    expect(perStep.rows[0]).toEqual({ name: 'MUL_MAT', left: 50, right: 20 });
    expect(pairRows(prompt, right, decodeCompare(''), same).rows[0]?.left).toBe(2);
    // Two steps are compared as they are.
    const steps = { ...decodeCompare('of:steps'), per: 'step' } as const;
    expect(pairRows(side([row('MUL_MAT', 9, 1)], 1, 1), right, steps, same).rows[0]?.left).toBe(9);
  });

  it('of a side with itself has no difference', () => {
    const one = side([row('MUL_MAT', 100), row('ROPE', 10)], 10, 10);
    const { rows, total } = pairRows(one, one, decodeCompare(''), same);
    expect(isSame(rows, total)).toBe(true);
  });

  it('draws both sides on one axis, and what each has more', () => {
    const rows = [
      { name: 'MUL_MAT', left: 10, right: 20 },
      { name: 'ROPE', left: 1, right: null },
    ];
    const key = { name: 'op type', of: 'op_kind' } as const;
    const both = sidesTable(rows, key, ['a', 'b'], 'time');
    expect(both.series.map(({ values }) => values)).toEqual([[10, 1], [20, null]]); // prettier-ignore
    const more = differenceTable(rows, key, ['a', 'b'], 'time');
    expect(more.series.map(({ values }) => values)).toEqual([[null, 1], [10, null]]); // prettier-ignore
  });

  it('asks for its sides with the filter of all views', () => {
    const options = { ...decodeCompare('of:layers,a:1,b:3'), phase: 'prompt' } as const;
    expect(sidesOf(options, { op: 'mul_mat' }).map(({ query }) => query)).toEqual([
      { phase: 'prompt', layers: '1', op: 'mul_mat' },
      { phase: 'prompt', layers: '3', op: 'mul_mat' },
    ]);
    expect(sidesOf(decodeCompare('of:phases'), {}).map(({ query }) => query.phase)).toEqual(['prompt', 'generate']); // prettier-ignore
  });

  it('names tensors of layers without the layer', () => {
    expect(withoutLayer('blk.3.attn_q.weight', 3)).toBe('blk.*.attn_q.weight');
    expect(withoutLayer('cache_k_l3', 3)).toBe('cache_k_l*');
    expect(withoutLayer('Qcur-3 (view)', 3)).toBe('Qcur-* (view)');
    expect(withoutLayer('Qcur-13', 3)).toBe('Qcur-13');
  });
});

describe('the sessions to choose from', () => {
  it('can be told apart, also if title, model and minute are the same', () => {
    const minuteMs = 60_000;
    const one = (id: string, title: string, minutesAgo: number) =>
      session(id, { title, start_utc_ns: (100 - minutesAgo) * minuteMs * 1e6 });
    const texts = choicesOf(
      [one('a1', 'A boat', 2), one('a2', 'A boat', 2), one('a3', 'A boat', 5), one('b', 'B', 2)],
      100 * minuteMs,
    ).map(({ text }) => text);
    expect(texts).toEqual([
      'A boat, 2 min ago, a1',
      'A boat, 2 min ago, a2',
      'A boat, 5 min ago',
      'B, 2 min ago',
    ]);
  });
});

describe('a long text beside another one', () => {
  it('is shown around the first difference', () => {
    const start = 'the same words '.repeat(40);
    const [left, right] = [`${start}left ${start}`, `${start}right ${start}`];
    const [a, b] = [left, right].map((text) => aroundDifference(text, left, right));
    expect(a).toMatch(/^…[^…]*left [^…]*…$/);
    expect(b).toMatch(/^…[^…]*right [^…]*…$/);
    expect(a?.length).toBeLessThan(150);
  });

  it('is whole if it is short, and has its end if the other one goes on', () => {
    expect(aroundDifference('0.8', '0.8', '0')).toBe('0.8');
    const long = 'word '.repeat(100);
    expect(aroundDifference(long, long, `${long}more`).endsWith('word ')).toBe(true);
    expect(aroundDifference(`${long}more`, long, `${long}more`).endsWith('more')).toBe(true);
  });
});
