import { describe, expect, it } from 'vitest';
import { ofOp, ofSession, reproductionText } from '../../../../src/panels/inspector/reproduce';
import { inspectNode, inspectTensor } from '../../../../src/panels/inspector/inspect_graph';
import { inspectSession, inspectToken } from '../../../../src/panels/inspector/inspect_session';
import type { Node, Session, Tensor } from '../../../../src/net/types';
import { templateGraph } from '../../../../src/state/session/per_session';
import { TraceData } from '../../../../src/state/session/trace_data';
import { step, token } from '../../make';

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
    expect(valueOf(facts('fast'), 'op times')).toBe('measured in passing');
    expect(valueOf(facts('learned'), 'op times')).toMatch(/^measured while learning: /);
    expect(facts('fast').some(({ value }) => /\bfast\b/.test(value))).toBe(false);
  });

  it('of a token say what the machine did to its step', () => {
    const data = new TraceData();
    [1000, 1000, 1600, 1000].forEach((duration_ns, i) => {
      data.addStep(step(i, { verdict: i === 2 ? 'disk' : 'clean', duration_ns }));
    });
    const note = (of: number) => inspectToken(data, of, data.steps[of], 0).figures[0]?.note;
    expect(note(2)).toBe(
      'with the waiting between ops, 1.6 × the median, in this step it waited for the disk',
    );
    expect(note(1)).toBe('with the waiting between ops, 1.0 × the median');
  });

  it('name the KV cache as a part of the model and as memory', () => {
    const cache = { ...WEIGHT, tensor: 0, tensor_name: 'cache_k_l0', tensor_kind: 'kv', component: 'kv-cache', role: 'K', memory_source: 'kv' } as Tensor; // prettier-ignore
    const { facts } = inspectTensor(cache, templateGraph(1, [], [cache]), new Map(), null);
    expect(valueOf(facts, 'kind')).toBe('KV cache');
    expect(valueOf(facts, 'component')).toBe('KV cache, K');
    expect(valueOf(facts, 'source')).toBe('KV cache or state');
  });
});

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
