// The position of a live subscription, i.e. the next message that it needs, and how each message
// advances it (api/live.md, "Positions"). Pure functions.
import type { OpsFrame } from './frames';
import type { LiveEvent, LivePosition } from './live_events';

// Returns null for a message that was received before; the caller ignores it.
export function afterEvent(at: LivePosition, event: LiveEvent): LivePosition | null {
  switch (event.type) {
    case 'token':
    case 'text':
      return event.index < at.token ? null : { ...at, token: event.index + 1 };
    case 'step':
      return event.step < at.step ? null : { token: at.token, step: event.step + 1, op: 0 };
    default:
      return at;
  }
}

export function afterFrame(at: LivePosition, frame: OpsFrame): LivePosition | null {
  if (frame.step < at.step) return null;
  const from = frame.step === at.step ? at.op : 0;
  return frame.firstOp < from && !frame.withdrawn
    ? null
    : { token: at.token, step: frame.step, op: frame.firstOp + frame.op.length };
}
