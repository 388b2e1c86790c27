// Details of ops, accesses, nodes and tensors, with their inputs and outputs.
import { exactBytes, exactNs, formatBytes, formatCount, formatNs, formatShape } from '../../format';
import type { Access, Node, Op, Session, Tensor, ValueStats } from '../../net/types';
import type { TemplateGraph } from '../../state/per_session';
import { fact, type Fact, type Inspection, type Jump, type Links } from './inspection';

export function inspectOp(
  op: Op,
  graph: TemplateGraph | null,
  accesses: readonly Access[] | null,
): Inspection {
  const time = op.end_ns - op.begin_ns;
  const bytes = op.bytes_read + op.bytes_written;
  return {
    kind: 'Op',
    title: op.name,
    facts: [
      ...fact('output', op.tensor, { mono: true }),
      ...fact('shape', `${op.type} ${formatShape(op.shape)}`),
      ...fact('index', `${op.op} of the step`),
      ...locationFacts(op),
      ...fact('duration', formatNs(time), { exact: exactNs(time) }),
      ...fact('begin', formatNs(op.begin_ns), { exact: exactNs(op.begin_ns) }),
      ...fact('read', formatBytes(op.bytes_read), { exact: exactBytes(op.bytes_read) }),
      ...fact('written', formatBytes(op.bytes_written), { exact: exactBytes(op.bytes_written) }),
      ...(time > 0 ? fact('rate', `${formatBytes((bytes / time) * 1e9)}/s`) : []),
      ...fact('device', op.device),
      ...(op.nodes > 1 ? fact('fused', `${op.nodes} nodes, executed as this op`) : []),
    ],
    groups: op.stats ? [{ title: 'output values', facts: valueFacts(op.stats) }] : [],
    links: graph ? linksOfOp(op, graph) : sourceNameLinks(op),
    layer: op.layer,
    json: accesses ? { ...op, accesses } : op,
  };
}

// Statistics of an output, recorded at trace level verbose.
function valueFacts({ min, max, mean, std, nan, inf }: ValueStats): readonly Fact[] {
  const number = (value: number | null): string =>
    value === null ? 'none' : String(Number(value.toPrecision(4)));
  const exact = (value: number | null) => ({ exact: String(value) });
  return [
    ...fact('min', number(min), exact(min)),
    ...fact('max', number(max), exact(max)),
    ...fact('mean', number(mean), exact(mean)),
    ...fact('std', number(std), exact(std)),
    ...fact('NaN', formatCount(nan)),
    ...fact('Inf', formatCount(inf)),
  ];
}

function locationFacts(one: {
  readonly layer: number | null;
  readonly component: string;
  readonly role: string;
}): readonly Fact[] {
  const { layer, component, role } = one;
  return [
    ...fact('layer', layer ?? 'none (embedding or output)'),
    ...fact('component', role === '' || role === component ? component : `${component}, ${role}`),
  ];
}

// Used until the graph has arrived: names without links.
function sourceNameLinks(op: Op): readonly Links[] {
  const jumps = op.sources.map(({ tensor, type, shape, kind }) => ({
    text: tensor,
    detail: `${kind}, ${type} ${formatShape(shape)}`,
    to: null,
  }));
  return [{ title: 'Inputs', jumps }];
}

// Inputs: tensors that the op's nodes read and other nodes produced. Outputs: readers of the
// tensors that they produced.
function linksOfOp(op: Op, graph: TemplateGraph): readonly Links[] {
  const own = graph.nodes.filter((node) => node.executed_op === op.op);
  const made = new Set(own.map((node) => node.tensor));
  const sources = own.flatMap((node) => node.sources).filter((source) => source !== null);
  const read = [...new Set(sources)].filter((source) => !made.has(source));
  const readers = [...made].flatMap((tensor) => graph.readers.get(tensor) ?? []);
  const outside = [...new Set(readers)].filter((node) => !made.has(node.tensor));
  const nodes = own.length > 0 ? [{ title: 'Nodes', jumps: own.map((n) => jumpToNode(n)) }] : [];
  return [
    { title: 'Inputs', jumps: read.map((tensor) => jumpToTensor(graph, tensor)) },
    { title: 'Outputs', jumps: outside.map((node) => jumpToNode(node)) },
    ...nodes,
  ];
}

export function inspectNode(
  node: Node,
  graph: TemplateGraph,
  op: Op | undefined,
  session: Session | null,
): Inspection {
  const tensor = graph.tensors[node.tensor];
  const time = op ? op.end_ns - op.begin_ns : 0;
  return {
    kind: 'Node',
    title: node.op,
    facts: [
      ...fact('output', node.name, { mono: true }),
      ...fact('index', `${node.node} of the graph`),
      ...(node.computed ? [] : fact('computation', 'none (view or reshape)')),
      ...(op ? fact('duration', formatNs(time), { exact: exactNs(time) }) : []),
      ...(tensor ? tensorFacts(tensor, session) : []),
    ],
    links: [...linksOfTensor(graph, node.tensor), ...executedByLinks(node)],
    layer: tensor?.layer ?? null,
    json: { ...node, output: tensor },
  };
}

export function inspectTensor(
  tensor: Tensor,
  graph: TemplateGraph,
  session: Session | null,
): Inspection {
  const node = graph.producers.get(tensor.tensor);
  const reader = graph.readers.get(tensor.tensor)?.[0];
  return {
    kind: KINDS[tensor.kind],
    title: tensor.name,
    facts: tensorFacts(tensor, session),
    links: [
      ...linksOfTensor(graph, tensor.tensor),
      ...(node
        ? [{ title: 'Produced by', jumps: [jumpToNode(node)] }, ...executedByLinks(node)]
        : []),
    ],
    layer: tensor.layer ?? (reader ? (graph.tensors[reader.tensor]?.layer ?? null) : null),
    json: tensor,
  };
}

const KINDS: Readonly<Record<Tensor['kind'], string>> = {
  intermediate: 'Tensor',
  weight: 'Weight',
  kv: 'KV cache',
  input: 'Input',
};

function tensorFacts(tensor: Tensor, session: Session | null): readonly Fact[] {
  const { file } = tensor;
  const path = file ? session?.model?.files[file.index]?.path : undefined;
  return [
    ...fact('meaning', tensor.label),
    ...fact('shape', `${tensor.type} ${formatShape(tensor.shape)}`),
    ...fact('size', formatBytes(tensor.size), { exact: exactBytes(tensor.size) }),
    ...fact('kind', tensor.kind),
    ...fact('source', tensor.source),
    ...locationFacts(tensor),
    ...fact('category', tensor.category),
    ...fact('buffer', tensor.buffer),
    ...(file
      ? [
          ...fact('file', path ?? `file ${file.index}`, { mono: true }),
          ...fact('offset', formatCount(file.offset), { exact: String(file.offset) }),
          ...fact('length', formatBytes(file.length), { exact: exactBytes(file.length) }),
        ]
      : []),
    ...fact('strides', tensor.strides.join(', '), { mono: true }),
  ];
}

function linksOfTensor(graph: TemplateGraph, tensor: number): readonly Links[] {
  const sources = graph.producers.get(tensor)?.sources ?? [];
  const viewed = graph.tensors[tensor]?.view_of ?? null;
  const inputs = sources.filter((source) => source !== null);
  return [
    { title: 'Inputs', jumps: [...new Set(inputs)].map((one) => jumpToTensor(graph, one)) },
    { title: 'Outputs', jumps: (graph.readers.get(tensor) ?? []).map((node) => jumpToNode(node)) },
    ...(viewed === null ? [] : [{ title: 'View of', jumps: [jumpToTensor(graph, viewed)] }]),
  ];
}

function executedByLinks({ executed_op }: Node): readonly Links[] {
  if (executed_op === null) return [];
  const to = { kind: 'op', op: executed_op } as const;
  return [{ title: 'Executed by', jumps: [{ text: `op ${executed_op}`, detail: '', to }] }];
}

const jumpToNode = (node: Node): Jump => ({
  text: node.name,
  detail: node.op,
  to: { kind: 'node', node: node.node },
});

function jumpToTensor(graph: TemplateGraph, index: number): Jump {
  const node = graph.producers.get(index);
  if (node) return jumpToNode(node);
  const tensor = graph.tensors[index];
  return {
    text: tensor?.name ?? `tensor ${index}`,
    detail: tensor ? `${tensor.kind}, ${tensor.type} ${formatShape(tensor.shape)}` : '',
    to: { kind: 'tensor', tensor: index },
  };
}

export function inspectAccess(access: Access, op: Op | undefined): Inspection {
  const { file } = access;
  return {
    kind: access.write ? 'Write' : 'Read',
    title: access.tensor,
    facts: [
      ...fact('bytes', formatBytes(access.bytes), { exact: exactBytes(access.bytes) }),
      ...fact('kind', access.kind),
      ...fact('source', access.source),
      ...locationFacts(access),
      ...fact('category', access.category),
      ...fact('expert', access.expert),
      ...fact('rank', access.rank),
      ...fact('score', access.score?.toFixed(4)),
      ...fact('address', access.address, { mono: true }),
      ...(file
        ? [
            ...fact('file', file.index),
            ...fact('offset', formatCount(file.offset), { exact: String(file.offset) }),
            ...fact('length', formatBytes(file.length), { exact: exactBytes(file.length) }),
          ]
        : []),
    ],
    links: [
      {
        title: 'Accessed by',
        jumps: [
          {
            text: op?.name ?? `op ${access.op}`,
            detail: op?.tensor ?? '',
            to: { kind: 'op', op: access.op },
          },
        ],
      },
    ],
    layer: access.layer,
    json: access,
  };
}
