// The findings of a finished session as lines, each with the view that shows its evidence. The
// server decides and words them. Pure functions.
import type { Evidence, Finding, FindingTopic, Findings } from '../../net/types';
import { totalsBy, type Answer, type Topic } from '../../state/view/answer';

export interface Line {
  readonly topic: FindingTopic;
  readonly text: string;
  readonly hint: string; // of which steps it is, and what shows it
  readonly evidence: Answer; // what a click shows
}

const COLUMNS = ['bytes_read', 'reads', 'bytes_written', 'writes', 'time', 'time_share', 'rate'];

function optionsOf({ view, rows, across, value }: Evidence): string {
  if (view === 'map')
    return [`y:${rows ?? ''}`, across ? `x:${across}` : '', `v:${value ?? ''}`]
      .filter(Boolean)
      .join(',');
  if (view === 'compare_phases') return `of:phases,value:${value ?? ''},by:${rows ?? ''}`;
  if (rows === null || value === null) return `rows:${rows ?? 'steps'}`;
  // Beside the time is its share, which the sentence says.
  const first = value === 'time' ? ['time', 'time_share', 'rate'] : [value];
  return totalsBy(rows, ...first, ...COLUMNS.filter((column) => !first.includes(column)));
}

const PANELS = {
  table: 'table',
  map: 'map',
  memory_budget: 'budget',
  compare_phases: 'compare',
} as const;

// The view of the page that shows the evidence.
export function answerOf(topic: FindingTopic, evidence: Evidence): Answer {
  const { view, shows, value, filter, generated, undisturbed, step } = evidence;
  return {
    panel: PANELS[view],
    topic: topic === 'recording' ? null : (topic satisfies Topic),
    shows,
    ...(view === 'memory_budget' ? {} : { options: optionsOf(evidence) }),
    ...(view === 'table' && value !== null ? { sort: `-${value}` } : {}),
    ...(filter === '' ? {} : { filter }),
    ...(step === null ? {} : { step }),
    ...(generated ? { generated } : {}),
    ...(undisturbed ? { times: undisturbed } : {}),
  };
}

// The op that a finding is about: a click selects it.
const opOf = ({ kind, figures }: Finding): number | undefined => {
  const value = figures.find(({ name }) => name === 'op')?.value;
  return kind === 'not_a_number' && typeof value === 'number' ? value : undefined;
};

function lineOf(finding: Finding): Line {
  const { topic, text, basis, evidence } = finding;
  const op = opOf(finding);
  const phase = basis.phase === null ? '' : `${basis.phase} `;
  const clean = basis.clean_only ? ', without those that the machine disturbed' : '';
  return {
    topic,
    text,
    hint: `Of ${String(basis.steps)} ${phase}steps${clean}. Evidence: ${evidence.shows}`,
    evidence: { ...answerOf(topic, evidence), ...(op === undefined ? {} : { op }) },
  };
}

export const linesOf = (
  { findings }: Pick<Findings, 'findings'>,
  role: Finding['role'],
): readonly Line[] => findings.filter((one) => one.role === role).map(lineOf);
