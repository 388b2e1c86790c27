// All panels. README.md explains how to add one.
import { ChatPanel } from './chat/ChatPanel';
import { GraphPanel } from './graph/GraphPanel';
import { Inspector } from './inspector/Inspector';
import { MapPanel } from './map/MapPanel';
import { OpPanel } from './ops/OpPanel';
import { StepsPanel } from './ops/StepsPanel';
import type { Panel } from './panel';
import { SessionsPanel } from './sessions/SessionsPanel';

export const PANELS: readonly Panel[] = [
  { id: 'chat', title: 'Chat', place: 'chat', needs: 'nothing', body: ChatPanel },
  { id: 'sessions', title: 'Sessions', place: 'sessions', needs: 'nothing', body: SessionsPanel },
  {
    id: 'map',
    title: 'Map',
    place: 'upper',
    needs: 'steps',
    empty:
      'Run a prompt or open a session. The map shows which parts of the model cost what, and when.',
    body: MapPanel,
  },
  {
    id: 'graph',
    title: 'Layer graph',
    place: 'upper',
    needs: 'steps',
    empty: 'The graph of one layer: its ops, their inputs and their outputs.',
    body: GraphPanel,
  },
  {
    id: 'ops',
    title: 'Ops',
    place: 'lower',
    needs: 'steps',
    empty: 'The ops of the selected step, in execution order.',
    body: OpPanel,
  },
  {
    id: 'steps',
    title: 'Steps',
    place: 'lower',
    needs: 'steps',
    empty: 'The steps of the session. Each step evaluates one graph.',
    body: StepsPanel,
  },
  {
    id: 'inspector',
    title: 'Inspector',
    place: 'inspector',
    needs: 'session',
    empty: 'Details of the selection are shown here.',
    body: Inspector,
  },
];
