// What of a session a live client lacks next, and how each message moves that on
// (api/live.md, "A position, not a queue"). Pure.
import type { OpsFrame } from './frames';
import type { LiveEvent } from './live_events';

// Indices of a token and a step, and of that step an op. Rows of routing, which
// the protocol counts beside them, are not asked for.
export interface LivePosition {
  readonly token: number;
  readonly step: number;
  readonly op: number;
}

// Null: the message was there before and is to be passed over.
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
