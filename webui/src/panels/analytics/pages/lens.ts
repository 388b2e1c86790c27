// What the model would have said after each layer, and how sure it was of the tokens that it chose.
import * as wire from '../../../net/types';
import type { LensRow } from '../../../net/types';
import type { Series } from '../../../charts/table';
import { tokenText } from '../../../format';
import { bitsOf } from '../../chat/chosen_tokens';
import { route, type ChartRequest, type ChartSpec } from '../spec';

const MAX_ROWS = 10_000; // of an answer
const MAX_TOKENS = 64; // in a map
const OUTPUT = 'output';

const nameOf = ({ token, chosen }: LensRow): string => `${token} ${tokenText(chosen)}`;

// One column per chosen token, one row per layer, from the last one down to the first, as the text
// comes out at the top. `value` of the row, and what is written into its cell.
const mapOf = (value: (row: LensRow) => number | null | undefined, name?: (row: LensRow) => string): ChartRequest =>
  route('lens', { limit: MAX_ROWS }, wire.lens, ({ rows }) => {
    const tokens = [...new Set(rows.map(({ token }) => token))].slice(0, MAX_TOKENS);
    const layers = [...new Set(rows.map(({ layer }) => layer))].sort((a, b) => (b ?? Infinity) - (a ?? Infinity)); // prettier-ignore
    const cells = new Map(rows.map((row) => [`${row.layer ?? OUTPUT} ${row.token}`, row]));
    return {
      key: { name: 'layer', of: 'layer' },
      keys: layers.map((layer) => layer ?? OUTPUT),
      labels: layers.map((layer) => (layer === null ? 'model output' : String(layer))),
      series: tokens.flatMap((token): Series[] => {
        const column = layers.map((layer) => cells.get(`${layer ?? OUTPUT} ${token}`));
        const any = column.find((row) => row !== undefined);
        if (!any) return [];
        return [
          {
            name: nameOf(any),
            unit: 'share',
            values: column.map((row) => (row ? (value(row) ?? null) : null)),
            // The step that evaluated the token before it said so.
            picks: layers.map((layer) => ({
              of: layer === null ? 'name' : 'layer',
              name: String(layer ?? OUTPUT),
              step: any.step,
            })),
            ...(name ? { names: column.map((row) => (row ? name(row) : '')) } : {}),
          },
        ];
      }),
      most: 1,
      named: 'most likely',
    };
  }); // prettier-ignore

// The output of the model for each chosen token.
export const surpriseRequest = (): ChartRequest =>
  route('lens', { layer: 'outside', limit: MAX_ROWS }, wire.lens, ({ rows }) => {
    const chosen = rows.filter((row) => row.chosen !== null);
    return {
      key: { name: 'token', of: 'token' },
      keys: chosen.map(({ token }) => token),
      labels: chosen.map(nameOf),
      series: [
        { name: 'surprise', unit: 'bits', values: chosen.map((row) => bitsOf(row.chosen?.probability)) },
        { name: 'entropy', unit: 'bits', values: chosen.map((row) => row.entropy) },
      ],
      more: [
        { name: 'probability', unit: 'share', values: chosen.map((row) => row.chosen?.probability ?? null) },
        { name: 'rank', unit: 'count', values: chosen.map((row) => row.rank) },
      ],
      words: [
        {
          name: 'most likely',
          values: chosen.map(({ likely }) =>
            likely
              .map(({ text, probability }) => `${tokenText({ text })} ${(100 * (probability ?? 0)).toFixed(1)} %`)
              .join(', '),
          ),
        },
      ],
    };
  }); // prettier-ignore

export const residualRequest = (): ChartRequest =>
  route('residual', {}, wire.residual, ({ layers }) => ({
    key: { name: 'layer', of: 'layer' },
    keys: layers.map(({ layer }) => layer ?? 0),
    series: [
      { name: 'attention adds', unit: 'number', values: layers.map((one) => one.attention) },
      { name: 'feed-forward adds', unit: 'number', values: layers.map((one) => one.feed_forward) },
      { name: 'stream after the layer', unit: 'number', values: layers.map(({ norm }) => norm) },
    ],
    more: [
      { name: 'layer adds', unit: 'number', values: layers.map((one) => one.layer_adds) },
      { name: 'tokens', unit: 'count', values: layers.map(({ tokens }) => tokens) },
    ],
  }));

const channelsRequest = (): ChartRequest =>
  route('channels', { limit: MAX_ROWS }, wire.channels, ({ rows }) => ({
    key: { name: 'output', of: 'name' },
    keys: rows.map(({ output }) => output),
    picks: rows.map(({ layer, output }) =>
      layer === null ? { of: 'name', name: output } : { of: 'layer', name: String(layer) },
    ),
    series: [
      {
        name: 'largest channel',
        unit: 'share',
        values: rows.map(({ top }) => top[0]?.share ?? null),
      },
    ],
    more: [
      { name: 'its number', unit: 'count', values: rows.map(({ top }) => top[0]?.channel ?? null) },
      { name: 'its maximum', unit: 'number', values: rows.map(({ top }) => top[0]?.max ?? null) },
      { name: 'channels', unit: 'count', values: rows.map((one) => one.channels) },
      { name: 'kurtosis', unit: 'number', values: rows.map(({ kurtosis }) => kurtosis) },
      { name: 'norm', unit: 'number', values: rows.map(({ norm }) => norm) },
    ],
  }));

export const LENS: readonly ChartSpec[] = [
  {
    id: 'lens_likely',
    captures: 'lens',
    page: 'lens',
    title: 'What the model would have said after each layer',
    counts:
      'The most likely token after each layer (bottom to top) for each chosen token (left to right), and its probability: the residual stream of the layer through the final norm and the output weight of the model; at the top, what the model said. The first 64 chosen tokens.',
    kinds: ['heat'],
    request: () =>
      mapOf(
        (row) => row.likely[0]?.probability,
        (row) => tokenText(row.likely[0]),
      ),
    honours: 'nothing',
    wide: true,
    height: 420,
    empty: 'No token was chosen.',
  },
  {
    id: 'lens_chosen',
    page: 'lens',
    only: 'lens',
    title: 'From which layer on the chosen token was likely',
    counts:
      'Probability of the chosen token after each layer (bottom to top). The first 64 chosen tokens.',
    kinds: ['heat'],
    request: () => mapOf((row) => row.chosen?.probability),
    honours: 'nothing',
    wide: true,
    height: 420,
    empty: 'No token was chosen.',
  },
  {
    id: 'lens_surprise',
    page: 'lens',
    only: 'lens',
    title: 'How sure the model was',
    counts:
      'Surprise: the negative logarithm (base 2) of the probability of the chosen token; 0 bits, it was certain. Entropy: the mean surprise that the model expected. The table has the rank of the chosen token and the most likely ones.',
    kinds: ['line', 'bar'],
    request: surpriseRequest,
    honours: 'nothing',
    wide: true,
    empty: 'No token was chosen.',
  },
  {
    id: 'residual_norms',
    captures: 'residual',
    page: 'lens',
    half: true,
    title: 'Residual stream, and what each layer adds',
    counts:
      'Norm (square root of the sum of the squares) of the residual stream after each layer, and of what attention and the feed-forward part add to it. Mean over the captured tokens.',
    kinds: ['line', 'bar'],
    request: residualRequest,
    honours: 'nothing',
    empty: 'No residual stream was captured.',
  },
  {
    id: 'residual_similarity',
    page: 'lens',
    half: true,
    only: 'residual',
    title: 'Layers that change little',
    counts:
      'Cosine of the residual stream before and after each layer: 1, the layer keeps its direction. Mean over the captured tokens.',
    kinds: ['bar', 'line'],
    request: () =>
      route('residual', {}, wire.residual, ({ layers }) => ({
        key: { name: 'layer', of: 'layer' },
        keys: layers.map(({ layer }) => layer ?? 0),
        series: [
          { name: 'similarity', unit: 'number', values: layers.map((one) => one.similarity) },
        ],
      })),
    honours: 'nothing',
    empty: 'The stream before the layers was not captured.',
  },
  {
    id: 'residual_channels',
    page: 'lens',
    wide: true,
    only: 'residual',
    title: 'Largest channels',
    counts:
      'Of each captured output, the share of the sum of its squares that its largest channel has, over all captured tokens. The table has its number, its largest absolute value and the kurtosis of the output: far above 3, a few values are far larger than the rest, which makes them hard to quantize.',
    kinds: ['bar', 'line'],
    request: channelsRequest,
    honours: 'nothing',
    empty: 'No output was captured.',
  },
];
