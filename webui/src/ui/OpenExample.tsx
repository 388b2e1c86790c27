// Opens the session that is part of the page, for visitors without one of their own.
import type { Store } from '../state/store';

export function OpenExample({ store }: { store: Store }) {
  return (
    <button
      type="button"
      class="link"
      onClick={() => {
        void store.openExample();
      }}
    >
      Open an example session
    </button>
  );
}
