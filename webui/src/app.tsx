// The shell: arranges the panels in their areas of the page. It does not depend on single panels.
import { useEffect, useMemo } from 'preact/hooks';
import { commandFor, isTyping } from './commands/keys';
import { commandsOf } from './commands/table';
import type { Panel, Place } from './panels/panel';
import { Dock } from './shell/Dock';
import { DropTarget } from './shell/DropTarget';
import { PlaybackBar } from './shell/PlaybackBar';
import { Help } from './shell/Help';
import { Palette } from './shell/Palette';
import { StatusLine } from './shell/StatusLine';
import { Toasts } from './shell/Toasts';
import { OfflineNotice, TopBar } from './shell/TopBar';
import { defaultSettings, type Settings } from './state/settings';
import type { Store } from './state/store';
import { Strip } from './strip/Strip';
import { usePart } from './ui/hooks';
import { Splitter } from './ui/Splitter';

export function App({ store, panels }: { store: Store; panels: readonly Panel[] }) {
  const commands = useMemo(() => () => commandsOf(store, panels), [store, panels]);
  useEffect(() => listenForKeys(store, commands), [store, commands]);
  return (
    <>
      <TopBar store={store} />
      <OfflineNotice store={store} />
      <Strip store={store} />
      <Page store={store} panels={panels} />
      <PlaybackBar store={store} />
      <StatusLine store={store} />
      <Palette store={store} commands={commands} />
      <Help store={store} commands={commands} />
      <Toasts store={store} />
      <DropTarget store={store} />
    </>
  );
}

function listenForKeys(store: Store, commands: () => ReturnType<typeof commandsOf>): () => void {
  const press = (event: KeyboardEvent): void => {
    // Dialogs and menus handle their own keys. A key that a panel handled is not handled again.
    if (event.defaultPrevented || event.isComposing) return;
    if (document.querySelector('dialog[open], .popover:popover-open')) return;
    const typing = isTyping(event.target);
    const { letterKeys } = store.settings.current.peek();
    if (event.key === ' ' && isControl(event.target)) return; // presses the control
    const command = commandFor(commands(), event, { typing, letterKeys });
    if (command) {
      event.preventDefault();
      command.run(event.repeat);
    } else if (typing && event.key === 'Escape' && event.target instanceof HTMLElement) {
      event.target.blur();
    }
  };
  addEventListener('keydown', press);
  return () => {
    removeEventListener('keydown', press);
  };
}

const isControl = (target: EventTarget | null): boolean =>
  target instanceof Element && target.closest('button, a[href], input, select, summary') !== null;

type ShareName = 'sideShare' | 'inspectorShare' | 'chatShare' | 'upperShare';

function Page({ store, panels }: { store: Store; panels: readonly Panel[] }) {
  const { showSide, showInspector, ...shares } = store.settings.current.value;
  const full = usePart(() => store.navigation.view.value.full);
  const panelsAt = useMemo(
    () => (place: Place) => panels.filter((one) => one.place === place),
    [panels],
  );
  const fullPlace = panels.find(({ id }) => id === full)?.place;
  const columns = [
    ...(showSide ? [`minmax(270px, ${100 * shares.sideShare}%)`, '7px'] : []),
    'minmax(0, 1fr)',
    ...(showInspector ? ['7px', `minmax(230px, ${100 * shares.inspectorShare}%)`] : []),
  ];
  const rows = (share: number): string =>
    `minmax(0, ${share}fr) 7px minmax(0, ${Math.round(1000 * (1 - share)) / 1000}fr)`;
  const bar = (name: ShareName) => ({
    share: shares[name],
    initial: defaultSettings[name],
    move: (share: number) => {
      store.settings.set({ [name]: share } satisfies Partial<Settings>);
    },
  });
  const dock = (place: Place) => <Dock store={store} place={place} panels={panelsAt(place)} />;
  return (
    <main class="page" data-full={fullPlace} style={{ gridTemplateColumns: columns.join(' ') }}>
      {showSide && (
        <>
          <div class="column column-side" style={{ gridTemplateRows: rows(shares.chatShare) }}>
            {dock('chat')}
            <Splitter
              label="Height of chat and sessions"
              direction="column"
              min={0.3}
              max={0.85}
              {...bar('chatShare')}
            />
            {dock('sessions')}
          </div>
          <Splitter
            label="Width of chat and sessions"
            direction="row"
            min={0.15}
            max={0.45}
            {...bar('sideShare')}
          />
        </>
      )}
      <div class="column column-middle" style={{ gridTemplateRows: rows(shares.upperShare) }}>
        {dock('upper')}
        <Splitter
          label="Height of the upper and lower panels"
          direction="column"
          min={0.2}
          max={0.85}
          {...bar('upperShare')}
        />
        {dock('lower')}
      </div>
      {showInspector && (
        <>
          <Splitter
            label="Width of the inspector"
            direction="row"
            from="end"
            min={0.14}
            max={0.45}
            {...bar('inspectorShare')}
          />
          <div class="column column-inspector">{dock('inspector')}</div>
        </>
      )}
    </main>
  );
}
