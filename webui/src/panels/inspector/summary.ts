// The summary of a finished session: six sentences, each from one route of REST, with a link to its
// evidence. Pure functions.
import { formatBytes, formatCount, formatNs, formatSpeed, plural, sourceName } from '../../format';
import type {
  Breakdown,
  Conditions,
  Determinism,
  QueryRows,
  Report,
  Reuse,
  Router,
  Sequentiality,
  Session,
} from '../../net/types';
import { BYTES_ANSWER, WAITS_ANSWER, repeatAnswer, type Answer } from '../../state/answer';
import { speedBasis } from '../../state/speed';
import type { ModelMemory } from '../../strip/bands';
import { enoughText } from '../budget/sizes';

export interface Sentence {
  readonly text: string;
  readonly hint: string; // where the figures come from
  readonly evidence: Answer; // what a click shows
}

const percent = (part: number, whole: number): string =>
  whole > 0 ? `${((100 * part) / whole).toFixed(part > 0 && part < whole ? 1 : 0)} %` : '0 %';

export interface StepCounts {
  readonly generate: number;
  readonly all: number;
}

// "Contended: ..." with its evidence and what to do, as the server says it.
export function machineSentence(
  machine: Pick<Conditions, 'text' | 'phases' | 'verdict' | 'steps'>,
): Sentence {
  const { text, phases } = machine;
  const times = phases.generate?.step_ns;
  const spread = times
    ? `: a generated step takes ${formatNs(times.median)} in the median (p5 ${formatNs(times.p5)}, p95 ${formatNs(times.p95)})`
    : '';
  return {
    text: mostlyCleanText(machine) ?? text.charAt(0).toUpperCase() + text.slice(1),
    hint: `conditions: what the machine did during the steps${spread}`,
    evidence: {
      panel: 'map',
      topic: 'machine',
      shows: 'step × layer, time',
      options: 'y:layer,x:step,v:time',
    },
  };
}

// Of a clean session, some steps of which were disturbed; null: of another one.
function mostlyCleanText({ verdict, steps }: Pick<Conditions, 'verdict' | 'steps'>): string | null {
  const { clean, contended, throttled, disk, unknown } = steps;
  const disturbed = contended + throttled + disk;
  if (verdict !== 'clean' || disturbed === 0) return null;
  const all = clean + disturbed + unknown;
  const was = (n: number): string => (n === 1 ? 'was' : 'were');
  const kinds = [
    contended > 0 ? `${formatCount(contended)} ${was(contended)} contended` : '',
    throttled > 0 ? `${formatCount(throttled)} ${was(throttled)} throttled` : '',
    disk > 0 ? `${formatCount(disk)} waited for the disk` : '',
  ].filter(Boolean);
  const whole = 10 * disturbed <= all ? 'Nearly all steps are' : 'The session as a whole is';
  return `${whole} clean; of ${plural(all, 'step')}, ${kinds.join(' and ')}.`;
}

// `all`: totals of all reads; `weights`: of those of weights, by memory source.
export function bytesSentence(
  all: Breakdown,
  weights: Breakdown,
  steps: StepCounts,
  session: Session | null,
): Sentence {
  const phase = steps.generate > 0 ? 'generate' : 'all';
  const per = ({ sums }: Breakdown): number => sums[phase].bytes_read / Math.max(1, steps[phase]);
  const file = session?.model?.size ?? 0;
  const share = file > 0 ? ` (${percent(per(weights), file)} of the model file)` : '';
  const text = (bytes: number): string => formatBytes(Math.round(bytes));
  const sources = weights.rows
    .filter((row) => row[phase].bytes_read > 0)
    .sort((a, b) => b[phase].bytes_read - a[phase].bytes_read)
    .map((row) => `${text(row[phase].bytes_read / Math.max(1, steps[phase]))} ${sourceName(row.name)}`); // prettier-ignore
  const from = sources.length > 1 ? `: ${sources.join(', ')}` : '';
  return {
    text: `${phase === 'generate' ? 'A generated token' : 'A step'} reads ${text(per(all))}, of which ${text(per(weights))} are weights${share}${from}.`,
    hint: 'breakdown, all and by=source of kind=weight: bytes read, divided by the tokens',
    evidence: BYTES_ANSWER,
  };
}

// The layers that take the most time, from totals by layer; empty: no layer has times.
export function layersText(layers: Breakdown, phase: 'generate' | 'all'): string {
  const whole = layers.sums[phase].time_ns;
  const [first, second] = layers.rows
    .filter(({ name }) => /^\d+$/.test(name))
    .map((row) => ({ name: row.name, ns: row[phase].time_ns }))
    .filter(({ ns }) => ns > 0)
    .sort((a, b) => b.ns - a.ns);
  if (!first || whole <= 0) return '';
  const share = (ns: number): string => percent(ns, whole);
  if (!second) return ` Layer ${first.name} takes ${share(first.ns)} of the time.`;
  return first.ns < 1.05 * second.ns
    ? ` No layer is clearly the slowest: layers ${first.name} and ${second.name} take ${share(first.ns)} and ${share(second.ns)}.`
    : ` Layer ${first.name} is the slowest: ${share(first.ns)}, then layer ${second.name}: ${share(second.ns)}.`;
}

// The op type that takes the most time of the steps that were not disturbed.
export interface CleanSteps {
  readonly steps: number;
  readonly hottest: Hottest | null;
}

interface Hottest {
  readonly name: string;
  readonly share: string;
  readonly rate: number; // bytes per second
}

const hottestText = ({ name, share, rate }: Hottest): string =>
  `${name} takes ${share} of the time, at ${formatBytes(Math.round(rate))}/s`;

const SPEED_EVIDENCE: Answer = {
  panel: 'table',
  topic: 'speed',
  shows: 'totals by op type, sorted by time',
  options: 'all,by:op_kind',
  sort: '-time',
  generated: true,
  times: true,
};

// `ops`: totals by op type, the slowest first. `speed`: generated tokens per second; null: unknown.
// `layers`: layersText().
export function speedSentence(
  ops: Breakdown,
  report: Pick<Report, 'advice'> | null,
  steps: StepCounts,
  speed: number | null,
  layers: string,
): Sentence {
  const phase = steps.generate > 0 ? 'generate' : 'all';
  const row = ops.rows[0];
  const faults = ops.sums.generate.faults / Math.max(1, steps.generate);
  const memory = report?.advice.find(({ advice }) => advice.includes('memory-bound'));
  const cause =
    steps.generate > 0 && faults >= 1
      ? 'The disk limits the speed'
      : memory
        ? 'Memory bandwidth limits the speed'
        : 'Computation limits the speed';
  const hottest = row && {
    name: row.name,
    share: percent(row[phase].time_ns, ops.sums[phase].time_ns),
    rate: row[phase].bytes_per_second ?? 0,
  };
  return {
    text: `${cause}${speed === null ? '' : ` (${formatSpeed(speed)} ${speedBasis(false)})`}${hottest ? `: ${hottestText(hottest)}` : ''}.${layers}`,
    hint: memory?.because ?? 'breakdown?by=op_kind and the advice of the report',
    evidence: SPEED_EVIDENCE,
  };
}

// Of a session whose times are not those of the model alone.
export function disturbedSpeedSentence(
  verdict: string,
  { steps, hottest }: CleanSteps,
  speed: number | null,
  layers: string,
): Sentence {
  const clean =
    hottest && steps > 0
      ? ` In the ${plural(steps, 'clean step')}, ${hottestText(hottest)}.${layers}`
      : ' No step with the usual times was clean.';
  return {
    text: `What limits the speed${speed === null ? '' : ` (${formatSpeed(speed)} ${speedBasis(false)})`} cannot be told, because the run was ${DISTURBED[verdict] ?? verdict}.${clean}`,
    hint: 'conditions; op types of the steps with verdict clean, without learned ones',
    evidence: SPEED_EVIDENCE,
  };
}

const DISTURBED: Readonly<Record<string, string>> = {
  contended: 'contended (other programs used the processors)',
  throttled: 'throttled (a CPU limit stopped it)',
  disk: 'waiting for the disk',
};

// The op types of the clean steps, the slowest first. `generated`: only steps of phase generate.
export const cleanOpsSql = (generated: boolean): string =>
  `SELECT o.operation_type, sum(o.duration_ns), sum(o.bytes_read + o.bytes_written),
     count(DISTINCT o.step)
   FROM op o JOIN step s ON s.step = o.step
   WHERE s.verdict = 'clean' AND s.timing <> 'learned'${generated ? " AND s.phase = 'generate'" : ''}
   GROUP BY 1 ORDER BY 2 DESC`;

export function cleanSteps({ rows }: Pick<QueryRows, 'rows'>): CleanSteps {
  const [row] = rows;
  if (!row) return { steps: 0, hottest: null };
  const [name, ns, bytes, steps] = [String(row[0]), Number(row[1]), Number(row[2]), Number(row[3])];
  const all = rows.reduce((sum, one) => sum + Number(one[1]), 0);
  if (!(ns > 0)) return { steps, hottest: null };
  return { steps, hottest: { name, share: percent(ns, all), rate: (bytes * 1e9) / ns } };
}

export function orderSentence({ gap, sums }: Pick<Sequentiality, 'gap' | 'sums'>): Sentence {
  return {
    text:
      sums.bytes === 0
        ? 'No weights are read from the model file.'
        : `${percent(sums.sequential_bytes, sums.bytes)} of the bytes are read in the order of the file.`,
    hint: `sequentiality: a read is sequential if it starts at most ${formatBytes(gap)} after the previous one`,
    evidence: {
      panel: 'map',
      topic: 'order',
      shows: 'file × time, bytes',
      options: 'y:file,x:time,v:bytes',
    },
  };
}

// The share of the experts of a token that the token before used, too, in the same layer; null: unknown.
export function sharedExperts(
  routers: readonly Pick<Router, 'followed' | 'turnover'>[],
): number | null {
  const sum = (of: (router: (typeof routers)[number]) => number): number =>
    routers.reduce((all, router) => all + of(router), 0);
  const followed = sum((router) => router.followed);
  const turned = sum((router) => router.followed * (router.turnover ?? 0));
  return followed > 0 ? 1 - turned / followed : null;
}

// `shared`: sharedExperts() of the generated tokens; null: not known, or no experts.
export function repeatSentence(
  { pairs, same_weights, differing }: Determinism,
  hasExperts: boolean,
  shared: number | null,
): Sentence {
  const causes = [
    differing.experts > 0 ? 'other experts' : '',
    differing.graph > 0 ? 'other ops' : '',
  ].filter(Boolean);
  const isSame = shared !== null && same_weights < pairs && differing.graph === 0;
  const rest =
    shared === null
      ? ''
      : ` Of the experts of a token, ${percent(shared, 1)} were also used by the token before, in the same layer.`;
  const text =
    pairs === 0
      ? 'There are no two generated tokens to compare.'
      : isSame
        ? `Each generated token reads the same weights as the one before, except experts: ${percent(shared, 1)} of its experts were used by the one before in the same layer, too.`
        : same_weights === pairs
          ? `In all ${plural(pairs, 'pair')} of consecutive generated tokens, both read the same weights.`
          : `In ${formatCount(same_weights)} of ${plural(pairs, 'pair')} of consecutive generated tokens, both read the same weights${causes.length > 0 ? `; in the others, the second used ${causes.join(' and ')}` : ''}.${rest}`;
  return {
    text: hasExperts && pairs > 0 ? `${text} The map adds up the experts of all layers.` : text,
    hint: `determinism: ${plural(pairs, 'pair')} of consecutive generated tokens, compared access by access${shared === null ? '' : '; experts: turnover of the choices'}`,
    evidence: repeatAnswer(hasExperts),
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
    evidence: WAITS_ANSWER,
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

// `memory`: of the model; a cache serves the reads of repacked weights, too.
export function memorySentence(reuse: Reuse, memory: ModelMemory): Sentence {
  const cliff = cliffOf(reuse);
  const saved = (bytes: number): string => percent(bytes, reuse.bytes_read);
  const text = cliff
    ? `A cache of ${formatBytes(cliff.at.capacity_bytes)} would serve ${saved(cliff.at.lru.bytes_saved)} of the weight reads${cliff.below ? `, one of ${formatBytes(cliff.below.capacity_bytes)} only ${saved(cliff.below.lru.bytes_saved)}` : ''}.`
    : 'No weight is read twice, so a cache would serve nothing.';
  return {
    text: `${enoughText(memory, null)} ${text}`,
    hint: 'reuse: reads that an LRU cache of each size would serve',
    evidence: { panel: 'budget', topic: 'memory', shows: 'how much memory is enough' },
  };
}
