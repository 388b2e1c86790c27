// The list of recorded sessions: search, filter, sort, open, rename, delete, download, upload.
import { useRef } from 'preact/hooks';
import { formatCount, plural } from '../../format';
import type { SessionSort, SessionState } from '../../net/types';
import { emptyFilter } from '../../state/session/session_list';
import type { Store } from '../../state/store';
import { IconButton } from '../../ui/Button';
import { usePart } from '../../ui/hooks';
import { Empty, Failed, Loading } from '../../ui/States';
import { VirtualList } from '../../ui/VirtualList';
import type { PanelProps } from '../panel';
import { toldApart } from '../../state/session/told_apart';
import { SessionRow } from './SessionRow';

const ROW = 46;

export function SessionsPanel({ store }: PanelProps) {
  return (
    <div class="sessions">
      <Tools store={store} />
      <Uploads store={store} />
      <List store={store} />
    </div>
  );
}

// prettier-ignore
const STATES: readonly { value: SessionState | ''; text: string }[] = [
  { value: '', text: 'any state' },
  { value: 'running', text: 'running' },
  { value: 'done', text: 'done' },
  { value: 'cancelled', text: 'cancelled' },
  { value: 'failed', text: 'failed' },
  { value: 'recovered', text: 'recovered' },
  { value: 'unreadable', text: 'unreadable' },
];

// prettier-ignore
const SORTS: readonly { value: SessionSort; text: string }[] = [
  { value: '-start', text: 'newest' },
  { value: 'start', text: 'oldest' },
  { value: 'title', text: 'by title' },
  { value: 'model', text: 'by model' },
  { value: '-tokens', text: 'most tokens' },
  { value: '-steps', text: 'most steps' },
  { value: '-bytes', text: 'largest' },
  { value: 'bytes', text: 'smallest' },
];

function Tools({ store }: { store: Store }) {
  const { sessions } = store;
  const filter = sessions.filter.value;
  const files = useRef<HTMLInputElement>(null);
  return (
    <div class="session-tools">
      <input
        type="search"
        aria-label="Search sessions"
        placeholder="Search title, model, id"
        value={filter.q}
        onInput={(event) => {
          sessions.setFilter({ q: event.currentTarget.value });
        }}
      />
      <IconButton
        icon="upload"
        label="Add .ttrace files"
        hint="or drop them on the page"
        onClick={() => files.current?.click()}
      />
      <input
        ref={files}
        id="upload"
        type="file"
        multiple
        accept=".ttrace"
        hidden
        aria-label="Session files"
        onChange={(event) => {
          store.upload([...(event.currentTarget.files ?? [])]);
          event.currentTarget.value = '';
        }}
      />
      <div class="session-filters">
        <select
          aria-label="State"
          value={filter.state}
          onChange={(event) => {
            sessions.setFilter({ state: event.currentTarget.value as SessionState | '' });
          }}
        >
          {STATES.map(({ value, text }) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
        <ModelFilter store={store} />
        <select
          aria-label="Order"
          value={filter.sort}
          onChange={(event) => {
            sessions.setFilter({ sort: event.currentTarget.value as SessionSort });
          }}
        >
          {SORTS.map(({ value, text }) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      </div>
    </div>
  );
}

const fileName = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

function ModelFilter({ store }: { store: Store }) {
  const { sessions, models } = store;
  const chosen = sessions.filter.value.model;
  const known = usePart(() => {
    const list = models.list.value;
    const page = sessions.page.value;
    const paths = [
      ...(list.is === 'ready' ? list.value.models.map(({ path }) => path) : []),
      ...(page.is === 'ready' ? page.value.sessions.map(({ model }) => model?.path ?? '') : []),
    ];
    return [...new Set(paths.map(fileName).filter(Boolean))].sort().join('\n');
  });
  const names = new Set(known.split('\n').filter(Boolean));
  if (chosen !== '') names.add(chosen);
  return (
    <select
      aria-label="Model"
      value={chosen}
      onChange={(event) => {
        sessions.setFilter({ model: event.currentTarget.value });
      }}
    >
      <option value="">any model</option>
      {[...names].map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  );
}

function Uploads({ store }: { store: Store }) {
  return (
    <>
      {store.sessions.uploads.value.map(({ id, name, share, stop }) => (
        <div key={id} class="upload">
          <span title={name}>{name}</span>
          <progress
            max={1}
            {...(share < 1 ? { value: share } : {})}
            aria-label={`Uploading ${name}`}
          />
          <span class="dim">{share < 1 ? `${Math.round(100 * share)} %` : 'checking…'}</span>
          <IconButton icon="close" label={`Cancel the upload of ${name}`} onClick={stop} />
        </div>
      ))}
    </>
  );
}

function List({ store }: { store: Store }) {
  const page = store.sessions.page.value;
  const { q, state, model } = store.sessions.filter.value;
  const filtered = q.trim() !== '' || state !== '' || model !== '';
  switch (page.is) {
    case 'idle':
    case 'loading':
      return <Loading />;
    case 'failed':
      return (
        <Failed
          what="The sessions cannot be listed."
          error={page.error}
          retry={() => {
            void store.sessions.refresh();
          }}
        />
      );
    case 'ready':
      break;
  }
  const { total, sessions } = page.value;
  const apart = toldApart(sessions);
  // The stop of the Tab key: the open session, else the first one.
  const open = store.open.value?.id;
  const stop = Math.max(
    0,
    sessions.findIndex(({ id }) => id === open),
  );
  if (sessions.length === 0) {
    return filtered ? (
      <Empty>
        <span>No session matches.</span>
        <button
          type="button"
          class="link"
          onClick={() => {
            store.sessions.setFilter(emptyFilter);
          }}
        >
          Clear the filter
        </button>
      </Empty>
    ) : (
      <Empty>
        No sessions yet. Runs are recorded here, and those of a program that tt attach records
        appear when it evaluates something. Drop .ttrace files to add them.
      </Empty>
    );
  }
  return (
    <>
      <p class="session-count" role="status">
        {sessions.length < total
          ? `${formatCount(sessions.length)} of ${plural(total, 'session')}`
          : plural(total, 'session')}
      </p>
      <VirtualList
        label="Sessions"
        count={sessions.length}
        rowHeight={ROW}
        keyOf={(index) => sessions[index]?.id ?? ''}
        row={(index) => {
          const session = sessions[index];
          return (
            session && (
              <SessionRow
                store={store}
                session={session}
                apart={apart.get(session.id)}
                isStop={index === stop}
              />
            )
          );
        }}
        onEndReached={() => {
          void store.sessions.loadMore();
        }}
      />
    </>
  );
}
