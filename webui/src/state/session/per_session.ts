// Resources of a session that several views share. A view can define further ones with
// `perSession`.
import { computed } from '@preact/signals';
import type { Access, Graph, LayerSubgraph, Node, Op, Tensor } from '../../net/types';
import { isNotFound } from '../../net/api';
import { ok } from '../../result';
import type { OpenSession } from './open_session';
import { Resource } from '../resource';
import { opOf, type Selection } from '../view/selection';
import { StepOps } from './step_ops';

// Creates one value per session at the first use.
export function perSession<T>(make: (session: OpenSession) => T): (session: OpenSession) => T {
  const made = new WeakMap<OpenSession, T>();
  return (session) => {
    const known = made.get(session);
    if (known !== undefined) return known;
    const fresh = make(session);
    made.set(session, fresh);
    return fresh;
  };
}

export const stepOpsOf = perSession((session) => new StepOps(session));

export interface OpsOfStep {
  readonly step: number;
  readonly rows: readonly Op[]; // in execution order
}

// The ops of the selected step.
export const opsOf = perSession((session) => {
  const { reconnects } = session.context;
  return new Resource<OpsOfStep>({
    key: () => (session.hasStep.value ? String(session.step.value) : null),
    load: async (signal) => {
      const step = session.step.peek() ?? 0;
      const rows = await stepOpsOf(session).load(step, signal);
      return rows.ok ? ok({ step, rows: rows.value }) : rows;
    },
    reconnects,
    // A step that has just finished may not be on disk yet.
    isTemporary: (error) => isNotFound(error) && session.active.peek(),
  });
});

// The accesses of the selected op.
export const accessesOf = perSession((session) => {
  const { api, navigation, reconnects } = session.context;
  const op = computed(() => opOf(navigation.view.value.selection));
  return new Resource<readonly Access[]>({
    key: () => {
      const step = session.step.value;
      return step === null || op.value === null ? null : `${step} ${op.value}`;
    },
    load: async (signal) => {
      const page = await api.accesses(session.id, session.step.peek() ?? 0, op.peek() ?? 0, signal);
      return page.ok ? ok(page.value.accesses) : page;
    },
    reconnects,
  });
});

// The graph template of the selected step; 0: none.
export const templateOf = perSession((session) =>
  computed(() => {
    void session.feed.version.value;
    const step = session.step.value;
    return step === null ? 0 : (session.data.steps[step]?.template ?? 0);
  }),
);

export interface TemplateGraph {
  readonly template: number;
  readonly nodes: readonly Node[];
  readonly tensors: readonly Tensor[];
  readonly producers: ReadonlyMap<number, Node>; // by tensor
  readonly readers: ReadonlyMap<number, readonly Node[]>; // by tensor
  readonly outputs: ReadonlyMap<number, Node>; // by executed op: its last node
  // By tensor: its name; further tensors with the same name have a number: "Qcur-0~2".
  readonly keys: readonly string[];
  readonly tensorOf: ReadonlyMap<string, number>; // by key
}

export const graphOf = perSession((session) => {
  const { api, reconnects } = session.context;
  const template = templateOf(session);
  return new Resource<TemplateGraph>({
    key: () => (template.value === 0 ? null : String(template.value)),
    load: async (signal) => {
      const number = template.peek();
      const [nodes, tensors] = await Promise.all([
        api.nodes(session.id, number, signal),
        api.tensors(session.id, number, signal),
      ]);
      if (!nodes.ok) return nodes;
      return tensors.ok ? ok(templateGraph(number, nodes.value, tensors.value)) : tensors;
    },
    reconnects,
    cacheSize: 4,
  });
});

export function templateGraph(
  template: number,
  nodes: readonly Node[],
  tensors: readonly Tensor[],
): TemplateGraph {
  const producers = new Map<number, Node>();
  const readers = new Map<number, Node[]>();
  const outputs = new Map<number, Node>();
  for (const node of nodes) {
    producers.set(node.tensor, node);
    if (node.executed_op !== null) outputs.set(node.executed_op, node);
    for (const source of new Set(node.sources)) {
      if (source === null) continue;
      const known = readers.get(source);
      if (known) known.push(node);
      else readers.set(source, [node]);
    }
  }
  const same = new Map<string, number>();
  const keys = tensors.map(({ tensor_name: name }) => {
    const count = (same.get(name) ?? 0) + 1;
    same.set(name, count);
    return count === 1 ? name : `${name}~${count}`;
  });
  const tensorOf = new Map(keys.map((key, tensor) => [key, tensor]));
  return { template, nodes, tensors, producers, readers, outputs, keys, tensorOf };
}

// The subgraph of the selected layer. Steps with the same template share it.
export const layerOf = perSession((session) => {
  const { api, navigation, reconnects } = session.context;
  const template = templateOf(session);
  const layer = computed(() => navigation.view.value.layer);
  return new Resource<LayerSubgraph>({
    key: () => (template.value === 0 ? null : `${template.value} ${layer.value}`),
    load: (signal) => api.layer(session.id, session.step.peek() ?? 0, layer.peek(), signal),
    reconnects,
    isTemporary: (error) => isNotFound(error) && session.active.peek(),
    cacheSize: 64,
  });
});

// The selected op, or the op that executed the selected node or tensor; null: none, or not yet known.
export function executedOp(session: OpenSession, selection: Selection | null): number | null {
  if (selection?.kind !== 'node' && selection?.kind !== 'tensor') return opOf(selection);
  const graph = graphOf(session).state.value.value;
  const node =
    selection.kind === 'node'
      ? graph?.nodes[selection.node]
      : graph?.producers.get(graph.tensorOf.get(selection.name) ?? -1);
  return node?.executed_op ?? null;
}

// The layer whose graph has the selection, in a step; null: none, or not yet known.
export function layerOfSelection(
  session: OpenSession,
  selection: Selection | null,
  step: number | null,
): number | null {
  if (selection && 'layer' in selection) return selection.layer;
  if (selection === null || step === null) return null;
  const op = opOf(selection);
  const executed = op === null ? undefined : stepOpsOf(session).known(step)?.[op];
  if (executed) return executed.op_layer_id;
  const graph = graphOf(session).state.peek().value;
  const isOfStep = graph?.template === session.data.steps[step]?.template;
  return graph && isOfStep ? layerIn(graph, selection) : null;
}

function layerIn(graph: TemplateGraph, selection: Selection): number | null {
  const node =
    selection.kind === 'node'
      ? graph.nodes[selection.node]
      : graph.outputs.get(opOf(selection) ?? -1);
  const tensor = selection.kind === 'tensor' ? graph.tensorOf.get(selection.name) : node?.tensor;
  return graph.tensors[tensor ?? -1]?.layer_id ?? null;
}

// The graph of the whole model. Steps with the same template share it.
export const wholeGraphOf = perSession((session) => {
  const { api, reconnects } = session.context;
  const template = templateOf(session);
  return new Resource<Graph>({
    key: () => (template.value === 0 ? null : String(template.value)),
    load: (signal) => api.graph(session.id, template.peek(), signal),
    reconnects,
    isTemporary: (error) => isNotFound(error) && session.active.peek(),
    cacheSize: 4,
  });
});
