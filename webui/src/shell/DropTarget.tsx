// Accepts session files dropped anywhere on the page.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Store } from '../state/store';

const hasFiles = (event: DragEvent): boolean =>
  event.dataTransfer?.types.includes('Files') === true;

export function DropTarget({ store }: { store: Store }) {
  const over = useSignal(false);
  useEffect(() => {
    let depth = 0; // dragenter and dragleave fire for every element
    const listeners: Partial<Record<string, (event: DragEvent) => void>> = {
      dragenter: (event) => {
        if (!hasFiles(event)) return;
        depth += 1;
        over.value = true;
      },
      dragleave: (event) => {
        if (!hasFiles(event)) return;
        depth -= 1;
        over.value = depth > 0;
      },
      dragover: (event) => {
        if (hasFiles(event)) event.preventDefault();
      },
      drop: (event) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        depth = 0;
        over.value = false;
        store.upload([...(event.dataTransfer?.files ?? [])]);
      },
    };
    const entries = Object.entries(listeners) as [string, EventListener][];
    for (const [type, listener] of entries) addEventListener(type, listener);
    return () => {
      for (const [type, listener] of entries) removeEventListener(type, listener);
    };
  }, [store]);
  return over.value ? (
    <div class="drop" aria-hidden="true">
      <p>Drop .ttrace files to add them</p>
    </div>
  ) : null;
}
