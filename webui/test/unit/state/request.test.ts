import { describe, expect, it } from 'vitest';
import { emptyDraft, promptMode, promptOf, requestOf } from '../../../src/state/request/request';
import { defaultSettings, parseSettings } from '../../../src/state/request/settings';

const draft = (part: Partial<typeof emptyDraft>) => ({ ...emptyDraft, ...part });

describe('promptOf', () => {
  it('sends text unchanged', () => {
    const prompt = promptOf('text', draft({ text: ' Hello' }), [], null);
    expect(prompt).toEqual({ ok: true, value: { prompt: ' Hello' } });
  });
  it('sends token IDs', () => {
    const prompt = promptOf('tokens', draft({ tokens: '1, 2 3\n' }), [], { n_vocab: 4 });
    expect(prompt).toEqual({ ok: true, value: { tokens: [1, 2, 3] } });
  });
  it('sends the system message, the conversation and the message, in this order', () => {
    const history = [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: 'b' },
    ] as const;
    const prompt = promptOf('chat', draft({ message: 'c', system: 'S' }), history, null);
    expect(prompt.ok && prompt.value.messages?.map(({ content }) => content)).toEqual([
      'S',
      'a',
      'b',
      'c',
    ]);
  });
  it('omits an empty system message', () => {
    const prompt = promptOf('chat', draft({ message: 'Hi', system: ' ' }), [], null);
    expect(prompt.ok && prompt.value.messages).toEqual([{ role: 'user', content: 'Hi' }]);
  });
  it.each([
    ['text', {}, 'Write a prompt first'],
    ['tokens', {}, 'Write token IDs first'],
    ['tokens', { tokens: '1 two' }, '“two” is not a token ID'],
    ['tokens', { tokens: '1 4' }, '4 is not a token ID of this model; the maximum is 3'],
    ['chat', { message: '\n' }, 'Write a message first'],
  ] as const)('returns an error for %s %j', (mode, part, reason) => {
    const prompt = promptOf(mode, draft(part), [], { n_vocab: 4 });
    expect(prompt.ok ? '' : prompt.error).toContain(reason);
  });
});

describe('requestOf', () => {
  const request = (part: Partial<typeof defaultSettings>) =>
    requestOf({ prompt: 'x' }, { ...defaultSettings, ...part });

  it('sends the settings', () => {
    expect(request({ seed: '7' })).toMatchObject({ ok: true, value: { seed: 7, top_k: 40 } });
  });
  it('omits optional fields without a value', () => {
    const made = request({});
    expect(made.ok && Object.keys(made.value)).not.toEqual(
      expect.arrayContaining(['seed', 'stop', 'stats_pattern']),
    );
  });
  it('sends more samplers, or says what they must be', () => {
    expect(
      request({ moreSampling: '{"dry_multiplier": 0.8, "samplers": ["top_k"]}' }),
    ).toMatchObject({ ok: true, value: { dry_multiplier: 0.8, samplers: ['top_k'], top_k: 40 } });
    for (const wrong of ['x', '[1]', '3', 'null', '{'])
      expect(request({ moreSampling: wrong })).toMatchObject({
        ok: false,
        error: expect.stringContaining('JSON object') as string,
      });
  });
  it('sends each line as a stop string', () => {
    expect(request({ stop: 'END\n\n\\n\\n' })).toMatchObject({ value: { stop: ['END', '\n\n'] } });
  });
  it('sends stats_pattern at level verbose only', () => {
    const made = request({ statsPattern: 'ffn', level: 'detailed' });
    expect(made.ok && 'stats_pattern' in made.value).toBe(false);
    expect(request({ statsPattern: 'ffn', level: 'verbose' })).toMatchObject({
      value: { stats_pattern: 'ffn' },
    });
  });
  it('asks for what is in memory once a second, if chosen', () => {
    expect(request({ residency: true })).toMatchObject({ value: { residency_interval_ms: 1000 } });
    const made = request({});
    expect(made.ok && 'residency_interval_ms' in made.value).toBe(false);
  });
  it('captures what is chosen, if the level has values', () => {
    expect(request({ attention: true })).toMatchObject({ value: { capture: ['attention'] } });
    expect(request({ attention: true, lens: true })).toMatchObject({ value: { capture: ['attention', 'lens'] } }); // prettier-ignore
    expect(request({ router: true })).toMatchObject({ value: { capture: ['router'] } });
    const rules = { router: true, captureRules: ' l_out@L0-3@R1  ffn_out ' };
    expect(request(rules)).toMatchObject({ value: { capture: ['router', 'l_out@L0-3@R1', 'ffn_out'] } }); // prettier-ignore
    for (const made of [
      request({}),
      request({ lens: true, captureRules: 'l_out', level: 'minimal' }),
    ])
      expect(made.ok && 'capture' in made.value).toBe(false);
  });
  it('rejects a seed that is not a number', () => {
    expect(request({ seed: 'x' })).toMatchObject({ ok: false });
  });
});

describe('promptMode', () => {
  const chat = { has_vocabulary: true, has_chat_template: true, can_chat: true };
  const chatMl = { ...chat, has_chat_template: false };
  const plain = { ...chatMl, can_chat: false };
  const bare = { ...plain, has_vocabulary: false };
  it.each([
    [null, null, 'text'],
    [null, plain, 'text'],
    [null, chat, 'chat'],
    ['chat', plain, 'text'],
    [null, chatMl, 'text'],
    ['chat', chatMl, 'chat'],
    ['text', chat, 'text'],
    ['tokens', chat, 'tokens'],
    ['text', bare, 'tokens'],
  ] as const)('%s with %j is %s', (chosen, model, mode) => {
    expect(promptMode(chosen, model)).toBe(mode);
  });
});

describe('settings', () => {
  it('have their default if missing or of the wrong type', () => {
    expect(parseSettings('{"maxTokens":5,"topK":"x","other":1}')).toEqual({
      ...defaultSettings,
      maxTokens: 5,
    });
    expect(parseSettings('[')).toEqual(defaultSettings);
    expect(parseSettings(null)).toEqual(defaultSettings);
  });
});
