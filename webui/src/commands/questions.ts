// What visitors ask, as commands that open the view with the answer.
import type { Store } from '../state/store';
import { withKey } from '../state/view';
import type { Command } from './command';

interface Answer {
  readonly panel: 'table' | 'map' | 'budget';
  readonly options?: string; // of the panel, as in links
  readonly sort?: string;
  readonly filter?: string;
}

const question = (id: string, title: string, words: string, answer: Answer) => ({
  id: `ask-${id}`,
  title,
  words,
  answer,
});

const QUESTIONS = [
  question('layer', 'Which layer is slowest?', 'slowest layer hottest layer time per layer', {
    panel: 'table',
    options: 'all,by:layer',
    sort: '-time',
  }),
  question('op', 'Which op takes the most time?', 'hottest op slowest op time per op', {
    panel: 'table',
    options: 'all,by:op_kind',
    sort: '-time',
  }),
  question('token', 'Which token was slowest?', 'slowest token slowest step', {
    panel: 'table',
    options: 'rows:steps',
    sort: '-duration_ns',
  }),
  question('bytes', 'What does a token read?', 'bytes per token weights read most', {
    panel: 'table',
    options: 'all,by:tensor',
    sort: '-bytes_read',
    filter: 'kind:weight',
  }),
  question('repeat', 'Do tokens read the same weights?', 'does it repeat access pattern', {
    panel: 'map',
    options: 'y:tensor,v:bytes',
    filter: 'kind:weight',
  }),
  question('memory', 'How much RAM is enough?', 'how much memory ram budget cache size', {
    panel: 'budget',
  }),
  question('waits', 'What waits for the disk?', 'disk waits major faults page faults', {
    panel: 'table',
    options: 'all,by:tensor',
    sort: '-faults',
  }),
];

const OF_EXPERT = question('expert', 'Which tokens used an expert?', 'tokens of an expert', {
  panel: 'table',
  options: 'by:token',
  filter: 'expert:0',
});

export function questionCommands(store: Store): readonly Command[] {
  const info = store.open.peek()?.info.peek();
  const hasExperts = info?.is === 'ready' && (info.value.n_experts ?? 0) > 0;
  return [...QUESTIONS, ...(hasExperts ? [OF_EXPERT] : [])].map(({ id, title, words, answer }) => ({
    id,
    title,
    words,
    group: 'Questions',
    enabled: () => answer.panel === 'budget' || store.open.peek() !== null,
    run: () => {
      show(store, answer);
      // The number of the expert is the visitor's.
      if (answer === OF_EXPERT.answer) selectFilter();
    },
  }));
}

// With the answer, not with what was selected before: the browser's Back restores that.
function show(store: Store, { panel, options, sort, filter }: Answer): void {
  store.reveal(panel);
  if (options === undefined) return;
  const view = store.navigation.view.peek();
  store.navigation.change({
    options: withKey(view.options, panel, options),
    sorts: withKey(view.sorts, panel, sort ?? null),
    filter: filter ?? '',
    range: null,
  });
}

function selectFilter(): void {
  requestAnimationFrame(() => {
    const field = document.getElementById('filter');
    if (!(field instanceof HTMLInputElement)) return;
    field.focus();
    field.setSelectionRange(field.value.indexOf(':') + 1, field.value.length);
  });
}
