// In which slot of a recorded llama-server a request was evaluated. Pure functions.
import type { Session } from '../../net/types';

// `sequence`: the number of the request. Null: not known.
export const serverSlotOf = (
  slots: Session['server_slots'],
  sequence: number | null | undefined,
): number | null => (sequence ? (slots?.[sequence - 1] ?? null) : null);

export function serverSlotText(slots: Session['server_slots'], sequence: number): string | null {
  const slot = serverSlotOf(slots, sequence);
  return slot === null ? null : `slot ${slot} of the server`;
}
