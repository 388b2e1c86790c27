// Which tokens a token looks at, from captured attention weights: the token under the pointer, or the
// shown one. The rows of neighbouring tokens are asked for together.
import { computed, signal, type Signal } from '@preact/signals';
import * as wire from '../../net/types';
import type { Range } from '../../plane/range';
import { ok } from '../../result';
import { isCaptured } from '../../state/request/request';
import { Resource } from '../../state/resource';
import type { OpenSession } from '../../state/session/open_session';
import type { Store } from '../../state/store';
import { askRoute } from '../analytics/ask';
import { shownToken } from './shown_token';

// Whose weights: null, the mean over all of them.
export interface Look {
  readonly layer: number | null;
  readonly head: number | null; // only with a layer
}

// The option of the chat panel: "attention", "attention:3", "attention:3:1".
const NAME = 'attention';
export const encodeLook = ({ layer, head }: Look): string =>
  [NAME, ...(layer === null ? [] : [layer, ...(head === null ? [] : [head])])].join(':');
export function decodeLook(text: string): Look | null {
  const [, layer, head] = /^attention(?::(\d{1,6})(?::(\d{1,6}))?)?$/.exec(text) ?? [];
  if (!text.startsWith(NAME) || (layer === undefined && text !== NAME)) return null;
  return { layer: layer === undefined ? null : Number(layer), head: head === undefined ? null : Number(head) }; // prettier-ignore
}

export const lookOf = ({ navigation }: Store): Look | null =>
  decodeLook(navigation.view.value.options.chat ?? '');

export function hasAttention(session: OpenSession): boolean {
  const info = session.info.value;
  return info.is === 'ready' && isCaptured(info.value.facts, 'attention');
}

export interface LookedAt {
  readonly token: number;
  readonly weights: readonly number[]; // of tokens 0, 1, ...; empty: none were captured
}

export const LOOK_CHUNK = 64; // tokens that are asked for together

export const askMeanAttention = (session: OpenSession, { layer, head }: Look, tokens: Range) =>
  askRoute(
    session,
    'attention/tokens',
    {
      from_token: tokens.from,
      to_token: tokens.to,
      ...(layer === null ? {} : { layer }),
      ...(head === null ? {} : { head }),
    },
    wire.meanAttention,
  );

const made = new WeakMap<OpenSession, Resource<LookedAt>>();

export function lookedAtOf(store: Store, session: OpenSession): Resource<LookedAt> {
  const known = made.get(session);
  if (known) return known;
  const asked = computed(() => {
    const look = session.active.value || !hasAttention(session) ? null : lookOf(store);
    const token = store.hoverToken.value ?? shownToken(store, session);
    return look === null || token === null ? null : { ...look, token };
  });
  const resource = new Resource<LookedAt>({
    key: () => asked.value && `${asked.value.layer} ${asked.value.head} ${asked.value.token}`,
    load: async () => {
      const { layer, head, token } = asked.peek() ?? { layer: null, head: null, token: 0 };
      const from = Math.floor(token / LOOK_CHUNK) * LOOK_CHUNK;
      const rows = await askMeanAttention(
        session,
        { layer, head },
        { from, to: from + LOOK_CHUNK },
      );
      if (!rows.ok) return rows;
      const row = rows.value.rows.find((one) => one.token === token);
      return ok({ token, weights: row?.weights ?? [] });
    },
    reconnects: session.context.reconnects,
    cacheSize: 512,
  });
  made.set(session, resource);
  return resource;
}

const pointed = new WeakMap<OpenSession, Signal<number | null>>();

// Which line over the text is emphasised, as an index into mostLookedAt(): the one whose token is pointed
// at below the text, or has the focus there.
export function pointedLine(session: OpenSession): Signal<number | null> {
  const known = pointed.get(session) ?? signal<number | null>(null);
  pointed.set(session, known);
  return known;
}

// The lower ends of the levels of the tint.
export const LOOK_SHARES = [0.01, 0.05, 0.1, 0.25, 0.5] as const;

// By token: 1..5; 0: a smaller weight.
export const lookLevels = (weights: readonly number[]): Uint8Array =>
  Uint8Array.from(weights, (weight) => LOOK_SHARES.filter((share) => weight >= share).length);

const MAX_LINES = 8;

// The tokens with the largest weights, the largest one first: to each there is a line over the text, and
// its name is below the text.
export const mostLookedAt = (
  weights: readonly number[],
): readonly { readonly token: number; readonly weight: number }[] =>
  weights
    .map((weight, token) => ({ token, weight }))
    .filter(({ weight }) => weight > 0)
    .sort((a, b) => b.weight - a.weight)
    .slice(0, MAX_LINES);
