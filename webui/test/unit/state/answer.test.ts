// The view that a question or a sentence of the summary opens.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Conditions } from '../../../src/net/types';
import { answeredTopic, showAnswer, type Answer } from '../../../src/state/view/answer';
import { server, session, startStore } from '../fake_server';
import { FakeBrowser, succeeds } from '../fakes';
import { step } from '../make';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const SLOWEST: Answer = {
  panel: 'table',
  topic: 'speed',
  shows: 'totals by layer',
  options: 'all,by:layer',
  sort: '-time',
  generated: true,
  times: true,
};

const conditions = (verdict: Conditions['verdict'], clean: number): Conditions =>
  ({
    verdict,
    text: '',
    steps: { clean, contended: 2, throttled: 0, disk: 0, unknown: 0 },
  }) as unknown as Conditions;

async function viewAfter(answer: Answer, machine: Conditions, view = '') {
  const there = {
    ...server({
      sessions: [session('a')],
      steps: [step(0, { phase: 'prompt' }), step(1, { phase: 'generate' })],
    }),
    conditions: () => succeeds(machine),
  };
  const store = await startStore(there, new FakeBrowser(`#1&session=a${view}`));
  await showAnswer(store, answer);
  return store.navigation.view.peek();
}

describe('an answer', () => {
  it('about times shows the generated tokens, and all steps of an undisturbed session', async () => {
    const view = await viewAfter(SLOWEST, conditions('clean', 10));
    expect(view).toMatchObject({ phase: 'generate', filter: '', sorts: { table: '-time' } });
  });

  it('about times shows only the clean steps of a disturbed session', async () => {
    expect((await viewAfter(SLOWEST, conditions('contended', 10))).filter).toBe('verdict:clean');
    expect((await viewAfter(SLOWEST, conditions('contended', 0))).filter).toBe('');
  });

  it('about bytes has nothing of the filter, phase and range before it', async () => {
    const bytes: Answer = {
      panel: 'table',
      topic: 'bytes',
      shows: 'totals by tensor',
      options: 'all,by:tensor',
      filter: 'kind:weight',
    };
    const machine = conditions('contended', 10);
    expect((await viewAfter(bytes, machine)).filter).toBe('kind:weight');
    const before = '&q=verdict:clean%20layer:2&ph=g&r=step:0:1';
    expect(await viewAfter(bytes, machine, before)).toMatchObject({
      filter: 'kind:weight',
      phase: 'all',
      range: null,
    });
  });

  it('about memory, which keeps the options of its panel, has nothing of it either', async () => {
    const memory: Answer = { panel: 'budget', topic: 'memory', shows: '' };
    const view = await viewAfter(memory, conditions('contended', 10), '&q=layer:2&ph=g');
    expect(view).toMatchObject({ filter: '', phase: 'all' });
  });
});

describe('a shown answer', () => {
  const bytes: Answer = {
    panel: 'table',
    topic: 'bytes',
    shows: 'totals by tensor',
    options: 'all,by:tensor',
    sort: '-bytes_read',
    filter: 'kind:weight',
    generated: true,
  };

  it('says what it changed, and Undo restores the view before', async () => {
    const there = server({
      sessions: [session('a')],
      steps: [step(0, { phase: 'prompt' }), step(1, { phase: 'generate' })],
    });
    const store = await startStore(there, new FakeBrowser('#1&session=a&q=layer:1'));
    await showAnswer(store, { ...bytes, filter: '' });
    await showAnswer(store, bytes);
    const toasts = store.toasts.list.peek();
    expect(toasts.map(({ text }) => text)).toEqual([
      'Table: totals by tensor, sorted by “read”, generated tokens only, filter kind:weight.',
    ]);
    toasts[0]?.action?.run();
    expect(store.navigation.view.peek()).toMatchObject({ phase: 'generate', filter: '' });
    await showAnswer(store, bytes);
    await showAnswer(store, { panel: 'budget', topic: 'memory', shows: 'how much is enough' });
    expect(store.toasts.list.peek().map(({ text }) => text)).toEqual([
      'Memory budget: how much is enough, all steps, no filter.',
    ]);
  });

  it.each(['Back', 'another session', 'a filter', '6 s'])(
    'is offered to undo until %s',
    async (by) => {
      const there = server({ sessions: [session('a'), session('b')], steps: [step(0)] });
      const browser = new FakeBrowser('#1&session=a');
      const store = await startStore(there, browser);
      await showAnswer(store, bytes);
      store.navigation.toStep(0);
      expect(store.toasts.list.peek()).toHaveLength(1);
      if (by === 'Back') browser.go(-2);
      else if (by === 'another session') store.navigation.toSession('b');
      else if (by === 'a filter') store.navigation.setFilter('layer:0', 'push');
      else vi.advanceTimersByTime(6000);
      expect(store.toasts.list.peek()).toEqual([]);
    },
  );

  it('marks its sentence until the view changes', async () => {
    const there = server({ sessions: [session('a')], steps: [step(0)] });
    const store = await startStore(there, new FakeBrowser('#1&session=a'));
    const open = store.open.peek();
    if (!open) throw new Error('no session');
    expect(answeredTopic(store, open)).toBeNull();
    await showAnswer(store, bytes);
    expect(answeredTopic(store, open)).toBe('bytes');
    store.navigation.toStep(0);
    expect(answeredTopic(store, open)).toBe('bytes');
    store.navigation.setFilter('layer:0', 'push');
    expect(answeredTopic(store, open)).toBeNull();
  });
});
