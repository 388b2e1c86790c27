// Finds the selected op or node again when the selected step has another graph, where it has another
// index: by the name of its output.
import { effect, untracked } from '@preact/signals';
import type { Node } from '../net/types';
import type { OpenSession } from './open_session';
import { graphOf, templateOf, type TemplateGraph } from './per_session';
import type { Selection } from './selection';

// The node whose output identifies a selection; undefined: it needs no graph.
function nodeOf(graph: TemplateGraph, selection: Selection | null): Node | undefined {
  switch (selection?.kind) {
    case 'op':
    case 'access':
      return graph.outputs.get(selection.op);
    case 'node':
      return graph.nodes[selection.node];
    default:
      return undefined;
  }
}

// The selection in a graph that has an output of this name. An access becomes its op: the accesses
// of another graph may differ. Null: the graph has no such output.
export function selectionIn(
  graph: TemplateGraph,
  selection: Selection,
  key: string,
): Selection | null {
  const tensor = graph.tensorOf.get(key);
  const node = tensor === undefined ? undefined : graph.producers.get(tensor);
  if (!node) return null;
  if (selection.kind === 'node') return { kind: 'node', node: node.node };
  return node.executed_op === null ? null : { kind: 'op', op: node.executed_op };
}

// Watches a session until the returned function is called.
export function followSelection(session: OpenSession): () => void {
  const { navigation } = session.context;
  const resource = graphOf(session);
  let known: { readonly graph: TemplateGraph; readonly selection: Selection; readonly key: string } | null = null; // prettier-ignore
  return effect(() => {
    const graph = resource.state.value.value;
    const { selection } = navigation.view.value;
    if (graph?.template !== templateOf(session).value) return; // it is loading
    untracked(() => {
      let now = selection;
      if (selection && known?.selection === selection && known.graph !== graph) {
        now = selectionIn(graph, selection, known.key);
        if (now === null || nodeOf(graph, now) !== nodeOf(graph, selection))
          navigation.change({ selection: now }, 'replace');
        else now = selection;
      }
      const node = nodeOf(graph, now);
      const key = node && graph.keys[node.tensor];
      known = now && key !== undefined ? { graph, selection: now, key } : null;
    });
  });
}
