// Where the run of the open session is stopped, and how it goes on. Every page that has the session
// open shows it: the server lets any client go on.
import type { Store } from '../state/store';
import { lazy } from '../ui/lazy';

// Not needed before a run stops.
export const debugControls = lazy(async () => (await import('./DebugControls')).DebugControls);

export function DebugBar({ store }: { store: Store }) {
  const session = store.open.value;
  const stop = store.debug.stop.value;
  const Controls = debugControls;
  if (!session || !stop) return null;
  return <Controls key={session.id} store={store} session={session} stop={stop} />;
}
