// What visitors ask, as commands that open the view with the answer.
import {
  BYTES_ANSWER,
  WAITS_ANSWER,
  repeatAnswer,
  showAnswer,
  type Answer,
} from '../state/view/answer';
import type { OpenSession } from '../state/session/open_session';
import type { FilterKey } from '../state/view/filter';
import type { View } from '../state/view/view';
import type { Store } from '../state/store';
import type { Command } from './command';

const question = (id: string, title: string, words: string, answer: Answer) => ({
  id: `ask-${id}`,
  title,
  words,
  answer,
});

const REPEAT = [
  'repeat',
  'Do tokens read the same weights?',
  'does it repeat access pattern',
] as const;

const QUESTIONS = [
  question('layer', 'Which layer is slowest?', 'slowest layer hottest layer time per layer', {
    panel: 'table',
    topic: 'speed',
    shows: 'totals by layer, sorted by time',
    options: 'all,by:layer',
    sort: '-time',
    generated: true,
    times: true,
  }),
  question('op', 'Which op takes the most time?', 'hottest op slowest op time per op', {
    panel: 'table',
    topic: 'speed',
    shows: 'totals by op type, sorted by time',
    options: 'all,by:op_kind',
    sort: '-time',
    generated: true,
    times: true,
  }),
  question('token', 'Which token was slowest?', 'slowest token slowest step', {
    panel: 'table',
    topic: null,
    shows: 'all steps, sorted by duration',
    options: 'rows:steps',
    sort: '-duration_ns',
  }),
  question('bytes', 'What does a token read?', 'bytes per token weights kv cache', BYTES_ANSWER),
  question('memory', 'How much RAM is enough?', 'how much memory ram budget cache size', {
    panel: 'budget',
    topic: 'memory',
    shows: 'how much memory is enough',
  }),
  question('order', 'Is the file read in order?', 'sequential or random reads of the model file', {
    panel: 'map',
    topic: 'order',
    shows: 'the file over time',
    options: 'y:file,x:time,v:bytes',
  }),
  question(
    'waits',
    'What waits for the disk?',
    'disk waits major faults page faults',
    WAITS_ANSWER,
  ),
];

// The selected expert, or the first one of the shown layer.
const ofExpert = ({ layer, selection }: Pick<View, 'layer' | 'selection'>) => {
  const of = selection?.kind === 'expert' ? selection : { layer, expert: 0 };
  return question(
    'expert',
    'Which tokens used an expert?',
    'tokens of an expert router which used',
    {
      panel: 'table',
      topic: null,
      shows: 'the tokens of an expert',
      options: 'by:token',
      filter: `layer:${of.layer} expert:${of.expert}`,
      edits: 'expert',
    },
  );
};

const inMemory = (step: number) =>
  question('residency', 'What was in memory?', 'resident pages snapshot of the model file', {
    panel: 'map',
    topic: null,
    shows: `what was in memory before step ${step}`,
    options: 'y:memory,x:all,v:bytes',
    step,
  });

// `session`: the open one. `snapshot`: firstSnapshot() of it.
export function questionsOf(store: Store, session: OpenSession | null, snapshot: number | null) {
  const info = session?.info.peek();
  const hasExperts = info?.is === 'ready' && (info.value.n_experts ?? 0) > 0;
  return [
    ...QUESTIONS,
    question(...REPEAT, repeatAnswer(hasExperts)),
    ...(snapshot === null ? [] : [inMemory(snapshot)]),
    ...(hasExperts ? [ofExpert(store.navigation.view.peek())] : []),
  ].filter(({ answer }) => store.has(answer.panel));
}

// The first step of which the session says what was in memory; null: none.
export function firstSnapshot(session: OpenSession | null): number | null {
  const of = session?.data.steps.find((step) => typeof step?.resident_bytes === 'number');
  return of?.step ?? null;
}

export function questionCommands(store: Store): readonly Command[] {
  const session = store.open.peek();
  return questionsOf(store, session, firstSnapshot(session)).map(
    ({ id, title, words, answer }) => ({
      id,
      title,
      words,
      group: 'Questions',
      enabled: () => answer.panel === 'budget' || store.open.peek() !== null,
      run: () => {
        ask(store, answer);
      },
    }),
  );
}

export function ask(store: Store, answer: Answer): void {
  void showAnswer(store, answer).then(() => {
    if (answer.edits) selectFilter(answer.edits);
  });
}

// Selects the value of a key of the filter, which the visitor replaces.
function selectFilter(key: FilterKey): void {
  requestAnimationFrame(() => {
    const field = document.getElementById('filter');
    if (!(field instanceof HTMLInputElement)) return;
    field.focus();
    const from = field.value.indexOf(`${key}:`) + key.length + 1;
    const length = field.value.slice(from).search(/\s|$/);
    field.setSelectionRange(from, from + length);
  });
}
