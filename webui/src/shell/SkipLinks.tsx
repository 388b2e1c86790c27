// The first stops of the Tab key: a button per panel, visible while it has the focus.
import type { Panel } from '../panels/panel';
import type { Store } from '../state/store';

export function SkipLinks({ store, panels }: { store: Store; panels: readonly Panel[] }) {
  return (
    <nav class="skip-links" aria-label="Panels">
      {panels.map(({ id, title }) => (
        <button
          key={id}
          type="button"
          onClick={() => {
            store.reveal(id);
            document.getElementById(`tab-${id}`)?.focus();
          }}
        >
          Go to {title}
        </button>
      ))}
    </nav>
  );
}
