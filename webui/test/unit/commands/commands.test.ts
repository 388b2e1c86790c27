import { describe, expect, it } from 'vitest';
import { commandFor, keyCaps, matches, type KeyPress } from '../../../src/commands/keys';
import { fuzzy, rank } from '../../../src/commands/fuzzy';
import { commandsOf } from '../../../src/commands/table';
import { PANELS as TABLE } from '../../../src/panels/all_panels';
import { panelsOf } from '../../../src/state/view/layout';
import { fakeStore } from '../fakes';

const press = (key: string, part: Partial<KeyPress> = {}): KeyPress => ({
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
  ])('%s matches %j: %s', (key, event, fits) => {
    expect(matches(key, event)).toBe(fits);
  });
  it('are formatted as key names', () => {
    expect(keyCaps('Ctrl+Shift+P')).toEqual(['Ctrl', 'Shift', 'P']);
    expect(keyCaps('Escape')).toEqual(['Esc']);
    expect(keyCaps('+')).toEqual(['+']);
  });
});

describe('a file without a server', () => {
  const inFile = TABLE.filter(({ server }) => server !== true);
  const panels = new Set(inFile.map(({ id }) => id));
  const store = fakeStore({}, undefined, { held: 'a', panels });
  const ids = commandsOf(store, inFile).map(({ id }) => id);

  it('has no command that needs one', () => {
    const needing = ['send', 'stop', 'write', 'upload', 'delete', 'download', 'export-csv', 'report-html', 'api', 'tour', 'show-sql', 'compare-steps', 'view-compare-steps', 'ask-memory', 'breakpoint']; // prettier-ignore
    expect(ids.filter((id) => needing.includes(id))).toEqual([]);
    expect(ids).toEqual(expect.arrayContaining(['play', 'step-after', 'show-map', 'ask-layer']));
  });

  it('has its session in the view, whatever a link says, and only panels that are there', () => {
    store.start(null);
    expect(store.navigation.view.value.session).toBe('a');
    expect(store.open.value?.id).toBe('a');
    store.navigation.toSession('another');
    expect(store.open.value?.id).toBe('a');
    expect(panelsOf(store.layout.value).every((panel) => panels.has(panel))).toBe(true);
  });
});

describe('the table of commands', () => {
  const store = fakeStore({});
  const commands = commandsOf(store, TABLE);

  it('has unique ids and keys', () => {
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

  it('ignores single keys in a text field, but not the key of the palette', () => {
    const typing = { typing: true, letterKeys: true };
    expect(commandFor(commands, press('f'), typing)).toBeNull();
    expect(commandFor(commands, press('k', { ctrlKey: true }), typing)?.id).toBe('palette');
  });

  it('ignores single keys if they are disabled', () => {
    const off = { typing: false, letterKeys: false };
    for (const key of ['f', '?', '[', '+', '1']) {
      expect(commandFor(commands, press(key), off)).toBeNull();
    }
    store.navigation.change({ full: 'heat' });
    expect(commandFor(commands, press('Escape'), off)?.id).toBe('back');
    expect(commandFor(commands, press('k', { ctrlKey: true }), off)?.id).toBe('palette');
  });

  it('ignores the keys of disabled commands', () => {
    store.navigation.change({ full: null });
    expect(commandFor(commands, press('Escape'), FREE)).toBeNull();
    expect(commandFor(commands, press(']'), FREE)).toBeNull();
  });

  it('has a command for each panel', () => {
    for (const { id } of TABLE) {
      expect(commands.some((command) => command.id === `show-${id}`)).toBe(true);
    }
  });
});

describe('fuzzy', () => {
  it('matches letters in order', () => {
    expect(fuzzy('fsp', 'Full screen of the panel')).not.toBeNull();
    expect(fuzzy('psf', 'Full screen')).toBeNull();
    expect(fuzzy('', 'x')).toEqual({ score: 0, indices: [] });
  });
  it('returns the indices of the matching letters', () => {
    expect(fuzzy('next l', 'Next layer')?.indices).toEqual([0, 1, 2, 3, 5]);
  });
  it('ranks matches at the start of words first', () => {
    const items = ['Unload the sheet', 'Show layers', 'Light theme', 'Delete the session'];
    expect(rank('lt', items, (text) => text)[0]?.item).toBe('Light theme');
    expect(rank('del', items, (text) => text)[0]?.item).toBe('Delete the session');
  });
  it('ranks matches in the additional text last', () => {
    const names = rank(
      'lay',
      ['Next token', 'Next layer'],
      (text) => text,
      () => 'Tokens and layers',
    );
    expect(names.map(({ item }) => item)).toEqual(['Next layer', 'Next token']);
  });
  it.each([
    ['heads', 'Map: rows by head'],
    ['export', 'Export the session as CSV'],
    ['report', 'Report as HTML'],
    ['parquet', 'Export the session as Parquet'],
    ['dashboard', 'Table: totals by layer'],
    ['cli', 'Copy the command: tt report'],
    ['totals tensor', 'Table: totals by tensor'],
    ['tensor totals', 'Table: totals by tensor'],
    ['memory', 'Map: Memory'],
    ['slowest layer', 'Which layer is slowest?'],
    ['breakpoint', 'Show Debugger'],
    ['dark mode', 'Dark theme'],
    ['light mode', 'Light theme'],
    ['theme', 'Dark theme'],
    ['colours', 'Light theme'],
    ['prompt speed', 'How does the prompt differ from generation?'],
    ['slow', 'Which layer is slowest?'],
    ['ram', 'How much RAM is enough?'],
    ['quantization', 'Which tensor lost most by quantization?'],
  ])('“%s” finds “%s” among the first, and no session by its letters', (query, title) => {
    const all = commandsOf(fakeStore({}), TABLE);
    const sessions = ['Describe a fox that has eaten dinners', 'Explain in a few expert words'];
    const items = [...all.map((one) => ({ title: one.title, words: `${one.group} ${one.words ?? ''}` })), ...sessions.map((one) => ({ title: `Open “${one}”`, words: 'Sessions' }))];
    const found = rank(query, items, (one) => one.title, (one) => one.words);
    expect(found.slice(0, 4).map(({ item }) => item.title)).toContain(title);
    expect(found.filter(({ item }) => sessions.some((one) => item.title.includes(one)))).toEqual([]);
  }); // prettier-ignore
  it('keeps the order for an empty query', () => {
    expect(rank('', ['b', 'a'], (text) => text).map(({ item }) => item)).toEqual(['b', 'a']);
  });
});
