// The search (Ctrl+K): fuzzy search over all commands and sessions, the tensors, ops and tokens of
// the open session, and the glossary. A number goes to that step, `l 5` to that layer; `expert 3 layer 2`
// selects the expert.
import { effect, useComputed, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { isEnabled, type Command } from '../commands/command';
import { rank, topicOf } from '../commands/fuzzy';
import { findTerms, type Term } from '../commands/glossary';
import { jumpCommands } from '../commands/jumps';
import { sessionItems } from '../commands/session_items';
import type { Store } from '../state/store';
import { Keys } from '../ui/Keys';

const MAX_RESULTS = 40;

export function Palette({ store, commands }: { store: Store; commands: () => readonly Command[] }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const query = useSignal('');
  const at = useSignal(0);
  const shown = useComputed(() => store.shell.overlay.value === 'palette').value;
  const found = useComputed(() =>
    store.shell.overlay.value === 'palette' ? search(store, commands(), query.value) : [],
  );
  // The dialog is always mounted and opens synchronously, so that keys typed directly after the
  // shortcut go to it.
  useEffect(
    () =>
      effect(() => {
        const open = store.shell.overlay.value === 'palette';
        if (open && dialog.current?.open === false) dialog.current.showModal();
      }),
    [store],
  );
  const active = Math.min(at.value, found.value.length - 1);
  const move = (by: 1 | -1): void => {
    const count = Math.max(1, found.value.length);
    at.value = (Math.max(0, at.value) + by + count) % count;
  };
  // Its event may arrive after the shortcut has opened the dialog again.
  const closed = (): void => {
    if (dialog.current?.open === true) return;
    query.value = '';
    at.value = 0;
    // The command may have opened another dialog.
    if (store.shell.overlay.peek() === 'palette') store.shell.show(null);
  };
  const close = (): void => {
    dialog.current?.close();
    closed();
  };
  const run = (index: number): void => {
    const command = found.value[index]?.item;
    if (!command || !isEnabled(command)) return;
    close();
    command.run(false);
  };
  return (
    <dialog
      ref={dialog}
      class="palette"
      aria-label="Search and commands"
      onClose={closed}
      onClick={(event) => {
        if (event.target === event.currentTarget) close();
      }}
    >
      <input
        type="text"
        role="combobox"
        aria-label="Command"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={active >= 0 ? `palette-${active}` : undefined}
        placeholder="Question, tensor, op, token, session, command, term, step, or “expert 3 layer 2”"
        autocomplete="off"
        spellcheck={false}
        value={query.value}
        onInput={(event) => {
          query.value = event.currentTarget.value;
          at.value = 0;
        }}
        onKeyDown={(event) => {
          if (event.key === 'ArrowDown') move(1);
          else if (event.key === 'ArrowUp') move(-1);
          else if (event.key === 'Enter') run(at.value);
          else if (event.key === 'Escape') close();
          else return;
          event.preventDefault();
        }}
      />
      <ul id="palette-list" role="listbox" aria-label="Commands">
        {found.value.map(({ item, indices: letters }, i) => (
          <Item
            key={item.id}
            command={item}
            letters={letters}
            index={i}
            active={i === active}
            run={() => {
              run(i);
            }}
          />
        ))}
      </ul>
      {shown && found.value.length === 0 && <p class="palette-none">Nothing found.</p>}
    </dialog>
  );
}

interface Found {
  readonly item: Command;
  readonly indices: readonly number[]; // indices of the matching letters in its title
}

function search(store: Store, commands: readonly Command[], query: string): readonly Found[] {
  const usable = commands.filter((one) => !one.hidden && !one.local && isEnabled(one));
  const jumps = jumpCommands(store, query).map((item) => ({ item, indices: [] }));
  const ranked = (words: string) =>
    rank(
      words,
      usable,
      ({ title }) => title,
      ({ group, words: others = '' }) => `${group} ${others}`,
    );
  const exact = ranked(query);
  // A whole sentence: by the words that say what it is about.
  const topic = topicOf(query);
  const names = exact.length > 0 || topic === '' ? exact : ranked(topic);
  const found = sessionItems(store, query).map((item) => ({ item, indices: [] }));
  const { named, explained } = findTerms(store.shell.glossary.value, query);
  const terms = (of: readonly Term[]) =>
    of.map((term) => ({ item: termItem(store, term), indices: [] }));
  // Who types the whole name of a term asks what it means. Else a question or a view comes before it:
  // "roofline" opens the chart. Without a session, most of those cannot be used.
  const wanted = query.trim().toLowerCase();
  const isFirst = ({ term }: Term): boolean =>
    store.open.value === null || term.toLowerCase() === wanted;
  return [
    ...jumps,
    ...found,
    ...terms(named.filter(isFirst)),
    ...names,
    ...terms(named.filter((term) => !isFirst(term))),
    ...terms(explained),
  ].slice(0, MAX_RESULTS);
}

const termItem = (store: Store, { term, meaning }: Term): Command => ({
  id: `term-${term}`,
  title: term,
  text: meaning,
  group: 'Glossary',
  run: () => {
    store.shell.show('help', term);
  },
});

function Item(props: {
  command: Command;
  letters: readonly number[];
  index: number;
  active: boolean;
  run: () => void;
}) {
  const { command, letters, index, active } = props;
  const line = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (active) line.current?.scrollIntoView({ block: 'nearest' });
  }, [active]);
  return (
    <li
      ref={line}
      id={`palette-${index}`}
      role="option"
      aria-selected={active}
      aria-disabled={!isEnabled(command)}
      onClick={props.run}
    >
      <span class="palette-title">
        {Array.from(command.title, (letter, i) =>
          letters.includes(i) ? <mark>{letter}</mark> : letter,
        )}
      </span>
      {command.text !== undefined && <span class="palette-text">{command.text}</span>}
      <span class="palette-group">{command.group}</span>
      {command.keys && <Keys keys={command.keys.slice(0, 1)} />}
    </li>
  );
}
