// What the routers of a mixture of experts chose.
import * as wire from '../../../net/types';
import type { Router } from '../../../net/types';
import { tokenText } from '../../../format';
import { column, route, statement, words, type ChartRequest, type ChartSpec, type Scope } from '../spec'; // prettier-ignore
import type { ChartTable, Pick, Series } from '../../../charts/table';
import { expertName } from '../../../state/view/selection';

const routers = (scope: Scope, table: (routers: readonly Router[]) => ChartTable): ChartRequest =>
  route('experts', scope.phase === null ? {} : { phase: scope.phase }, wire.experts, (answer) =>
    table(answer.routers),
  );

// Whether there are choices at all, for a session without experts.
export const choicesRequest = (): ChartRequest =>
  route('experts', {}, wire.experts, ({ routers: all }) => ({ ...layersOf(all), series: [] }));

const layersOf = (all: readonly { readonly layer: number | null }[]) => ({
  key: { name: 'layer', of: 'layer' } as const,
  keys: all.map(({ layer }) => layer ?? 0),
});

const by = (
  name: string,
  unit: Series['unit'],
  all: readonly Router[],
  value: (router: Router) => number | null,
): Series => ({ name, unit, values: all.map(value) });

// How near each router was to choosing another expert, in a session that captured its scores.
export const marginsRequest = (): ChartRequest =>
  route('experts/margins', {}, wire.expertMargins, ({ routers: all }) => ({
    ...layersOf(all),
    series: [{ name: 'near', unit: 'share', values: all.map(({ near }) => near) }],
    more: [
      { name: 'median margin', unit: 'number', values: all.map(({ margin }) => margin) },
      { name: 'entropy', unit: 'bits', values: all.map(({ entropy }) => entropy) },
      { name: 'tokens', unit: 'count', values: all.map(({ tokens }) => tokens) },
    ],
    words: [{ name: 'scores', values: all.map(({ scores }) => scores) }],
  }));

const POLICIES = [
  ['lru', 'LRU'],
  ['lfu', 'LFU'],
  ['pinned', 'pinned'],
  ['belady', 'optimal (Belady)'],
] as const;

export const cachesRequest = (scope: Scope): ChartRequest =>
  route(
    'experts/caches',
    scope.phase === null ? {} : { phase: scope.phase },
    wire.expertCaches,
    ({ rows, counted, counted_control: control }) => ({
      key: { name: 'slots per layer', of: 'number' },
      keys: rows.map(({ slots }) => slots),
      series: POLICIES.map(([policy, name]) => ({
        name,
        unit: 'share',
        values: rows.map(({ recorded }) => (counted > 0 ? recorded.layers[policy] / counted : null)),
      })),
      more: [
        ...POLICIES.map(([policy, name]): Series => ({
          name: `${name}, one pool`,
          unit: 'share',
          values: rows.map(({ recorded }) => (counted > 0 ? recorded.pool[policy] / counted : null)),
        })),
        { name: 'LRU, tokens in random order', unit: 'share', values: rows.map((row) => (control > 0 ? row.control.layers.lru / control : null)) },
      ],
    }), // prettier-ignore
  );

const ofLayer = (scope: Scope, tables: (detail: wire.RouterDetail) => ChartTable): ChartRequest =>
  route(
    `experts/layers/${scope.layer}`,
    { pairs: 10_000, tokens: 8, ...(scope.phase === null ? {} : { phase: scope.phase }) },
    wire.expertLayer,
    tables,
  );

const shownLayer = ({ layer }: Scope): string => `layer ${layer}`;

// Experts of the shown layer.
const picksOf = ({ layer }: Scope, experts: readonly number[]): readonly Pick[] =>
  experts.map((expert) => ({ of: 'expert', name: expertName({ layer, expert }) }));

export const EXPERTS: readonly ChartSpec[] = [
  {
    id: 'expert_load',
    page: 'experts',
    title: 'Load of the experts',
    counts:
      'Choices of the routers: how often each expert (left to right) was chosen in each layer (top to bottom). A click selects the expert.',
    kinds: ['heat'],
    request: (scope) =>
      routers(scope, (all) => {
        const most = Math.max(0, ...all.map(({ experts }) => experts));
        return {
          ...layersOf(all),
          across: 'expert',
          series: Array.from({ length: most }, (_, expert) => ({
            name: String(expert),
            unit: 'count',
            values: all.map(({ used }) => used.find((one) => one.expert === expert)?.choices ?? 0),
            picks: all.map(({ layer }) => ({ of: 'expert', name: expertName({ layer: layer ?? 0, expert }) })), // prettier-ignore
          })),
        };
      }),
    honours: 'phase',
    wide: true,
    empty: 'No choice of a router was recorded.',
  },
  {
    id: 'expert_entropy',
    half: true,
    page: 'experts',
    title: 'Entropy',
    counts:
      'Entropy of the choices of each router, in bits: 0, always the same expert; the uniform distribution has the logarithm of the number of experts. The table has its interval and that of the Gini coefficient (skew) on text of this kind, with a confidence of 95 %.',
    kinds: ['bar', 'line'],
    request: (scope) =>
      routers(scope, (all) => ({
        ...layersOf(all),
        series: [by('bits', 'number', all, (one) => one.entropy_bits)],
        more: [
          by('bits, at least', 'number', all, (one) => one.intervals?.entropy_bits.low ?? null),
          by('bits, at most', 'number', all, (one) => one.intervals?.entropy_bits.high ?? null),
          by('Gini coefficient', 'number', all, (one) => one.gini),
          by('Gini, at least', 'number', all, (one) => one.intervals?.gini.low ?? null),
          by('Gini, at most', 'number', all, (one) => one.intervals?.gini.high ?? null),
          by('experts used', 'share', all, (one) => one.coverage),
          by('tokens', 'count', all, (one) => one.tokens),
          by('choices', 'count', all, (one) => one.choices),
        ],
        ...(all[0] ? { marks: [{ name: 'uniform', value: Math.log2(all[0].experts) }] } : {}),
      })),
    honours: 'phase',
    empty: 'No choice of a router was recorded.',
  },
  {
    id: 'expert_turnover',
    half: true,
    page: 'experts',
    title: 'Turnover',
    counts:
      'Share of the experts of a token that the token before it did not use, by layer: what must be read anew if only the last experts stay in memory.',
    kinds: ['bar', 'line'],
    request: (scope) =>
      routers(scope, (all) => ({
        ...layersOf(all),
        series: [by('turnover', 'share', all, (one) => one.turnover)],
        more: [by('choices counted', 'count', all, (one) => one.followed)],
      })),
    honours: 'phase',
    empty: 'No two consecutive tokens were routed.',
  },
  {
    id: 'expert_margins',
    half: true,
    page: 'experts',
    only: 'router',
    title: 'How near the routers were to another choice',
    counts:
      'Share of the tokens for which the last chosen expert has a score less than 0.01 above that of the first expert not chosen, by layer. The table has the median of these margins, the entropy of the probabilities, and what the scores are (docs/values.md).',
    kinds: ['bar', 'line'],
    request: marginsRequest,
    honours: 'nothing',
    empty: 'All experts were chosen.',
  },
  {
    id: 'expert_coverage',
    half: true,
    page: 'experts',
    title: 'Experts for 90, 95 and 99 % of the choices',
    counts: 'How many of the most used experts of a layer have at least this share of its choices.',
    kinds: ['bar', 'line'],
    request: (scope) =>
      routers(scope, (all) => ({
        ...layersOf(all),
        series: (['90', '95', '99'] as const).map((percent) =>
          by(`${percent} %`, 'count', all, (one) => one.experts_for_percent[percent]),
        ),
        more: [by('experts', 'count', all, (one) => one.experts)],
      })),
    honours: 'phase',
    empty: 'No choice of a router was recorded.',
  },
  {
    id: 'expert_caches',
    half: true,
    page: 'experts',
    title: 'Caches of experts',
    counts:
      'Share of the requests that a cache with so many slots in each layer serves. Counted over the second half of the tokens; pinned: the experts requested most in the first half (docs/experts.md).',
    kinds: ['line', 'bar'],
    request: cachesRequest,
    honours: 'phase',
    empty: 'There are too few tokens for a cache.',
  },
  {
    id: 'expert_pairs',
    half: true,
    page: 'experts',
    title: 'Experts chosen together',
    counts: 'Number of tokens that used both experts, in the shown layer (keys { and } change it).',
    kinds: ['heat'],
    request: (scope) =>
      ofLayer(scope, ({ experts, pairs }) => {
        const together = new Map(pairs.map(({ a, b, together: n }) => [`${Math.min(a, b)} ${Math.max(a, b)}`, n])); // prettier-ignore
        const all = Array.from({ length: experts }, (_, expert) => expert);
        return {
          key: { name: 'expert', of: 'expert' },
          across: 'expert',
          part: shownLayer(scope),
          keys: all,
          picks: picksOf(scope, all),
          series: all.map((other) => ({
            name: String(other),
            unit: 'count',
            values: all.map(
              (one) =>
              one === other ? null : (together.get(`${Math.min(one, other)} ${Math.max(one, other)}`) ?? 0), // prettier-ignore
            ),
          })),
        };
      }),
    honours: 'phase',
    height: 300,
    empty: 'A token uses one expert only.',
  },
  {
    id: 'expert_answers',
    half: true,
    page: 'experts',
    title: 'Tokens that an expert prefers',
    counts:
      'How much more often than for any token the router of the shown layer chooses the expert for this token (lift); with the limits of the 95 % interval in the table. Only tokens that were routed at least 5 times.',
    kinds: ['bar'],
    request: (scope) =>
      ofLayer(scope, ({ used }) => {
        const rows = used
          .flatMap(({ expert, tokens = [] }) => tokens.map((token) => ({ expert, ...token })))
          .sort((a, b) => b.lift - a.lift)
          .slice(0, 24);
        const of = (value: (row: (typeof rows)[number]) => number) => rows.map(value);
        return {
          key: { name: 'expert and token', of: 'name' },
          part: shownLayer(scope),
          keys: rows.map(({ expert, text }) => `${expert}: ${tokenText({ text })}`),
          picks: picksOf(scope, rows.map(({ expert }) => expert)), // prettier-ignore
          series: [{ name: 'lift', unit: 'number', values: of(({ lift }) => lift) }],
          more: [
            { name: 'at least', unit: 'number', values: of(({ lift_low }) => lift_low) },
            { name: 'at most', unit: 'number', values: of(({ lift_high }) => lift_high) },
            { name: 'chosen', unit: 'count', values: of(({ choices }) => choices) },
            { name: 'routed', unit: 'count', values: of(({ times }) => times) },
          ],
        };
      }),
    honours: 'phase',
    height: 300,
    empty: 'No token was routed 5 times.',
  },
  {
    id: 'expert_tokens',
    page: 'experts',
    title: 'Experts of each token',
    counts:
      'The experts that the router of the shown layer chose for each token (left to right), by the weight of the choice. Prompt tokens are single tokens, too. The first 512 tokens.',
    kinds: ['heat'],
    request: (scope) =>
      statement(
        `SELECT token_id, expert_id, routing_score, expert_rank, coalesce((SELECT text FROM token WHERE token.token_id = expert.token_id), '') AS text FROM expert WHERE layer_id = ${scope.layer} AND token_id < 512${scope.phase === null ? '' : ` AND phase = '${scope.phase}'`} ORDER BY token_id, expert_rank`,
        (rows) => {
          const tokens = column(rows, 'token_id');
          const chosen = column(rows, 'expert_id');
          const scores = column(rows, 'routing_score');
          const texts = words(rows, 'text');
          const experts = [...new Set(chosen.map((expert) => expert ?? 0))].sort((a, b) => a - b);
          const order = [...new Set(tokens.map((token) => token ?? 0))];
          const place = new Map(experts.map((expert, row) => [expert, row]));
          const columns = new Map(order.map((token) => [token, experts.map((): number | null => null)])); // prettier-ignore
          const names = new Map<number, string>();
          tokens.forEach((token, i) => {
            const cells = columns.get(token ?? 0);
            const row = place.get(chosen[i] ?? 0);
            if (cells && row !== undefined) cells[row] = scores[i] ?? 1;
            names.set(token ?? 0, texts[i] ?? '');
          });
          return {
            key: { name: 'expert', of: 'expert' },
            across: 'token',
            part: shownLayer(scope),
            keys: experts,
            picks: picksOf(scope, experts),
            series: order.map((token) => ({
              name: `${token} ${tokenText({ text: names.get(token) ?? '' })}`,
              unit: 'number',
              values: columns.get(token) ?? [],
              pick: { of: 'token', name: String(token) },
            })),
          };
        },
      ),
    honours: 'phase',
    wide: true,
    height: 260,
    empty: 'The tokens of the router are not known.',
  },
];
