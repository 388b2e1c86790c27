// Lays graphs out away from the page's thread. One answer per question, in
// order; a question carries a number that its answer has, too.
import { layoutGraph, type Layout, type LayoutGraph } from '../graph/layout';

export interface LayoutQuestion {
  readonly id: number;
  readonly graph: LayoutGraph;
}
export interface LayoutAnswer {
  readonly id: number;
  readonly layout: Layout;
}

// The scope is a worker's; the page's types are those of a window.
const scope = self as unknown as {
  onmessage: (event: MessageEvent<LayoutQuestion>) => void;
  postMessage: (answer: LayoutAnswer) => void;
};
scope.onmessage = ({ data: { id, graph } }) => {
  scope.postMessage({ id, layout: layoutGraph(graph) });
};
