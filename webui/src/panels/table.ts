// All panels. README.md says how to add one.
import { ChatPanel } from './chat/ChatPanel';
import { GraphPanel } from './graph/GraphPanel';
import { HeatPanel } from './heat/HeatPanel';
import { Inspector } from './inspector/Inspector';
import { OpPanel } from './ops/OpPanel';
import { StepsPanel } from './ops/StepsPanel';
import type { Panel } from './panel';
import { SessionsPanel } from './sessions/SessionsPanel';

export const PANELS: readonly Panel[] = [
  { id: 'chat', title: 'Chat', place: 'chat', needs: 'nothing', body: ChatPanel },
  { id: 'sessions', title: 'Sessions', place: 'shelf', needs: 'nothing', body: SessionsPanel },
  {
    id: 'heat',
    title: 'Token × layer',
    place: 'upper',
    needs: 'steps',
    empty:
      'Run a prompt, or choose a session. Every token becomes a column here, every layer a row.',
    body: HeatPanel,
  },
  {
    id: 'graph',
    title: 'Layer graph',
    place: 'upper',
    needs: 'steps',
    empty: 'A layer of the step is drawn here: what it computes, from what, and for whom.',
    body: GraphPanel,
  },
  {
    id: 'ops',
    title: 'Ops',
    place: 'lower',
    needs: 'steps',
    empty: 'What ran in a step is listed here, op by op.',
    body: OpPanel,
  },
  {
    id: 'steps',
    title: 'Steps',
    place: 'lower',
    needs: 'steps',
    empty: 'Each evaluation of a graph is listed here.',
    body: StepsPanel,
  },
  {
    id: 'inspector',
    title: 'Inspector',
    place: 'inspector',
    needs: 'session',
    empty: 'What you select is described here.',
    body: Inspector,
  },
];
