// The definition of a panel. table.ts lists all panels; README.md explains how to add one.
import type { ComponentType } from 'preact';
import type { Command } from '../commands/command';
import type { OpenSession } from '../state/open_session';
import type { Store } from '../state/store';

// The area of a panel: left column top (chat) and bottom (sessions), middle column top (upper) and
// bottom (lower), right column (inspector). Panels of one area are its tabs.
export type Place = 'chat' | 'sessions' | 'upper' | 'lower' | 'inspector';

export interface PanelProps {
  readonly store: Store;
  readonly panel: string; // its id, the key of its filter, order and window in the view
}

export interface SessionProps extends PanelProps {
  readonly session: OpenSession;
}

interface Common {
  readonly id: string; // used in links: lower case, must not change
  readonly title: string;
  readonly place: Place;
  // Commands of the panel for the palette, the keyboard and the help.
  readonly commands?: (store: Store) => readonly Command[];
}

export type Panel =
  | (Common & { readonly needs: 'nothing'; readonly body: ComponentType<PanelProps> })
  | (Common & {
      // steps: the panel needs at least one step
      readonly needs: 'session' | 'steps';
      readonly empty: string; // text shown while no session is open
      readonly body: ComponentType<SessionProps>;
    });
