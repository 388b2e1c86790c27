// How a session ended, if not by itself, or what it waits for: said wherever its data is shown.
import { isNotFound } from '../../net/api';
import { isActive, type OpenSession } from './open_session';
import type { Store } from '../store';

// Null: it runs, or it ended by itself.
export function endingText(store: Store, { info, run, deleted }: OpenSession): string | null {
  const state = run.value?.state;
  const isMissing = info.value.is === 'failed' && isNotFound(info.value.error);
  if (store.connection.state.value.is === 'away' && isActive(state))
    return 'interrupted: the server does not answer';
  if (state === 'queued') return 'queued: nothing is computed yet';
  if (deleted.value || (isMissing && run.value === null))
    return 'deleted on the server: only what the page had read is shown';
  if (info.value.is !== 'ready') return null;
  switch (info.value.value.state) {
    case 'recovered':
      return 'recovered: the server ended during this session, and its last steps may be lost';
    case 'failed':
      return 'failed before its end';
    case 'cancelled':
      return 'stopped before its end';
    default:
      return null;
  }
}
