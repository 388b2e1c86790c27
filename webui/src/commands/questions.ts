// What visitors ask, as commands that open the view with the answer.
import {
  BYTES_ANSWER,
  WAITS_ANSWER,
  repeatAnswer,
  showAnswer,
  type Answer,
} from '../state/view/answer';
import { NAN_SQL } from '../panels/sql/examples';
import { experts } from '../net/types';
import type { OpenSession } from '../state/session/open_session';
import type { FilterKey } from '../state/view/filter';
import type { View } from '../state/view/view';
import type { Store } from '../state/store';
import { holdInView } from '../ui/hold_in_view';
import type { Command } from './command';

const question = (id: string, title: string, words: string, answer: Answer) => ({
  id: `ask-${id}`,
  title,
  words,
  answer,
});

// About the values of the model: what has to be recorded for them is said in the view.
const OF_VALUES = [
  question(
    'heads',
    'Which head looks at the previous token?',
    'attention head heads weights pattern attends induction',
    {
      panel: 'analytics',
      topic: null,
      shows: 'attention: where each head looks',
      options: 'page:attention',
      chart: 'look_previous',
    },
  ),
  question(
    'lens',
    'What would the model have said after a layer?',
    'logit lens layers early exit prediction',
    {
      panel: 'analytics',
      topic: null,
      shows: 'the most likely token after each layer',
      options: 'page:lens',
      chart: 'lens_likely',
    },
  ),
  question(
    'nan',
    'Where does the first NaN come from?',
    'nan inf infinite not a number invalid values',
    {
      panel: 'sql',
      topic: null,
      shows: 'the ops whose output has NaN or infinite values, the first one first',
      sql: NAN_SQL,
    },
  ),
  question(
    'lost',
    'Which tensor lost most by quantization?',
    'quantization error quantized weights reference difference f16',
    {
      panel: 'weights',
      topic: null,
      shows: 'the errors of the weights against a file of more bits, which is chosen there',
      options: 'show:errors',
    },
  ),
  question(
    'zeros',
    'Which weights are zero?',
    'zeros sparse values of the weights outliers statistics',
    {
      panel: 'weights',
      topic: null,
      shows: 'statistics of every tensor, with its zeros',
      options: 'show:tensors',
    },
  ),
];

const REPEAT = [
  'repeat',
  'Do tokens read the same weights?',
  'does it repeat access pattern',
] as const;

const QUESTIONS = [
  question('layer', 'Which layer is slowest?', 'slowest layer hottest layer time per layer', {
    panel: 'table',
    topic: 'speed',
    shows: 'totals by layer',
    options: 'all,by:layer',
    sort: '-time',
    generated: true,
    times: true,
  }),
  question('op', 'Which op takes the most time?', 'hottest op slowest op time per op', {
    panel: 'table',
    topic: 'speed',
    shows: 'totals by op type',
    options: 'all,by:op_kind',
    sort: '-time',
    generated: true,
    times: true,
  }),
  question('token', 'Which token was slowest?', 'slowest token slowest step speed', {
    panel: 'table',
    topic: null,
    shows: 'the steps of the generated tokens',
    options: 'rows:steps',
    sort: '-duration_ns',
    generated: true,
  }),
  question(
    'bound',
    'What is memory-bound, and how far?',
    'memory bound compute bound bandwidth limit bottleneck roofline optimise first improve',
    {
      panel: 'analytics',
      topic: null,
      shows: 'the roofline: ops against the memory and the processor',
      options: 'page:roofline',
      generated: true,
      times: true,
    },
  ),
  question('bytes', 'What does a token read?', 'bytes per token weights kv cache', BYTES_ANSWER),
  question(
    'types',
    'Which tensor type has the most bytes?',
    'data types quantization quantized formats totals by tensor type largest',
    {
      panel: 'analytics',
      topic: null,
      shows: 'bytes of the weights by tensor type, read for a token',
      options: '',
      chart: 'tensor_types',
      generated: true,
    },
  ),
  question(
    'phases',
    'How does the prompt differ from generation?',
    'prompt speed prompt against generation versus vs prefill decode compare phases',
    {
      panel: 'compare',
      topic: 'phases',
      shows: 'the prompt beside generation, bytes per token',
      options: 'of:phases,value:bytes,by:component',
    },
  ),
  question(
    'changed',
    'What changed between two runs?',
    'difference between two runs sessions compare regression before after',
    {
      panel: 'compare',
      topic: null,
      shows: 'this session and another one',
      options: '',
      withOther: true,
    },
  ),
  question(
    'memory',
    'How much RAM is enough?',
    'how much memory is needed required ram budget cache size fit',
    {
      panel: 'budget',
      topic: 'memory',
      shows: 'how much memory is enough',
    },
  ),
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

// The selected expert; else the one of the shown layer that most tokens used, once it is asked for.
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
    ...OF_VALUES,
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

const OF_MODELS: readonly Answer['panel'][] = ['budget', 'weights'];
export const NEEDS_SESSION = 'Needs a session: run a prompt, or open one';

// Without a session, its panel says how to get one.
export const needsSession = (store: Store, { panel }: Answer): boolean =>
  store.open.peek() === null && !OF_MODELS.includes(panel);

export function questionCommands(store: Store): readonly Command[] {
  const session = store.open.peek();
  return questionsOf(store, session, firstSnapshot(session)).map(
    ({ id, title, words, answer }) => ({
      id,
      title,
      words,
      group: 'Questions',
      ...(needsSession(store, answer) ? { text: NEEDS_SESSION } : {}),
      run: () => {
        ask(store, answer);
      },
    }),
  );
}

export function ask(store: Store, answer: Answer): void {
  const asked = answer.edits === 'expert' ? ofBusiest(store, answer) : Promise.resolve(answer);
  void asked
    .then((one) => showAnswer(store, one))
    .then(() => {
      if (answer.edits) selectFilter(answer.edits);
      if (answer.panel === 'analytics') showChart(answer.chart);
    });
}

// The first expert may be one that no token used.
async function ofBusiest(store: Store, answer: Answer): Promise<Answer> {
  const session = store.open.peek();
  const { selection, layer } = store.navigation.view.peek();
  if (!session || selection?.kind === 'expert') return answer;
  const read = await session.context.api.analysis(session.id, 'experts', experts, {});
  const routers = read.ok ? read.value.routers : [];
  const router = routers.find((one) => one.layer === layer) ?? routers[0];
  const first = router?.used.toSorted((a, b) => b.choices - a.choices)[0];
  if (!router || !first) return answer;
  return {
    ...answer,
    shows: `the tokens of expert ${first.expert}, which most tokens of layer ${router.layer} used`,
    filter: `layer:${router.layer} expert:${first.expert}`,
  };
}

// The chart, or the begin of the page; both stay there while the charts above are drawn.
const showChart = (id: string | undefined): void => {
  holdInView(
    () => document.querySelector('#panel-analytics .analytics'),
    (box) => box.querySelector(id === undefined ? '.analytics-grid' : `[data-chart="${id}"]`),
  );
};

// Selects the value of a key of the filter, which the visitor replaces.
function selectFilter(key: FilterKey): void {
  requestAnimationFrame(() => {
    const field = document.getElementById('filter');
    if (!(field instanceof HTMLInputElement)) return;
    field.dataset.quiet = ''; // the list of completions would cover the answer
    field.focus();
    const from = field.value.indexOf(`${key}:`) + key.length + 1;
    const length = field.value.slice(from).search(/\s|$/);
    field.setSelectionRange(from, from + length);
  });
}
