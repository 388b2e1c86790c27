// The shell: arranges the panels in their areas of the page. It does not depend on single panels.
import { useEffect, useMemo } from 'preact/hooks';
import { commandFor, isTyping } from './commands/keys';
import { commandsOf, embeddedCommands } from './commands/table';
import type { Panel } from './panels/panel';
import { DebugBar } from './shell/DebugBar';
import { Dock } from './shell/Dock';
import { DropTarget } from './shell/DropTarget';
import { Embedded } from './shell/Embedded';
import { PlaybackBar } from './shell/PlaybackBar';
import { Help } from './shell/Help';
import { Palette } from './shell/Palette';
import { Saves } from './shell/Saves';
import { SkipLinks } from './shell/SkipLinks';
import { StatusLine } from './shell/StatusLine';
import { Toasts } from './shell/Toasts';
import { OfflineNotice, TopBar } from './shell/TopBar';
import { MAX_SHARE, MIN_SHARE, panelsOf, withShare, type Layout } from './state/view/layout';
import type { Store } from './state/store';
import { Strip } from './strip/Strip';
import { usePart } from './ui/hooks';
import { lazy } from './ui/lazy';
import { Splitter } from './ui/Splitter';

const tour = lazy(async () => (await import('./tour/TourCard')).TourCard);

// Beside the views, which stay in use.
function Tour({ store }: { store: Store }) {
  const Card = tour;
  return store.settings.current.value.tour ? <Card store={store} /> : null;
}

interface AppProps {
  readonly store: Store;
  readonly panels: readonly Panel[];
}

export function App({ store, panels }: AppProps) {
  const embed = usePart(() => store.navigation.view.value.embed);
  const panel = panels.find(({ id }) => id === embed);
  return panel ? <InFrame store={store} panel={panel} /> : <Whole store={store} panels={panels} />;
}

function InFrame({ store, panel }: { store: Store; panel: Panel }) {
  useEffect(() => listenForKeys(store, () => embeddedCommands(store)), [store]);
  return (
    <>
      <OfflineNotice store={store} />
      <Embedded store={store} panel={panel} />
      <div class="corner">
        <Toasts store={store} />
      </div>
    </>
  );
}

function Whole({ store, panels }: AppProps) {
  const commands = useMemo(() => () => commandsOf(store, panels), [store, panels]);
  useEffect(() => listenForKeys(store, commands), [store, commands]);
  return (
    <>
      <SkipLinks store={store} panels={panels} />
      <TopBar store={store} />
      <OfflineNotice store={store} />
      <Strip store={store} />
      {store.hasServer && <DebugBar store={store} />}
      <Page store={store} panels={panels} />
      <PlaybackBar store={store} />
      <StatusLine store={store} />
      {store.hasServer && <Tour store={store} />}
      <Palette store={store} commands={commands} />
      <Help store={store} commands={commands} />
      <div class="corner">
        {store.hasServer && <Saves store={store} />}
        <Toasts store={store} />
      </div>
      {store.hasServer && <DropTarget store={store} />}
    </>
  );
}

function listenForKeys(store: Store, commands: () => ReturnType<typeof commandsOf>): () => void {
  const press = (event: KeyboardEvent): void => {
    // Dialogs and menus handle their own keys. A key that a panel handled is not handled again.
    if (event.defaultPrevented || event.isComposing) return;
    if (document.querySelector('dialog[open], .popover:popover-open')) return;
    // The element that has the focus, also inside an editor with a tree of its own.
    const target = event.composedPath()[0] ?? event.target;
    const typing = isTyping(target);
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

function Page({ store, panels }: AppProps) {
  const isFull = usePart(() => store.navigation.view.value.full !== null);
  useEffect(() => watchWidth(store), [store]);
  return (
    <main class="page" data-full={isFull}>
      <Area store={store} panels={panels} layout={store.layout.value} path={[]} />
    </main>
  );
}

const NARROW = '(max-width: 900px)';

function watchWidth(store: Store): () => void {
  const query = matchMedia(NARROW);
  const look = (): void => {
    store.shell.narrow.value = query.matches;
  };
  look();
  query.addEventListener('change', look);
  return () => {
    query.removeEventListener('change', look);
  };
}

interface AreaProps extends AppProps {
  readonly layout: Layout;
  readonly path: readonly (0 | 1)[];
}

// A part of the layout: a dock, or two parts with a bar between them.
function Area({ store, panels, layout, path }: AreaProps) {
  if (layout.kind === 'dock') {
    const own = layout.panels.flatMap((id) => panels.find((one) => one.id === id) ?? []);
    return <Dock store={store} panels={own} all={panels} />;
  }
  const { direction, share, first, second } = layout;
  const titles = (of: Layout): string =>
    panelsOf(of)
      .map((id) => panels.find((one) => one.id === id)?.title ?? id)
      .join(', ');
  const tracks = `minmax(0, ${share}fr) 7px minmax(0, ${Math.round(1000 * (1 - share)) / 1000}fr)`;
  return (
    <div
      class="split"
      data-direction={direction}
      style={direction === 'row' ? { gridTemplateColumns: tracks } : { gridTemplateRows: tracks }}
    >
      <Area store={store} panels={panels} layout={first} path={[...path, 0]} />
      <Splitter
        label={`${direction === 'row' ? 'Width' : 'Height'} of ${titles(first)}`}
        direction={direction}
        share={share}
        min={MIN_SHARE}
        max={MAX_SHARE}
        initial={0.5}
        move={(next) => {
          store.setLayout(withShare(store.layout.peek(), path, next));
        }}
      />
      <Area store={store} panels={panels} layout={second} path={[...path, 1]} />
    </div>
  );
}
