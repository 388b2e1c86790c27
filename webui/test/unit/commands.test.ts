import { describe, expect, it } from 'vitest';
import { commandFor, keyCaps, matches, type Press } from '../../src/commands/keys';
import { fuzzy, ranked } from '../../src/commands/fuzzy';
import { commandsOf } from '../../src/commands/table';
import { PANELS as TABLE } from '../../src/panels/table';
import { fakeStore } from './fakes';

const press = (key: string, part: Partial<Press> = {}): Press => ({
  key,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  shiftKey: false,
  ...part,
});
const FREE = { typing: false, letterKeys: true };

describe('keys', () => {
  it.each([
    ['Ctrl+K', press('k', { ctrlKey: true }), true],
    ['Ctrl+K', press('K', { metaKey: true }), true],
    ['Ctrl+K', press('k', { ctrlKey: true, shiftKey: true }), false],
    ['Ctrl+Shift+P', press('P', { ctrlKey: true, shiftKey: true }), true],
    ['F', press('f'), true],
    ['F', press('F', { shiftKey: true }), false],
    ['F', press('f', { altKey: true }), false],
    ['{', press('{', { shiftKey: true }), true],
    ['{', press('{', { altKey: true, ctrlKey: true }), false],
    ['?', press('?', { shiftKey: true }), true],
    ['+', press('+'), true],
    ['Escape', press('Escape'), true],
  ])('%s by %j is %s', (key, event, fits) => {
    expect(matches(key, event)).toBe(fits);
  });
  it('show as caps', () => {
    expect(keyCaps('Ctrl+Shift+P')).toEqual(['Ctrl', 'Shift', 'P']);
    expect(keyCaps('Escape')).toEqual(['Esc']);
    expect(keyCaps('+')).toEqual(['+']);
  });
});

describe('the table of commands', () => {
  const store = fakeStore({});
  const commands = commandsOf(store, TABLE);

  it('has each id and each key once', () => {
    const ids = commands.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const keys = commands.filter(({ local }) => !local).flatMap(({ keys = [] }) => keys);
    expect(new Set(keys.map((key) => key.toLowerCase())).size).toBe(keys.length);
  });

  it('finds a command by its key', () => {
    expect(commandFor(commands, press('?', { shiftKey: true }), FREE)?.id).toBe('help');
    expect(commandFor(commands, press('k', { ctrlKey: true }), FREE)?.id).toBe('palette');
    expect(commandFor(commands, press('q'), FREE)).toBeNull();
  });

  it('leaves a text field its keys, but not the palette’s', () => {
    const typing = { typing: true, letterKeys: true };
    expect(commandFor(commands, press('f'), typing)).toBeNull();
    expect(commandFor(commands, press('k', { ctrlKey: true }), typing)?.id).toBe('palette');
  });

  it('lets single letters be switched off', () => {
    const off = { typing: false, letterKeys: false };
    for (const key of ['f', '?', '[', '+', '1']) {
      expect(commandFor(commands, press(key), off)).toBeNull();
    }
    store.navigation.change({ full: 'heat' });
    expect(commandFor(commands, press('Escape'), off)?.id).toBe('back');
    expect(commandFor(commands, press('k', { ctrlKey: true }), off)?.id).toBe('palette');
  });

  it('passes over what makes no sense now', () => {
    store.navigation.change({ full: null });
    expect(commandFor(commands, press('Escape'), FREE)).toBeNull();
    expect(commandFor(commands, press(']'), FREE)).toBeNull();
  });

  it('has one command per panel', () => {
    for (const { id } of TABLE) {
      expect(commands.some((command) => command.id === `show-${id}`)).toBe(true);
    }
  });
});

describe('fuzzy', () => {
  it('finds letters in their order', () => {
    expect(fuzzy('fsp', 'Full screen of the panel')).not.toBeNull();
    expect(fuzzy('psf', 'Full screen')).toBeNull();
    expect(fuzzy('', 'x')).toEqual({ score: 0, at: [] });
  });
  it('says which letters matched', () => {
    expect(fuzzy('next l', 'Next layer')?.at).toEqual([0, 1, 2, 3, 5]);
  });
  it('puts beginnings of words first', () => {
    const items = ['Unload the sheet', 'Show layers', 'Light theme', 'Delete the session'];
    expect(ranked('lt', items, (text) => text)[0]?.item).toBe('Light theme');
    expect(ranked('del', items, (text) => text)[0]?.item).toBe('Delete the session');
  });
  it('finds by what stands beside the text, after what the text says', () => {
    const names = ranked(
      'lay',
      ['Next token', 'Next layer'],
      (text) => text,
      () => 'Tokens and layers',
    );
    expect(names.map(({ item }) => item)).toEqual(['Next layer', 'Next token']);
  });
  it('keeps the order where nothing is asked', () => {
    expect(ranked('', ['b', 'a'], (text) => text).map(({ item }) => item)).toEqual(['b', 'a']);
  });
});
