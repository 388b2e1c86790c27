// An action with a name. One table of them drives the palette, the keyboard and
// the help, so that each knows what the others know.

export interface Command {
  readonly id: string;
  readonly title: string;
  readonly group: string;
  // Forms as in `parseKey`; the first is the one that is shown.
  readonly keys?: readonly string[];
  readonly typing?: boolean; // works while a text field has the focus
  readonly hidden?: boolean; // by key only: the palette does without it
  // Handled where the focus is, not by the page; listed for the help.
  readonly local?: boolean;
  readonly enabled?: () => boolean;
  // `repeated`: the key is held down.
  readonly run: (repeated: boolean) => void;
}

export const isEnabled = (command: Command): boolean => command.enabled?.() ?? true;
