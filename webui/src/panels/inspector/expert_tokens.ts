// The tokens that the router of a layer sent to one of its experts, of what the view selects.
import { computed } from '@preact/signals';
import { tokenText } from '../../format';
import { MAX_PAGE_ROWS } from '../../net/api';
import type { QueryRows } from '../../net/types';
import { ok } from '../../result';
import { parseFilter, sqlFilter } from '../../state/view/filter';
import type { OpenSession } from '../../state/session/open_session';
import { Resource } from '../../state/resource';
import type { Store } from '../../state/store';
import type { TraceData } from '../../state/session/trace_data';
import type { ExpertOfLayer } from '../../state/view/selection';
import type { AxisRange, View } from '../../state/view/view';
import type { Jump } from './inspection';

export interface ExpertTokens {
  readonly tokens: readonly number[]; // indices in the session, ascending
  readonly more: boolean; // there are further ones
}

export const TOKEN_IS_KNOWN = 'token_id IS NOT NULL';

// The statement, and what of the view it cannot honour. Words about experts and layers do not apply:
// the list is of one expert.
export function expertTokensQuery(
  { layer, expert }: ExpertOfLayer,
  { phase, range, filter }: Pick<View, 'phase' | 'range' | 'filter'>,
): { readonly sql: string; readonly missing: readonly string[] } {
  const terms = parseFilter(filter).filter(({ key }) => key !== 'expert' && key !== 'layer');
  const words = sqlFilter('expert', terms);
  const parts = [range?.x, range?.y].flatMap((part) => (part ? [part] : []));
  const lost = parts.filter((part) => rangeSql(part) === null);
  const where = [
    `layer_id = ${layer}`,
    `expert_id = ${expert}`,
    TOKEN_IS_KNOWN,
    ...(phase === 'all' ? [] : [`phase = '${phase}'`]),
    ...words.where,
    ...parts.flatMap((part) => rangeSql(part) ?? []),
  ];
  return {
    sql: `SELECT DISTINCT token_id FROM expert WHERE ${where.join(' AND ')} ORDER BY token_id`,
    missing: [
      ...words.missing.map(({ text }) => text),
      ...lost.map(({ axis }) => `range of ${axis.replace('_', ' ')}`),
    ],
  };
}

// Null: the table of the router's choices does not have the axis.
export function rangeSql({ axis, from, to }: AxisRange): string | null {
  const within = (column: string): string => `${column} >= ${from} AND ${column} < ${to}`;
  switch (axis) {
    case 'token':
      return within('token_id');
    case 'step':
      return within('step');
    case 'layer':
      return within('layer_id');
    case 'time':
      return `step IN (SELECT step FROM step WHERE begin_ns < ${to} AND end_ns > ${from})`;
    default:
      return null;
  }
}

export const expertTokens = ({ rows, more }: Pick<QueryRows, 'rows' | 'more'>): ExpertTokens => ({
  tokens: rows.map(([token]) => Number(token)),
  more,
});

export function jumpToExpertToken(data: TraceData, token: number): Jump {
  const known = data.tokens[token];
  return {
    text: tokenText(known) || `token ${token}`,
    detail: `token ${token}`,
    to: { kind: 'token', token },
  };
}

export function tokensOfExpert(
  store: Store,
  session: OpenSession,
  selected: ExpertOfLayer,
): Resource<ExpertTokens> {
  const { api, reconnects } = session.context;
  const sql = computed(() => expertTokensQuery(selected, store.navigation.view.value).sql);
  return new Resource<ExpertTokens>({
    // Read again once a second while the session grows.
    key: () => {
      const info = session.info.value;
      const grown = info.is === 'ready' ? `${info.value.state} ${info.value.steps ?? 0}` : '';
      return `${grown} ${sql.value}`;
    },
    load: async (signal) => {
      const answer = await api.query(session.id, sql.peek(), MAX_PAGE_ROWS, signal);
      return answer.ok ? ok(expertTokens(answer.value)) : answer;
    },
    reconnects,
  });
}
