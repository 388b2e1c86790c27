// The accessible alternative to the canvas: a visually hidden list of the nodes in execution
// order, each with its inputs. Builds the DOM directly, because a layer may have thousands.
import { useEffect, useRef } from 'preact/hooks';
import type { Scene } from '../../graph/scene';
import type { OpenSession } from '../../state/session/open_session';
import type { Store } from '../../state/store';
import { listAccesses } from './list_accesses';
import { selectionOf } from './selection_of';

export function AccessibleNodeList(props: { store: Store; session: OpenSession; scene: Scene }) {
  const { store, session, scene } = props;
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    const host = list.current;
    if (!host) return;
    const { nodes, edges } = scene.graph;
    const names = new Map(nodes.map(({ tensor, name }) => [tensor, name]));
    const reads = new Map<number, string[]>();
    for (const { from, to } of edges) {
      const read = reads.get(to) ?? [];
      read.push(names.get(from) ?? '');
      reads.set(to, read);
    }
    host.replaceChildren(
      ...nodes.map((node) => {
        const { tensor, op, kind, name, category } = node;
        const button = document.createElement('button');
        button.type = 'button';
        button.tabIndex = -1; // not a Tab stop
        const from = reads.get(tensor);
        const reading = from ? `, reads ${from.join(', ')}` : '';
        button.textContent = `${op ?? kind} ${name}, ${category.replaceAll('_', ' ')}${reading}`;
        button.addEventListener('click', () => {
          store.selectInGraph(selectionOf(session, node));
          listAccesses(store);
        });
        const line = document.createElement('li');
        line.append(button);
        return line;
      }),
    );
  }, [store, session, scene]);
  return <ul ref={list} class="visually-hidden" aria-label="Nodes of the layer" />;
}
