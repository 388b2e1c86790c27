// What a memory of a given size would serve, and what to keep in it.
import { formatBytes } from '../../../format';
import * as wire from '../../../net/types';
import { route, type ChartRequest, type ChartSpec } from '../spec';

const POINTS = 40; // of the curve

// The curve in steps that a slider can move over: the sizes are shares of what the session read, which
// the first request says.
export const reuseRequest = (): ChartRequest => ({
  text: 'reuse',
  sql: null,
  load: async (session) => {
    const whole = await route('reuse', {}, wire.reuse, (reuse) => ({
      key: { name: 'memory', of: 'bytes' },
      keys: [reuse.distinct_bytes],
      series: [],
    })).load(session);
    if (!whole.ok) return whole;
    const most = Number(whole.value.keys[0] ?? 0);
    const sizes = Array.from({ length: POINTS }, (_, i) => Math.ceil((most * (i + 1)) / POINTS));
    return curveOf(most > 0 ? [...new Set(sizes)].join(',') : undefined).load(session);
  },
});

const curveOf = (sizes: string | undefined): ChartRequest =>
  route('reuse', { sizes }, wire.reuse, (reuse) => {
    const missed = (policy: 'lru' | 'pin' | 'belady') =>
      reuse.curve.map((point) => 1 - point[policy].bytes_saved / (reuse.bytes_read || 1));
    const saved = (policy: 'lru' | 'pin' | 'belady') =>
      reuse.curve.map((point) => point[policy].bytes_saved);
    return {
      key: { name: 'memory', of: 'bytes' },
      keys: reuse.curve.map(({ capacity_bytes }) => capacity_bytes),
      series: [
        { name: 'LRU', unit: 'share', values: missed('lru') },
        { name: 'pinned', unit: 'share', values: missed('pin') },
        { name: 'optimal (Belady)', unit: 'share', values: missed('belady') },
      ],
      more: [
        { name: 'saved by LRU', unit: 'bytes', values: saved('lru') },
        { name: 'saved by pinning', unit: 'bytes', values: saved('pin') },
        { name: 'saved at best', unit: 'bytes', values: saved('belady') },
      ],
    };
  });

// What pinning keeps in a memory of this size: each tensor with its expert slices (none: all of it).
export interface PinnedWeight {
  readonly tensor: string;
  readonly experts: number[];
}

export function pinnedIn({ parts }: wire.PinOrder, bytes: number): readonly PinnedWeight[] {
  const kept = new Map<string, PinnedWeight>();
  for (const { tensor, expert, memory_bytes } of parts) {
    if (memory_bytes > bytes) break;
    const weight = kept.get(tensor) ?? { tensor, experts: [] };
    kept.set(tensor, weight);
    if (expert !== null) weight.experts.push(expert);
  }
  for (const { experts } of kept.values()) experts.sort((a, b) => a - b);
  return [...kept.values()];
}

export const REUSE: readonly ChartSpec[] = [
  {
    id: 'miss_ratio',
    page: 'reuse',
    title: 'Miss ratio by memory',
    counts:
      'Share of the weight bytes that must be read from the disk, with this much memory for weights, over the whole session: with the policy LRU, with the most read parts pinned, and with knowledge of all later reads (the optimum).',
    kinds: ['line'],
    request: reuseRequest,
    honours: 'nothing',
    wide: true,
    height: 280,
    empty: 'No weights were read.',
  },
  {
    id: 'distances',
    half: true,
    page: 'reuse',
    title: 'Reuse distances',
    counts:
      'Reads by the distinct bytes that were read since the read of the same part before: a memory of this size serves them.',
    kinds: ['bar'],
    request: () =>
      route('reuse', {}, wire.reuse, ({ distances }) => ({
        key: { name: 'distance', of: 'name' },
        keys: distances.map(({ from_bytes }) => from_bytes),
        labels: distances.map(({ from_bytes, to_bytes }) => `${formatBytes(from_bytes)} – ${formatBytes(to_bytes)}`),
        series: [{ name: 'reads', unit: 'count', values: distances.map(({ reads }) => reads) }],
        more: [{ name: 'bytes', unit: 'bytes', values: distances.map(({ bytes }) => bytes) }],
      })), // prettier-ignore
    honours: 'nothing',
    empty: 'No part of the weights was read twice.',
  },
  {
    id: 'hot_tensors',
    half: true,
    page: 'reuse',
    title: 'Hottest weights',
    counts: 'Reads of each weight, the most read first.',
    kinds: ['bar'],
    request: ({ query }) =>
      route('hot', { by: 'tensor', limit: 24, ...query }, wire.hot, ({ rows }) => ({
        key: { name: 'weight', of: 'tensor' },
        keys: rows.map(({ name }) => name),
        series: [{ name: 'bytes read', unit: 'bytes', values: rows.map(({ all }) => all.bytes_read) }],
        more: [
          { name: 'reads', unit: 'count', values: rows.map(({ all }) => all.reads) },
          { name: 'size', unit: 'bytes', values: rows.map(({ size_bytes }) => size_bytes) },
        ],
        words: [{ name: 'class', values: rows.map(({ heat }) => heat) }],
      })), // prettier-ignore
    honours: 'everything',
    height: 420,
    empty: 'No weights were read.',
  },
];
