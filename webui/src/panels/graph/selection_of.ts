// The selection of a node of a graph: what nothing computed (weights, the cache, inputs) is a tensor.
import type { GraphNode } from '../../net/types';
import type { OpenSession } from '../../state/session/open_session';
import { graphOf } from '../../state/session/per_session';
import type { Selection } from '../../state/view/selection';

export function selectionOf(session: OpenSession, { node, tensor, name }: GraphNode): Selection {
  if (node !== null) return { kind: 'node', node };
  const keys = graphOf(session).state.peek().value?.keys;
  return { kind: 'tensor', name: keys?.[tensor] ?? name };
}
