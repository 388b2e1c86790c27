// A named action. One table of commands drives the palette, the keyboard shortcuts and the help.

export interface Command {
  readonly id: string;
  readonly title: string;
  readonly group: string;
  readonly words?: string; // other words for it, which the search finds too
  readonly text?: string; // shown below the title
  // Syntax of `parseKey`. The palette shows the first one.
  readonly keys?: readonly string[];
  readonly typing?: boolean; // works while a text field has the focus
  readonly hidden?: boolean; // not in the palette
  // Handled by the focused element, not by the page; listed in the help.
  readonly local?: boolean;
  readonly enabled?: () => boolean;
  // `repeated`: the key is held down.
  readonly run: (repeated: boolean) => void;
}

export const isEnabled = (command: Command): boolean => command.enabled?.() ?? true;
