// The guided tour: its texts, and the view that each step shows. The texts are for somebody who has just
// finished school: short sentences, and each new word is explained where it comes.
import { formatCount, plural } from '../format';
import type { FindingTopic } from '../net/types';
import type { OpenSession } from '../state/session/open_session';
import type { Store } from '../state/store';
import { withKey } from '../state/view/view';

export interface TourStep {
  readonly id: string;
  readonly title: string;
  readonly text: readonly string[]; // paragraphs
  readonly try: string; // one thing to do
  readonly panel: string; // that it shows
  readonly options: string; // of the panel
  // A figure of the open session, or the finding of a topic; empty: it has none.
  readonly live: FindingTopic | ((session: OpenSession, store: Store) => string);
}

const shownStep = (session: OpenSession) => {
  const { step } = session;
  return step.value === null ? undefined : session.data.steps[step.value];
};

export const TOUR: readonly TourStep[] = [
  {
    id: 'token',
    title: 'Token',
    text: [
      'A language model does not read letters. It reads tokens: words or parts of words, each with a number.',
      'It writes one token at a time. To choose the next one, it computes once through the whole model. This is called a step.',
    ],
    try: 'Click a word of the answer, in Chat. Every view then shows the step that wrote it.',
    panel: 'chat',
    options: '',
    live: ({ counts }) =>
      `Here: ${plural(counts.value.prompt, 'token')} in the question, ${plural(counts.value.generated, 'token')} in the answer.`,
  },
  {
    id: 'op',
    title: 'Op',
    text: [
      'A step is a list of small computations, one after the other. Each is an op, short for operation.',
      'In a short text most of the time usually goes into MUL_MAT. It multiplies a list of numbers by a table of numbers. Such a table is called a weight. Training has set its numbers. In a long text, the ops that look back at earlier tokens take more and more.',
    ],
    try: 'Click the heading “duration” in the table. The op that took longest comes first.',
    panel: 'table',
    options: '',
    live: (session) => {
      const step = shownStep(session);
      return step
        ? `Here: the ops of step ${step.step} read or wrote memory ${formatCount(step.accesses)} times.`
        : '';
    },
  },
  {
    id: 'layer',
    title: 'Layer',
    text: [
      'The ops are in groups that look the same. Such a group is a layer. The result of one layer is what the next layer starts with.',
      'In the map each row is a layer and each column is a step. The stronger the colour, the more time it took.',
    ],
    try: 'Click a cell of the map. Do all layers take about the same time?',
    panel: 'map',
    options: 'y:layer,x:step,v:time',
    live: (_, store) => `Here: the model has ${plural(store.layers.value, 'layer')}.`,
  },
  {
    id: 'kv_cache',
    title: 'KV cache',
    text: [
      'To write the next token, the model looks back at all tokens before it. It does not compute them again: it keeps two lists of numbers for each token, called key and value. The memory for them is the KV cache.',
      'The longer the text, the more of the cache each step reads.',
    ],
    try: 'In the map, compare a column at the left with one at the right, in the rows of the cache.',
    panel: 'map',
    options: 'y:component,x:step,v:bytes',
    live: (session) => {
      const step = shownStep(session);
      return step ? `Here: step ${step.step} reads the cache of all tokens up to number ${step.token_id}.` : ''; // prettier-ignore
    },
  },
  {
    id: 'repacking',
    title: 'Repacking',
    text: [
      'The weights are in a file. Before the first step, some of them are copied into memory in another order, in which the processor reads them faster. This is called repacking.',
      'What is repacked is no longer read from the file. So it needs memory of its own.',
    ],
    try: 'Look at the strip at the top. Point at “repacked”: how large is it beside “file”?',
    panel: 'map',
    options: 'y:memory,x:step,v:bytes',
    live: 'bytes', // how much is read from the file, and how much of what is repacked
  },
  {
    id: 'memory_bound',
    title: 'Memory-bound',
    text: [
      'For each token the processor has to read nearly all weights. Often it waits for them: memory delivers fewer numbers per second than it could compute. This is called memory-bound. Then a faster processor does not help, but smaller weights may.',
      'Each dot in the picture is an op. If the speed of the memory was measured, a rising line shows its limit, and a level line shows how fast the processor computes at most. A dot above that line got its numbers from a cache, a small and faster memory inside the processor.',
    ],
    try: 'Point at the highest dot. How many operations does it do with each byte that it reads?',
    panel: 'analytics',
    options: 'page:roofline',
    live: 'speed',
  },
  {
    id: 'routing',
    title: 'Routing',
    text: [
      'Some models have many small groups of weights in each layer, called experts. For each token a small part of the model chooses a few of them. This is routing. The other experts are not read for this token.',
      'A model without experts is called dense: each token reads everything.',
    ],
    try: 'Open the page Experts. If the model is dense, it says how to make a small model with experts.',
    panel: 'analytics',
    options: 'page:experts',
    live: (session) => {
      const info = session.info.value;
      if (info.is !== 'ready') return '';
      const experts = info.value.n_experts ?? 0;
      return experts > 0
        ? `Here: each layer has ${plural(experts, 'expert')}.`
        : 'Here: the model is dense, it has no experts.';
    },
  },
];

// Shows what a step is about.
export function showStep(store: Store, { panel, options }: TourStep): void {
  const { navigation } = store;
  const { view } = navigation;
  navigation.change({ full: null, options: withKey(view.peek().options, panel, options) }, 'replace'); // prettier-ignore
  store.reveal(panel);
}
