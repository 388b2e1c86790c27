// What of a session a live client lacks next, and how each message moves that on
// (api/live.md, "A position, not a queue"). Pure.
import type { LiveFrame } from './frames';
import type { LiveEvent } from './live_events';

// Indices of a token and a step, and of that step an op and a row of routing.
export interface LivePosition {
  readonly token: number;
  readonly step: number;
  readonly op: number;
  readonly routing: number;
}

export const START: LivePosition = { token: 0, step: 0, op: 0, routing: 0 };

// Null: the message was there before and is to be passed over.
export function afterEvent(at: LivePosition, event: LiveEvent): LivePosition | null {
  switch (event.type) {
    case 'token':
    case 'text':
      return event.index < at.token ? null : { ...at, token: event.index + 1 };
    case 'step':
      return event.step < at.step ? null : { ...START, token: at.token, step: event.step + 1 };
    default:
      return at;
  }
}

export function afterFrame(at: LivePosition, frame: LiveFrame): LivePosition | null {
  if (frame.step < at.step) return null;
  const from = frame.step === at.step ? at : { ...START, token: at.token, step: frame.step };
  if (frame.kind === 'routing') {
    return frame.firstRow < from.routing
      ? null
      : { ...from, routing: frame.firstRow + frame.token.length };
  }
  return frame.firstOp < from.op && !frame.withdrawn
    ? null
    : { ...from, op: frame.firstOp + frame.op.length };
}
