// A dock: the tabs of its panels and the selected panel. Tabs are dragged to other docks, or moved
// with a menu.
import { useSignal } from '@preact/signals';
import { useErrorBoundary } from 'preact/hooks';
import type { Panel } from '../panels/panel';
import { docksOf, moved, shownOf, type Zone } from '../state/view/layout';
import { Menu, MenuItem } from '../ui/Menu';
import { formatNs, plural } from '../format';
import type { Run } from '../net/types';
import type { OpenSession } from '../state/session/open_session';
import type { StepInFlight } from '../state/session/trace_data';
import { runningOpText } from '../state/session/first_graph';
import { queuedText } from '../state/session/queued';
import type { Store } from '../state/store';
import { IconButton } from '../ui/Button';
import { usePart } from '../ui/hooks';
import { OpenExample } from '../ui/OpenExample';
import { Empty, Failed, Loading } from '../ui/States';

interface Props {
  readonly store: Store;
  readonly panels: readonly Panel[]; // of this dock
  readonly all: readonly Panel[];
}

export function Dock({ store, panels, all }: Props) {
  const { navigation, shell } = store;
  const shown = usePart(() => {
    const ids = panels.map(({ id }) => id);
    // A link may ask for the full screen of a panel without its tab.
    const { full: wanted, tabs } = navigation.view.value;
    const id = wanted !== null && ids.includes(wanted) ? wanted : shownOf(ids, tabs);
    return panels.find((one) => one.id === id);
  });
  const full = usePart(() => navigation.view.value.full === shown?.id);
  const active = usePart(() => shell.active.value === shown?.id);
  const stale = usePart(() => store.connection.state.value.is === 'away');
  const zone = useSignal<Zone | null>(null);
  if (!shown) return null;
  const activate = (): void => {
    shell.activate(shown.id);
  };
  return (
    <section
      class="dock"
      data-active={active}
      data-full={full}
      data-drop={zone.value ?? undefined}
      onFocusIn={activate}
      onPointerDown={activate}
      onDragOver={(event) => {
        if (event.dataTransfer?.types.includes(DRAGGED) !== true) return;
        event.preventDefault();
        zone.value = zoneAt(event, event.currentTarget);
      }}
      onDragLeave={(event) => {
        const to = event.relatedTarget;
        if (!(to instanceof Node && event.currentTarget.contains(to))) zone.value = null;
      }}
      onDrop={(event) => {
        const panel = event.dataTransfer?.getData(DRAGGED) ?? '';
        const at = zone.value;
        zone.value = null;
        if (panel === '' || at === null) return;
        event.preventDefault();
        movePanel(store, panel, shown.id, at);
      }}
    >
      <header class="dock-head">
        <Tabs store={store} panels={panels} shown={shown} />
        <div class="dock-tools">
          {stale && shown.needs !== 'nothing' && (
            <span class="stale" title="The server is not reachable. This data was loaded earlier.">
              not updating
            </span>
          )}
          <About key={shown.id} panel={shown} />
          {!shell.narrow.value && <MoveMenu store={store} panel={shown} own={panels} all={all} />}
          <IconButton
            icon={full ? 'shrink' : 'expand'}
            label={full ? 'Exit full screen' : `Show ${shown.title} in full screen`}
            hint="F"
            onClick={() => {
              navigation.change({ full: full ? null : shown.id });
            }}
          />
        </div>
      </header>
      <div
        class="panel"
        id={`panel-${shown.id}`}
        role="tabpanel"
        aria-label={shown.title}
        data-panel={shown.id}
      >
        <PanelBody key={shown.id} store={store} panel={shown} />
      </div>
    </section>
  );
}

const DRAGGED = 'text/x-panel';

// The side of the dock that is nearest to the pointer; the middle and the tabs: into it.
function zoneAt(event: DragEvent, dock: HTMLElement): Zone {
  const { left, top, width, height } = dock.getBoundingClientRect();
  const x = (event.clientX - left) / width;
  const y = (event.clientY - top) / height;
  if (event.clientY - top < 32) return 'into';
  const near: readonly (readonly [Zone, number])[] = [
    ['left', x],
    ['right', 1 - x],
    ['above', y],
    ['below', 1 - y],
  ];
  const [zone, distance] = near.reduce((best, one) => (one[1] < best[1] ? one : best));
  return distance < 0.25 ? zone : 'into';
}

function movePanel(store: Store, panel: string, target: string, zone: Zone): void {
  store.setLayout(moved(store.layout.peek(), panel, target, zone));
  store.reveal(panel);
}

// What the panel shows and how to read it.
function About({ panel }: { panel: Panel }) {
  return (
    <Menu icon="help" label={`What ${panel.title} shows`}>
      <p class="about">{panel.about}</p>
    </Menu>
  );
}

const SIDES: readonly (readonly [Zone, string])[] = [
  ['left', 'to the left'],
  ['right', 'to the right'],
  ['above', 'above'],
  ['below', 'below'],
];

// Moves the panel without dragging.
function MoveMenu(props: {
  store: Store;
  panel: Panel;
  own: readonly Panel[];
  all: readonly Panel[];
}) {
  const { store, panel, own, all } = props;
  const item = (text: string, target: string, zone: Zone) => (
    <MenuItem
      key={text}
      run={() => {
        movePanel(store, panel.id, target, zone);
        document.getElementById(`tab-${panel.id}`)?.focus();
      }}
    >
      {text}
    </MenuItem>
  );
  const others = docksOf(store.layout.value)
    .filter(({ panels }) => !panels.includes(panel.id))
    .map(({ panels }) => panels[0] ?? '');
  const titleOf = (id: string): string => all.find((one) => one.id === id)?.title ?? id;
  return (
    <Menu icon="move" label={`Move ${panel.title}`}>
      {own.length > 1 && SIDES.map(([zone, where]) => item(`Split ${where}`, panel.id, zone))}
      {others.map((id) => item(`Move beside the tab ${titleOf(id)}`, id, 'into'))}
      {own.length === 1 &&
        others.flatMap((id) =>
          SIDES.map(([zone, where]) => item(`Move ${where} of ${titleOf(id)}`, id, zone)),
        )}
    </Menu>
  );
}

function Tabs({ store, panels, shown }: { store: Store; panels: readonly Panel[]; shown: Panel }) {
  const move = (by: number): void => {
    const at = panels.indexOf(shown);
    const next = panels[(at + by + panels.length) % panels.length];
    if (next) store.reveal(next.id);
    document.getElementById(`tab-${next?.id ?? ''}`)?.focus();
  };
  return (
    <div class="tabs" role="tablist">
      {panels.map(({ id, title, about }) => (
        <button
          key={id}
          id={`tab-${id}`}
          type="button"
          role="tab"
          aria-selected={id === shown.id}
          aria-controls={id === shown.id ? `panel-${id}` : undefined}
          tabIndex={id === shown.id ? 0 : -1}
          draggable={!store.shell.narrow.value}
          title={about}
          onDragStart={(event) => {
            event.dataTransfer?.setData(DRAGGED, id);
          }}
          onClick={() => {
            store.reveal(id);
          }}
          onKeyDown={(event) => {
            if (event.key === 'ArrowRight') move(1);
            else if (event.key === 'ArrowLeft') move(-1);
          }}
        >
          {title}
        </button>
      ))}
    </div>
  );
}

export function PanelBody({ store, panel }: { store: Store; panel: Panel }) {
  // An exception in one panel does not affect the others.
  const [fault, again] = useErrorBoundary() as [unknown, () => void];
  if (fault !== undefined) {
    const detail = fault instanceof Error ? fault.message : 'No error message.';
    return (
      <Failed
        what={`The panel ${panel.title} failed.`}
        error={{ kind: 'unexpected', detail }}
        retry={again}
      />
    );
  }
  if (panel.needs === 'nothing') return <panel.body store={store} panel={panel.id} />;
  return <SessionBody store={store} panel={panel} />;
}

type SessionPanel = Exclude<Panel, { needs: 'nothing' }>;

function SessionBody({ store, panel }: { store: Store; panel: SessionPanel }) {
  const session = store.open.value;
  if (!session) {
    return (
      <Empty>
        <b>{panel.title}</b>
        <span>{panel.about}</span>
        <OpenExample store={store} />
      </Empty>
    );
  }
  return <OpenSessionBody key={session.id} store={store} panel={panel} session={session} />;
}

function OpenSessionBody(props: { store: Store; panel: SessionPanel; session: OpenSession }) {
  const { store, panel, session } = props;
  const info = session.info.value;
  const active = session.active.value;
  const unrecorded = session.unrecorded.value;
  const stepsError = session.feed.stepsError.value;
  const hasSteps = usePart(() => {
    void session.feed.version.value;
    return session.data.steps.length > 0;
  });
  // Also before the first step has ended, from a graph that arrives meanwhile.
  const hasRows = usePart(() => {
    void session.feed.version.value;
    return session.data.rows() > 0;
  });
  const again = (): void => {
    void session.refresh();
  };
  if (info.is === 'failed' && !active && !unrecorded && !hasSteps) {
    return <Failed what="This session cannot be shown." error={info.error} retry={again} />;
  }
  if (info.is === 'ready' && info.value.state === 'unreadable') {
    const detail = info.value.error ?? 'Its file is damaged.';
    return <Failed what="This session cannot be read." error={{ kind: 'unexpected', detail }} />;
  }
  if (panel.needs === 'steps' && !hasSteps) {
    if (active && !(panel.live === true && hasRows))
      return <NoStepYet store={store} session={session} />;
    if (active) return <panel.body store={store} panel={panel.id} session={session} />;
    if (info.is === 'loading') return <Loading>Loading the session…</Loading>;
    if (stepsError && !unrecorded) {
      return <Failed what="The steps cannot be read." error={stepsError} retry={again} />;
    }
    if (info.is === 'ready' && (info.value.steps ?? 0) > 0) {
      return <Loading>Loading the session…</Loading>;
    }
    return (
      <Empty>
        This session has no steps: nothing was recorded (level off), it ended before the first step,
        or its file was deleted.
      </Empty>
    );
  }
  return <panel.body store={store} panel={panel.id} session={session} />;
}

// A token is generated after its step, but its live message may arrive before that of the step.
// So one token without a step is normal.
function NoStepYet({ store, session }: { store: Store; session: OpenSession }) {
  void session.feed.version.value;
  const run = session.run.value;
  const { flight, newOp } = session.data;
  if ((run?.generated ?? 0) > 1) {
    return <Empty>No step has arrived yet. Runs of level off are not recorded.</Empty>;
  }
  if (store.debug.stop.value) {
    return (
      <Empty>
        The run is stopped in its first step. The step is shown here when it has ended; the debugger
        has its values.
      </Empty>
    );
  }
  if (flight || newOp)
    return <FirstStep store={store} session={session} flight={flight} run={run} />;
  return run?.state === 'queued' ? (
    <Loading>{queuedText(run)}…</Loading>
  ) : (
    <Loading>The model reads the prompt…</Loading>
  );
}

// What is known while the first step runs: its ops arrive before its summary.
function FirstStep(props: {
  store: Store;
  session: OpenSession;
  flight: StepInFlight | null; // null: no op has ended
  run: Run | null;
}) {
  const { store, session, flight, run } = props;
  const running = runningOpText(store, session);
  const done = session.data.newOp?.op ?? flight?.ops ?? 0;
  const tokens = run?.prompt_tokens ?? 0;
  return (
    <Loading>
      The first step is running: {plural(done, 'op')} done
      {flight && ` in ${formatNs(flight.ns)}`}
      {tokens > 0 && `, prompt of ${plural(tokens, 'token')}`}
      {running !== null && (
        <>
          , now <b>{running}</b>
        </>
      )}
    </Loading>
  );
}
