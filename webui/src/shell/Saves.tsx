// The files that the server makes for the page, with their progress.
import { exactBytes, formatBytes } from '../format';
import type { Store } from '../state/store';
import { IconButton } from '../ui/Button';

export function Saves({ store }: { store: Store }) {
  const list = store.saves.list.value;
  if (list.length === 0) return null;
  return (
    <div class="saves" role="region" aria-label="Downloads">
      {list.map(({ id, name, received, all, stop }) => (
        <div key={id} class="toast save">
          <span>{name}</span>
          <progress
            max={1}
            {...(all === null ? {} : { value: received / Math.max(all, 1) })}
            aria-label={`Saving ${name}`}
          />
          <span class="dim" title={exactBytes(received)}>
            {received === 0 ? 'computing…' : formatBytes(received)}
          </span>
          <IconButton icon="close" label={`Cancel ${name}`} onClick={stop} />
        </div>
      ))}
    </div>
  );
}
