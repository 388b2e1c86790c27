// What attention reads: the weights of each head, and the KV cache of each step.
import * as wire from '../../../net/types';
import type { KvStep } from '../../../net/types';
import { headName } from '../../../state/view/selection';
import type { Series } from '../../../charts/table';
import { tokenText } from '../../../format';
import { route, type ChartRequest, type ChartSpec } from '../spec';

type Layer = KvStep['layers'][number];

const PARTS: readonly (readonly [name: string, key: 'fresh' | 'cached' | 'other'])[] = [
  ['fresh: written by the same step', 'fresh'],
  ['cached: written by an earlier step', 'cached'],
  ['other: padding, or a reused prefix', 'other'],
];

const sum = (layers: readonly Layer[], key: keyof Omit<Layer, 'layer'>): number =>
  layers.reduce((all, layer) => all + layer[key], 0);

const kvByStep = (series: (steps: readonly KvStep[]) => readonly Series[], more: (steps: readonly KvStep[]) => readonly Series[]): ChartRequest =>
  route('kv', { limit: 10_000 }, wire.kv, ({ steps }) => ({
    key: { name: 'step', of: 'step' },
    keys: steps.map(({ step }) => step),
    series: series(steps),
    more: more(steps),
  })); // prettier-ignore

// All null if there is nothing, so that the chart says so.
const some = (values: readonly number[]): readonly (number | null)[] =>
  values.some((value) => value > 0) ? values : values.map(() => null);

// How much each head looks at some tokens, as a map of layers and heads.
const lookOf = (
  id: string,
  title: string,
  counts: string,
  unit: Series['unit'],
  measure: 'previous' | 'first' | 'induction' | 'entropy' | 'distance',
): ChartSpec => ({
  id,
  half: true,
  page: 'attention',
  title,
  counts: `${counts} Mean over the captured tokens, of each head (left to right) in each layer (top to bottom). A click selects the head.`,
  kinds: ['heat'],
  request: () =>
    route('attention', {}, wire.attention, ({ heads, largest }) => {
      const layers = [...new Set(heads.map(({ layer }) => layer ?? 0))];
      const found = new Map(heads.map((one) => [headName({ layer: one.layer ?? 0, head: one.head }), one])); // prettier-ignore
      const most = heads.reduce((max, { head }) => Math.max(max, head + 1), 0);
      const first = largest.find((one) => one.measure === measure);
      return {
        ...(first
          ? {
              answer: {
                text: first.text,
                pick: { of: 'head', name: headName({ layer: first.layer ?? 0, head: first.head }) },
              },
            }
          : {}),
        key: { name: 'layer', of: 'layer' },
        keys: layers,
        across: 'head',
        series: Array.from({ length: most }, (_, head): Series => {
          const names = layers.map((layer) => headName({ layer, head }));
          return {
            name: String(head),
            unit,
            values: names.map((name) => {
              const one = found.get(name);
              return one ? one[measure] : null;
            }),
            picks: names.map((name) => ({ of: 'head', name })),
          };
        }),
      };
    }),
  honours: 'nothing',
  empty: 'No head had such a token to look at.',
});

// The first chart of captured weights is in every session: it says how to capture them.
const ifCaptured = (spec: ChartSpec): ChartSpec => ({ ...spec, only: 'attention' });

const MAX_TOKENS = 256; // in a map of tokens

// Whether attention weights were captured.
export const attentionRequest = (): ChartRequest =>
  route('attention', {}, wire.attention, ({ heads }) => ({
    key: { name: 'layer', of: 'layer' },
    keys: heads.map(({ layer }) => layer ?? 0),
    series: [],
  }));

export const ATTENTION: readonly ChartSpec[] = [
  {
    id: 'kv_steps',
    page: 'attention',
    title: 'KV cache reads of each step',
    counts:
      'Bytes of the KV cache that a step reads, of all layers: fresh, cached by earlier steps, or of no step of this session. The growth from step to step is the window.',
    kinds: ['stacked', 'line', 'share'],
    request: () =>
      kvByStep(
        (steps) =>
          PARTS.map(([name, key]) => ({
            name,
            unit: 'bytes',
            values: some(steps.map(({ layers }) => sum(layers, key))),
          })),
        (steps) => [
          { name: 'written', unit: 'bytes', values: steps.map(({ layers }) => sum(layers, 'written')) },
          { name: 'tokens', unit: 'count', values: steps.map(({ n_tokens }) => n_tokens) },
        ], // prettier-ignore
      ),
    honours: 'nothing',
    wide: true,
    empty: 'No KV cache was read: the model has none, or has a recurrent state instead.',
  },
  {
    id: 'kv_layers',
    half: true,
    page: 'attention',
    title: 'KV cache reads of each layer',
    counts: 'Bytes of the KV cache that the shown step reads, by layer.',
    kinds: ['stacked', 'share', 'bar'],
    request: ({ step }) =>
      route('kv', { from: step ?? 0, limit: 1 }, wire.kv, ({ steps }) => {
        const layers = steps[0]?.layers ?? [];
        return {
          key: { name: 'layer', of: 'layer' },
          keys: layers.map(({ layer }) => layer ?? 0),
          series: PARTS.map(([name, key]) => ({
            name,
            unit: 'bytes',
            values: some(layers.map((one) => one[key])),
          })),
          more: [{ name: 'written', unit: 'bytes', values: layers.map(({ written }) => written) }],
        };
      }),
    honours: 'nothing',
    empty: 'The shown step reads no KV cache.',
  },
  {
    id: 'state_steps',
    half: true,
    page: 'attention',
    title: 'Recurrent state of each step',
    counts: 'Bytes of the recurrent states (SSM, RWKV) that a step reads and writes.',
    kinds: ['line', 'bar'],
    request: () =>
      kvByStep(
        (steps) => [
          { name: 'read', unit: 'bytes', values: some(steps.map(({ state_read }) => state_read)) },
          { name: 'written', unit: 'bytes', values: some(steps.map((one) => one.state_written)) },
        ],
        () => [],
      ),
    honours: 'nothing',
    empty: 'The model has no recurrent state.',
  },
  {
    id: 'head_bytes',
    page: 'attention',
    title: 'Weights of each head',
    counts:
      'Bytes read of the Q, K, V and O weights of each head (left to right) in each layer (top to bottom), over the session. A head of K and V serves several heads of Q if the model groups them.',
    kinds: ['heat'],
    request: () =>
      route('heads', {}, wire.heads, ({ heads, weights }) => {
        const layers = [...new Set(weights.map(({ layer }) => layer ?? 0))].sort((a, b) => a - b);
        const bytes = (layer: number, head: number): number =>
          weights
            .filter((one) => one.layer === layer)
            .reduce((all, one) => all + (one.heads.find((h) => h.head === head)?.bytes_read ?? 0), 0); // prettier-ignore
        return {
          key: { name: 'layer', of: 'layer' },
          keys: layers,
          across: 'head',
          series: Array.from({ length: heads }, (_, head) => ({
            name: String(head),
            unit: 'bytes',
            values: layers.map((layer) => bytes(layer, head)),
          })),
        };
      }),
    honours: 'nothing',
    wide: true,
    empty: 'The weights of the model are not divided by heads.',
  },
  {
    id: 'head_ranges',
    wide: true,
    page: 'attention',
    title: 'File ranges of the heads',
    counts:
      'Of the shown layer: bytes of each head that the session read, and where its range begins in the model file (table).',
    kinds: ['bar'],
    request: ({ layer }) =>
      route('heads', {}, wire.heads, ({ weights }) => {
        const rows = weights
          .filter((weight) => weight.layer === layer)
          .flatMap((weight) => weight.heads.map((head) => ({ weight, head })));
        const of = (value: (row: (typeof rows)[number]) => number | null) => rows.map(value);
        return {
          key: { name: 'head', of: 'head' },
          part: `layer ${layer}`,
          keys: rows.map(({ weight, head }) => `${weight.role} ${head.head}`),
          picks: rows.map(({ head }) => ({ of: 'head', name: headName({ layer, head: head.head }) })),
          series: [{ name: 'bytes read', unit: 'bytes', values: of(({ head }) => head.bytes_read) }],
          more: [
            { name: 'file offset', unit: 'count', values: of(({ head }) => head.file_offset) },
            { name: 'size', unit: 'bytes', values: of(({ weight }) => weight.head_bytes) },
            { name: 'ranges', unit: 'count', values: of(({ weight }) => weight.ranges) },
            { name: 'bytes of a range', unit: 'bytes', values: of(({ weight }) => weight.range_bytes) },
            { name: 'reads', unit: 'count', values: of(({ head }) => head.reads) },
          ],
          words: [{ name: 'weight', values: rows.map(({ weight }) => weight.name) }],
        };
      }), // prettier-ignore
    honours: 'nothing',
    height: 320,
    empty: 'The weights of this layer are not divided by heads.',
  },
  {
    ...lookOf(
      'look_previous',
      'Heads that look at the previous token',
      'Attention weight of the token before.',
      'share',
      'previous',
    ),
    captures: 'attention',
  },
  ifCaptured(
    lookOf(
      'look_first',
      'Heads that look at the first token',
      'Attention weight of token 0, at which many heads look that have nothing to look for.',
      'share',
      'first',
    ),
  ),
  ifCaptured(
    lookOf(
      'look_induction',
      'Heads that repeat: induction',
      'Attention weight of the tokens that followed the same token before.',
      'share',
      'induction',
    ),
  ),
  ifCaptured(
    lookOf(
      'look_entropy',
      'Heads that look at many tokens',
      'Entropy of the attention weights in bits: 0, the head looks at one token.',
      'bits',
      'entropy',
    ),
  ),
  ifCaptured(
    lookOf(
      'look_distance',
      'Heads that look far back',
      'Number of tokens between a token and those that it looks at.',
      'number',
      'distance',
    ),
  ),
  {
    id: 'token_attention',
    page: 'attention',
    only: 'attention',
    title: 'Which tokens a head looks at',
    counts:
      'Attention weights of the selected head, or of head 0, in the shown layer: of each token (top to bottom), the weight of the tokens that it looks at (left to right). The first 256 captured tokens. A row has the sum 1, or less if the model has attention sinks.',
    kinds: ['heat'],
    request: ({ layer, head }) =>
      route(
        'attention/weights',
        { layer, head, limit: MAX_TOKENS },
        wire.attentionWeights,
        ({ rows }, session) => {
          const seen = rows.reduce((most, { weights }) => Math.max(most, weights.length), 0);
          const nameOf = (token: number): string =>
            `${token} ${tokenText(session.data.tokens[token])}`;
          return {
            key: { name: `token (layer ${layer}, head ${head})`, of: 'token' },
            keys: rows.map(({ token }) => token),
            labels: rows.map(({ token }) => nameOf(token)),
            series: Array.from({ length: Math.min(seen, MAX_TOKENS) }, (_, token) => ({
              name: nameOf(token),
              unit: 'share',
              values: rows.map(({ weights }) => weights[token] ?? null),
            })),
          };
        },
      ),
    honours: 'nothing',
    wide: true,
    height: 420,
    empty: 'No attention weights of this layer and head were captured.',
  },
];
