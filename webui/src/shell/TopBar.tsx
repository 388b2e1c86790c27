// The top bar: the model of the next run, phase, step and filter of the session, and the state of
// the connection.
import { useSignal, useSignalEffect } from '@preact/signals';
import { ask, firstSnapshot, needsSession, questionsOf } from '../commands/questions';
import { positionOf } from '../format';
import type { Phase } from '../net/types';
import type { OpenSession } from '../state/session/open_session';
import { LAYOUT_INFO, LAYOUT_NAMES } from '../state/view/layout';
import type { ThemeChoice } from '../state/request/settings';
import type { Store } from '../state/store';
import type { PhaseFilter } from '../state/view/view';
import { IconButton } from '../ui/Button';
import { usePart } from '../ui/hooks';
import { Icon, Mark, type IconName } from '../ui/icons';
import { Keys } from '../ui/Keys';
import { Menu, MenuItem } from '../ui/Menu';
import { Segmented } from '../ui/Segmented';
import { FilterBar } from './FilterBar';
import { ModelPicker } from './ModelPicker';

export function TopBar({ store }: { store: Store }) {
  const session = store.open.value;
  const { shell } = store;
  return (
    <header class="top">
      <h1>
        <Mark />
        <span>tensor-trace</span>
      </h1>
      {store.hasServer && <ModelPicker store={store} />}
      {session && <ViewNavigation key={session.id} store={store} session={session} />}
      {session && <FilterBar key={session.id} store={store} session={session} />}
      <button
        type="button"
        class="search-button"
        title="Search and commands (Ctrl+K)"
        onClick={() => {
          shell.show('palette');
        }}
      >
        <Icon name="search" />
        <span>Search</span>
        <kbd>Ctrl K</kbd>
      </button>
      <QuestionMenu key={session?.id ?? ''} store={store} session={session} />
      <LayoutMenu store={store} />
      {store.hasServer ? <ConnectionBadge store={store} /> : <FileBadge />}
      <ThemeButton store={store} />
      <IconButton
        icon="help"
        label="Keyboard shortcuts and glossary"
        hint="?"
        onClick={() => {
          shell.show('help');
        }}
      />
    </header>
  );
}

// Phase and step of the open session.
function ViewNavigation({ store, session }: { store: Store; session: OpenSession }) {
  const { navigation } = store;
  const phase = usePart(() => navigation.view.value.phase);
  const step = session.step.value;
  const steps = usePart(() => {
    void session.feed.version.value;
    return session.data.steps.length;
  });
  const hasPhase = (one: Phase): boolean =>
    usePart(() => {
      void session.feed.version.value;
      return session.data.stepTotals.has(one);
    });
  const [hasPrompt, hasGenerate] = [hasPhase('prompt'), hasPhase('generate')];
  return (
    <nav class="where" aria-label="Phase and step">
      <Segmented
        label="Phase"
        value={phase}
        options={[
          { value: 'all', text: 'All' },
          {
            value: 'prompt',
            text: 'Prompt',
            hint: 'Only steps that process the prompt',
            disabled: !hasPrompt,
          },
          {
            value: 'generate',
            text: 'Generate',
            hint: 'Only steps that generate a token',
            disabled: !hasGenerate,
          },
        ]}
        choose={(value: PhaseFilter) => {
          store.setPhase(value);
        }}
      />
      <div class="stepper">
        <span>Step</span>
        <IconButton
          icon="left"
          label="Previous step"
          hint="["
          onClick={() => {
            store.moveStep(-1, false);
          }}
        />
        <b>{step === null ? '–' : positionOf(step, steps)}</b>
        <IconButton
          icon="right"
          label="Next step"
          hint="]"
          onClick={() => {
            store.moveStep(1, false);
          }}
        />
      </div>
    </nav>
  );
}

// What visitors ask about a session, each with the view that answers it.
function QuestionMenu({ store, session }: { store: Store; session: OpenSession | null }) {
  void session?.info.value;
  const snapshot = usePart(() => {
    void session?.feed.version.value;
    return firstSnapshot(session);
  });
  return (
    <Menu label="Questions" title="Common questions about this session">
      {questionsOf(store, session, snapshot).map(({ id, title, answer }) => (
        <MenuItem
          key={id}
          run={() => {
            ask(store, answer);
          }}
        >
          {title}
          {needsSession(store, answer) && <span class="dim"> needs a session</span>}
        </MenuItem>
      ))}
    </Menu>
  );
}

function LayoutMenu({ store }: { store: Store }) {
  return (
    <span class="layouts">
      <Menu label="Layout" title="Arrange the panels">
        {LAYOUT_NAMES.map((name) => (
          <MenuItem
            key={name}
            run={() => {
              store.applyLayout(name);
            }}
          >
            <b>{name}</b> <span class="dim">{LAYOUT_INFO[name].shows}</span>{' '}
            <Keys keys={[LAYOUT_INFO[name].key]} />
          </MenuItem>
        ))}
      </Menu>
    </span>
  );
}

const THEMES: readonly { choice: ThemeChoice; icon: IconName; name: string }[] = [
  { choice: 'auto', icon: 'system', name: 'system' },
  { choice: 'dark', icon: 'moon', name: 'dark' },
  { choice: 'light', icon: 'sun', name: 'light' },
  { choice: 'contrast', icon: 'contrast', name: 'high contrast' },
];

function ThemeButton({ store }: { store: Store }) {
  const { theme } = store.settings.current.value;
  const at = THEMES.findIndex(({ choice }) => choice === theme);
  const next = THEMES[(at + 1) % THEMES.length];
  return (
    <IconButton
      icon={THEMES[at]?.icon ?? 'system'}
      label={`Theme: ${THEMES[at]?.name ?? ''}. Change to ${next?.name ?? ''}`}
      onClick={() => {
        if (next) store.settings.set({ theme: next.choice });
      }}
    />
  );
}

function ConnectionBadge({ store }: { store: Store }) {
  const reach = store.connection.state.value;
  const text = {
    connecting: 'connecting…',
    live: 'live',
    slow: 'polling',
    away: 'disconnected',
  }[reach.is];
  const hint = {
    connecting: 'Connecting to the server',
    live: 'Events arrive live over WebSocket',
    slow: 'The server responds over HTTP, but the WebSocket is closed: the page polls the run',
    away: 'The server does not respond',
  }[reach.is];
  return (
    <div class="reach" data-reach={reach.is} role="status" title={hint}>
      <i aria-hidden="true" />
      <span>{text}</span>
    </div>
  );
}

function FileBadge() {
  return (
    <div
      class="reach"
      data-reach="file"
      title="The page and the session are one file: nothing is requested, and nothing can be changed"
    >
      <span>file, read only</span>
    </div>
  );
}

// The notice below the top bar while the server is not reachable.
export function OfflineNotice({ store }: { store: Store }) {
  const reach = store.connection.state.value;
  const seconds = useSignal(0);
  useSignalEffect(() => {
    const now = store.connection.state.value;
    if (now.is !== 'away') return;
    const tick = (): void => {
      seconds.value = Math.max(0, Math.ceil((now.retryAtMs - Date.now()) / 1000));
    };
    tick();
    const timer = setInterval(tick, 250);
    return () => {
      clearInterval(timer);
    };
  });
  const program = store.recorded.program.value;
  if (reach.is !== 'away') {
    const ended = program?.ended ?? null;
    return (
      ended !== null && (
        <div class="away away-ended" role="status">
          <span>{ended}</span>
        </div>
      )
    );
  }
  return (
    <div class="away" role="alert">
      {program === null ? (
        <>
          <b>The server does not respond.</b>
          <span>The data shown was loaded earlier.</span>
        </>
      ) : (
        <>
          <b>tt attach has ended.</b>
          <span>
            {program.ended ??
              `It recorded ${program.name}. To see its sessions: tt-server --no-model --data-dir ${program.folder}`}
          </span>
        </>
      )}
      <span class="away-when">
        {seconds.value > 0 ? `Next attempt in ${seconds.value} s` : 'Connecting…'}
      </span>
      <button
        type="button"
        class="link"
        onClick={() => {
          store.retry();
        }}
      >
        Try now
      </button>
    </div>
  );
}
