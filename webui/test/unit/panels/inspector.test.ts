import { describe, expect, it } from 'vitest';
import {
  bytesSentence,
  cleanSteps,
  cliffOf,
  disturbedSpeedSentence,
  layersText,
  memorySentence,
  machineSentence,
  orderSentence,
  repeatSentence,
  sharedExperts,
  speedSentence,
  waitSentence,
} from '../../../src/panels/inspector/summary';
import {
  COMPARED_AXES,
  COMPARED_VALUES,
  comparedNumbers,
  comparedText,
  comparisonOptions,
  comparisonText,
  compareQuery,
  relativeName,
  rowsThatMatter,
} from '../../../src/panels/inspector/compare';
import { causeHead, causeText } from '../../../src/panels/inspector/comparison_causes';
import { rowMedians } from '../../../src/panels/inspector/generated_medians';
import {
  againstMedian,
  grouped,
  median,
  partsOfLine,
  rowIndex,
  withGaps,
} from '../../../src/panels/inspector/place';
import { CLEAN_STEPS } from '../../../src/state/filter';
import { ofOp, ofSession, reproductionText } from '../../../src/panels/inspector/reproduce';
import {
  expertTokens,
  expertTokensQuery,
  jumpToExpertToken,
} from '../../../src/panels/inspector/expert_tokens';
import { inspectNode, inspectTensor } from '../../../src/panels/inspector/inspect_graph';
import {
  inspectExpert,
  inspectSession,
  inspectToken,
} from '../../../src/panels/inspector/inspect_session';
import type {
  Breakdown,
  Conditions,
  Determinism,
  Node,
  Reuse,
  Session,
  Tensor,
} from '../../../src/net/types';
import { templateGraph } from '../../../src/state/per_session';
import { TraceData } from '../../../src/state/trace_data';
import { step, token } from '../make';

const sums = (part: Partial<Breakdown['sums']['all']>): Breakdown['sums']['all'] => ({
  bytes_read: 0,
  bytes_written: 0,
  reads: 0,
  writes: 0,
  executions: 0,
  time_ns: 0,
  faults: 0,
  bytes_per_second: null,
  ...part,
});
const breakdown = (part: Partial<Breakdown['sums']['all']>, rows: Breakdown['rows'] = []) =>
  ({
    sums: { name: 'total', all: sums(part), prompt: sums({}), generate: sums(part) },
    rows,
  }) as unknown as Breakdown;
const SESSION = { model: { size: 1_048_576 }, facts: {} } as unknown as Session;
const saved = (bytes_saved: number) => ({ reads_saved: 0, bytes_saved });
const curve = (...points: readonly [number, number][]): Reuse['curve'] =>
  points.map(([capacity_bytes, bytes]) => ({
    capacity_bytes,
    lru: saved(bytes),
    belady: saved(bytes),
    pin: saved(bytes),
  }));

describe('a summary', () => {
  it('says what a token reads', () => {
    const all = breakdown({ bytes_read: 10_485_760 });
    const weights = breakdown({ bytes_read: 5_242_880 });
    expect(bytesSentence(all, weights, { generate: 10, all: 11 }, SESSION).text).toBe(
      'A generated token reads 1 MiB, of which 512 KiB are weights (50.0 % of the model file).',
    );
    expect(bytesSentence(all, weights, { generate: 0, all: 5 }, null).text).toBe(
      'A step reads 2 MiB, of which 1 MiB are weights.',
    );
  });
  it('says where the weights are, if in several places', () => {
    const row = (name: string, bytes_read: number) => ({
      name,
      all: sums({}),
      prompt: sums({}),
      generate: sums({ bytes_read }),
    });
    const all = breakdown({ bytes_read: 4096 });
    const weights = breakdown({ bytes_read: 4096 }, [row('disk', 1024), row('repacked', 3072)]);
    expect(bytesSentence(all, weights, { generate: 1, all: 1 }, null).text).toBe(
      'A generated token reads 4 KiB, of which 4 KiB are weights: 3 KiB repacked, 1 KiB file (mapped).',
    );
  });
  it('names the slowest layers', () => {
    const layers = (...rows: readonly [string, number][]) =>
      breakdown({ time_ns: 100 }, rows.map(([name, time_ns]) => ({ name, all: sums({}), prompt: sums({}), generate: sums({ time_ns }) }))); // prettier-ignore
    expect(layersText(layers(['none', 50], ['0', 20], ['1', 30]), 'generate')).toBe(
      ' Layer 1 is the slowest: 30.0 %, then layer 0: 20.0 %.',
    );
    expect(layersText(layers(['0', 49], ['1', 50]), 'generate')).toBe(
      ' No layer is clearly the slowest: layers 1 and 0 take 50.0 % and 49.0 %.',
    );
    expect(layersText(layers(['none', 50], ['0', 0]), 'generate')).toBe('');
  });
  it('does not say what bounds the speed of a disturbed run', () => {
    const rows = [
      ['MUL_MAT', 60, 6, 15],
      ['ROPE', 40, 0, 15],
    ];
    expect(disturbedSpeedSentence('contended', cleanSteps({ rows }), 219.4, ' L.').text).toBe(
      'What limits the speed (219 tokens/s without the prompt) cannot be told, because the run was contended (other programs used the processors). In the 15 clean steps, MUL_MAT takes 60.0 % of the time, at 95.4 MiB/s. L.',
    );
    expect(disturbedSpeedSentence('disk', cleanSteps({ rows: [] }), null, '').text).toBe(
      'What limits the speed cannot be told, because the run was waiting for the disk. No step with the usual times was clean.',
    );
  });
  it('says what bounds the speed', () => {
    const row = { name: 'MUL_MAT', all: sums({}), prompt: sums({}), generate: sums({ time_ns: 60, bytes_per_second: 2_147_483_648 }) }; // prettier-ignore
    const ops = breakdown({ time_ns: 100 }, [row]);
    const steps = { generate: 4, all: 5 };
    expect(speedSentence(ops, { advice: [] }, steps, 219.4, ' L.').text).toBe(
      'Computation limits the speed (219 tokens/s without the prompt): MUL_MAT takes 60.0 % of the time, at 2 GiB/s. L.',
    );
    const report = { advice: [{ advice: 'generation is memory-bound.', because: 'b' }] };
    expect(speedSentence(ops, report, steps, null, '')).toMatchObject({ hint: 'b' });
    expect(speedSentence(ops, report, steps, null, '').text).toMatch(/^Memory bandwidth limits/);
    const waits = breakdown({ time_ns: 100, faults: 8 }, [row]);
    expect(speedSentence(waits, report, steps, null, '').text).toMatch(
      /^The disk limits the speed/,
    );
  });
  it('says in which order the file is read', () => {
    const order = { reads: 4, sequential: 1, bytes: 200, sequential_bytes: 50 };
    expect(orderSentence({ gap: 131_072, sums: order }).text).toMatch(/^25\.0 % of the bytes/);
  });
  it('says first what the machine did', () => {
    const text = 'contended: the threads waited.';
    const steps = { clean: 9, contended: 30, throttled: 0, disk: 0, unknown: 2 };
    const contended = { text, verdict: 'contended', steps } as const;
    expect(machineSentence({ ...contended, phases: {} }).text).toBe(
      'Contended: the threads waited.',
    );
    const generate = { step_ns: { p5: 9_000_000, median: 12_000_000, p95: 40_000_000 } };
    const phases = { generate } as unknown as Conditions['phases'];
    expect(machineSentence({ ...contended, phases }).text).toBe('Contended: the threads waited.');
    expect(machineSentence({ ...contended, phases }).hint).toMatch(
      /: a generated step takes 12 ms in the median \(p5 9 ms, p95 40 ms\)$/,
    );
  });
  it('does not call a session clean whose steps are not all clean', () => {
    const text = (contended: number, disk: number, clean: number) =>
      machineSentence({
        text: 'clean: nothing else held up the evaluation.',
        verdict: 'clean',
        phases: {},
        steps: { clean, contended, throttled: 0, disk, unknown: 0 },
      }).text;
    expect(text(0, 0, 41)).toBe('Clean: nothing else held up the evaluation.');
    expect(text(1, 0, 40)).toBe('Nearly all steps are clean; of 41 steps, 1 was contended.');
    expect(text(6, 2, 2)).toBe(
      'The session as a whole is clean; of 10 steps, 6 were contended and 2 waited for the disk.',
    );
  });
  it('says whether it repeats', () => {
    const none = { token: 0, 'kv-window': 0, experts: 0, graph: 0, unfinished: 0 };
    const pairs = (part: Partial<Determinism>) =>
      repeatSentence(
        { pairs: 4, same_weights: 4, differing: none, ...part } as Determinism,
        false,
        null,
      ).text;
    expect(pairs({})).toBe(
      'In all 4 pairs of consecutive generated tokens, both read the same weights.',
    );
    expect(pairs({ same_weights: 1, differing: { ...none, experts: 9 } })).toBe(
      'In 1 of 4 pairs of consecutive generated tokens, both read the same weights; in the others, the second used other experts.',
    );
    const shown = (hasExperts: boolean) =>
      repeatSentence(
        { pairs: 4, same_weights: 0, differing: none } as Determinism,
        hasExperts,
        null,
      );
    expect(shown(true).evidence.options).toBe('y:expert,v:accesses');
    expect(shown(false).evidence.options).toBe('y:tensor,v:bytes');
    expect(pairs({ pairs: 0 })).toMatch(/no two generated tokens/);
  });
  it('says how many experts a token shares with the one before', () => {
    const shared = sharedExperts([
      { followed: 30, turnover: 0.5 },
      { followed: 10, turnover: 1 },
      { followed: 0, turnover: null },
    ]);
    expect(shared).toBeCloseTo(15 / 40);
    expect(sharedExperts([{ followed: 0, turnover: null }])).toBeNull();
    const differing = { token: 0, 'kv-window': 0, experts: 9, graph: 0, unfinished: 0 };
    const text = (part: Partial<Determinism>) =>
      repeatSentence({ pairs: 4, same_weights: 0, differing, ...part } as Determinism, true, shared)
        .text;
    expect(text({})).toBe(
      'Each generated token reads the same weights as the one before, except experts: 37.5 % of its experts were used by the one before in the same layer, too. The map adds up the experts of all layers.',
    );
    expect(text({ differing: { ...differing, graph: 1 } })).toMatch(
      /other experts and other ops\. Of the experts of a token, 37\.5 % were also used by the token before, in the same layer\. The map/,
    );
    expect(text({ same_weights: 4 })).toBe(
      'In all 4 pairs of consecutive generated tokens, both read the same weights. The map adds up the experts of all layers.',
    );
  });
  it('says whether ops waited for the disk', () => {
    expect(waitSentence(breakdown({}), SESSION).text).toBe('Disk waits were not recorded.');
    const facts = { facts: { 'trace.page_faults': 'on' } } as unknown as Session;
    expect(waitSentence(breakdown({}), facts).text).toBe('No op waited for the disk.');
    expect(waitSentence(breakdown({ faults: 3 }), SESSION).text).toMatch(/disk 3 times/);
  });
  it('finds the cliff of the memory', () => {
    const steep = curve([100, 0], [200, 10], [300, 90], [400, 95]);
    expect(cliffOf({ curve: steep })?.at.capacity_bytes).toBe(300);
    expect(cliffOf({ curve: curve([100, 0]) })).toBeNull();
    const reuse = { bytes_read: 100, curve: steep } as unknown as Reuse;
    const plain = { file: 300, repacked: 0, kv: 9, compute: 9, tokens: 64 };
    const cliff =
      'A cache of 300 B would serve 90.0 % of the weight reads, one of 200 B only 10.0 %.';
    expect(memorySentence(reuse, plain).text).toBe(
      `318 B of RAM in all are enough to read no weight from the disk twice: 300 B for the weights in the file, 9 B of KV cache (reserved for 64 tokens) and 9 B of compute buffers. ${cliff}`,
    );
    expect(memorySentence(reuse, { ...plain, file: 100, repacked: 200 }).text).toBe(
      `318 B of RAM in all are enough to read no weight from the disk twice: 100 B for the weights in the file, 200 B of repacked weights, 9 B of KV cache (reserved for 64 tokens) and 9 B of compute buffers. ${cliff}`,
    );
  });
});

describe('a course', () => {
  it('is compared with its median', () => {
    expect(median([3, 1, 0, 2])).toBe(2);
    expect(median([4, 2])).toBe(2);
    expect(againstMedian(6, 3)).toBe('2.0 × the median');
    expect(againstMedian(3, 3)).toBe('near the median');
    expect(againstMedian(3, 0)).toBe('');
  });
  it('has at most as many groups as pixels, with the same mean', () => {
    const values = Array.from({ length: 1200 }, (_, i) => i);
    const groups = grouped(values);
    expect(groups).toHaveLength(120);
    expect(groups[0]).toBe(4.5);
    expect(grouped([1, 2])).toEqual([1, 2]);
  });
  it('has a gap, not 0, where the steps have no values', () => {
    const steps = [
      step(0, { phase: 'prompt', verdict: 'clean' }),
      step(1, { verdict: 'clean' }),
      step(2, { dropped: true }),
      step(3, { verdict: 'contended' }),
      undefined,
      step(5, { verdict: 'clean' }),
    ];
    const all = { phase: 'all', filter: '' } as const;
    expect(withGaps([9, 8, 0, 7, 0, 0], steps, all)).toEqual([9, 8, null, 7, null, 0]);
    expect(withGaps([0, 8, 0, 7, 0, 0], steps, { ...all, phase: 'generate' })).toEqual([
      null,
      8,
      null,
      7,
      null,
      0,
    ]);
    expect(withGaps([0, 8, 0, 0, 0, 6], steps, { ...all, filter: CLEAN_STEPS })).toEqual([
      0,
      8,
      null,
      null,
      null,
      6,
    ]);
    // Means of two steps.
    expect(withGaps([8, 0, 0], steps, all)).toEqual([8, 0, 0]);
    expect(withGaps([8, 0, 0], [...steps.slice(0, 4), undefined, undefined], all)).toEqual([
      8,
      0,
      null,
    ]);
    expect(partsOfLine([null, 1, 2, null, 0, null])).toEqual([
      [1, 3],
      [4, 5],
    ]);
    expect(
      grouped(Array.from({ length: 240 }, (_, i) => (i < 2 ? null : i % 2 ? null : 4))).slice(0, 2),
    ).toEqual([null, 4]);
  });
  it('is that of the row with its name', () => {
    const rows = ['a', 'b', 'a', 'c'];
    expect(rowIndex({ axis: 'op', name: 'a', index: 2 }, rows)).toBe(2);
    expect(rowIndex({ axis: 'op', name: 'c', index: 2 }, rows)).toBe(3);
    expect(rowIndex({ axis: 'tensor', name: 'x', index: null }, rows)).toBe(-1);
  });
});

describe('a selection', () => {
  it('is reproduced by REST, SQL and the command line', () => {
    const at = 'http://host/tt/';
    expect(reproductionText('REST', ofOp(3, 7), 'id', at)).toBe(
      'http://host/tt/api/v1/sessions/id/steps/3/ops?from=7&limit=1',
    );
    expect(reproductionText('REST', ofSession, 'id', at)).toBe('http://host/tt/api/v1/sessions/id');
    expect(reproductionText('CLI', { rest: '', sql: 'SELECT "a"' }, 'id', at)).toBe(
      'tt sql id.ttrace "SELECT \\"a\\""',
    );
  });
});

describe('the facts', () => {
  const valueOf = (facts: readonly { name: string; value: string }[], name: string) =>
    facts.find((one) => one.name === name)?.value;

  it('of a session have units', () => {
    const facts = {
      'load.duration_ns': '2000',
      'result.prompt_ns': '12340000',
      'result.kv_bytes': '12582912',
      'context.memory_budget': 'auto',
      'memory.pinned': '1048576',
      'trace.weights': '1048576',
    };
    const { groups = [] } = inspectSession(
      {
        id: 'a',
        title: '',
        file_bytes: 0,
        start_utc_ns: 0,
        state: 'done',
        facts,
      } as unknown as Session,
      new TraceData(),
    );
    const of = (title: string) => groups.find((group) => group.title === title)?.facts ?? [];
    expect(of('result')).toEqual([
      { name: 'prompt time', value: '12.3 ms', exact: '12\u202f340\u202f000 ns' },
      { name: 'kv bytes', value: '12 MiB', exact: '12\u202f582\u202f912 bytes' },
    ]);
    expect(valueOf(of('load'), 'duration')).toBe('2 µs');
    expect(valueOf(of('context'), 'memory budget')).toBe('auto');
    expect(valueOf(of('memory'), 'pinned')).toBe('1 MiB');
    expect(valueOf(of('trace'), 'weights')).toBe('1048576');
  });

  it('of a token say how the op times were measured', () => {
    const data = new TraceData();
    data.addToken(token(0));
    const facts = (timing: string) => inspectToken(data, 0, step(0, { timing } as never), 0).facts;
    expect(inspectToken(data, 0, step(0), 1)).toMatchObject({ number: 0, title: 't0' });
    expect(inspectToken(data, 0, step(0), 1).figures[0]).toMatchObject({
      name: 'step time',
      note: 'with the waiting between ops',
    });
    const busy = step(0, { verdict: 'contended', cpu_wait_ns: 9_570_000 });
    expect(inspectToken(data, 0, busy, 0).figures[0]?.note).toBe(
      'with the waiting between ops, the machine was busy: its threads waited 9.57 ms for a processor',
    );
    const slow = step(0, { verdict: 'throttled', throttled_ns: 2_000_000 });
    expect(inspectToken(data, 0, slow, 0).figures[0]?.note).toMatch(
      /a CPU limit stopped it for 2 ms$/,
    );
    expect(valueOf(facts('fast'), 'op times')).toBe('measured in passing');
    expect(valueOf(facts('learned'), 'op times')).toMatch(/^measured while learning: /);
    expect(facts('fast').some(({ value }) => /\bfast\b/.test(value))).toBe(false);
  });

  it('name the KV cache as a part of the model and as memory', () => {
    const cache = { ...WEIGHT, tensor: 0, tensor_name: 'cache_k_l0', tensor_kind: 'kv', component: 'kv-cache', role: 'K', memory_source: 'kv' } as Tensor; // prettier-ignore
    const { facts } = inspectTensor(cache, templateGraph(1, [], [cache]), new Map(), null);
    expect(valueOf(facts, 'kind')).toBe('KV cache');
    expect(valueOf(facts, 'component')).toBe('KV cache, K');
    expect(valueOf(facts, 'source')).toBe('KV cache memory');
  });
});

const WEIGHT = {
  template: 1,
  tensor: 0,
  tensor_name: 'blk.0.attn_q.weight',
  tensor_type: 'F32',
  tensor_kind: 'weight',
  layer_id: 0,
  component: 'attention',
  role: 'Q',
  category: 'layer',
  input: null,
  memory_source: 'disk',
  buffer: 'CPU_Mapped',
  tensor_bytes: 32,
  ne0: 8,
  ne1: 1,
  ne2: 1,
  ne3: 1,
  nb0: 4,
  nb1: 32,
  nb2: 32,
  nb3: 32,
  view_of: null,
  view_offset: null,
  model_file: null,
  file_offset: null,
  file_bytes: null,
} as Tensor;

describe('the links', () => {
  const output = { ...WEIGHT, tensor: 1, tensor_name: 'Qcur-0', tensor_kind: 'intermediate' } as Tensor; // prettier-ignore
  const node: Node = { node: 0, op: 'MUL_MAT', tensor: 1, name: 'Qcur-0', sources: [0], computed: true, executed_op: null }; // prettier-ignore
  const graph = templateGraph(1, [node], [WEIGHT, output]);
  const titles = (links: readonly { title: string; jumps: readonly unknown[] }[]) =>
    links.filter(({ jumps }) => jumps.length > 0).map(({ title }) => title);

  it('of a weight are the ops that read it', () => {
    expect(titles(inspectTensor(WEIGHT, graph, new Map(), null).links)).toEqual([
      'Read by',
      'Part of',
    ]);
    expect(titles(inspectNode(node, graph, new Map(), null).links)).toEqual(['Inputs', 'Part of']);
  });
});

describe('the tokens of an expert', () => {
  const view = { phase: 'all', range: null, filter: '' } as const;
  const FROM = 'SELECT token_id, group_concat(DISTINCT layer_id) FROM expert WHERE expert_id = 3 AND token_id IS NOT NULL'; // prettier-ignore
  const BY = ' GROUP BY token_id ORDER BY token_id';

  it('are those of phase, range and filter', () => {
    expect(expertTokensQuery(3, view)).toEqual({ sql: `${FROM}${BY}`, missing: [] });
    const part = {
      phase: 'generate',
      range: { x: { axis: 'token', from: 5, to: 9 }, y: { axis: 'layer', from: 0, to: 2 } },
      filter: 'layer:2 expert:5 op:mul_mat',
    } as const;
    expect(expertTokensQuery(3, part)).toEqual({
      sql: `${FROM} AND phase = 'generate' AND layer_id = 2 AND token_id >= 5 AND token_id < 9 AND layer_id >= 0 AND layer_id < 2${BY}`,
      missing: ['op:mul_mat'],
    });
    const file = { x: null, y: { axis: 'file', from: 0, to: 9 } };
    expect(expertTokensQuery(3, { ...view, range: file }).missing).toEqual(['range of file']);
  });

  it('have the layers whose routers chose it, and lead to the token', () => {
    const data = new TraceData();
    data.addToken(token(4, { text: ' a' }));
    const rows = [
      [4, '2,10,0'],
      [5, '1'],
      [6, '0,1,2,3,4,5,6'],
    ];
    const used = expertTokens({ rows, more: false });
    expect(used.tokens[0]).toEqual({ token: 4, layers: [0, 2, 10] });
    const { links, json } = inspectExpert(3, data, used, 12);
    expect(links[0]?.title).toBe('Tokens that used it');
    expect(links[0]?.jumps.map(({ text, detail }) => [text, detail])).toEqual([
      ['␣a', 'token 4, layers 0, 2, 10'],
      ['token 5', 'token 5, layer 1'],
      ['token 6', 'token 6, 7 of 12 layers'],
    ]);
    expect(jumpToExpertToken(data, { token: 4, layers: [1] }, 12).to).toEqual({
      kind: 'token',
      token: 4,
    });
    expect(json).toEqual({ expert: 3, tokens: used.tokens });
    expect(inspectExpert(3, data, { ...used, more: true }, 12).links[0]?.title).toMatch(
      /^The first/,
    );
    expect(inspectExpert(3, data, null, 12).links[0]?.jumps).toEqual([]);
  });
});

describe('a comparison', () => {
  const view = { phase: 'generate', range: null, filter: 'op:mul_mat layer:2' } as const;

  it('of tokens asks for both, with the filter but without the phase', () => {
    expect(compareQuery({ kind: 'token', token: 3 }, { kind: 'token', token: 9 }, view, 4)).toEqual(
      { op: 'mul_mat', layers: '2', left_token: 3, right_token: 9 },
    );
  });

  it('of layers asks for both, with the phase but without other layers', () => {
    expect(compareQuery({ kind: 'layer', layer: 1 }, { kind: 'layer', layer: 0 }, view, 4)).toEqual(
      { phase: 'generate', op: 'mul_mat', left_layer: 1, right_layer: 0 },
    );
  });

  const figures = (time_ns: number, bytes_read: number) => ({
    accesses: 1,
    bytes_read,
    bytes_written: 24,
    executions: 1,
    time_ns,
  });

  it('shows both sides and the signed difference', () => {
    const row = {
      left: figures(3000, 1000),
      right: figures(1000, 3048),
      difference: { ...figures(-2000, 2048), bytes_written: 0, accesses: 0 },
      ratio: null,
    };
    expect(comparedText(row, 'time')).toEqual({
      left: '3 µs',
      right: '1 µs',
      difference: '−2 µs',
      amount: -2000,
    });
    expect(comparedText(row, 'bytes').difference).toBe('+2 KiB');
    expect(comparedText(row, 'accesses').difference).toBe('0');
    expect(comparedText({ ...row, left: null }, 'time').left).toBe('–');
  });

  it('subtracts the first side from the second one', () => {
    expect(comparedNumbers(2000, 3000, 'time').difference).toBe('+1 µs');
    expect(comparedNumbers(3072, 1024, 'bytes').difference).toBe('−2 KiB');
    expect(comparedNumbers(5, 5, 'accesses')).toEqual({ left: '5', right: '5', difference: '0' });
  });

  it.each([
    ['l_out (layer -1)', 'l_out (layer before)'],
    ['l_out (layer +1)', 'l_out (layer after)'],
    ['K (layer -12)', 'K (12 layers before)'],
    ['attn_q.weight', 'attn_q.weight'],
  ])('names a tensor of another layer: %s', (name, text) => {
    expect(relativeName(name)).toBe(text);
  });

  it.each([
    ['Other request: max_tokens 12 and 24, messages.0.user, prompt.', 'Other request: max tokens 12 and 24, prompt text (user message 1), prompt text.'],
    ['Other request: stop.0 none and END, 3 more.', 'Other request: stop text 1 none and END, 3 more.'],
    ['Other settings: cache_type_k f16 and q8_0, threads 2 and 4.', 'Other settings: type of K in the KV cache f16 and q8_0, threads 2 and 4.'],
    ['Other machine: ram_bytes 1 and 2.', 'Other machine: memory (bytes) 1 and 2.'],
    ['New graphs: 0 steps on the left and 1 on the right had a graph.', 'New graphs: 0 steps in this session and 1 in the other session had a graph.'],
    ['Reused prefix: the left session reused 4 of its 9 prompt tokens from session 20260102-030405-abcdef, the right session reused none.', 'Reused prefix: this session reused 4 of its 9 prompt tokens from session “A”, the other session reused none.'],
  ])('names the cause: %s', (cause, text) => {
    expect(causeText(cause, () => 'session “A”')).toBe(text);
  }); // prettier-ignore

  it.each([
    ['The machine held up this session: contended: the threads waited for 3.5 % of their time. The times are not those of the model alone.', 'The machine held up this session: contended: the threads waited for 3.5 % of their time.'],
    ['Other model: a.gguf and b.gguf.', 'Other model: a.gguf and b.gguf.'],
  ])('shows the first sentence of a cause: %s', (cause, text) => {
    expect(causeHead(cause)).toBe(text);
  }); // prettier-ignore

  it('has the medians of the steps with a value', () => {
    const range = { from: 0, to: 4 };
    const y = { rows: ['0', '1', 'outside'] };
    const cells = Float32Array.from([0, 5, 3, 9, 0, 0, 7, 0, 0, 0, 0, 0]);
    expect([...rowMedians({ x: range, y, width: 4, cells } as never)]).toEqual([
      ['0', 5],
      ['1', 7],
    ]);
  });

  it('leaves out rows with hardly any difference', () => {
    expect(rowsThatMatter([-1000, 500, 10, 9, 0])).toBe(3);
    expect(rowsThatMatter([3, -2])).toBe(2);
    expect(rowsThatMatter([0, 0])).toBe(0);
    expect(rowsThatMatter([])).toBe(0);
  });

  it('has its options in the link', () => {
    for (const value of COMPARED_VALUES) {
      for (const by of COMPARED_AXES)
        expect(comparisonOptions(comparisonText({ value, by }))).toEqual({ value, by });
    }
    expect(comparisonText({ value: 'time', by: 'op_kind' })).toBe('');
    expect(comparisonOptions('diff:nothing,by:nothing')).toEqual({ value: 'time', by: 'op_kind' });
  });
});
