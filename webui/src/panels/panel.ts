// The definition of a panel. all_panels.ts lists all panels; README.md explains how to add one.
import type { ComponentType } from 'preact';
import type { Command } from '../commands/command';
import type { OpenSession } from '../state/session/open_session';
import type { Store } from '../state/store';

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
  // What it shows and how to read it, in one sentence.
  readonly about: string;
  readonly words?: string; // other words for it, which the search finds too
  readonly server?: true; // asks for what no file holds: other sessions, models, any statement
  readonly acts?: true; // runs, changes or deletes something: not shown in the frame of another page
  readonly live?: true; // shows the step in flight, also before any step has ended
  // Commands of the panel for the palette, the keyboard and the help.
  readonly commands?: (store: Store) => readonly Command[];
}

export type Panel =
  | (Common & { readonly needs: 'nothing'; readonly body: ComponentType<PanelProps> })
  | (Common & {
      // steps: the panel needs at least one step
      readonly needs: 'session' | 'steps';
      readonly body: ComponentType<SessionProps>;
    });
