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

export type Facts = Session['facts'];

// The memory budget that keeps a part of the weights on the disk, as words; null: none does.
function activeBudget(facts: Facts): string | null {
  const { 'context.memory_budget': set = 'off', 'memory.state': state = 'active' } = facts ?? {};
  if (set === 'off' || state === 'fits' || state === 'unavailable') return null;
  const bytes = Number(facts?.['memory.budget'] ?? set);
  return bytes > 0 ? `the memory budget of ${formatBytes(bytes)}` : 'the memory budget';
}

// "Contended: ..." with its evidence and what to do, as the server says it.
export function machineSentence(machine: Machine, facts: Facts): Sentence {
  const { text, phases } = machine;
  const times = phases.generate?.step_ns;
  const spread = times
    ? `: a generated step takes ${formatNs(times.median)} in the median (p5 ${formatNs(times.p5)}, p95 ${formatNs(times.p95)})`
    : '';
  return {
    text:
      mostlyCleanText(machine) ??
      plannedDiskText(machine, activeBudget(facts)) ??
      text.charAt(0).toUpperCase() + text.slice(1),
    hint: `conditions: what the machine did during the steps${spread}`,
    evidence: {
      panel: 'map',
      topic: 'machine',
      shows: 'step × layer, time',
      options: 'y:layer,x:step,v:time',
    },
  };
}

type Machine = Pick<
  Conditions,
  'text' | 'phases' | 'verdict' | 'steps' | 'blocked_percent' | 'disk'
>;

// Of a session that waited for the disk because of its budget: what the server advises, to keep all
// weights in memory, is what the budget rules out. Null: of another session.
function plannedDiskText(
  { verdict, steps, blocked_percent: blocked, disk }: Machine,
  budget: string | null,
): string | null {
  if (verdict !== 'disk' || budget === null) return null;
  const all = Object.values(steps).reduce((sum, n) => sum + n, 0);
  const share = blocked === null ? '' : ` for ${blocked.toFixed(1)} % of their time`;
  const read = disk
    ? ` in steps with ${plural(disk.major_faults, 'major page fault')}; ${formatBytes(disk.read_bytes)} were read`
    : '';
  return `Disk: the threads waited${share}${read}. The reason is ${budget}: the weights that it does not keep are read again. ${formatCount(all - steps.clean)} of ${plural(all, 'step')} are not clean.`;
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

// The layers that take the most time, from totals by layer; empty: no layer has times. `of`: which
// steps, if that must be said: " in 5 clean steps of 128".
export function layersText(layers: Breakdown, phase: 'generate' | 'all', of = ''): string {
  const whole = layers.sums[phase].time_ns;
  const [first, second] = layers.rows
    .filter(({ name }) => /^\d+$/.test(name))
    .map((row) => ({ name: row.name, ns: row[phase].time_ns }))
    .filter(({ ns }) => ns > 0)
    .sort((a, b) => b.ns - a.ns);
  if (!first || whole <= 0) return '';
  const share = (ns: number): string => percent(ns, whole);
  if (!second) return ` Layer ${first.name} takes ${share(first.ns)} of the time${of}.`;
  return first.ns < 1.05 * second.ns
    ? ` No layer is clearly the slowest${of}: layers ${first.name} and ${second.name} take ${share(first.ns)} and ${share(second.ns)}.`
    : ` Layer ${first.name} is the slowest${of}: ${share(first.ns)}, then layer ${second.name}: ${share(second.ns)}.`;
}

const FEW_STEPS = 16;

// Which steps the layers of a disturbed session are of. `clean`: of `all`.
export const layerSteps = (clean: number, all: number): string =>
  clean === 0
    ? ' in all steps, waiting included'
    : clean < FEW_STEPS
      ? ` in ${plural(clean, 'clean step')} of ${formatCount(all)}`
      : '';

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
// `layers`: layersText(). `facts`: of the session.
export function speedSentence(
  ops: Breakdown,
  report: Pick<Report, 'advice'> | null,
  steps: StepCounts,
  speed: number | null,
  layers: string,
  facts?: Facts,
): Sentence {
  const phase = steps.generate > 0 ? 'generate' : 'all';
  const row = ops.rows[0];
  const faults = ops.sums.generate.faults / Math.max(1, steps.generate);
  const memory = report?.advice.find(({ advice }) => advice.includes('memory-bound'));
  const cause =
    steps.generate > 0 && faults >= 1
      ? DISK_LIMITS
      : memory
        ? 'Memory bandwidth limits the speed'
        : 'Computation limits the speed';
  const hottest = row && {
    name: row.name,
    share: percent(row[phase].time_ns, ops.sums[phase].time_ns),
    rate: row[phase].bytes_per_second ?? 0,
  };
  const because = cause === DISK_LIMITS ? becauseOf(activeBudget(facts)) : '';
  return {
    text: `${cause}${because}${basisText(speed)}${hottest ? `: ${hottestText(hottest)}` : ''}.${layers}`,
    hint: memory?.because ?? 'breakdown?by=op_kind and the advice of the report',
    evidence: SPEED_EVIDENCE,
  };
}

const DISK_LIMITS = 'Reading from the disk limits the speed';

const becauseOf = (budget: string | null): string =>
  budget === null ? '' : ` because of ${budget}`;

const basisText = (speed: number | null): string =>
  speed === null ? '' : ` (${formatSpeed(speed)} ${speedBasis(false)})`;

// Of a session whose times are not those of the model alone.
export function disturbedSpeedSentence(
  { verdict, blocked_percent: blocked }: Pick<Conditions, 'verdict' | 'blocked_percent'>,
  { steps, hottest }: CleanSteps,
  speed: number | null,
  layers: string,
  facts: Facts,
): Sentence {
  const basis = basisText(speed);
  const clean =
    hottest && steps > 0
      ? ` In the ${plural(steps, 'clean step')}, ${hottestText(hottest)}.${layers}`
      : ` No step with the usual times was clean.${layers}`;
  const waited =
    blocked === null ? '' : `: the threads waited ${blocked.toFixed(1)} % of their time`;
  return {
    text:
      verdict === 'disk'
        ? `${DISK_LIMITS}${becauseOf(activeBudget(facts))}${basis}${waited}.${clean}`
        : `What limits the speed${basis} cannot be told, because the run was ${DISTURBED[verdict ?? ''] ?? verdict ?? 'disturbed'}.${clean}`,
    hint: 'conditions; op types of the steps with verdict clean, without learned ones',
    evidence: SPEED_EVIDENCE,
  };
}

const DISTURBED: Readonly<Record<string, string>> = {
  contended: 'contended (other programs used the processors)',
  throttled: 'throttled (a CPU limit stopped it)',
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
      : all.faults === 1
        ? `Ops waited for the disk once, ${generate.faults === 1 ? '' : 'not '}while tokens were generated.`
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

// What is read again with a little less memory than nearly all weights need; empty: nothing to say.
function lessMemoryText(reuse: Reuse, memory: ModelMemory): string {
  const cliff = cliffOf(reuse);
  if (!cliff) return ' No weight is read twice, so less memory is enough.';
  const { below } = cliff;
  if (!below) return '';
  const { bytes_saved: saved } = below.lru;
  const again =
    saved === 0
      ? 'all of them for each token'
      : `${percent(reuse.bytes_read - saved, reuse.bytes_read)} of what the ops read of them`;
  const less =
    memory.repacked > 0
      ? 'With less memory for the weights, which then cannot be repacked,'
      : 'With less memory for the weights,';
  return ` ${less} they are read again from the disk: with ${formatBytes(below.capacity_bytes)} and no memory budget, ${again}.`;
}

export function memorySentence(reuse: Reuse, memory: ModelMemory): Sentence {
  return {
    text: `${enoughText(memory, null)}${lessMemoryText(reuse, memory)}`,
    hint: 'reuse: what would be read again if the least recently used weights were dropped',
    evidence: { panel: 'budget', topic: 'memory', shows: 'how much memory is enough' },
  };
}
