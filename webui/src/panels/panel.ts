// What a panel is. The table of all of them is table.ts; README.md says how to
// add one.
import type { ComponentType } from 'preact';
import type { Command } from '../commands/command';
import type { OpenSession } from '../state/open_session';
import type { Store } from '../state/store';

// Where a panel stands: at the side above and below, in the middle above and
// below, at the other side. Panels of one place share it as tabs.
export type Place = 'chat' | 'shelf' | 'upper' | 'lower' | 'inspector';

export interface PanelProps {
  readonly store: Store;
  readonly panel: string; // its own id: names its filter, order and window in the view
}

export interface SessionProps extends PanelProps {
  readonly session: OpenSession;
}

interface Common {
  readonly id: string; // stands in links: lower case, never changes
  readonly title: string;
  readonly place: Place;
  // What the panel adds to the palette, the keyboard and the help.
  readonly commands?: (store: Store) => readonly Command[];
}

export type Panel =
  | (Common & { readonly needs: 'nothing'; readonly body: ComponentType<PanelProps> })
  | (Common & {
      // steps: at least one of them has arrived
      readonly needs: 'session' | 'steps';
      readonly empty: string; // what stands there while no session is open
      readonly body: ComponentType<SessionProps>;
    });
