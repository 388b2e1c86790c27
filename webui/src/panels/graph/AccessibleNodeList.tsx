// The accessible alternative to the canvas: a visually hidden list of the nodes in execution
// order, each with its inputs. Builds the DOM directly, because a layer may have thousands.
import { useEffect, useRef } from 'preact/hooks';
import type { Scene } from '../../graph/scene';
import type { Store } from '../../state/store';

export function AccessibleNodeList({ store, scene }: { store: Store; scene: Scene }) {
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
        button.tabIndex = -1; // not a Tab stop
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
