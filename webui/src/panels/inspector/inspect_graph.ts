// Details of ops, accesses, nodes and tensors, with their inputs and outputs.
import {
  exactBytes,
  exactNs,
  formatBytes,
  formatCount,
  formatNs,
  formatShape,
  kernelText,
  kindName,
  partName,
  sourceName,
} from '../../format';
import {
  durationOf,
  shapeOf,
  type Access,
  type Node,
  type Op,
  type OpSource,
  type Session,
  type Tensor,
} from '../../net/types';
import type { TemplateGraph } from '../../state/session/per_session';
import { fact, type Fact, type Figure, type Inspection, type Jump, type Links } from './inspection';
import { ofAccess, ofNode, ofOp, ofTensor } from './reproduce';

// The ops of the step by index: when an op ran, and for how long.
export type OpsByIndex = ReadonlyMap<number, Op>;

export function inspectOp(
  op: Op,
  graph: TemplateGraph | null,
  accesses: readonly Access[] | null,
  ops: OpsByIndex,
): Inspection {
  const time = durationOf(op);
  const whole = [...ops.values()].reduce((sum, one) => sum + durationOf(one), 0);
  const bytes = op.bytes_read + op.bytes_written;
  return {
    kind: 'Op',
    title: op.operation_type,
    figures:
      whole > 0
        ? [
            {
              name: 'of the step',
              value: formatNs(time),
              exact: exactNs(time),
              share: time / whole,
              ofStep: true,
            },
          ]
        : [],
    place: { axis: 'op', name: op.tensor_name, index: op.op },
    now: { time, bytes, ...(accesses ? { accesses: accesses.length } : {}) },
    copy: ofOp(op.step, op.op),
    facts: [
      ...fact('output', op.tensor_name, { mono: true }),
      ...fact('shape', `${op.tensor_type} ${formatShape(shapeOf(op))}`),
      ...fact('index', `${op.op} of the step`),
      ...locationFacts(op.op_layer_id, op),
      ...fact('duration', formatNs(time), { exact: exactNs(time) }),
      ...fact('begin', formatNs(op.timestamp_ns), { exact: exactNs(op.timestamp_ns) }),
      ...fact('read', formatBytes(op.bytes_read), { exact: exactBytes(op.bytes_read) }),
      ...fact('written', formatBytes(op.bytes_written), { exact: exactBytes(op.bytes_written) }),
      ...(time > 0 ? fact('rate', `${formatBytes((bytes / time) * 1e9)}/s`) : []),
    ],
    groups: [
      { title: 'Ran as', facts: executionFacts(op) },
      ...(op.output_nan === null ? [] : [{ title: 'Output values', facts: valueFacts(op) }]),
    ],
    links: [
      ...(graph ? linksOfOp(op, graph, ops) : sourceNameLinks(op)),
      ...layerLinks(op.op_layer_id),
    ],
    layer: op.op_layer_id,
    json: accesses ? { ...op, accesses } : op,
  };
}

function executionFacts(op: Op): readonly Fact[] {
  return [
    ...fact('kernel', op.kernel ?? 'not known', { exact: kernelText(op.kernel) }),
    ...fact('threads', op.threads),
    ...fact('device', op.device),
    ...(op.nodes > 1 ? fact('fused', `${op.nodes} nodes, executed as this op`) : []),
  ];
}

// Statistics of an output, recorded at level verbose.
function valueFacts(op: Op): readonly Fact[] {
  const number = (value: number | null): string =>
    value === null ? 'none' : String(Number(value.toPrecision(4)));
  const exact = (value: number | null) => ({ exact: String(value) });
  return [
    ...fact('min', number(op.output_min), exact(op.output_min)),
    ...fact('max', number(op.output_max), exact(op.output_max)),
    ...fact('mean', number(op.output_mean), exact(op.output_mean)),
    ...fact('std', number(op.output_std), exact(op.output_std)),
    ...fact('NaN', formatCount(op.output_nan ?? 0)),
    ...fact('Inf', formatCount(op.output_inf ?? 0)),
  ];
}

function locationFacts(
  layer: number | null,
  { component, role }: { readonly component: string; readonly role: string },
): readonly Fact[] {
  return [
    ...fact('layer', layer ?? 'none (embedding or output)'),
    ...fact('component', partName(component, role)),
  ];
}

const layerLinks = (layer: number | null): readonly Links[] =>
  layer === null
    ? []
    : [
        {
          title: 'Part of',
          jumps: [{ text: `layer ${layer}`, detail: '', to: { kind: 'layer', layer } }],
        },
      ];

// Used until the graph has arrived: names without links.
function sourceNameLinks(op: Op): readonly Links[] {
  const jumps = op.sources.map((source) => ({
    text: source.tensor_name,
    detail: describe(source),
    to: null,
  }));
  return [{ title: 'Inputs', jumps }];
}

// Inputs: tensors that the op's nodes read and other nodes produced. Then the readers of the tensors
// that they produced.
function linksOfOp(op: Op, graph: TemplateGraph, ops: OpsByIndex): readonly Links[] {
  const own = graph.nodes.filter((node) => node.executed_op === op.op);
  const made = new Set(own.map((node) => node.tensor));
  const sources = own.flatMap((node) => node.sources).filter((source) => source !== null);
  const read = [...new Set(sources)].filter((source) => !made.has(source));
  const readers = [...made].flatMap((tensor) => graph.readers.get(tensor) ?? []);
  const outside = [...new Set(readers)].filter((node) => !made.has(node.tensor));
  const nodes = own.length > 0 ? [{ title: 'Nodes', jumps: own.map((n) => jumpToNode(n)) }] : [];
  return [
    { title: 'Inputs', jumps: read.map((tensor) => jumpToTensor(graph, tensor)) },
    { title: 'Output read by', jumps: outside.map((node) => jumpToReader(node, ops)) },
    ...nodes,
  ];
}

export function inspectNode(
  node: Node,
  graph: TemplateGraph,
  ops: OpsByIndex,
  session: Session | null,
): Inspection {
  const tensor = graph.tensors[node.tensor];
  const op = node.executed_op === null ? undefined : ops.get(node.executed_op);
  const time = op ? durationOf(op) : 0;
  return {
    kind: 'Node',
    title: node.op,
    figures: tensor ? sizeFigures(tensor, session) : [],
    place: op ? { axis: 'op', name: op.tensor_name, index: op.op } : null,
    now: op ? { time, bytes: op.bytes_read + op.bytes_written } : null,
    copy: ofNode(graph.template, node.node, node.tensor),
    facts: [
      ...fact('output', node.name, { mono: true }),
      ...fact('index', `${node.node} of the graph`),
      ...(node.computed ? [] : fact('computation', 'none (view or reshape)')),
      ...(op ? fact('duration', formatNs(time), { exact: exactNs(time) }) : []),
      ...(tensor ? tensorFacts(tensor, session) : []),
    ],
    links: [
      ...linksOfTensor(graph, node.tensor, ops),
      ...executedByLinks(node),
      ...layerLinks(tensor?.layer_id ?? null),
    ],
    layer: tensor?.layer_id ?? null,
    json: { ...node, output: tensor },
  };
}

export function inspectTensor(
  tensor: Tensor,
  graph: TemplateGraph,
  ops: OpsByIndex,
  session: Session | null,
): Inspection {
  const node = graph.producers.get(tensor.tensor);
  const reader = graph.readers.get(tensor.tensor)?.[0];
  return {
    kind: tensor.role === 'state' ? 'Recurrent state' : KINDS[tensor.tensor_kind],
    title: tensor.tensor_name,
    figures: sizeFigures(tensor, session),
    place: { axis: 'tensor', name: tensor.tensor_name, index: null },
    now: null,
    copy: ofTensor(graph.template, tensor.tensor),
    facts: tensorFacts(tensor, session),
    links: [
      ...linksOfTensor(graph, tensor.tensor, ops),
      ...(node
        ? [{ title: 'Produced by', jumps: [jumpToNode(node)] }, ...executedByLinks(node)]
        : []),
      ...layerLinks(tensor.layer_id),
    ],
    accessesOf: `tensor:${wordOf(tensor.tensor_name)}`,
    layer: tensor.layer_id ?? (reader ? (graph.tensors[reader.tensor]?.layer_id ?? null) : null),
    json: tensor,
  };
}

const KINDS: Readonly<Record<Tensor['tensor_kind'], string>> = {
  intermediate: 'Tensor',
  weight: 'Weight',
  kv: 'KV cache',
  input: 'Input',
};

function tensorFacts(tensor: Tensor, session: Session | null): readonly Fact[] {
  return [
    ...fact('meaning', tensor.input),
    ...fact('shape', `${tensor.tensor_type} ${formatShape(shapeOf(tensor))}`),
    ...fact('size', formatBytes(tensor.tensor_bytes), { exact: exactBytes(tensor.tensor_bytes) }),
    ...fact('kind', kindName(tensor.tensor_kind, tensor.role)),
    ...fact('source', sourceName(tensor.memory_source)),
    ...locationFacts(tensor.layer_id, tensor),
    ...fact('category', tensor.category),
    ...fact('buffer', tensor.buffer),
    ...fileFacts(tensor, session),
    ...fact('strides', [tensor.nb0, tensor.nb1, tensor.nb2, tensor.nb3].join(', '), { mono: true }),
  ];
}

// `session`: for the path of the file; without it, its index.
function fileFacts(
  range: Pick<Access, 'model_file' | 'file_offset' | 'file_bytes'>,
  session: Session | null,
): readonly Fact[] {
  const { model_file: file, file_offset: offset, file_bytes: length } = range;
  if (file === null || offset === null || length === null) return [];
  const path = session?.model?.files[file]?.path;
  return [
    ...fact('file', path ?? `file ${file}`, { mono: path !== undefined }),
    ...fact('offset', formatCount(offset), { exact: String(offset) }),
    ...fact('length', formatBytes(length), { exact: exactBytes(length) }),
  ];
}

// Views have the name of their tensor and a suffix in parentheses, after a space.
const wordOf = (name: string): string => name.split(' ')[0] ?? '';

const addressText = (address: number | null): string | null =>
  address === null ? null : `0x${address.toString(16)}`;

const describe = (tensor: OpSource): string =>
  `${kindName(tensor.tensor_kind)}, ${tensor.tensor_type} ${formatShape(shapeOf(tensor))}`;

function linksOfTensor(graph: TemplateGraph, tensor: number, ops: OpsByIndex): readonly Links[] {
  const sources = graph.producers.get(tensor)?.sources ?? [];
  const viewed = graph.tensors[tensor]?.view_of ?? null;
  const inputs = sources.filter((source) => source !== null);
  return [
    { title: 'Inputs', jumps: [...new Set(inputs)].map((one) => jumpToTensor(graph, one)) },
    {
      title: 'Read by',
      jumps: (graph.readers.get(tensor) ?? []).map((node) => jumpToReader(node, ops)),
    },
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

// Who reads it, when in the step, and for how long.
function jumpToReader(node: Node, ops: OpsByIndex): Jump {
  const jump = jumpToNode(node);
  const op = node.executed_op === null ? undefined : ops.get(node.executed_op);
  const start = ops.get(0)?.timestamp_ns ?? 0;
  if (typeof op?.duration_ns !== 'number') return jump;
  const when = `${formatNs(op.duration_ns)} at ${formatNs(op.timestamp_ns - start)}`;
  return { ...jump, detail: `${jump.detail}, ${when}` };
}

// The size and, of a weight in the model file, its share of the file.
function sizeFigures(tensor: Tensor, session: Session | null): readonly Figure[] {
  const whole = session?.model?.size ?? 0;
  const isInFile = tensor.file_offset !== null && whole > 0;
  return [
    {
      name: 'size',
      value: formatBytes(tensor.tensor_bytes),
      exact: exactBytes(tensor.tensor_bytes),
      ...(isInFile
        ? { share: tensor.tensor_bytes / whole, note: 'of the model file' }
        : { note: `in memory: ${sourceName(tensor.memory_source)}` }),
    },
  ];
}

function jumpToTensor(graph: TemplateGraph, index: number): Jump {
  const node = graph.producers.get(index);
  if (node) return jumpToNode(node);
  const tensor = graph.tensors[index];
  return {
    text: tensor?.tensor_name ?? `tensor ${index}`,
    detail: tensor ? describe(tensor) : '',
    to: { kind: 'tensor', name: graph.keys[index] ?? '' },
  };
}

// `keys`: of the step's graph, if it has arrived.
export function inspectAccess(
  access: Access,
  op: Op | undefined,
  keys: TemplateGraph['keys'] | null,
): Inspection {
  return {
    kind: access.write ? 'Write' : 'Read',
    title: access.tensor_name,
    figures: [
      {
        name: 'touched',
        value: formatBytes(access.size_bytes),
        exact: exactBytes(access.size_bytes),
        ...(access.tensor_bytes > 0
          ? { share: access.size_bytes / access.tensor_bytes, note: 'of the tensor' }
          : {}),
      },
    ],
    place: { axis: 'tensor', name: access.tensor_name, index: null },
    now: null,
    accessesOf: `tensor:${wordOf(access.tensor_name)}`,
    copy: ofAccess(access.step, access.op, access.access, access.part),
    facts: [
      ...fact('bytes', formatBytes(access.size_bytes), { exact: exactBytes(access.size_bytes) }),
      ...fact('kind', kindName(access.tensor_kind, access.role)),
      ...fact('source', sourceName(access.memory_source)),
      ...locationFacts(access.layer_id, access),
      ...fact('category', access.category),
      ...fact('expert', access.expert_id),
      ...fact('rank', access.expert_rank),
      ...fact('score', access.routing_score?.toFixed(4)),
      ...fact('address', addressText(access.tensor_ptr), { mono: true }),
      ...fileFacts(access, null),
    ],
    links: [
      {
        title: 'Accessed by',
        jumps: [
          {
            text: op?.operation_type ?? `op ${access.op}`,
            detail: op?.tensor_name ?? '',
            to: { kind: 'op', op: access.op },
          },
        ],
      },
      {
        title: 'Tensor',
        jumps: [
          {
            text: access.tensor_name,
            detail: kindName(access.tensor_kind, access.role),
            to: { kind: 'tensor', name: keys?.[access.tensor] ?? access.tensor_name },
          },
        ],
      },
    ],
    layer: access.layer_id,
    json: access,
  };
}
