// Whether tokens repeat their reads, whether the recording is valid, how far the weights are
// compressed, and what the machine did meanwhile.
import { componentName, layerName } from '../../../format';
import * as wire from '../../../net/types';
import type { Conditions } from '../../../net/types';
import { route, type ChartSpec } from '../spec';

const SPENT = [
  ['evaluate_ns', 'running the graphs'],
  ['sample_ns', 'choosing tokens'],
  ['detokenize_ns', 'converting tokens to text'],
  ['build_ns', 'building graphs'],
  ['other_ns', 'everything else'],
] as const;

const VERDICTS = ['clean', 'contended', 'throttled', 'disk', 'unknown'] as const;

const CAUSES = {
  token: 'other row of a weight',
  'kv-window': 'longer KV cache',
  experts: 'other experts',
  graph: 'other ops',
  unfinished: 'step cancelled',
} as const;

export const CHECKS: readonly ChartSpec[] = [
  {
    id: 'repeat',
    page: 'checks',
    title: 'Do tokens read the same?',
    counts:
      'Pairs of consecutive generated tokens: those with the same accesses, those whose weight reads are the same, and all.',
    kinds: ['bar'],
    request: () =>
      route('determinism', {}, wire.determinism, ({ pairs, identical, same_weights: same }) => ({
        key: { name: 'what is the same', of: 'name' },
        keys: ['all pairs', 'the same weights', 'identical'],
        series: [
          { name: 'pairs', unit: 'count', values: pairs > 0 ? [pairs, same, identical] : [] },
        ],
        more: [
          { name: 'share', unit: 'share', values: [1, same / (pairs || 1), identical / (pairs || 1)] },
        ], // prettier-ignore
      })),
    honours: 'nothing',
    height: 130,
    empty: 'Fewer than two tokens were generated.',
  },
  {
    id: 'differences',
    page: 'checks',
    title: 'Why tokens differ',
    counts:
      'Accesses that differ from those of the token before, by cause. A click selects the first one.',
    kinds: ['bar', 'pie'],
    request: () =>
      route('determinism', {}, wire.determinism, ({ differing, first_differences: first }) => {
        const causes = (Object.keys(differing) as (keyof typeof differing)[]).filter(
          (cause) => differing[cause] > 0,
        );
        const of = (cause: string) => first.find((one) => one.cause === cause);
        return {
          key: { name: 'cause', of: 'name' },
          keys: causes.map((cause) => CAUSES[cause]),
          picks: causes.map((cause) => ({ of: 'step', name: String(of(cause)?.step ?? '') })),
          series: [{ name: 'accesses', unit: 'count', values: causes.map((cause) => differing[cause]) }],
          more: [
            { name: 'first in step', unit: 'count', values: causes.map((cause) => of(cause)?.step ?? null) },
            { name: 'op', unit: 'count', values: causes.map((cause) => of(cause)?.op ?? null) },
          ],
          words: [{ name: 'tensor', values: causes.map((cause) => of(cause)?.tensor_name ?? '') }],
        };
      }), // prettier-ignore
    honours: 'nothing',
    height: 130,
    empty: 'No access differs.',
  },
  {
    id: 'prediction',
    page: 'checks',
    title: 'Is the next read predictable?',
    counts: 'Reads of weights that the order of the first tokens predicted for the later ones.',
    kinds: ['bar', 'pie'],
    request: () =>
      route('pattern', {}, wire.accessPattern, ({ prediction }) => ({
        key: { name: 'prediction', of: 'name' },
        keys: ['right', 'wrong'],
        series: [
          {
            name: 'reads',
            unit: 'count',
            values:
              prediction.reads > 0 ? [prediction.right, prediction.reads - prediction.right] : [],
          },
        ],
        more: [
          { name: 'share', unit: 'share', values: [prediction.accuracy, 1 - prediction.accuracy] },
          { name: 'bytes', unit: 'bytes', values: [prediction.right_bytes, prediction.bytes - prediction.right_bytes] },
        ], // prettier-ignore
      })),
    honours: 'nothing',
    height: 110,
    empty: 'There are too few generated tokens.',
  },
  {
    id: 'machine',
    page: 'checks',
    title: 'What the machine did',
    counts: 'Steps by what disturbed their times (docs/conditions.md).',
    kinds: ['bar', 'pie'],
    request: () =>
      route('conditions', {}, wire.conditions, ({ steps }: Conditions) => ({
        key: { name: 'verdict', of: 'name' },
        keys: VERDICTS,
        series: [{ name: 'steps', unit: 'count', values: VERDICTS.map((one) => steps[one]) }],
      })),
    honours: 'nothing',
    height: 150,
    empty: 'There are no steps.',
  },
  {
    id: 'spent',
    page: 'checks',
    title: 'What the time was spent on',
    counts: 'The time from the start of the session to the end of its last step, without overlap.',
    kinds: ['bar', 'pie'],
    request: () =>
      route('conditions', {}, wire.conditions, ({ spent }: Conditions) => ({
        key: { name: 'part', of: 'name' },
        keys: SPENT.map(([, name]) => name),
        series: [
          { name: 'time', unit: 'ns', values: spent ? SPENT.map(([key]) => spent[key]) : [] },
        ],
      })),
    honours: 'nothing',
    height: 150,
    empty: 'It was not recorded.',
  },
  {
    id: 'compressed_types',
    page: 'checks',
    title: 'Compression by tensor type',
    counts:
      'Sizes of the weights that the session accessed, by data type; the table also says how many times smaller they are than as F16.',
    kinds: ['bar', 'pie'],
    request: () =>
      route('compression', {}, wire.compression, ({ types }) => ({
        key: { name: 'type', of: 'name' },
        keys: types.map(({ type }) => type),
        series: [{ name: 'size', unit: 'bytes', values: types.map(({ bytes }) => bytes) }],
        more: [
          { name: 'bits per weight', unit: 'number', values: types.map((one) => one.bits_per_weight) },
          { name: 'times smaller than F16', unit: 'number', values: types.map((one) => one.ratio_f16) },
          { name: 'tensors', unit: 'count', values: types.map(({ tensors }) => tensors) },
        ],
      })), // prettier-ignore
    honours: 'nothing',
    height: 180,
    empty: 'No weights were accessed.',
  },
  {
    id: 'compressed_layers',
    page: 'checks',
    title: 'Bits per weight by layer',
    counts: 'Size of the weights of a layer by the number of their elements.',
    kinds: ['bar', 'line'],
    request: () =>
      route('compression', {}, wire.compression, ({ layers }) => ({
        key: { name: 'layer', of: 'layer' },
        keys: layers.map(({ layer }) => layer ?? 'outside'),
        labels: layers.map(({ layer }) => layerName(String(layer ?? 'outside'))),
        series: [{ name: 'bits', unit: 'number', values: layers.map((one) => one.bits_per_weight) }],
        more: [{ name: 'size', unit: 'bytes', values: layers.map(({ bytes }) => bytes) }],
      })), // prettier-ignore
    honours: 'nothing',
    height: 180,
    empty: 'No weights were accessed.',
  },
  {
    id: 'compressed_parts',
    page: 'checks',
    title: 'Size by component',
    counts: 'Sizes of the weights that the session accessed, by part of the model.',
    kinds: ['bar', 'pie'],
    request: () =>
      route('compression', {}, wire.compression, ({ components }) => ({
        key: { name: 'component', of: 'component' },
        keys: components.map(({ component }) => component),
        labels: components.map(({ component }) => componentName(component)),
        series: [{ name: 'size', unit: 'bytes', values: components.map(({ bytes }) => bytes) }],
        more: [{ name: 'bits per weight', unit: 'number', values: components.map((one) => one.bits_per_weight) }],
      })), // prettier-ignore
    honours: 'nothing',
    height: 180,
    empty: 'No weights were accessed.',
  },
  {
    id: 'validation',
    page: 'checks',
    title: 'Is the recording valid?',
    counts: 'What each check looked at, how much of it was wrong, and its verdict.',
    kinds: ['bar'],
    table: true,
    wide: true,
    request: () =>
      route('validation', {}, wire.checked, ({ checks }) => ({
        key: { name: 'check', of: 'name' },
        keys: checks.map(({ check }) => check),
        labels: checks.map(({ check }) => check.replaceAll('_', ' ')),
        series: [
          { name: 'checked', unit: 'count', values: checks.map((one) => one.items_checked) },
          { name: 'wrong', unit: 'count', values: checks.map(({ wrong }) => wrong) },
        ],
        words: [
          { name: 'verdict', values: checks.map(({ verdict }) => verdict) },
          { name: 'what', values: checks.map(({ summary }) => summary) },
        ],
      })), // prettier-ignore
    honours: 'nothing',
    height: 300,
    empty: 'Nothing was checked.',
  },
];
