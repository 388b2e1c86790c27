// The nodes of the graph as a list that only assistive technology meets: what
// the canvas shows, in execution order, each with what it reads. Painted by
// hand; a layer may have thousands.
import { useEffect, useRef } from 'preact/hooks';
import type { Scene } from '../../graph/scene';
import type { Store } from '../../state/store';

export function NodeTwin({ store, scene }: { store: Store; scene: Scene }) {
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
      ...nodes.map(({ tensor, node, op, kind, name, category }) => {
        const button = document.createElement('button');
        button.type = 'button';
        button.tabIndex = -1; // in the list, not on the way of the Tab key
        const from = reads.get(tensor);
        const reading = from ? `, reads ${from.join(', ')}` : '';
        button.textContent = `${op ?? kind} ${name}, ${category.replaceAll('_', ' ')}${reading}`;
        button.addEventListener('click', () => {
          if (node === null) store.select({ kind: 'tensor', tensor });
          else store.select({ kind: 'node', node });
        });
        const line = document.createElement('li');
        line.append(button);
        return line;
      }),
    );
  }, [store, scene]);
  return <ul ref={list} class="visually-hidden" aria-label="Nodes of the layer" />;
}
