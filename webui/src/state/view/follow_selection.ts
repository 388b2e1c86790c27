// Finds the selected op or node in the graph of each selected step, where it may have another index: by
// the name of its output.
import { effect, untracked } from '@preact/signals';
import type { Node } from '../../net/types';
import type { OpenSession } from '../session/open_session';
import { graphOf, templateOf, type TemplateGraph } from '../session/per_session';
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

// The name of the output of a selected op or node; null: there is none.
export function outputName(graph: TemplateGraph, selection: Selection | null): string | null {
  if (selection?.kind === 'output') return selection.name;
  const node = nodeOf(graph, selection);
  return (node && graph.keys[node.tensor]) ?? null;
}

// The selected op or node in a graph, by the name of its output. An access becomes its op: the
// accesses of another graph may differ.
export function selectionIn(graph: TemplateGraph, selection: Selection, name: string): Selection {
  const tensor = graph.tensorOf.get(name);
  const node = tensor === undefined ? undefined : graph.producers.get(tensor);
  const isNode =
    selection.kind === 'node' || (selection.kind === 'output' && selection.of === 'node');
  if (node && isNode) return { kind: 'node', node: node.node };
  const op = node?.executed_op ?? null;
  if (op !== null) return { kind: 'op', op };
  return { kind: 'output', of: isNode ? 'node' : 'op', name };
}

interface Known {
  readonly graph: TemplateGraph;
  readonly selection: Selection;
  readonly name: string;
}

export class FollowedSelection {
  readonly stop: () => void;
  private readonly session: OpenSession;
  private graph: TemplateGraph | null = null; // of the selected step
  private known: Known | null = null;

  // Watches the session until `stop` is called.
  constructor(session: OpenSession) {
    this.session = session;
    const { navigation } = session.context;
    this.stop = effect(() => {
      const graph = this.loadedGraph(graphOf(session).state.value.value);
      const { selection } = navigation.view.value;
      if (!graph) return;
      untracked(() => {
        this.follow(graph, selection);
      });
    });
  }

  // The name of the output of the selected op or node; null: it is unknown. While the graph of another
  // step is loading, it is the name in the step before.
  nameOf(selection: Selection | null): string | null {
    const { known } = this;
    if (known?.selection === selection) return known.name;
    const graph = this.loadedGraph(graphOf(this.session).state.peek().value);
    return graph && outputName(graph, selection);
  }

  // Null: the graph is of another step.
  private loadedGraph(graph: TemplateGraph | null): TemplateGraph | null {
    return graph?.template === templateOf(this.session).value ? graph : null;
  }

  private follow(graph: TemplateGraph, selection: Selection | null): void {
    const { navigation } = this.session.context;
    const now = this.selectionIn(graph, selection);
    const name = outputName(graph, now);
    this.known = now && name !== null ? { graph, selection: now, name } : null;
    const isNew = this.graph !== graph;
    this.graph = graph;
    if (now !== selection) navigation.change({ selection: now }, 'replace');
    else if (isNew) navigation.nameOutput();
  }

  private selectionIn(graph: TemplateGraph, selection: Selection | null): Selection | null {
    if (selection?.kind !== 'output') {
      const { known } = this;
      if (known?.selection !== selection || known.graph === graph) return selection;
      const found = selectionIn(graph, known.selection, known.name);
      return nodeOf(graph, found) === nodeOf(graph, selection) ? selection : found;
    }
    const found = selectionIn(graph, selection, selection.name);
    return found.kind === 'output' ? selection : found;
  }
}

// The name of the output of a selected op or node that a run can stop at; null: it computes nothing,
// or its graph has not arrived.
export function outputOfSelection(
  session: OpenSession,
  selection: Selection | null,
): string | null {
  const graph = graphOf(session).state.value.value;
  if (!graph || selection === null) return null;
  const node =
    selection.kind === 'tensor'
      ? graph.producers.get(graph.tensorOf.get(selection.name) ?? -1)
      : nodeOf(graph, selection);
  const isRun = typeof node?.executed_op === 'number';
  return isRun ? (graph.tensors[node.tensor]?.tensor_name ?? null) : null;
}
