import { describe, expect, it } from 'vitest';
import type { BreakdownRow, Session } from '../../../../src/net/types';
import { choicesOf } from '../../../../src/panels/compare/SessionChoice';
import { decodeCompare, encodeCompare, KINDS, ROWS } from '../../../../src/panels/compare/options';
import {
  aroundDifference,
  countedText,
  differenceOf,
  differenceTable,
  isSame,
  pairRows,
  sidesOf,
  sidesTable,
  withoutLayer,
  type Side,
  type TimedSteps,
} from '../../../../src/panels/compare/pair';

import { settingsOf, toldApart } from '../../../../src/state/session/told_apart';
import { session } from '../../fake_server';

// One slow step makes the sum of its times the greater.
const row = (name: string, time_ns: number, median = time_ns / 10): BreakdownRow =>
  ({
    name,
    step_ns: {
      p5: 0,
      median,
      p95: time_ns,
      steps: 10,
      per_token: median,
      share: 1,
      bytes_per_second: 0,
    },
    all: { time_ns, bytes_read: 2 * time_ns, bytes_written: 0, reads: 3, writes: 1 },
  }) as BreakdownRow;
const timed = (more: Partial<TimedSteps>): TimedSteps => ({
  phase: 'generate',
  steps: 1,
  tokens: 1,
  same_tokens: true,
  learned: 0,
  interrupted: 0,
  first: 0,
  disturbed: 0,
  verdict: 'clean',
  text: '',
  ...more,
});
const side = (rows: readonly BreakdownRow[], steps: number, tokens: number): Side => ({
  rows,
  sums: row('all', rows.reduce((sum, { all }) => sum + all.time_ns, 0), rows.reduce((sum, { step_ns }) => sum + (step_ns?.median ?? 0), 0)), // prettier-ignore
  counts: { steps, tokens },
  step: null,
  times: timed({ steps, tokens }),
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
    // A prompt: the time per token is the server's, of the counted steps.
    const prompt = side([{ ...row('MUL_MAT', 9000, 50), step_ns: { p5: 0, median: 50, p95: 0, steps: 1, per_token: 2, share: 1, bytes_per_second: 0 } }], 2, 50); // prettier-ignore
    const perStep = pairRows(prompt, right, { ...decodeCompare(''), per: 'step' }, same);
    expect(perStep.rows[0]).toEqual({ name: 'MUL_MAT', left: 50, right: 20 });
    expect(pairRows(prompt, right, decodeCompare(''), same).rows[0]?.left).toBe(2);
    // Two steps are compared as they are.
    const steps = { ...decodeCompare('of:steps'), per: 'step' } as const;
    expect(pairRows(side([row('MUL_MAT', 9, 1)], 1, 1), right, steps, same).rows[0]?.left).toBe(9);
  });

  it('has no difference of what one side did not measure', () => {
    const { step_ns, ...learned } = row('MUL_MAT', 5000);
    const left: Side = { rows: [learned], sums: learned, counts: { steps: 1, tokens: 30 }, step: null, times: timed({ steps: 0, tokens: 0, learned: 1, phase: 'prompt', verdict: null }) }; // prettier-ignore
    const right = side([row('MUL_MAT', 100), row('ROPE', 10)], 10, 10);
    const { rows, total } = pairRows(left, right, decodeCompare('of:phases'), same);
    expect(total).toEqual({ name: 'all', left: null, right: 11, isUnmeasured: true });
    expect(rows.map(differenceOf)).toEqual([null, null]);
    expect(isSame(rows, total)).toBe(false);
    const key = { name: 'op type', of: 'op_kind' } as const;
    const more = differenceTable(rows, key, ['a', 'b'], 'time');
    expect(more.series.flatMap(({ values }) => values)).toEqual([null, null, null, null]);
    // Bytes do not depend on it.
    expect(pairRows(left, right, decodeCompare('value:bytes'), same).total.left).toBeCloseTo(10_000 / 30); // prettier-ignore
    expect(step_ns).toBeDefined();
  });

  it('says which steps its times are of', () => {
    expect(countedText('a', timed({ steps: 1, disturbed: 78 }))).toBe('a: 1 of 79 generate steps (left out: 78 disturbed)'); // prettier-ignore
    const text =
      'Times: no prompt step has a time of the model; left out: 1 learned. Run another prompt.';
    expect(countedText('a', timed({ steps: 0, learned: 1, phase: 'prompt', text }))).toBe(`a: ${text.slice(7, -1)}`); // prettier-ignore
    expect(countedText('a', timed({ steps: 4, verdict: 'contended' }))).toBe('a: 4 generate steps, disturbed'); // prettier-ignore
  });

  it('of a side with itself has no difference', () => {
    const one = side([row('MUL_MAT', 100), row('ROPE', 10)], 10, 10);
    const { rows, total } = pairRows(one, one, decodeCompare(''), same);
    expect(isSame(rows, total)).toBe(true);
    // Also with a row that has no time.
    const { step_ns, ...untimed } = row('VIEW', 0);
    const two = side([row('MUL_MAT', 100), untimed], 10, 10);
    const pair = pairRows(two, two, decodeCompare(''), same);
    expect(isSame(pair.rows, pair.total)).toBe(true);
    expect(step_ns).toBeDefined();
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
    expect(sidesOf(options, { op: 'mul_mat' })).toEqual([
      { phase: 'prompt', layers: '1', op: 'mul_mat' },
      { phase: 'prompt', layers: '3', op: 'mul_mat' },
    ]);
    expect(sidesOf(decodeCompare('of:phases'), {}).map(({ phase }) => phase)).toEqual(['prompt', 'generate']); // prettier-ignore
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

  it('have the settings that differ from others of their title', () => {
    const one = (id: string, title: string, settings: Readonly<Record<string, string>>) => ({
      ...session(id, {
        title,
        start_utc_ns: 0,
        model: { path: '/models/m.gguf' } as NonNullable<Session['model']>,
      }),
      settings,
    });
    const all = [one('a1', 'A', { threads: '2', batch: '512' }), one('a2', 'A', { threads: '1', batch: '512' }), one('b', 'B', { threads: '1' })]; // prettier-ignore
    expect([...toldApart(all)]).toEqual([
      ['a1', { model: 'm.gguf', settings: 'threads 2' }],
      ['a2', { model: 'm.gguf', settings: 'threads 1' }],
    ]);
    const texts = choicesOf(all, 60_000).map(({ text }) => text.replace(/, [^,]*$/, ''));
    expect(texts).toEqual(['A (m.gguf), threads 2', 'A (m.gguf), threads 1', 'B (m.gguf)']);
    expect(settingsOf({ 'context.cache_type_k': 'f16', 'request.seed': '1' })).toEqual({ 'cache type k': 'f16' }); // prettier-ignore
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
