// From key presses to commands. A key is written as `Ctrl+Shift+P`, `F`, `[`,
// `Escape`: modifiers first, then what the key types. Of what is typed with
// Shift (`{`, `?`) Shift is no part. Ctrl stands for Cmd on a Mac, too.
import { isEnabled, type Command } from './command';

export interface Key {
  readonly ctrl: boolean;
  readonly alt: boolean;
  readonly shift: boolean;
  readonly key: string; // lower case
}

export interface Press {
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

export function matches(text: string, press: Press): boolean {
  const wanted = parseKey(text);
  const typed = press.key.toLowerCase();
  if (wanted.key !== typed || wanted.ctrl !== (press.ctrlKey || press.metaKey)) return false;
  if (wanted.alt !== press.altKey) return false;
  // A sign that needs Shift on one keyboard does not on another.
  const sign = typed.length === 1 && !/[a-z]/.test(typed);
  return sign && !wanted.ctrl ? true : wanted.shift === press.shiftKey;
}

// Whether it is one sign without Ctrl or Alt: what WCAG 2.1.4 wants a switch for.
export function isSingle(text: string): boolean {
  const { ctrl, alt, key } = parseKey(text);
  return !ctrl && !alt && key.length === 1;
}

export interface Situation {
  readonly typing: boolean; // a text field has the focus
  readonly letterKeys: boolean; // single signs are shortcuts
}

export function commandFor(
  commands: readonly Command[],
  press: Press,
  { typing, letterKeys }: Situation,
): Command | null {
  const fits = (command: Command): boolean =>
    !command.local &&
    (!typing || command.typing === true) &&
    (command.keys ?? []).some((key) => (letterKeys || !isSingle(key)) && matches(key, press)) &&
    isEnabled(command);
  return commands.find(fits) ?? null;
}

// Whether what is typed belongs to the element.
export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target instanceof HTMLTextAreaElement) return true;
  if (target instanceof HTMLSelectElement) return true;
  const untyped = ['button', 'checkbox', 'radio', 'range', 'submit', 'file', 'color'];
  return target instanceof HTMLInputElement && !untyped.includes(target.type);
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

// A key as it stands on a key cap, in parts.
export function keyCaps(text: string): readonly string[] {
  const { ctrl, alt, shift, key } = parseKey(text);
  const name = NAMES[key] ?? (key.length === 1 ? key.toUpperCase() : capital(key));
  return [ctrl ? 'Ctrl' : '', alt ? 'Alt' : '', shift ? 'Shift' : '', name].filter(Boolean);
}

const capital = (word: string): string => word.slice(0, 1).toUpperCase() + word.slice(1);
