// The summary of a finished session: six sentences, each from one route of REST, with a link to its
// evidence. Pure functions.
import { formatBytes, formatCount, plural } from '../../format';
import type {
  Breakdown,
  Conditions,
  Determinism,
  Report,
  Reuse,
  Sequentiality,
  Session,
} from '../../net/types';

// What a click on a sentence shows.
export interface Evidence {
  readonly panel: 'table' | 'map';
  readonly options: string; // of the panel, as in links
  readonly sort?: string;
  readonly filter?: string;
}

export interface Sentence {
  readonly text: string;
  readonly hint: string; // where the figures come from
  readonly evidence: Evidence;
}

const percent = (part: number, whole: number): string =>
  whole > 0 ? `${((100 * part) / whole).toFixed(part > 0 && part < whole ? 1 : 0)} %` : '0 %';

export interface StepCounts {
  readonly generate: number;
  readonly all: number;
}

// "Contended: ..." with its evidence and what to do, as the server says it.
export function machineSentence({ text }: Pick<Conditions, 'text'>): Sentence {
  return {
    text: text.charAt(0).toUpperCase() + text.slice(1),
    hint: 'conditions: what the machine did during the steps',
    evidence: { panel: 'map', options: 'y:layer,x:step,v:time' },
  };
}

// `weights`: totals of the reads of weights.
export function bytesSentence(
  weights: Breakdown,
  steps: StepCounts,
  session: Session | null,
): Sentence {
  const { all, generate } = weights.sums;
  const isGenerated = steps.generate > 0;
  const count = isGenerated ? steps.generate : steps.all;
  const bytes = (isGenerated ? generate : all).bytes_read / Math.max(1, count);
  const file = session?.model?.size ?? 0;
  const share = file > 0 ? `, ${percent(bytes, file)} of the model file` : '';
  return {
    text: `${isGenerated ? 'A generated token' : 'A step'} reads ${formatBytes(Math.round(bytes))} of weights${share}.`,
    hint: 'breakdown?kind=weight: bytes read, divided by the steps',
    evidence: { panel: 'table', options: 'all,by:tensor', sort: '-bytes_read', filter: 'kind:weight' }, // prettier-ignore
  };
}

// `ops`: totals by op type, the slowest first.
export function speedSentence(
  ops: Breakdown,
  report: Pick<Report, 'advice'> | null,
  steps: StepCounts,
): Sentence {
  const phase = steps.generate > 0 ? 'generate' : 'all';
  const row = ops.rows[0];
  const time = row?.[phase].time_ns ?? 0;
  const rate = row?.[phase].bytes_per_second ?? 0;
  const faults = ops.sums.generate.faults / Math.max(1, steps.generate);
  const memory = report?.advice.find(({ advice }) => advice.includes('memory-bound'));
  const cause =
    steps.generate > 0 && faults >= 1
      ? 'The disk limits the speed'
      : memory
        ? 'Memory bandwidth limits the speed'
        : 'Computation limits the speed';
  const hottest = row
    ? `: ${row.name} takes ${percent(time, ops.sums[phase].time_ns)} of the time, at ${formatBytes(Math.round(rate))}/s`
    : '';
  return {
    text: `${cause}${hottest}.`,
    hint: memory?.because ?? 'breakdown?by=op_kind and the advice of the report',
    evidence: { panel: 'table', options: 'all,by:op_kind', sort: '-time' },
  };
}

export function orderSentence({ gap, sums }: Pick<Sequentiality, 'gap' | 'sums'>): Sentence {
  return {
    text:
      sums.bytes === 0
        ? 'No weights are read from the model file.'
        : `${percent(sums.sequential_bytes, sums.bytes)} of the bytes are read in the order of the file.`,
    hint: `sequentiality: a read is sequential if it starts at most ${formatBytes(gap)} after the previous one`,
    evidence: { panel: 'map', options: 'y:file,x:time,v:bytes' },
  };
}

export function repeatSentence({ pairs, same_weights, differing }: Determinism): Sentence {
  const causes = [
    differing.experts > 0 ? 'other experts' : '',
    differing.graph > 0 ? 'other ops' : '',
  ].filter(Boolean);
  const text =
    pairs === 0
      ? 'There are no two generated tokens to compare.'
      : same_weights === pairs
        ? `All ${plural(pairs, 'token')} read the same weights as the token before.`
        : `${formatCount(same_weights)} of ${plural(pairs, 'token')} read the same weights as the token before${causes.length > 0 ? `, the others used ${causes.join(' and ')}` : ''}.`;
  return {
    text,
    hint: 'determinism: consecutive generated tokens, compared access by access',
    evidence: { panel: 'map', options: 'y:tensor,v:bytes', filter: 'kind:weight' },
  };
}

export function waitSentence({ sums }: Breakdown, session: Session | null): Sentence {
  const { all, generate } = sums;
  const isRecorded = all.faults > 0 || (session?.facts?.['trace.page_faults'] ?? '') !== '';
  const text = !isRecorded
    ? 'Disk waits were not recorded.'
    : all.faults === 0
      ? 'No op waited for the disk.'
      : `Ops waited for the disk ${formatCount(all.faults)} times, ${formatCount(generate.faults)} of them while tokens were generated.`;
  return {
    text,
    hint: 'breakdown: major page faults',
    evidence: { panel: 'table', options: 'all,by:tensor', sort: '-faults' },
  };
}

// The cliff: the cache size (LRU) at which the saved bytes grow most from one size to the next.
export function cliffOf({ curve }: Pick<Reuse, 'curve'>): {
  readonly at: Reuse['curve'][number];
  readonly below: Reuse['curve'][number] | null;
} | null {
  let best: { at: Reuse['curve'][number]; below: Reuse['curve'][number] | null } | null = null;
  let most = 0;
  curve.forEach((at, i) => {
    const below = curve[i - 1] ?? null;
    const gain = at.lru.bytes_saved - (below?.lru.bytes_saved ?? 0);
    if (gain > most) [best, most] = [{ at, below }, gain];
  });
  return best;
}

export function memorySentence(reuse: Reuse): Sentence {
  const cliff = cliffOf(reuse);
  const saved = (bytes: number): string => percent(bytes, reuse.bytes_read);
  const text = cliff
    ? `A cache of ${formatBytes(cliff.at.capacity_bytes)} would serve ${saved(cliff.at.lru.bytes_saved)} of the weight reads${cliff.below ? `, one of ${formatBytes(cliff.below.capacity_bytes)} only ${saved(cliff.below.lru.bytes_saved)}` : ''}.`
    : 'No weight is read twice, so a cache would serve nothing.';
  return {
    text,
    hint: 'reuse: reads that an LRU cache of each size would serve',
    evidence: { panel: 'map', options: 'y:memory,x:all,v:bytes' },
  };
}
