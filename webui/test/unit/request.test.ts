import { describe, expect, it } from 'vitest';
import { emptyDraft, promptMode, promptOf, requestOf } from '../../src/state/request';
import { defaultSettings, parseSettings } from '../../src/state/settings';

const draft = (part: Partial<typeof emptyDraft>) => ({ ...emptyDraft, ...part });

describe('promptOf', () => {
  it('sends text as it stands', () => {
    const prompt = promptOf('text', draft({ text: ' Hello' }), [], null);
    expect(prompt).toEqual({ ok: true, value: { prompt: ' Hello' } });
  });
  it('sends token ids', () => {
    const prompt = promptOf('tokens', draft({ tokens: '1, 2 3\n' }), [], { n_vocab: 4 });
    expect(prompt).toEqual({ ok: true, value: { tokens: [1, 2, 3] } });
  });
  it('sends the conversation before the message, and the system message before that', () => {
    const said = [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: 'b' },
    ] as const;
    const prompt = promptOf('chat', draft({ message: 'c', system: 'S' }), said, null);
    expect(prompt.ok && prompt.value.messages?.map(({ content }) => content).join('')).toBe('Sabc');
  });
  it('leaves an empty system message out', () => {
    const prompt = promptOf('chat', draft({ message: 'Hi', system: ' ' }), [], null);
    expect(prompt.ok && prompt.value.messages).toEqual([{ role: 'user', content: 'Hi' }]);
  });
  it.each([
    ['text', {}, 'Write a prompt first'],
    ['tokens', {}, 'Write token ids first'],
    ['tokens', { tokens: '1 two' }, '“two” is not a token id'],
    ['tokens', { tokens: '1 4' }, '4 is no token of this model: its ids end at 3'],
    ['chat', { message: '\n' }, 'Write a message first'],
  ] as const)('of %s %j says what is wrong', (mode, part, reason) => {
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
  it('leaves out what is not given', () => {
    const made = request({});
    expect(made.ok && Object.keys(made.value)).not.toEqual(
      expect.arrayContaining(['seed', 'stop', 'stats_pattern']),
    );
  });
  it('stops at each line', () => {
    expect(request({ stop: 'END\n\n\\n\\n' })).toMatchObject({ value: { stop: ['END', '\n\n'] } });
  });
  it('describes tensors only of a verbose trace', () => {
    const made = request({ statsPattern: 'ffn', level: 'detailed' });
    expect(made.ok && 'stats_pattern' in made.value).toBe(false);
    expect(request({ statsPattern: 'ffn', level: 'verbose' })).toMatchObject({
      value: { stats_pattern: 'ffn' },
    });
  });
  it('refuses a seed that is no number', () => {
    expect(request({ seed: 'x' })).toMatchObject({ ok: false });
  });
});

describe('promptMode', () => {
  const plain = { has_vocabulary: true, has_chat_template: false };
  const chat = { has_vocabulary: true, has_chat_template: true };
  const bare = { has_vocabulary: false, has_chat_template: false };
  it.each([
    [null, null, 'text'],
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

describe('settings', () => {
  it('fall back for what is missing, unknown or of the wrong type', () => {
    expect(parseSettings('{"maxTokens":5,"topK":"x","other":1}')).toEqual({
      ...defaultSettings,
      maxTokens: 5,
    });
    expect(parseSettings('[')).toEqual(defaultSettings);
    expect(parseSettings(null)).toEqual(defaultSettings);
  });
});
