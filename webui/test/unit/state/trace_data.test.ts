import { describe, expect, it } from 'vitest';
import { EMPTY_RUN } from '../../../src/state/request/chat';
import type { Token } from '../../../src/net/types';
import {
  streamDiffers,
  streamedText,
  unstreamedText,
} from '../../../src/state/request/answer_text';
import { originOf } from '../../../src/state/session/token_origin';
import { TraceData } from '../../../src/state/session/trace_data';
import { step, token } from '../make';

describe('TraceData', () => {
  it('finds missing entries', () => {
    const data = new TraceData();
    data.addToken(token(0));
    data.addToken(token(2));
    expect(data.missingToken(0)).toBe(1);
    expect(data.missingToken(2)).toBe(3);
    expect(data.hasGaps()).toBe(true);
    data.addToken(token(1));
    expect(data.hasGaps()).toBe(false);
  });

  it('counts rewrites of the prompt and of the answer, each by its own end', () => {
    const data = new TraceData();
    data.addToken(token(0));
    data.addToken(token(3, { generated: true }));
    data.addToken(token(5, { generated: true }));
    // A later page of the prompt changes nothing of the answer.
    for (const index of [1, 2]) data.addToken(token(index));
    expect([data.prompt.rewrites, data.answer.rewrites]).toEqual([0, 0]);
    data.addToken(token(4, { generated: true }));
    expect([data.prompt.rewrites, data.answer.rewrites]).toEqual([0, 1]);
    data.addToken(token(1, { text: 'other' }));
    expect(data.prompt.rewrites).toBeGreaterThan(0);
    expect(data.answer.rewrites).toBeGreaterThan(0);
    expect([data.prompt.newest, data.answer.newest]).toEqual([2, 5]);
  });

  it('finds the first missing steps, also without those that are under way', () => {
    const data = new TraceData();
    const steps = [0, 1, 2, 3, 4, 5, 6, 7].map((i) => step(i));
    expect(data.missingSteps()).toEqual({ from: 0, to: Infinity });
    expect(data.missingSteps(steps.slice(0, 3))).toEqual({ from: 3, to: Infinity });
    expect(data.missingSteps(steps.slice(6))).toEqual({ from: 0, to: 6 });
    for (const one of steps.slice(4)) data.addStep(one);
    expect(data.missingSteps()).toEqual({ from: 0, to: 4 });
    expect(data.missingSteps(steps.slice(0, 2))).toEqual({ from: 2, to: 4 });
    expect(data.missingSteps(steps.slice(2, 4))).toEqual({ from: 0, to: 2 });
    expect(data.missingSteps(steps.slice(0, 4))).toEqual({ from: 8, to: Infinity });
  });

  it('lists its steps in the order of their arrival, and counts replaced ones', () => {
    const data = new TraceData();
    for (const index of [5, 6, 1, 0]) data.addStep(step(index));
    expect([...data.arrivedAfter(1)].map((one) => one.step)).toEqual([6, 1, 0]);
    expect(data.stepRewrites).toBe(0);
    data.addStep(step(1, { accesses: 9 }));
    expect([...data.arrivedAfter(2)].map((one) => one.accesses)).toEqual([9, 6]);
    expect(data.stepRewrites).toBe(1);
  });

  it('has the graph of the last step that has one', () => {
    const data = new TraceData();
    expect(data.latestTemplate()).toBe(0);
    for (const template of [1, 2, null, 0]) data.addStep(step(data.steps.length, { template }));
    expect(data.latestTemplate()).toBe(2);
    const lost = new TraceData();
    lost.addStep(step(3, { template: null, dropped: true })); // steps 0 to 2 have not arrived
    expect(lost.latestTemplate()).toBe(0);
  });

  it('has a gap for a token that was only announced', () => {
    const data = new TraceData();
    data.announceToken(1);
    expect(data.hasGaps()).toBe(true);
    data.addToken(token(0));
    data.addToken(token(1));
    data.announceToken(1);
    expect(data.tokens.map((one) => one?.text)).toEqual(['t0', 't1']);
  });

  it('keeps the streamed text of an incomplete character', () => {
    const data = new TraceData();
    data.addToken(token(0, { generated: true, text: '' }));
    data.addToken(token(0, { generated: true, text: '\ufffd' }));
    expect(data.tokens[0]?.text).toBe('');
    data.addToken(token(1, { generated: true, text: '\ufffd and' }));
    data.addToken(token(1, { generated: true, text: ' and' }));
    expect(data.tokens[1]?.text).toBe('\ufffd and');
    expect(data.answer.rewrites).toBe(0);
  });
});

describe('drafts and requests', () => {
  const answer = (index: number, sequence: number, draft: Token['draft']): Token =>
    token(index, { generated: true, sequence, draft, text: `${index}` });
  const tokens = [
    token(0, { sequence: 1 }),
    answer(1, 1, null),
    answer(2, 1, 'accepted'),
    answer(3, 1, 'rejected'),
    token(4, { sequence: 2 }),
    answer(5, 1, 'unknown'),
    answer(6, 2, null),
  ];

  it('have only accepted tokens in the answer', () => {
    expect(streamedText(tokens)).toBe('126');
    expect(tokens.map(originOf)).toEqual([
      'prompt',
      'generated',
      'generated, accepted draft',
      'generated, rejected draft',
      'prompt',
      'generated, draft of unknown result',
      'generated',
    ]);
  });

  it('are counted by request, also when the result of a draft arrives', () => {
    const data = new TraceData();
    for (const one of tokens) data.addToken(one);
    data.addToken(answer(5, 1, 'accepted'));
    expect([...data.tokenTotals.sequences]).toEqual([
      [1, { prompt: 1, generated: 3, rejected: 1, reused: 0, first: 0 }],
      [2, { prompt: 1, generated: 1, rejected: 0, reused: 0, first: 4 }],
    ]);
    expect(data.tokenTotals).toMatchObject({ prompt: 2, generated: 4, rejected: 1 });
    expect(data.answer.rewrites).toBeGreaterThan(0);
    expect(data.tokens[5]?.draft).toBe('accepted');
  });
});

describe('tailOf', () => {
  const tokens = [token(0, { text: 'x' }), token(1, { generated: true, text: ' He' })];
  it.each([
    ['done', ' Hello', 'llo', false],
    ['done', ' He', '', false],
    ['done', ' No', '', true], // a stop string cut the answer short
    ['done', 'So He', '', true], // the first token did not arrive
    ['running', ' Hello', '', false],
  ] as const)('of a %s run with “%s” is “%s”', (state, text, tail, differ) => {
    const run = { ...EMPTY_RUN, state, text };
    expect(unstreamedText(run, tokens)).toBe(tail);
    expect(streamDiffers(run, tokens)).toBe(differ);
  });
});
