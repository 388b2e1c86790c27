// Worker that computes graph layouts outside the main thread. Sends one response per request, in
// order, with the id of the request.
import { layoutGraph, type Layout, type LayoutGraph } from '../graph/layout';

export interface LayoutRequest {
  readonly id: number;
  readonly graph: LayoutGraph;
}
export interface LayoutResponse {
  readonly id: number;
  readonly layout: Layout;
}

// The global scope is a worker's, but the DOM types describe a window.
const scope = self as unknown as {
  onmessage: (event: MessageEvent<LayoutRequest>) => void;
  postMessage: (answer: LayoutResponse) => void;
};
scope.onmessage = ({ data: { id, graph } }) => {
  scope.postMessage({ id, layout: layoutGraph(graph) });
};
