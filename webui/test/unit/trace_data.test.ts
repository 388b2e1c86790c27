import { describe, expect, it } from 'vitest';
import { EMPTY_RUN } from '../../src/state/chat';
import { streamDiffers, unstreamedText } from '../../src/state/answer_text';
import { speedOf } from '../../src/state/speed';
import { TraceData } from '../../src/state/trace_data';
import { step, token } from './make';

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

describe('speedOf', () => {
  it('is null without two generated tokens', () => {
    expect(speedOf(new TraceData())).toBeNull();
  });
  it('counts generated tokens per second', () => {
    const data = new TraceData();
    data.addStep(step(0, { phase: 'prompt', end_ns: 5e9 }));
    for (let i = 1; i < 5; i += 1) data.addStep(step(i, { end_ns: 5e9 + i * 1e8 }));
    expect(speedOf(data)).toBeCloseTo(10);
  });
});
