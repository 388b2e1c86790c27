// The status line: what was recorded of the open session, how its steps were timed, and all
// losses.
import { exportCommands } from '../commands/views';
import { exactBytes, formatBytes, formatCount, plural, timingName } from '../format';
import type { Session } from '../net/types';
import type { OpenSession } from '../state/session/open_session';
import { endingText } from '../state/session/ending';
import type { Store } from '../state/store';
import type { StepTotals } from '../state/session/step_totals';
import { usePart } from '../ui/hooks';
import { Check } from '../ui/Check';
import { Menu, MenuItem } from '../ui/Menu';

export function StatusLine({ store }: { store: Store }) {
  const health = store.models.health.value;
  const session = store.open.value;
  return (
    <footer class="status">
      {/* At the left: messages are at the right, above this line. */}
      {session && store.hasServer && <Export store={store} />}
      {session ? (
        <SessionStatus key={session.id} store={store} session={session} />
      ) : (
        <span>No session is open</span>
      )}
      {health?.warning && (
        <Menu label={health.warning} cut title={`${health.warning}\n\nClick to read all of it.`}>
          <p class="about">{health.warning}</p>
        </Menu>
      )}
      {store.connection.isBusy.value && (
        <span
          class="warn busy"
          role="status"
          title="The server still computes this query or others. The page repeats its request until it is answered."
        >
          The server is busy, retrying
        </span>
      )}
      <span class="status-end">
        {health
          ? `tensor-trace ${health.version}`
          : store.hasServer
            ? 'server not reachable'
            : 'tensor-trace'}
      </span>
    </footer>
  );
}

// The ways out of the page: files, the report, and the commands of tt that give the same.
function Export({ store }: { store: Store }) {
  // What can be saved depends on these.
  void store.open.value?.info.value;
  usePart(() => store.navigation.view.value.range);
  usePart(() => store.navigation.view.value.other);
  const { rows } = store.saves;
  const { perHead, perToken } = rows.value;
  return (
    <Menu
      label="Save session as"
      title="Export the session or its report as a file, or copy the command that does it"
    >
      <Check
        text="A row per head"
        hint="Reads of Q, K, V and O weights have a row for each head"
        on={perHead}
        set={(on) => {
          rows.value = { ...rows.peek(), perHead: on };
        }}
      />
      <Check
        text="A row per token"
        hint="The accesses of a step with several tokens have a row for each token. Formats without such rows are not listed"
        on={perToken}
        set={(on) => {
          rows.value = { ...rows.peek(), perToken: on };
        }}
      />
      {exportCommands(store).map(({ id, title, enabled, run }) =>
        enabled?.() === false ? null : (
          <MenuItem
            key={id}
            run={() => {
              run(false);
            }}
          >
            {title}
          </MenuItem>
        ),
      )}
    </Menu>
  );
}

function SessionStatus({ store, session }: { store: Store; session: OpenSession }) {
  void session.feed.version.value;
  const totals = session.data.stepTotals;
  const { steps, prompt, generated } = session.counts.value;
  const info = session.info.value.is === 'ready' ? session.info.value.value : null;
  const lost = session.feed.skippedMessages.value;
  return (
    <>
      <span class="status-id" title="Session ID">
        {session.id}
      </span>
      <span>
        {plural(steps, 'step')}, {plural(prompt + generated, 'token')}: {formatCount(prompt)} of the
        prompt, {formatCount(generated)} generated
      </span>
      {totals.accesses > 0 && <span>{plural(totals.accesses, 'access', 'accesses')}</span>}
      <Timings {...timingCounts(totals)} />
      {info && (
        <span title={exactBytes(info.file_bytes)}>{formatBytes(info.file_bytes)} on disk</span>
      )}
      {info?.level !== undefined && (
        <span title="How much of the run was recorded">level {info.level}</span>
      )}
      <Losses
        info={info}
        dropped={totals.dropped}
        damaged={damagedSteps(session, info)}
        unreadable={session.feed.stepsError.value !== null && !session.unrecorded.value}
      />
      <Ending store={store} session={session} />
      {lost > 0 && (
        <span
          class="warn"
          title="The model is faster than the page can show. The page reads what it skipped from the server; the recording is complete."
        >
          {plural(lost, 'live message')} skipped and read later
        </span>
      )}
    </>
  );
}

// How the session ended, if not by itself, or what it waits for.
function Ending({ store, session }: { store: Store; session: OpenSession }) {
  const text = endingText(store, session);
  return text === null ? null : <span class="warn">{text}</span>;
}

// Steps that were recorded but cannot be read from the file.
function damagedSteps(session: OpenSession, info: Session | null): number {
  const readable = session.feed.readableSteps.value;
  if (readable === null || info?.steps === undefined || info.state === 'running') return 0;
  return Math.max(0, info.steps - readable);
}

// Losses of the recording: the counts of the file, or of the steps received so far if the file has
// none yet. Then damage of the file.
function Losses(props: {
  info: Session | null;
  dropped: number;
  damaged: number;
  unreadable: boolean;
}) {
  const { info, dropped, damaged, unreadable } = props;
  const counted = Object.entries(info?.losses ?? {}).filter(([, n]) => n > 0);
  const texts = counted.map(([what, n]) => `${formatCount(n)} ${what.replaceAll('_', ' ')}`);
  if (texts.length === 0 && dropped > 0) texts.push(`${plural(dropped, 'step')} without times`);
  if (damaged > 0) texts.push(`file damaged: last ${plural(damaged, 'step')} not shown`);
  if (unreadable) texts.push('steps could not be read');
  if (texts.length === 0 && info === null) return null; // not known
  return texts.length === 0 ? (
    <span class="dim">no data lost</span>
  ) : (
    <span class="warn">{texts.join(', ')}</span>
  );
}

const TIMING_HINT =
  'How the op times of the steps were measured. In passing: the clock is read after each op. While learning: the first step with a new graph, which runs slower. Op by op: each op by itself, slower.';

interface TimingCounts {
  readonly fast: number;
  readonly learned: number;
  readonly exact: number;
}

const timingCounts = ({ timing }: StepTotals): TimingCounts => ({
  fast: timing.get('fast') ?? 0,
  learned: timing.get('learned') ?? 0,
  exact: timing.get('exact') ?? 0,
});

function Timings(counts: TimingCounts) {
  const known = (['fast', 'learned', 'exact'] as const).filter((name) => counts[name] > 0);
  if (known.length === 0) return null;
  return (
    <span class="timings" title={TIMING_HINT}>
      op times
      {known.map((name) => (
        <span key={name}>
          <i class={`timing timing-${name}`} aria-hidden="true" />
          {formatCount(counts[name])} {timingName(name)}
        </span>
      ))}
    </span>
  );
}
