// The program, the model that runs, what of the session is looked at, and
// whether the page is connected.
import { useSignal, useSignalEffect } from '@preact/signals';
import { formatCount } from '../format';
import type { OpenSession } from '../state/open_session';
import type { ThemeChoice } from '../state/settings';
import type { Store } from '../state/store';
import type { PhaseFilter } from '../state/view';
import { IconButton } from '../ui/Button';
import { usePart } from '../ui/hooks';
import { Icon, Mark, type IconName } from '../ui/icons';
import { Segmented } from '../ui/Segmented';
import { ModelPicker } from './ModelPicker';

export function TopBar({ store }: { store: Store }) {
  const session = store.open.value;
  const { shell } = store;
  return (
    <header class="top">
      <h1>
        <Mark />
        tensor-trace
      </h1>
      <ModelPicker store={store} />
      {session && <Where key={session.id} store={store} session={session} />}
      <button
        type="button"
        class="search-button"
        title="Search and commands (Ctrl+K)"
        onClick={() => {
          shell.show('palette');
        }}
      >
        <Icon name="search" />
        <span>Search, commands</span>
        <kbd>Ctrl K</kbd>
      </button>
      <Reach store={store} />
      <ThemeButton store={store} />
      <IconButton
        icon="help"
        label="Keys and help"
        hint="?"
        onClick={() => {
          shell.show('help');
        }}
      />
    </header>
  );
}

// Phase, step and layer of the open session.
function Where({ store, session }: { store: Store; session: OpenSession }) {
  const { navigation } = store;
  const phase = usePart(() => navigation.view.value.phase);
  const layer = usePart(() => navigation.view.value.layer);
  const layers = store.layers.value;
  const step = session.step.value;
  const steps = usePart(() => {
    void session.feed.version.value;
    return session.data.steps.length;
  });
  const phases = usePart(() => phasesOf(session));
  return (
    <nav class="where" aria-label="What is shown">
      <Segmented
        label="Phase"
        value={phase}
        options={[
          { value: 'all', text: 'All' },
          {
            value: 'prompt',
            text: 'Prompt',
            hint: 'Only steps that read the prompt',
            disabled: !phases.includes('prompt'),
          },
          {
            value: 'generate',
            text: 'Generate',
            hint: 'Only steps that made a token',
            disabled: !phases.includes('generate'),
          },
        ]}
        choose={(value: PhaseFilter) => {
          navigation.change({ phase: value });
        }}
      />
      <Stepper
        name="Step"
        text={step === null ? '–' : `${formatCount(step)} of ${formatCount(steps)}`}
        before="Previous token"
        after="Next token"
        keys="[ ]"
        move={(by) => {
          store.moveStep(by, false);
        }}
      />
      <Stepper
        name="Layer"
        text={layers === 0 ? '–' : `${layer} of ${layers}`}
        before="Previous layer"
        after="Next layer"
        keys="{ }"
        move={(by) => {
          store.moveLayer(by, false);
        }}
      />
    </nav>
  );
}

function phasesOf(session: OpenSession): string {
  void session.feed.version.value;
  const found = new Set(session.data.steps.map((step) => step?.phase));
  return [...found].join(' ');
}

function Stepper(props: {
  name: string;
  text: string;
  before: string;
  after: string;
  keys: string; // of both, apart by a space
  move: (by: 1 | -1) => void;
}) {
  const [back = '', forth = ''] = props.keys.split(' ');
  return (
    <div class="stepper">
      <span>{props.name}</span>
      <IconButton
        icon="left"
        label={props.before}
        hint={back}
        onClick={() => {
          props.move(-1);
        }}
      />
      <b>{props.text}</b>
      <IconButton
        icon="right"
        label={props.after}
        hint={forth}
        onClick={() => {
          props.move(1);
        }}
      />
    </div>
  );
}

const THEMES: readonly { choice: ThemeChoice; icon: IconName; name: string }[] = [
  { choice: 'auto', icon: 'system', name: 'as the system' },
  { choice: 'dark', icon: 'moon', name: 'dark' },
  { choice: 'light', icon: 'sun', name: 'light' },
];

function ThemeButton({ store }: { store: Store }) {
  const { theme } = store.settings.chosen.value;
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

function Reach({ store }: { store: Store }) {
  const reach = store.connection.reach.value;
  const text = {
    connecting: 'connecting…',
    live: 'live',
    slow: 'not live',
    away: 'disconnected',
  }[reach.is];
  const hint = {
    connecting: 'Looking for the server',
    live: 'What the model does arrives as it happens',
    slow: 'The server answers, but its live connection does not: the page asks now and then',
    away: 'The server does not answer',
  }[reach.is];
  return (
    <div class="reach" data-reach={reach.is} role="status" title={hint}>
      <i aria-hidden="true" />
      <span>{text}</span>
    </div>
  );
}

// Under the top bar while the server is away.
export function AwayNotice({ store }: { store: Store }) {
  const reach = store.connection.reach.value;
  const seconds = useSignal(0);
  useSignalEffect(() => {
    const now = store.connection.reach.value;
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
  if (reach.is !== 'away') return null;
  return (
    <div class="away" role="alert">
      <b>The server does not answer.</b>
      <span>What is shown was loaded before.</span>
      <span class="away-when">
        {seconds.value > 0 ? `Next try in ${seconds.value} s` : 'Trying…'}
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
