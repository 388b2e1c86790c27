// An area of the page: the tabs of its panels and the selected panel.
import { useErrorBoundary } from 'preact/hooks';
import type { Panel, Place } from '../panels/panel';
import { formatNs, plural } from '../format';
import type { Run } from '../net/types';
import type { OpenSession } from '../state/open_session';
import type { StepInFlight } from '../state/trace_data';
import type { Store } from '../state/store';
import { IconButton } from '../ui/Button';
import { usePart } from '../ui/hooks';
import { Empty, Failed, Loading } from '../ui/States';

interface Props {
  readonly store: Store;
  readonly place: Place;
  readonly panels: readonly Panel[]; // of this area
}

export function Dock({ store, place, panels }: Props) {
  const { navigation, shell } = store;
  const shown = usePart(() => {
    const selectedId = navigation.view.value.tabs[place];
    return panels.find(({ id }) => id === selectedId) ?? panels[0];
  });
  const full = usePart(() => navigation.view.value.full === shown?.id);
  const active = usePart(() => shell.active.value === shown?.id);
  const stale = usePart(() => store.connection.state.value.is === 'away');
  if (!shown) return null;
  const activate = (): void => {
    shell.activate(shown.id);
  };
  return (
    <section
      class={`dock dock-${place}`}
      data-active={active}
      data-full={full}
      onFocusIn={activate}
      onPointerDown={activate}
    >
      <header class="dock-head">
        <Tabs store={store} panels={panels} shown={shown} />
        <div class="dock-tools">
          {stale && shown.needs !== 'nothing' && (
            <span class="stale" title="The server is not reachable. This data was loaded earlier.">
              not updating
            </span>
          )}
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
        <Body key={shown.id} store={store} panel={shown} />
      </div>
    </section>
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
      {panels.map(({ id, title }) => (
        <button
          key={id}
          id={`tab-${id}`}
          type="button"
          role="tab"
          aria-selected={id === shown.id}
          aria-controls={id === shown.id ? `panel-${id}` : undefined}
          tabIndex={id === shown.id ? 0 : -1}
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

function Body({ store, panel }: { store: Store; panel: Panel }) {
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
  if (!session) return <Empty>{panel.empty}</Empty>;
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
    if (active) return <NoStepYet session={session} />;
    if (info.is === 'loading') return <Loading>Loading the session…</Loading>;
    if (stepsError && !unrecorded) {
      return <Failed what="The steps cannot be read." error={stepsError} retry={again} />;
    }
    if (info.is === 'ready' && (info.value.steps ?? 0) > 0) {
      return <Loading>Loading the session…</Loading>;
    }
    return (
      <Empty>
        This session has no steps. Its trace level was off, it ended before the first step, or its
        file was deleted.
      </Empty>
    );
  }
  return <panel.body store={store} panel={panel.id} session={session} />;
}

// A token is generated after its step, but its live message may arrive before that of the step.
// So one token without a step is normal.
function NoStepYet({ session }: { session: OpenSession }) {
  void session.feed.version.value;
  const run = session.run.value;
  const { flight } = session.data;
  if ((run?.generated ?? 0) > 1) {
    return <Empty>No step received yet. The trace level of this run may be off.</Empty>;
  }
  if (flight) return <FirstStep flight={flight} run={run} />;
  return run?.state === 'queued' ? (
    <Loading>
      {run.position > 0 ? `Queued, ${plural(run.position, 'run')} ahead…` : 'Queued…'}
    </Loading>
  ) : (
    <Loading>The model reads the prompt…</Loading>
  );
}

// What is known while the first step runs: its ops arrive before its summary.
function FirstStep({ flight, run }: { flight: StepInFlight; run: Run | null }) {
  const tokens = run?.prompt_tokens ?? 0;
  return (
    <Loading>
      Step {flight.step} is running: {plural(flight.ops, 'op')} done in {formatNs(flight.ns)}
      {tokens > 0 && `, prompt of ${plural(tokens, 'token')}`}
    </Loading>
  );
}
