// Which tokens each attention head looks at, in a few figures, of a session that captured attention
// weights. Asked once for the session.
import * as wire from '../../net/types';
import type { HeadAttention } from '../../net/types';
import { isCaptured } from '../request/request';
import { Resource } from '../resource';
import { perSession } from './per_session';

export const scoresOf = perSession(
  (session) =>
    new Resource<{ readonly heads: readonly HeadAttention[] }>({
      key: () => {
        const info = session.info.value;
        const isThere = info.is === 'ready' && isCaptured(info.value.facts, 'attention');
        return isThere && !session.active.value ? 'heads' : null;
      },
      load: () => session.context.api.analysis(session.id, 'attention', wire.attention),
      reconnects: session.context.reconnects,
    }),
);

export interface HeadScore {
  readonly name: string;
  readonly unit: 'share' | 'bits' | 'number';
  readonly value: number;
  readonly meaning: string;
}

export const headScores = ({ previous, first, self, induction, elsewhere, entropy, distance }: HeadAttention): readonly HeadScore[] => [
  { name: 'previous token', unit: 'share', value: previous, meaning: 'Attention weight of the token before' },
  { name: 'first token', unit: 'share', value: first, meaning: 'Attention weight of token 0' },
  { name: 'itself', unit: 'share', value: self, meaning: 'Attention weight of the token itself' },
  ...(induction === null ? [] : [{ name: 'induction', unit: 'share', value: induction, meaning: 'Attention weight of the tokens that followed the same token before' } as const]),
  ...(elsewhere > 1e-6 ? [{ name: 'sinks', unit: 'share', value: elsewhere, meaning: 'Attention weight of attention sinks, which belong to no token' } as const] : []),
  { name: 'entropy', unit: 'bits', value: entropy, meaning: 'Of the attention weights: 0, it looks at one token' },
  { name: 'distance', unit: 'number', value: distance, meaning: 'Mean number of tokens to those that it looks at' },
]; // prettier-ignore
