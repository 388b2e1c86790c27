// The keyboard shortcuts, the switch for single-key shortcuts, and the glossary.
import { useEffect, useRef } from 'preact/hooks';
import type { Command } from '../commands/command';
import type { Store } from '../state/store';
import { IconButton } from '../ui/Button';
import { Check } from '../ui/Check';
import { Keys } from '../ui/Keys';

export function Help({ store, commands }: { store: Store; commands: () => readonly Command[] }) {
  const shown = store.shell.overlay.value === 'help';
  return shown ? <Open store={store} commands={commands()} /> : null;
}

function Open({ store, commands }: { store: Store; commands: readonly Command[] }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  const glossary = store.shell.glossary.value;
  const term = store.shell.term.value;
  useEffect(() => {
    dialog.current?.querySelector('[data-shown=true]')?.scrollIntoView({ block: 'center' });
  }, [glossary, term]);
  const { letterKeys } = store.settings.current.value;
  const groups = new Map<string, Command[]>();
  for (const command of commands) {
    if (!command.keys) continue;
    groups.set(command.group, [...(groups.get(command.group) ?? []), command]);
  }
  return (
    <dialog
      ref={dialog}
      class="help"
      aria-labelledby="help-title"
      onClose={() => {
        store.shell.show(null);
      }}
      onClick={(event) => {
        if (event.target === event.currentTarget) event.currentTarget.close();
      }}
    >
      <header>
        <h2 id="help-title">Keyboard shortcuts and glossary</h2>
        <IconButton icon="close" label="Close" hint="Esc" onClick={() => dialog.current?.close()} />
      </header>
      <div class="help-groups" tabIndex={0} role="region" aria-label="Keys and terms">
        {[...groups].map(([group, list]) => (
          <section key={group}>
            <h3>{group}</h3>
            <dl>
              {list.map(({ id, title, keys = [] }) => (
                <div key={id}>
                  <dt>{title}</dt>
                  <dd>
                    <Keys keys={keys} />
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
        <section class="help-glossary">
          <h3>Glossary</h3>
          <dl>
            {glossary.map((one) => (
              <div key={one.term} data-shown={one.term === term}>
                <dt>{one.term}</dt>
                <dd>{one.meaning}</dd>
              </div>
            ))}
          </dl>
        </section>
      </div>
      <footer>
        <Check
          class="toggle"
          text="Enable single-key shortcuts"
          on={letterKeys}
          set={(on) => {
            store.settings.set({ letterKeys: on });
          }}
        />
        <span class="dim">Single keys are ignored while a text field has the focus.</span>
      </footer>
    </dialog>
  );
}
