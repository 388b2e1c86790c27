import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { exactBytes, formatAgo, formatBytes, plural } from '../../format';
import { fileUrl } from '../../net/api';
import type { OpenSession } from '../../state/session/open_session';
import { titleOf, type ListedSession } from '../../state/session/session_list';
import type { Store } from '../../state/store';
import { IconButton } from '../../ui/Button';
import { Icon } from '../../ui/icons';

export function SessionRow(props: {
  store: Store;
  session: ListedSession;
  apart: { readonly model: string; readonly settings: string } | undefined; // of sessions of one title
  isStop: boolean;
}) {
  const { store, session, apart } = props;
  const apartText = apart ? [apart.settings, apart.model].filter(Boolean).join(', ') : '';
  const renaming = useSignal(false);
  const open = store.open.value;
  const current = open?.id === session.id ? open : null;
  const running = session.state === 'running';
  const readable = session.state !== 'unreadable';
  const title = titleOf(session);
  const { changes = [] } = session;
  return (
    <div class="session" data-state={session.state} data-current={current !== null}>
      {renaming.value ? (
        <Rename
          title={session.title}
          done={(newTitle) => {
            renaming.value = false;
            if (newTitle !== null) void store.renameSession(session, newTitle);
          }}
        />
      ) : (
        <button
          type="button"
          class="session-open"
          tabIndex={props.isStop ? 0 : -1}
          aria-current={current ? 'true' : undefined}
          title={
            session.error ?? [title, apartText, countsText(session)].filter(Boolean).join('\n')
          }
          onClick={() => {
            store.navigation.toSession(session.id);
          }}
        >
          <span class="session-title">{title}</span>
          <span class="session-facts">
            <State session={session} open={current} />
            {changes.length > 0 && (
              <span class="warn" title={changes.join('\n')}>
                altered
              </span>
            )}
            {apartText !== '' && <span class="session-apart">{apartText}</span>}
            {current ? <LiveCounts session={session} open={current} /> : <Counts {...session} />}
            {session.program && (
              <span class="session-program" title={session.program.text}>
                {session.program.name}
              </span>
            )}
            {session.exact_timing === true && <span>exact</span>}
          </span>
        </button>
      )}
      <div class="session-end">
        <span title={new Date(session.start_utc_ns / 1e6).toLocaleString()}>
          {session.start_utc_ns > 0 ? formatAgo(session.start_utc_ns, store.now.value) : ''}
        </span>
        <span title={exactBytes(session.file_bytes)}>{formatBytes(session.file_bytes)}</span>
      </div>
      {!renaming.value && (
        <div class="session-actions">
          {readable && open !== null && current === null && (
            <IconButton
              icon="compare"
              label={`Compare the open session with ${title}`}
              tabIndex={-1}
              onClick={() => {
                store.navigation.setOptions('compare', '', 'replace');
                store.navigation.change({ other: session.id });
                store.reveal('compare');
              }}
            />
          )}
          {readable && (
            <IconButton
              icon="pencil"
              label={`Rename ${title}`}
              tabIndex={-1}
              disabled={running}
              onClick={() => {
                renaming.value = true;
              }}
            />
          )}
          <a
            class="quiet"
            tabIndex={-1}
            href={fileUrl(session.id)}
            download={`${session.id}.ttrace`}
            aria-label={`Download ${title}`}
            title="Download the .ttrace file"
          >
            <Icon name="download" />
          </a>
          <IconButton
            icon="trash"
            label={`Delete ${title}`}
            tabIndex={-1}
            disabled={running}
            onClick={() => {
              void store.removeSession(session);
            }}
          />
        </div>
      )}
    </div>
  );
}

// The state of the open session's run is newer than the list.
function State({ session, open }: { session: ListedSession; open: OpenSession | null }) {
  const run = open?.run.value?.state;
  const state = session.state === 'running' && run !== undefined ? run : session.state;
  if (state === 'done') return null;
  return <span class="session-state">{state}</span>;
}

const countsText = ({ tokens = 0, steps = 0, reused_tokens: reused = 0 }: Partial<ListedSession>) =>
  `${plural(tokens, 'token')}, ${plural(steps, 'step')}${reused > 0 ? `, ${reused} reused` : ''}`;

function Counts(counts: Partial<ListedSession>) {
  return (
    <span title="Tokens of the prompt and generated ones; steps: one for each generated token after the first, and for each part of the prompt">
      {countsText(counts)}
    </span>
  );
}

// The open session may be growing: its received data is newer than the list.
function LiveCounts({ session, open }: { session: ListedSession; open: OpenSession }) {
  const { prompt, generated, steps } = open.counts.value;
  return (
    <Counts
      tokens={Math.max(prompt + generated, session.tokens ?? 0)}
      steps={Math.max(steps, session.steps ?? 0)}
      reused_tokens={session.reused_tokens ?? 0}
    />
  );
}

// Enter and losing the focus save the title; Escape cancels.
function Rename({ title, done }: { title: string; done: (newTitle: string | null) => void }) {
  const field = useRef<HTMLInputElement>(null);
  const ended = useRef(false);
  useEffect(() => {
    field.current?.select();
  }, []);
  const end = (newTitle: string | null): void => {
    if (ended.current) return;
    ended.current = true;
    done(newTitle);
  };
  return (
    <input
      ref={field}
      type="text"
      class="session-rename"
      aria-label="New title"
      maxLength={200}
      defaultValue={title}
      onBlur={(event) => {
        end(event.currentTarget.value);
      }}
      onKeyDown={(event) => {
        if (event.key === 'Enter') end(event.currentTarget.value);
        else if (event.key === 'Escape') end(null);
        else return;
        event.preventDefault();
        event.stopPropagation();
      }}
    />
  );
}
