import { describe, expect, it } from 'vitest';
import type { Run } from '../../src/net/types';
import { tailOf } from '../../src/state/answer_text';
import { promptMode, emptyDraft, requestOf } from '../../src/state/request';
import { defaultSettings, parseSettings } from '../../src/state/settings';
import { speedOf } from '../../src/state/speed';
import { initialState, reduce, type Action, type State } from '../../src/state/state';
import { TraceData } from '../../src/state/trace_data';
import { fromHash, toHash } from '../../src/state/url';
import { op, step, token } from './make';

const RUN: Run = {
  id: 'a',
  model: 'm',
  state: 'running',
  reused_tokens: 0,
  position: 0,
  prompt_tokens: 5,
  prompt_done: 5,
  generated: 1,
  max_tokens: 8,
  text: '',
  stop_reason: null,
  error: null,
};

const after = (...actions: readonly Action[]): State => actions.reduce(reduce, initialState);
const OPENED: Action = { type: 'opened', id: 'a', run: RUN, follow: true };

describe('reduce', () => {
  it('ignores what is about a session that is no longer open', () => {
    const open = after(OPENED);
    expect(reduce(open, { type: 'dataArrived', id: 'b' })).toBe(open);
  });

  it('ignores the ops of a step that is no longer selected', () => {
    const state = after(
      OPENED,
      { type: 'stepSelected', id: 'a', step: 1 },
      { type: 'stepSelected', id: 'a', step: 2 },
      { type: 'opsArrived', id: 'a', step: 1, result: { ok: true, value: [op(0)] } },
    );
    expect(state.open?.ops).toBeNull();
  });

  it('keeps the ops of the old step in view until those of the new one arrive', () => {
    const state = after(
      OPENED,
      { type: 'stepSelected', id: 'a', step: 1 },
      { type: 'opsArrived', id: 'a', step: 1, result: { ok: true, value: [op(0)] } },
      { type: 'stepSelected', id: 'a', step: 2 },
      { type: 'opsAsked', id: 'a', step: 2 },
    );
    expect(state.open?.ops?.step).toBe(1);
    expect(state.open?.opsLoading).toBe(true);
  });

  it('keeps the ops in view when following fails, not when a chosen step fails', () => {
    const failed = { ok: false as const, error: { kind: 'offline' as const, detail: 'away' } };
    const following = after(
      OPENED,
      { type: 'stepSelected', id: 'a', step: 1 },
      { type: 'opsArrived', id: 'a', step: 1, result: { ok: true, value: [op(0)] } },
      { type: 'stepSelected', id: 'a', step: 2 },
      { type: 'opsArrived', id: 'a', step: 2, result: failed },
    );
    expect(following.open?.ops?.step).toBe(1);
    const chosen = [
      { type: 'followSet', id: 'a', follow: false } as const,
      { type: 'opsArrived', id: 'a', step: 2, result: failed } as const,
    ].reduce(reduce, following);
    expect(chosen.open).toMatchObject({ ops: null, opsError: { detail: 'away' } });
  });

  it('says stopping until the run has ended', () => {
    const stopping = after(OPENED, { type: 'stopAsked', id: 'a' });
    expect(stopping.open?.stopping).toBe(true);
    const change = { state: 'cancelled' } as const;
    const ended = reduce(stopping, { type: 'runChanged', id: 'a', change });
    expect(ended.open?.stopping).toBe(false);
  });

  it('appends older sessions without repeating one', () => {
    const page = (...ids: string[]) => ({
      ok: true as const,
      value: { total: 3, sessions: ids.map((id) => ({ id }) as never) },
    });
    const state = after(
      { type: 'sessionsArrived', result: page('c', 'b'), append: false },
      { type: 'sessionsArrived', result: page('b', 'a'), append: true },
    );
    const ids = state.sessions.is === 'ready' ? state.sessions.value.sessions.map((s) => s.id) : [];
    expect(ids).toEqual(['c', 'b', 'a']);
  });
});

describe('TraceData', () => {
  it('finds what has not arrived', () => {
    const data = new TraceData();
    data.addToken(token(0));
    data.addToken(token(2));
    expect(data.missingToken(0)).toBe(1);
    expect(data.missingToken(2)).toBe(3);
    expect(data.hasHoles()).toBe(true);
    data.addToken(token(1));
    expect(data.hasHoles()).toBe(false);
  });

  it('asks for the text of a token that was only announced', () => {
    const data = new TraceData();
    data.announceToken(1);
    expect(data.hasHoles()).toBe(true);
    data.addToken(token(0));
    data.addToken(token(1));
    data.announceToken(1);
    expect(data.tokens.map((one) => one?.text)).toEqual(['t0', 't1']);
  });

  it('keeps the streamed piece of an incomplete character', () => {
    const data = new TraceData();
    data.addToken(token(0, { generated: true, text: '' }));
    data.addToken(token(0, { generated: true, text: '\ufffd' }));
    expect(data.tokens[0]?.text).toBe('');
  });
});

describe('tailOf', () => {
  const tokens = [token(0, { text: 'x' }), token(1, { generated: true, text: ' He' })];
  it.each([
    ['done', ' Hello', 'llo'],
    ['done', ' He', ''],
    ['done', ' No', ''], // a stop string cut the answer short
    ['running', ' Hello', ''],
  ] as const)('of a run that is %s with “%s” is “%s”', (state, text, tail) => {
    expect(tailOf({ ...RUN, state, text }, tokens)).toBe(tail);
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

describe('address', () => {
  it.each([
    ['#1&session=ab12&step=7', { session: 'ab12', step: 7 }],
    ['#1&session=ab12', { session: 'ab12', step: null }],
    ['#1&session=ab12&step=x', { session: 'ab12', step: null }],
    ['#1&session=', { session: null, step: null }],
    ['#2&session=ab12', { session: null, step: null }],
    ['', { session: null, step: null }],
  ])('%s', (hash, address) => {
    expect(fromHash(hash)).toEqual(address);
  });
  it('comes back as it went', () => {
    const address = { session: 'a&b=c d', step: 3 };
    expect(fromHash(toHash(address))).toEqual(address);
  });
});

describe('settings', () => {
  it('falls back for what is missing, unknown or of the wrong type', () => {
    expect(parseSettings('{"maxTokens":5,"topK":"x","other":1}')).toEqual({
      ...defaultSettings,
      maxTokens: 5,
    });
    expect(parseSettings('[')).toEqual(defaultSettings);
    expect(parseSettings(null)).toEqual(defaultSettings);
  });
});

describe('requestOf', () => {
  const draft = (part: Partial<typeof emptyDraft>) => ({ ...emptyDraft, ...part });

  it('sends text as it stands', () => {
    const request = requestOf(draft({ text: ' Hello' }), { ...defaultSettings, seed: '7' });
    expect(request).toMatchObject({ ok: true, value: { prompt: ' Hello', seed: 7, top_k: 40 } });
  });
  it('leaves the seed out where none is given', () => {
    const request = requestOf(draft({ text: 'x' }), defaultSettings);
    expect(request.ok && 'seed' in request.value).toBe(false);
  });
  it('sends token ids', () => {
    const request = requestOf(draft({ mode: 'tokens', tokens: '1, 2 3\n' }), defaultSettings);
    expect(request).toMatchObject({ ok: true, value: { tokens: [1, 2, 3] } });
  });
  it('leaves out empty messages', () => {
    const messages = [
      { role: 'system' as const, content: ' ' },
      { role: 'user' as const, content: 'Hi' },
    ];
    const request = requestOf(draft({ mode: 'chat', messages }), defaultSettings);
    expect(request).toMatchObject({ ok: true, value: { messages: [{ role: 'user' }] } });
  });
  it.each([
    [draft({}), 'Write a prompt first'],
    [draft({ mode: 'tokens' as const, tokens: '1 two' }), '“two” is not a token id'],
    [draft({ mode: 'chat' as const }), 'Write a message first'],
  ])('says what is wrong', (wrong, reason) => {
    const request = requestOf(wrong, defaultSettings);
    expect(request.ok ? '' : request.error).toContain(reason);
  });
});

describe('promptMode', () => {
  const plain = { has_vocabulary: true, has_chat_template: false };
  const chat = { has_vocabulary: true, has_chat_template: true };
  const bare = { has_vocabulary: false, has_chat_template: false };
  it.each([
    [null, undefined, 'text'],
    [null, plain, 'text'],
    [null, chat, 'chat'],
    ['chat', plain, 'text'],
    ['text', chat, 'text'],
    ['tokens', chat, 'tokens'],
    ['text', bare, 'tokens'],
  ] as const)('%s with %j is %s', (chosen, model, mode) => {
    expect(promptMode(chosen, model)).toBe(mode);
  });
});
