// How likely each token was that the model chose, and what it would have said instead: the logit lens of
// the model's output, asked once for the session.
import * as wire from '../../net/types';
import type { LensRow } from '../../net/types';
import { isCaptured } from '../../state/request/request';
import { Resource } from '../../state/resource';
import type { OpenSession } from '../../state/session/open_session';
import { perSession } from '../../state/session/per_session';
import { askRoute } from '../analytics/ask';

const QUERY = { layer: 'outside', limit: 10_000 } as const;

export const askChosen = (session: OpenSession) => askRoute(session, 'lens', QUERY, wire.lens);

// Whether the session may have captured it.
export function hasChosen(session: OpenSession): boolean {
  const info = session.info.value;
  return info.is === 'ready' && isCaptured(info.value.facts, 'lens');
}

// Loaded when the session has ended; nothing to load if it captured nothing.
export const chosenOf = perSession(
  (session) =>
    new Resource<{ readonly rows: readonly LensRow[] }>({
      key: () => (hasChosen(session) && !session.active.value ? 'chosen' : null),
      load: () => askChosen(session),
      reconnects: session.context.reconnects,
    }),
);

export interface Alternative {
  readonly id: number;
  readonly text: string;
  readonly probability: number | null;
  readonly isChosen: boolean;
}

// The most likely tokens, and the chosen one if it is not one of them.
export function alternativesOf({ chosen, likely }: LensRow): readonly Alternative[] {
  const list = likely.map((one) => ({ ...one, isChosen: one.id === chosen?.id }));
  return chosen && !list.some(({ isChosen }) => isChosen)
    ? [...list, { ...chosen, isChosen: true }]
    : list;
}

export const bitsOf = (probability: number | null | undefined): number | null =>
  probability !== null && probability !== undefined && probability > 0
    ? -Math.log2(probability)
    : null;
