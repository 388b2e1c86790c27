// Maps key presses to commands. A key is written as `Ctrl+Shift+P`, `F`, `[`, `Escape`: modifiers,
// then the typed key. Symbols typed with Shift (`{`, `?`) are written without Shift. Ctrl also
// matches Cmd on a Mac.
import { isEnabled, type Command } from './command';

export interface Key {
  readonly ctrl: boolean;
  readonly alt: boolean;
  readonly shift: boolean;
  readonly key: string; // lower case
}

export interface KeyPress {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly altKey: boolean;
  readonly shiftKey: boolean;
}

export function parseKey(text: string): Key {
  const parts = text.split(/\+(?=.)/);
  const key = (parts.pop() ?? '').toLowerCase();
  return {
    ctrl: parts.includes('Ctrl'),
    alt: parts.includes('Alt'),
    shift: parts.includes('Shift'),
    key,
  };
}

export function matches(text: string, press: KeyPress): boolean {
  const expected = parseKey(text);
  const typed = press.key.toLowerCase();
  if (expected.key !== typed || expected.ctrl !== (press.ctrlKey || press.metaKey)) return false;
  if (expected.alt !== press.altKey) return false;
  // Whether a symbol needs Shift depends on the keyboard layout.
  const symbol = typed.length === 1 && !/[a-z]/.test(typed);
  return symbol && !expected.ctrl ? true : expected.shift === press.shiftKey;
}

// Whether it is a single character without Ctrl or Alt. WCAG 2.1.4 requires a switch for those.
export function isSingleKey(text: string): boolean {
  const { ctrl, alt, key } = parseKey(text);
  return !ctrl && !alt && key.length === 1;
}

export interface KeyContext {
  readonly typing: boolean; // a text field has the focus
  readonly letterKeys: boolean; // single-key shortcuts are enabled
}

export function commandFor(
  commands: readonly Command[],
  press: KeyPress,
  { typing, letterKeys }: KeyContext,
): Command | null {
  const fits = (command: Command): boolean =>
    !command.local &&
    (!typing || command.typing === true) &&
    (command.keys ?? []).some((key) => (letterKeys || !isSingleKey(key)) && matches(key, press)) &&
    isEnabled(command);
  return commands.find(fits) ?? null;
}

// Whether the element takes text input.
export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target instanceof HTMLTextAreaElement) return true;
  // While a list is open, its options have the focus.
  if (target instanceof HTMLSelectElement || target instanceof HTMLOptionElement) return true;
  const nonText = ['button', 'checkbox', 'radio', 'range', 'submit', 'file', 'color'];
  return target instanceof HTMLInputElement && !nonText.includes(target.type);
}

const NAMES: Readonly<Record<string, string>> = {
  escape: 'Esc',
  enter: '⏎',
  arrowleft: '←',
  arrowright: '→',
  arrowup: '↑',
  arrowdown: '↓',
  ' ': 'Space',
};

// The names of a shortcut's keys, modifiers first.
export function keyCaps(text: string): readonly string[] {
  const { ctrl, alt, shift, key } = parseKey(text);
  const name = NAMES[key] ?? (key.length === 1 ? key.toUpperCase() : capital(key));
  return [ctrl ? 'Ctrl' : '', alt ? 'Alt' : '', shift ? 'Shift' : '', name].filter(Boolean);
}

const capital = (word: string): string => word.slice(0, 1).toUpperCase() + word.slice(1);
