import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Evidence, Finding } from '../../../../src/net/types';
import { answerOf, linesOf } from '../../../../src/panels/inspector/summary';

const TABLE: Evidence = {
  view: 'table',
  shows: 'totals by op type',
  rows: 'op_kind',
  across: null,
  value: 'time',
  filter: '',
  generated: true,
  undisturbed: true,
  step: null,
  rest: 'breakdown?by=op_kind',
  sql: 'SELECT 1',
};
const finding = (part: Partial<Finding>): Finding => ({
  topic: 'speed',
  kind: 'speed_limit',
  role: 'main',
  text: 'Computation limits the speed.',
  figures: [],
  basis: { phase: 'generate', steps: 7, clean_only: false },
  evidence: TABLE,
  ...part,
});

describe('a summary', () => {
  it('shows the sentences of the server as they are', () => {
    const findings = [
      finding({}),
      finding({ role: 'detail', text: 'First token after 2 ms.' }),
      finding({ role: 'warning', topic: 'machine', text: 'Contended: stop other programs.' }),
    ];
    expect(linesOf({ findings }, 'main').map(({ text }) => text)).toEqual([
      'Computation limits the speed.',
    ]);
    expect(linesOf({ findings }, 'warning').map(({ text }) => text)).toEqual([
      'Contended: stop other programs.',
    ]);
    expect(linesOf({ findings }, 'main')[0]?.hint).toBe(
      'Of 7 generate steps. Evidence: totals by op type',
    );
  });

  it('leads to the op of the first invalid number', () => {
    const figures = [{ name: 'op', unit: 'count', value: 58 }] as const;
    const invalid = finding({ topic: 'values', kind: 'not_a_number', role: 'warning', figures });
    const slow = finding({ role: 'warning', figures });
    const found = linesOf({ findings: [invalid, slow] }, 'warning');
    expect(found.map(({ evidence }) => evidence.op)).toEqual([58, undefined]);
  });

  it('leads to the view with the evidence', () => {
    expect(answerOf('speed', TABLE)).toEqual({
      panel: 'table',
      topic: 'speed',
      shows: TABLE.shows,
      options:
        'all,by:op_kind,cols:name.time.time_share.rate.bytes_read.reads.bytes_written.writes',
      sort: '-time',
      generated: true,
      times: true,
    });
    const map: Evidence = { ...TABLE, view: 'map', rows: 'file', across: 'time', value: 'bytes' };
    const still = { ...map, generated: false, undisturbed: false };
    expect(answerOf('order', still)).toMatchObject({
      panel: 'map',
      options: 'y:file,x:time,v:bytes',
    });
    expect(answerOf('repeat', { ...still, rows: 'tensor', across: null, filter: 'kind:weight' }))
      .toMatchObject({ options: 'y:tensor,v:bytes', filter: 'kind:weight' }); // prettier-ignore
    expect(answerOf('memory', { ...still, view: 'memory_budget', rows: null, value: null }))
      .toEqual({ panel: 'budget', topic: 'memory', shows: TABLE.shows }); // prettier-ignore
  });

  // The server decides what limits a session, what it reads and how much memory is enough. A
  // sentence about it on the page would be a second rule.
  it('composes no sentence of its own', () => {
    const folder = join(import.meta.dirname, '../../../../src');
    const decided = /limits the speed|memory-bound|read in file order|of RAM are|Ops waited for|read the same weights as/; // prettier-ignore
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
      (name) => /\.tsx?$/.test(name) && !name.endsWith('schema.d.ts'),
    );
    expect(files.length).toBeGreaterThan(100);
    const composed = files.filter((name) => decided.test(readFileSync(join(folder, name), 'utf8')));
    // The question, and what the word means.
    expect(composed.sort()).toEqual(['commands/questions.ts', 'tour/steps.ts']);
  });
});
