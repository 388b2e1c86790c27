// Breakpoints of the page, what it shows of a stop, and the request of an altered run without stops.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Api } from '../../../src/net/api';
import type {
  DebugCommand,
  DebugState,
  GenerateRequest,
  Run,
  Session,
} from '../../../src/net/types';
import { isSameUnaltered, unalteredRequest } from '../../../src/state/session/altered';
import { changesOf } from '../../../src/state/session/changes';
import { opsNamedBy } from '../../../src/state/request/breakpoint_place';
import { breakpointAt } from '../../../src/state/request/debug';
import { live, run, server, session, startStore } from '../fake_server';
import { fails, rejected, succeeds } from '../fakes';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const place = (op: number) => ({
  step: 0,
  first_token: 0,
  tokens: 4,
  op,
  layer_id: 1,
  operation_type: 'ADD',
  tensor_name: `l_out-${op}`,
});

// A run that stops at each op until it is told to go on.
function debugged() {
  const runs = new Map<string, Run>();
  const requests: GenerateRequest[] = [];
  const commands: DebugCommand[] = [];
  let number = 1;
  let stopped = true;
  const state = (): DebugState => ({
    stop: stopped ? { number, place: place(number), before: false, breakpoints: [1], tensors: [], changeable: [] } : null, // prettier-ignore
    time_left_ms: stopped ? 60_000 : null,
    breakpoints: [{ number: 1, text: 'l_out', hits: number }],
    changes: [],
    kept: [],
    watched: [],
    watched_from: 0,
  });
  const tell = (): void => {
    runs.set('s1', run('s1', { state: 'running', stopped: stopped ? `op ${number}` : null }));
  };
  const api: Partial<Api> = {
    ...server({ runs }),
    generate: (body) => {
      requests.push(body);
      tell();
      return succeeds(run('s1', { state: 'running' }));
    },
    debug: () => succeeds(state()),
    debugCommand: (_id, body) => {
      commands.push(body);
      if (body.break === 'layer x') return fails(rejected(400));
      if (body.until !== undefined) stopped = false;
      tell();
      return succeeds(state());
    },
  };
  return {
    api,
    requests,
    commands,
    stopsAgain: () => {
      stopped = true;
      number += 1;
      tell();
    },
    ends: () => runs.set('s1', run('s1', { state: 'done' })),
  };
}

describe('a breakpoint at an op', () => {
  it('matches its output and nothing else', () => {
    for (const name of ['ffn_out-3', 'node_12', 'k (copy of Kcur-0)', 'a.b*c[d]']) {
      const text = breakpointAt(name);
      expect(text).not.toMatch(/\s/);
      expect(new RegExp(text).test(name)).toBe(true);
      expect(new RegExp(text).test(`${name}1`)).toBe(false);
    }
    expect(new RegExp(breakpointAt('a.b')).test('axb')).toBe(false);
  });

  it('is set, marked, sent with the next request, switched off and removed', async () => {
    const { api, requests } = debugged();
    const { debug, chat } = await startStore(api);
    debug.toggleAt('l_out-3');
    await debug.add('^l_out-4$ step 2- if nan');
    await debug.enable('^l_out-4$ step 2- if nan', false);
    const markOf = (output: string) => debug.markOf({ output, op: 'ADD', layer: 3 });
    expect(['l_out-3', 'l_out-4', 'l_out-5'].map(markOf)).toEqual(['on', 'off', '']);
    chat.write({ message: 'Hello' });
    await chat.send();
    expect(requests[0]).toMatchObject({ breakpoints: ['^l_out-3$'], hold_ms: 300_000 });
    debug.toggleAt('l_out-3');
    debug.toggleAt('l_out-4');
    await vi.advanceTimersByTimeAsync(10);
    expect(debug.breakpoints.value).toEqual([]);
    expect(debug.options()).toEqual({});
    debug.stopAtStart(true);
    expect(debug.options()).toEqual({ stop_at_first_op: true, hold_ms: 300_000 });
    debug.holdFor(60_000);
    expect(debug.options()).toEqual({ stop_at_first_op: true, hold_ms: 60_000 });
  });
});

describe('a breakpoint', () => {
  const norm = { output: 'attn_norm-3', op: 'RMS_NORM+MUL', layer: 3 };
  const glu = { output: 'ffn_swiglu-3', op: 'GLU(SWIGLU)', layer: 3 };
  const logits = { output: 'result_output', op: 'MUL_MAT', layer: null };
  it.each([
    ['norm', [norm]],
    ['^ffn_.*-3$ if norm > 100', [glu]],
    ['op rms_norm', [norm]],
    ['op MUL layer 2-4', [norm]],
    ['op SWIGLU token 7', [glu]],
    ['layer 3', [norm, glu]],
    ['layer 0-2', []],
    ['before layer 2-', [norm, glu]],
    ['op MUL_MAT layer 3', []],
    ['result', [logits]],
    ['step 3 expert 2 if nan', []],
    ['(', []],
  ])('%s names its ops', (text, ops) => {
    expect([norm, glu, logits].filter(opsNamedBy(text))).toEqual(ops);
  });
});

describe('a run that is stopped', () => {
  it('is shown with its place, goes on, stops again and ends', async () => {
    const fake = debugged();
    const store = await startStore(fake.api);
    const { debug } = store;
    await debug.add('l_out');
    store.chat.write({ message: 'Hello' });
    await store.chat.send();
    await vi.advanceTimersByTimeAsync(50);
    expect(debug.stop.value).toBe(null);
    store.event({ type: 'state', session: 's1', state: 'running', stopped: 'op 1' });
    await vi.advanceTimersByTimeAsync(50);
    expect(debug.state.value?.stop?.number).toBe(1);
    expect(store.navigation.view.value).toMatchObject({ layer: 1, selection: { kind: 'output', of: 'op', name: 'l_out-1' } }); // prettier-ignore
    expect(store.navigation.view.value.tabs).toContain('debug');
    debug.stepsBy.value = 2;
    debug.goOn('op');
    await vi.advanceTimersByTimeAsync(10);
    expect(fake.commands).toEqual([{ until: 'op', count: 2 }]);
    expect(debug.isRunning.value).toBe(true);
    expect(debug.stop.value?.number, 'the last place stays').toBe(1);
    // A command while it runs does nothing.
    debug.goOn('op');
    expect(fake.commands).toHaveLength(1);
    // Without a live message.
    fake.stopsAgain();
    await vi.advanceTimersByTimeAsync(500);
    expect(debug.state.value?.stop?.number).toBe(2);
    debug.goOn('breakpoint');
    expect(fake.commands.at(-1)).toEqual({ until: 'breakpoint', count: 1 });
    fake.ends();
    await vi.advanceTimersByTimeAsync(2000);
    expect(debug.stop.value).toBe(null);
    expect(live.watched).toContain('s1');
  });

  it('is changed once or for all tokens, which can be ended', async () => {
    const fake = debugged();
    const { debug, chat } = await startStore(fake.api);
    chat.write({ message: 'Hello' });
    await chat.send();
    await debug.change('zero', false);
    await debug.change('zero head 3', true);
    await debug.release(1);
    expect(fake.commands).toEqual([{ change: 'zero' }, { change: 'zero head 3', keep: true }, { release: 1 }]); // prettier-ignore
  });

  it('checks a breakpoint that is added', async () => {
    const fake = debugged();
    const store = await startStore(fake.api);
    store.chat.write({ message: 'Hello' });
    await store.chat.send();
    store.event({ type: 'state', session: 's1', state: 'running', stopped: 'op 1' });
    await vi.advanceTimersByTimeAsync(50);
    expect(await store.debug.add('layer x')).toBe(false);
    expect(store.debug.problem.value).not.toBe(null);
    expect(store.debug.breakpoints.value).toEqual([]);
    expect(await store.debug.add('layer 3')).toBe(true);
    expect(store.debug.problem.value).toBe(null);
    await store.debug.add('l_out');
    await store.debug.remove('l_out');
    expect(fake.commands.at(-1)).toEqual({ delete: 1 });
  });
});

describe('an altered run', () => {
  const facts = {
    'request.prompt': 'Once',
    'request.seed': '7',
    'request.breakpoints.0': 'l_out',
    'request.hold_ms': '300000',
    'altered.0': 'a',
    'altered.1': 'b',
  };
  const altered = session('a', { facts });
  const plain = (more: Session['facts'] = {}) =>
    session('b', { facts: { 'request.prompt': 'Once', 'request.seed': '7', ...more } });

  it('has its changes', () => {
    expect(changesOf(facts)).toEqual(['a', 'b']);
    expect(changesOf(undefined)).toEqual([]);
  });

  it('is compared with the same request that nothing has altered', () => {
    expect(isSameUnaltered(altered, plain())).toBe(true);
    expect(isSameUnaltered(altered, plain({ 'request.seed': '8' }))).toBe(false);
    expect(isSameUnaltered(altered, plain({ 'request.top_k': '1' }))).toBe(false);
    expect(isSameUnaltered(altered, plain({ 'altered.0': 'x' }))).toBe(false);
    expect(isSameUnaltered(altered, { ...altered, id: 'c' })).toBe(false);
    const greedy = { 'request.temperature': '0' };
    expect(isSameUnaltered({ ...altered, facts: { ...facts, ...greedy } }, plain({ ...greedy, 'request.seed': '8' }))).toBe(true); // prettier-ignore
  });

  it('runs again without stops, with the seed that it had', () => {
    const request: GenerateRequest = { prompt: 'Once', breakpoints: ['l_out'], hold_ms: 3 };
    expect(unalteredRequest(request, facts)).toEqual({ prompt: 'Once', seed: 7 });
  });
});
