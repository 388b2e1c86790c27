// A panel with the options, order and filter that answer a question, and how it is shown.
import type { Conditions } from '../net/types';
import { ok } from '../result';
import { CLEAN_STEPS, parseFilter } from './filter';
import type { OpenSession } from './open_session';
import { perSession } from './per_session';
import { Resource } from './resource';
import type { Store } from './store';
import { withKey } from './view';

export interface Answer {
  readonly panel: 'table' | 'map' | 'budget';
  readonly options?: string; // of the panel, as in links; absent: those it has
  readonly sort?: string;
  readonly filter?: string;
  readonly generated?: true; // of the generated tokens, if there are some
  readonly times?: true; // of the clean steps, if the machine disturbed the session
}

// Whether tokens read the same weights: those of a mixture differ in their experts.
export const repeatAnswer = (hasExperts: boolean): Answer =>
  hasExperts
    ? { panel: 'map', options: 'y:expert,v:accesses' }
    : { panel: 'map', options: 'y:tensor,v:bytes', filter: 'kind:weight' };

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
  void session.feed.version.value;
  const info = session.info.value;
  const { steps } = session.data.stepTotals;
  const isComplete = info.is === 'ready' && info.value.state !== 'running';
  // The steps of a file arrive page by page.
  const { readableSteps, stepsError } = session.feed;
  const isRead =
    steps >= (info.is === 'ready' ? (info.value.steps ?? 0) : 0) ||
    readableSteps.value !== null ||
    stepsError.value !== null;
  return session.active.value || !isComplete || !isRead || steps === 0 ? null : String(steps);
}

// Whether the times are not those of the model alone.
export const isDisturbed = ({ verdict }: Pick<Conditions, 'verdict'>): boolean =>
  verdict !== null && verdict !== 'clean';

// Shows the answer, not what was selected before: the browser's Back restores that. A filter for
// clean steps is kept, because it says which times count.
export async function showAnswer(store: Store, answer: Answer): Promise<void> {
  const { panel, options, sort, filter = '' } = answer;
  store.reveal(panel);
  if (options === undefined) return;
  const session = store.open.peek();
  const onlyClean = session && answer.times ? await needsClean(session) : false;
  if (store.open.peek() !== session) return; // another one was opened meanwhile
  const view = store.navigation.view.peek();
  const isClean = onlyClean || parseFilter(view.filter).some(({ text }) => text === CLEAN_STEPS);
  const hasGenerated = session?.data.stepTotals.has('generate') === true;
  store.navigation.go({
    ...store.inPhase(view, answer.generated && hasGenerated ? 'generate' : 'all'),
    options: withKey(view.options, panel, options),
    sorts: withKey(view.sorts, panel, sort ?? null),
    filter: [filter, isClean ? CLEAN_STEPS : ''].filter(Boolean).join(' '),
    range: null,
  });
}

async function needsClean(session: OpenSession): Promise<boolean> {
  const known = machineOf(session).state.peek().value;
  const read = known ? ok(known) : await session.context.api.conditions(session.id);
  return read.ok && isDisturbed(read.value) && read.value.steps.clean > 0;
}
