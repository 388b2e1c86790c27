// All panels. README.md explains how to add one.
import { ChatPanel } from './chat/ChatPanel';
import type { Panel } from './panel';
import { SessionsPanel } from './sessions/SessionsPanel';
import { lazy } from '../ui/lazy';

// Not needed for the first paint.
const map = lazy(async () => (await import('./map/MapPanel')).MapPanel);
const graph = lazy(async () => (await import('./graph/GraphPanel')).GraphPanel);
const table = lazy(async () => (await import('./table/TablePanel')).TablePanel);
const inspector = lazy(async () => (await import('./inspector/Inspector')).Inspector);

// What a run shows in the usual layout. The graph is loaded when it is shown.
export function preloadPanels(): void {
  for (const { preload } of [map, table, inspector]) preload();
}

export const PANELS: readonly Panel[] = [
  {
    id: 'chat',
    title: 'Chat',
    needs: 'nothing',
    about:
      'Ask the model, and read its answer: each word was one pass through the model; a click on a word shows what that pass cost.',
    body: ChatPanel,
  },
  {
    id: 'sessions',
    server: true,
    acts: true,
    title: 'Sessions',
    needs: 'nothing',
    about: 'Every run is recorded as a session; a click opens it again.',
    body: SessionsPanel,
  },
  {
    id: 'map',
    live: true,
    title: 'Map',
    needs: 'steps',
    about:
      'Which part of the model cost what, and when: the stronger its colour, the more time or bytes; drag to select a range, and every panel shows it.',
    body: map,
  },
  {
    id: 'graph',
    title: 'Graph',
    needs: 'steps',
    about:
      'How the model computes: each box is one operation, data flows from top to bottom; weights come from the file, the KV cache holds the keys and values of earlier tokens.',
    body: graph,
  },
  {
    id: 'table',
    title: 'Table',
    needs: 'steps',
    about:
      'The session as rows: the ops of a step, all steps, every read and write of memory, or their totals; a click on a header sorts.',
    body: table,
  },
  {
    id: 'budget',
    server: true,
    acts: true,
    title: 'Memory budget',
    needs: 'nothing',
    about:
      'For a model that is larger than memory: which weights stay in memory, which are read for every token, and what another budget would give.',
    body: lazy(async () => (await import('./budget/BudgetPanel')).BudgetPanel),
  },
  {
    id: 'inspector',
    title: 'Inspector',
    needs: 'session',
    about: 'A summary of the session, and the details of what you selected.',
    body: inspector,
  },
  {
    id: 'analytics',
    title: 'Analytics',
    needs: 'steps',
    about:
      'The session in charts: where time and bytes go, how near the ops come to the memory of the machine, what memory would help, experts, attention, checks; a click selects in every view, a drag selects a range.',
    body: lazy(async () => (await import('./analytics/AnalyticsPanel')).AnalyticsPanel),
  },
  {
    id: 'compare',
    server: true,
    title: 'Compare',
    needs: 'steps',
    about:
      'Two sessions, two steps, tokens or layers, or the prompt and the answer: side by side and their difference, per token or per step, with the parts that only one side has.',
    body: lazy(async () => (await import('./compare/ComparePanel')).ComparePanel),
  },
  {
    id: 'weights',
    server: true,
    title: 'Weights',
    needs: 'nothing',
    about:
      'The values of the weights, read from the model file: statistics of every tensor, a histogram, and a picture that is zoomed to single values and the blocks that they are decoded from.',
    body: lazy(async () => (await import('./weights/WeightsPanel')).WeightsPanel),
  },
  {
    id: 'values',
    title: 'Values',
    words: 'captured outputs activations capture tensors npy safetensors histogram picture',
    needs: 'steps',
    about:
      'What ops computed, of a run that captured it: a list of the outputs with their statistics, a histogram, and a picture that is zoomed to single values.',
    body: lazy(async () => (await import('./values/ValuesPanel')).ValuesPanel),
  },
  {
    id: 'sql',
    server: true,
    title: 'SQL',
    needs: 'session',
    about:
      'Questions that no view answers: SQL over the steps, ops, accesses and experts of the session, with examples; a click on a cell selects it in every view.',
    body: lazy(async () => (await import('./sql/SqlPanel')).SqlPanel),
  },
  {
    id: 'debug',
    server: true,
    acts: true,
    title: 'Debugger',
    words: 'breakpoint breakpoints break stop step what if values nan',
    needs: 'nothing',
    about:
      'Stops a run at ops, as a debugger stops a program: the values of the op where it is stopped, and what if they were others.',
    body: lazy(async () => (await import('./debug/DebugPanel')).DebugPanel),
  },
];
