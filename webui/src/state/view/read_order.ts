// How much of what the ops read of the model files is read in the order of the files.
import type { ReadonlySignal } from '@preact/signals';
import type { SequentialityQuery } from '../../net/types';
import { ok } from '../../result';
import type { OpenSession } from '../session/open_session';
import { Resource } from '../resource';

export interface ReadOrder {
  readonly share: number | null; // of the bytes; null: nothing is read
}

const DELAY_MS = 150; // a moving camera changes the query with each frame

// Nothing is loaded while the session grows.
export function readOrderOf(
  session: OpenSession,
  query: ReadonlySignal<SequentialityQuery | null>,
): Resource<ReadOrder> {
  const { api, reconnects } = session.context;
  return new Resource<ReadOrder>({
    key: () => (session.active.value ? null : query.value && JSON.stringify(query.value)),
    load: async (signal) => {
      await new Promise((done) => setTimeout(done, DELAY_MS));
      const order = await api.sequentiality(session.id, { ...query.peek(), limit: 0 }, signal);
      if (!order.ok) return order;
      const { bytes, sequential_bytes: sequential } = order.value.sums;
      return ok({ share: bytes > 0 ? sequential / bytes : null });
    },
    reconnects,
  });
}

export const readOrderText = (share: number): string => `sequential ${(100 * share).toFixed(1)} %`;
