// Changes the options of the graph in the view.
import { decodeGraph, encodeGraph, type GraphOptions } from '../../graph/graph_options';
import type { Store } from '../../state/store';
import { withKey } from '../../state/view/view';

export function setGraph(store: Store, panel: string, options: GraphOptions): void {
  const { options: all } = store.navigation.view.peek();
  const text = encodeGraph(options);
  const before = decodeGraph(all[panel] ?? '');
  // Another graph starts with its own view.
  if (before.form !== options.form) store.navigation.setWindow(panel, null);
  store.navigation.change({ options: withKey(all, panel, text === '' ? null : text) });
}
