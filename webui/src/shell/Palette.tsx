// Everything that can be done, found by a few letters: Ctrl+K, letters, arrows,
// Enter. A bare number goes to that step, `l 5` to that layer.
import { useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { isEnabled, type Command } from '../commands/command';
import { ranked } from '../commands/fuzzy';
import type { Store } from '../state/store';
import { Keys } from '../ui/Keys';

const MOST = 40;

export function Palette({ store, commands }: { store: Store; commands: () => readonly Command[] }) {
  const shown = store.shell.overlay.value === 'palette';
  return shown ? <Open store={store} commands={commands()} /> : null;
}

function Open({ store, commands }: { store: Store; commands: readonly Command[] }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const query = useSignal('');
  const at = useSignal(0);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  const usable = useMemo(
    () => commands.filter((command) => !command.hidden && !command.local && isEnabled(command)),
    [commands],
  );
  const found = useMemo(() => {
    const jumps = jumpsOf(store, query.value).map((item) => ({ item, at: [] }));
    const names = ranked(
      query.value,
      usable,
      ({ title }) => title,
      ({ group }) => group,
    );
    return [...jumps, ...names].slice(0, MOST);
  }, [usable, query.value, store]);
  const active = Math.min(at.value, found.length - 1);
  const close = (): void => {
    store.shell.show(null);
  };
  const run = (index: number): void => {
    const command = found[index]?.item;
    if (!command) return;
    dialog.current?.close();
    command.run(false);
  };
  return (
    <dialog
      ref={dialog}
      class="palette"
      aria-label="Search and commands"
      onClose={close}
      onClick={(event) => {
        if (event.target === event.currentTarget) event.currentTarget.close();
      }}
    >
      <input
        type="text"
        role="combobox"
        aria-label="Command"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={active >= 0 ? `palette-${active}` : undefined}
        placeholder="What do you want to do?"
        autocomplete="off"
        spellcheck={false}
        value={query.value}
        onInput={(event) => {
          query.value = event.currentTarget.value;
          at.value = 0;
        }}
        onKeyDown={(event) => {
          if (event.key === 'ArrowDown') at.value = (active + 1) % Math.max(1, found.length);
          else if (event.key === 'ArrowUp') {
            at.value = (active - 1 + found.length) % Math.max(1, found.length);
          } else if (event.key === 'Enter') run(active);
          else return;
          event.preventDefault();
        }}
      />
      <ul id="palette-list" role="listbox" aria-label="Commands">
        {found.map(({ item, at: letters }, i) => (
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
      {found.length === 0 && <p class="palette-none">Nothing is called like that.</p>}
    </dialog>
  );
}

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
    <li ref={line} id={`palette-${index}`} role="option" aria-selected={active} onClick={props.run}>
      <span class="palette-title">
        {Array.from(command.title, (letter, i) =>
          letters.includes(i) ? <mark>{letter}</mark> : letter,
        )}
      </span>
      <span class="palette-group">{command.group}</span>
      {command.keys && <Keys keys={command.keys.slice(0, 1)} />}
    </li>
  );
}

function jumpsOf(store: Store, query: string): readonly Command[] {
  const open = store.open.peek();
  const match = /^\s*(?:(l|layer|step|token)\s*)?(\d{1,9})\s*$/i.exec(query);
  if (!open || !match) return [];
  const number = Number(match[2]);
  const layer = match[1]?.toLowerCase().startsWith('l') === true;
  const jumps: Command[] = [];
  if (!layer && number < open.data.steps.length) {
    jumps.push({
      id: 'go-step',
      title: `Go to step ${number}`,
      group: 'Tokens and layers',
      run: () => {
        store.navigation.toStep(number);
      },
    });
  }
  if ((layer || !match[1]) && number < store.layers.peek()) {
    jumps.push({
      id: 'go-layer',
      title: `Go to layer ${number}`,
      group: 'Tokens and layers',
      run: () => {
        store.navigation.change({ layer: number });
      },
    });
  }
  return jumps;
}
