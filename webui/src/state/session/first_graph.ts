// What is known of the model before the first step of a session has ended: the tensors of its files, and
// the graph of an earlier session of the same model, whose ops are probably those that run now.
import { computed } from '@preact/signals';
import type { GgufTensor, Session } from '../../net/types';
import { ok } from '../../result';
import type { OpenSession } from './open_session';
import { graphOf, templateGraph, templateOf, type TemplateGraph } from './per_session';
import { Resource } from '../resource';
import type { Store } from '../store';

export interface FirstGraph {
  // A graph with the same tensors, if the shown step has none. Its data was lost: the graph of another
  // step. The first step has not ended: the graph of an earlier session of the same model.
  readonly graph: Resource<TemplateGraph>;
  readonly files: Resource<readonly GgufTensor[]>; // while the first step runs
}

const made = new WeakMap<OpenSession, FirstGraph>();

export function firstGraphOf(store: Store, session: OpenSession): FirstGraph {
  const known = made.get(session);
  if (known) return known;
  const fresh = { graph: otherGraph(store, session), files: filesOf(session) };
  made.set(session, fresh);
  return fresh;
}

// A session of the same model. The graph of a cancelled one may have only the ops that had run.
export const earlierSession = <One extends Pick<Session, 'id' | 'state' | 'model' | 'steps'>>(
  sessions: readonly One[],
  run: string,
  path: string | undefined,
): One | undefined =>
  sessions.find(
    (one) =>
      one.id !== run && one.state === 'done' && one.model?.path === path && (one.steps ?? 0) > 0,
  );

function otherGraph(store: Store, session: OpenSession): Resource<TemplateGraph> {
  const { api, reconnects } = session.context;
  const earlier = computed(() => {
    const run = session.run.value;
    const list = store.models.list.value;
    const page = store.sessions.page.value;
    if (!run || list.is !== 'ready' || page.is !== 'ready') return null;
    const path = list.value.models.find(({ id }) => id === run.model)?.path;
    return earlierSession(page.value.sessions, run.id, path)?.id ?? null;
  });
  const source = computed(() => {
    if (templateOf(session).value !== 0) return null;
    const template = session.data.latestTemplate();
    if (template !== 0) return { id: session.id, template };
    const id = session.active.value ? earlier.value : null;
    return id === null ? null : { id, template: 1 };
  });
  return new Resource<TemplateGraph>({
    key: () => source.value && `${source.value.id} ${source.value.template}`,
    load: async (signal) => {
      const { id, template } = source.peek() ?? { id: '', template: 0 };
      const [nodes, tensors] = await Promise.all([
        api.nodes(id, template, signal),
        api.tensors(id, template, signal),
      ]);
      if (!nodes.ok) return nodes;
      if (!tensors.ok) return tensors;
      const graph = templateGraph(template, nodes.value, tensors.value);
      session.feed.expectOps(layersOfOps(graph));
      return ok(graph);
    },
    reconnects,
  });
}

// By op, in execution order: the layer of its output; null: none.
function layersOfOps({ outputs, tensors }: TemplateGraph): readonly (number | null)[] {
  return [...outputs]
    .sort(([a], [b]) => a - b)
    .map(([, { tensor }]) => tensors[tensor]?.layer_id ?? null);
}

function filesOf(session: OpenSession): Resource<readonly GgufTensor[]> {
  const { api, reconnects } = session.context;
  return new Resource<readonly GgufTensor[]>({
    key: () => {
      void session.feed.version.value;
      const model = session.run.value?.model ?? null;
      return session.active.value && session.data.steps.length === 0 ? model : null;
    },
    load: async (signal) => {
      const answer = await api.gguf(session.run.peek()?.model ?? '', signal);
      return answer.ok ? ok(answer.value.tensors) : answer;
    },
    reconnects,
  });
}

// The op that runs now: "MUL_MAT ffn_up-3, op 130 of 379", of a new graph "MUL_MAT ffn_up-3, op 130, 34 %
// of the graph"; null: none, or no op has ended.
export function runningOpText(store: Store, session: OpenSession): string | null {
  const { flight, newOp } = session.data;
  if (!session.active.value) return null;
  if (newOp) {
    const {
      op,
      operation_type: type,
      tensor_name: name,
      nodes_begun: begun,
      graph_nodes: all,
    } = newOp;
    const part =
      all !== null && begun <= all ? `, ${Math.round((100 * begun) / all)} % of the graph` : '';
    return `${type} ${name}, op ${op + 1}${part}`;
  }
  if (!flight) return null;
  // The next step has probably the graph of the newest one, which is at hand if that step is shown.
  const isNewest = templateOf(session).value === session.data.latestTemplate();
  const known = isNewest && session.data.latestTemplate() !== 0;
  const { graph: other } = firstGraphOf(store, session);
  const graph = (known ? graphOf(session) : other).state.value.value;
  // More ops than the graph has: it is that of another one.
  const isThis = (graph?.outputs.size ?? 0) > flight.ops;
  const count = `op ${flight.ops + 1}${isThis && graph ? ` of ${graph.outputs.size}` : ''}`;
  const next = isThis ? graph?.outputs.get(flight.op + 1) : undefined;
  return next ? `${next.op} ${next.name}, ${count}` : count;
}
