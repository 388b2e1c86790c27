import { plural } from '../../format';
import type { Run } from '../../net/types';

// A run that is stopped in the debugger may keep the others waiting for minutes.
export function queuedText({ position, stopped_ahead: stopped }: Run): string {
  const ahead = position > 0 ? `Queued, ${plural(position, 'run')} ahead` : 'Queued';
  return stopped === null
    ? ahead
    : `${ahead}: the running one is stopped in the debugger (${stopped})`;
}
