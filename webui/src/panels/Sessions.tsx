// Every recorded session, newest first. Choosing one shows its heat map, its
// ops and its text.
import { useMemo } from 'preact/hooks';
import { exactBytes, formatAgo, formatBytes, formatCount, plural } from '../format';
import { sentence } from '../net/api';
import type { Session } from '../net/types';
import type { Store } from '../state/store';
import { Empty, Panel } from '../ui/Panel';

export function Sessions({ store }: { store: Store }) {
  const sessions = useMemo(() => store.select((state) => state.sessions), [store]).value;
  const note = sessions.is === 'ready' ? formatCount(sessions.value.total) : '';
  return (
    <Panel title="Sessions" class="sessions" note={note}>
      <List store={store} />
    </Panel>
  );
}

function List({ store }: { store: Store }) {
  const sessions = useMemo(() => store.select((state) => state.sessions), [store]).value;
  const open = useMemo(() => store.select((state) => state.open?.id ?? null), [store]).value;
  switch (sessions.is) {
    case 'idle':
    case 'loading':
      return <Empty>Loading…</Empty>;
    case 'failed':
      return <Empty error>{sentence(sessions.error)}</Empty>;
    case 'ready':
      break;
  }
  const { total, sessions: list } = sessions.value;
  if (list.length === 0) return <Empty>Each run is recorded and listed here.</Empty>;
  return (
    <ul class="session-list">
      {list.map((session) => (
        <li key={session.id}>
          <Row store={store} session={session} current={session.id === open} />
        </li>
      ))}
      {list.length < total && (
        <li>
          <button
            type="button"
            class="link"
            onClick={() => {
              void store.moreSessions();
            }}
          >
            Show {plural(Math.min(50, total - list.length), 'older session')}
          </button>
        </li>
      )}
    </ul>
  );
}

function Row(props: { store: Store; session: Session; current: boolean }) {
  const { store, session, current } = props;
  return (
    <button
      type="button"
      class="session"
      data-state={session.state}
      aria-current={current ? 'true' : undefined}
      title={session.error ?? session.title}
      onClick={() => {
        store.openSession(session.id);
      }}
    >
      <span class="session-title">{session.title || session.id}</span>
      <span class="session-ago" title={new Date(session.start_utc_ns / 1e6).toLocaleString()}>
        {session.start_utc_ns > 0 ? formatAgo(session.start_utc_ns, store.now.value) : ''}
      </span>
      <span class="session-facts">
        {current ? (
          <LiveCounts store={store} session={session} />
        ) : (
          <Counts tokens={session.tokens ?? 0} steps={session.steps ?? 0} />
        )}
        {session.exact_timing ? ', exact' : ''}
        {session.state === 'done' ? '' : `, ${session.state}`}
      </span>
      <span class="session-size" title={exactBytes(session.file_bytes)}>
        {formatBytes(session.file_bytes)}
      </span>
    </button>
  );
}

function Counts({ tokens = 0, steps = 0 }: { tokens?: number; steps?: number }) {
  return (
    <>
      {plural(tokens, 'token')}, {plural(steps, 'step')}
    </>
  );
}

// The open session may be growing: what has arrived is newer than the list.
function LiveCounts({ store, session }: { store: Store; session: Session }) {
  void useMemo(() => store.select(({ open }) => open?.version), [store]).value;
  const { tokens, steps } = store.data;
  return (
    <Counts
      tokens={Math.max(tokens.length, session.tokens ?? 0)}
      steps={Math.max(steps.length, session.steps ?? 0)}
    />
  );
}
