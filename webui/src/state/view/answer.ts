// A panel with the options, order and filter that answer a question, and how it is shown.
import { signal, untracked } from '@preact/signals';
import { formatCount } from '../../format';
import type { Conditions } from '../../net/types';
import { ok } from '../../result';
import { CLEAN_STEPS, type FilterKey } from './filter';
import type { OpenSession } from '../session/open_session';
import { perSession } from '../session/per_session';
import { byModel } from '../session/told_apart';
import { Resource } from '../resource';
import type { Store } from '../store';
import { sortedByText } from './total_titles';
import { withKey, withStep, type View } from './view';

export interface Answer {
  readonly panel: 'table' | 'map' | 'budget' | 'analytics' | 'compare' | 'weights' | 'sql';
  readonly topic: Topic | null; // of the summary's sentence that answers, too; null: none does
  readonly shows: string; // what the panel shows then: "totals by op type"
  readonly options?: string; // of the panel, as in links; absent: those it has
  readonly sort?: string;
  readonly filter?: string;
  readonly sql?: string; // of the panel SQL
  readonly chart?: string; // of Analytics, that is scrolled to
  readonly edits?: FilterKey; // the word of the filter that the visitor replaces
  readonly step?: number; // that is shown; absent: the one shown before
  readonly op?: number; // of the step, that is selected
  readonly withOther?: true; // with another session
  readonly generated?: true; // of the generated tokens, if there are some
  readonly times?: true; // of the clean steps, if the machine disturbed the session
}

// What a sentence of the summary is about.
export type Topic =
  | 'machine'
  | 'bytes'
  | 'speed'
  | 'order'
  | 'repeat'
  | 'waits'
  | 'memory'
  | 'values'
  | 'drafts'
  | 'phases';

// The totals of the session, with the columns that answer at the left end.
export const totalsBy = (by: string, ...columns: readonly string[]): string =>
  `all,by:${by},cols:name.${columns.join('.')}`;

// What a generated token reads, from each memory.
export const BYTES_ANSWER: Answer = {
  panel: 'table',
  topic: 'bytes',
  shows: 'totals by memory source',
  options: totalsBy('source', 'bytes_read', 'reads', 'bytes_written', 'writes', 'time', 'rate'),
  sort: '-bytes_read',
  generated: true,
};

// What waited for the disk.
export const WAITS_ANSWER: Answer = {
  panel: 'table',
  topic: 'waits',
  shows: 'totals by tensor',
  options: totalsBy('tensor', 'faults', 'time', 'bytes_read', 'reads', 'bytes_written', 'rate'),
  sort: '-faults',
};

// Whether tokens read the same weights: those of a mixture differ in their experts.
export const repeatAnswer = (hasExperts: boolean): Answer =>
  hasExperts
    ? {
        panel: 'map',
        topic: 'repeat',
        shows: 'step × expert',
        options: 'y:expert,v:accesses',
      }
    : {
        panel: 'map',
        topic: 'repeat',
        shows: 'step × tensor, bytes',
        options: 'y:tensor,v:bytes',
        filter: 'kind:weight',
      };

// What the machine did to the times of a session that is no longer running.
export const machineOf = perSession((session) => {
  const { api, reconnects } = session.context;
  return new Resource<Conditions>({
    key: () => finishedSteps(session),
    load: (signal) => api.conditions(session.id, signal),
    reconnects,
  });
});

// The number of steps of a session that is complete; null: not yet complete, or empty.
export function finishedSteps(session: OpenSession): string | null {
  const info = session.info.value;
  const isComplete = info.is === 'ready' && info.value.state !== 'running';
  const steps = session.answeredSteps.value;
  return session.active.value || !isComplete || steps === 0 ? null : String(steps);
}

// How many steps a filter for clean steps leaves out, and why it cannot be used; null: it can.
export function cleanFilter({ steps }: Pick<Conditions, 'steps'>) {
  const { clean, contended, throttled, disk, unknown } = steps;
  const disturbed = contended + throttled + disk;
  const all = disturbed + clean + unknown;
  return {
    disturbed,
    all,
    impossible:
      clean + unknown === 0
        ? `The machine disturbed ${all === 1 ? 'the only step' : `all ${formatCount(all)} steps`}: nothing would be left. Record again while no other program runs.`
        : null,
  };
}

// Whether the times are not those of the model alone.
export const isDisturbed = ({ verdict }: Pick<Conditions, 'verdict'>): boolean =>
  verdict !== null && verdict !== 'clean';

// The answer that was shown last, and the view of it.
interface Answered {
  readonly topic: Topic | null;
  readonly panel: Answer['panel'];
  readonly view: string; // keyOf()
  readonly toast: number | null;
}

const answeredOf = perSession(() => signal<Answered | null>(null));

// How often each panel was shown as the answer to a question.
export const answersOf = perSession(() =>
  signal<Readonly<Partial<Record<Answer['panel'], number>>>>({}),
);

const keyOf = (panel: string, view: View): string =>
  JSON.stringify([
    view.phase,
    view.filter,
    view.range,
    view.selection,
    view.options[panel],
    view.sorts[panel],
  ]);

// What the shown answer is about; null: no answer is shown, or the view was changed since.
export function answeredTopic(store: Store, session: OpenSession): Topic | null {
  const answered = answeredOf(session).value;
  if (answered === null) return null;
  const { topic, panel, view } = answered;
  return view === keyOf(panel, store.navigation.view.value) ? topic : null;
}

const PANELS: Readonly<Record<Answer['panel'], string>> = {
  table: 'Table',
  map: 'Map',
  budget: 'Memory budget',
  analytics: 'Analytics',
  compare: 'Compare',
  weights: 'Weights',
  sql: 'SQL',
};

// Shows the answer, not what was selected before, and says so: Undo and the browser's Back restore
// that.
export async function showAnswer(store: Store, answer: Answer): Promise<void> {
  const { panel, topic, options } = answer;
  const session = store.open.peek();
  const before = store.navigation.view.peek();
  store.reveal(panel);
  if (!session) {
    // A panel of models answers it also without one.
    if (options !== undefined) store.navigation.setOptions(panel, options, 'push');
    return;
  }
  if (!(await showView(store, session, answer))) return;
  const answers = answersOf(session);
  answers.value = { ...answers.peek(), [panel]: (answers.peek()[panel] ?? 0) + 1 };
  const answered = answeredOf(session);
  const previous = answered.peek()?.toast ?? null;
  if (previous !== null) store.toasts.remove(previous);
  const view = store.navigation.view.peek();
  const toast = offerUndo(store, changeText(answer, before, view), before, panel);
  answered.value = { topic, panel, view: keyOf(panel, view), toast };
}

// Says what a command changed in the view, and offers the view before, until something else is shown.
// Returns the id of the toast.
export function offerUndo(store: Store, text: string, before: View, panel = ''): number {
  const { navigation } = store;
  const keyNow = (): string => `${navigation.view.value.session ?? ''} ${keyOf(panel, navigation.view.value)}`; // prettier-ignore
  const shown = untracked(keyNow);
  const undo = (): void => {
    navigation.go(before);
  };
  return store.toasts.done(text, { text: 'Undo', run: undo }, () => keyNow() === shown);
}

// "Table: totals by op type, sorted by “step: median”, generated tokens only."
const changeText = (
  { panel, shows, sort }: Answer,
  before: View,
  { phase, filter }: View,
): string =>
  [
    `${PANELS[panel]}: ${shows}`,
    sortedByText(sort),
    phase === 'generate' ? 'generated tokens only' : before.phase === 'all' ? '' : 'all steps',
    filter !== '' ? `filter ${filter}` : before.filter === '' ? '' : 'no filter',
  ]
    .filter(Boolean)
    .join(', ') + '.';

// False: another session was opened meanwhile.
async function showView(store: Store, session: OpenSession, answer: Answer): Promise<boolean> {
  const { panel, options, sort, sql, filter = '' } = answer;
  const onlyClean = answer.times ? await needsClean(session) : false;
  if (store.open.peek() !== session) return false;
  const view = store.navigation.view.peek();
  const hasGenerated = session.data.stepTotals.has('generate');
  store.navigation.go({
    ...store.inPhase(
      answer.step === undefined ? view : withStep(view, answer.step),
      answer.generated && hasGenerated ? 'generate' : 'all',
    ),
    options: options === undefined ? view.options : withKey(view.options, panel, options),
    sorts: withKey(view.sorts, panel, sort ?? null),
    filters: sql === undefined ? view.filters : withKey(view.filters, panel, sql),
    filter: [filter, onlyClean ? CLEAN_STEPS : ''].filter(Boolean).join(' '),
    range: null,
    ...(answer.withOther && view.other === null ? { other: otherSession(store, session) } : {}),
    ...(answer.op === undefined ? {} : { selection: { kind: 'op' as const, op: answer.op } }),
  });
  return true;
}

// The newest readable session beside the open one, of the same model if there is one; null: none.
function otherSession(store: Store, { id, info }: OpenSession): string | null {
  const page = store.sessions.page.peek();
  if (page.is !== 'ready') return null;
  const known = info.peek();
  const others = page.value.sessions
    .filter((one) => one.id !== id && one.state !== 'unreadable' && one.state !== 'running')
    .toSorted((a, b) => b.start_utc_ns - a.start_utc_ns);
  const { same, other } = byModel(others, known.is === 'ready' ? known.value : null);
  return [...same, ...other][0]?.id ?? null;
}

async function needsClean(session: OpenSession): Promise<boolean> {
  const known = machineOf(session).state.peek().value;
  const read = known ? ok(known) : await session.context.api.conditions(session.id);
  return read.ok && isDisturbed(read.value) && read.value.steps.clean > 0;
}
