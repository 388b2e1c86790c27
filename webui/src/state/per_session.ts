// What is read of a session for the views that need it. A view that needs more
// makes its own with `perSession`; nothing else has to know of it.
import { computed } from '@preact/signals';
import type { Access, LayerSubgraph, Node, Op, OpSort, Tensor } from '../net/types';
import { isMissing } from '../net/api';
import { ok } from '../result';
import type { OpenSession } from './open_session';
import { Resource } from './resource';
import { opOf } from './selection';

// One of each kind per session, made when it is first asked for.
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

export interface OpsOfStep {
  readonly step: number;
  readonly sort: OpSort;
  readonly rows: readonly Op[];
}

export const OP_SORTS: readonly OpSort[] = [
  'op', '-op', 'name', '-name', 'duration', '-duration', 'bytes', '-bytes', 'layer', '-layer',
]; // prettier-ignore

// The ops of the shown step, in the order that the server was asked for.
export const opsOf = perSession((session) => {
  const { api, navigation, back } = session.around;
  const sort = computed(() => {
    const wanted = navigation.view.value.sorts.ops;
    return OP_SORTS.find((known) => known === wanted) ?? 'op';
  });
  return new Resource<OpsOfStep>({
    key: () => (session.step.value === null ? null : `${session.step.value} ${sort.value}`),
    load: async (signal) => {
      const step = session.step.peek() ?? 0;
      const order = sort.peek();
      const rows = await api.ops(session.id, step, order, signal);
      if (!rows.ok) return rows;
      const template = session.data.steps[step]?.template;
      if (template !== undefined) session.data.learnTemplate(template, rows.value);
      return ok({ step, sort: order, rows: rows.value });
    },
    back,
    // A step that has just ended may not be on disk yet.
    comes: (error) => isMissing(error) && session.active.peek(),
  });
});

// What the selected op read and wrote.
export const accessesOf = perSession((session) => {
  const { api, navigation, back } = session.around;
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
    back,
  });
});

// The graph that the shown step evaluated. 0 stands for a step without one.
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
  readonly madeBy: ReadonlyMap<number, Node>; // by tensor
  readonly readBy: ReadonlyMap<number, readonly Node[]>; // by tensor
}

export const graphOf = perSession((session) => {
  const { api, back } = session.around;
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
    back,
    keep: 4,
  });
});

export function templateGraph(
  template: number,
  nodes: readonly Node[],
  tensors: readonly Tensor[],
): TemplateGraph {
  const madeBy = new Map<number, Node>();
  const readBy = new Map<number, Node[]>();
  for (const node of nodes) {
    madeBy.set(node.tensor, node);
    for (const source of new Set(node.sources)) {
      if (source === null) continue;
      const readers = readBy.get(source);
      if (readers) readers.push(node);
      else readBy.set(source, [node]);
    }
  }
  return { template, nodes, tensors, madeBy, readBy };
}

// The chosen layer of the shown step's graph. Steps of one graph share it.
export const layerOf = perSession((session) => {
  const { api, navigation, back } = session.around;
  const template = templateOf(session);
  const layer = computed(() => navigation.view.value.layer);
  return new Resource<LayerSubgraph>({
    key: () => (template.value === 0 ? null : `${template.value} ${layer.value}`),
    load: (signal) => api.layer(session.id, session.step.peek() ?? 0, layer.peek(), signal),
    back,
    comes: (error) => isMissing(error) && session.active.peek(),
    keep: 64,
  });
});
