// The turns of a conversation. Each answer is a session. The open session shows its tokens, which
// can be selected.
import { formatCount, plural } from '../../format';
import type { Run } from '../../net/types';
import type { Turn } from '../../state/request/chat';
import { isActive, type OpenSession } from '../../state/session/open_session';
import { endingText } from '../../state/session/ending';
import type { Store } from '../../state/store';
import { IconButton } from '../../ui/Button';
import { copyText } from '../../ui/clipboard';
import { PromptTokens, TokenText } from './TokenText';

interface Props {
  readonly store: Store;
  readonly session: OpenSession | null;
  readonly turns: readonly Turn[];
}

export function Conversation({ store, session, turns }: Props) {
  return (
    <>
      {turns.map((turn, index) => (
        <article key={turn.session} class="turn" aria-label={`Turn ${index + 1}`}>
          <div class="said said-user">
            <p>{turn.user}</p>
            <IconButton
              icon="pencil"
              label="Edit this message and continue from here"
              onClick={() => {
                store.chat.edit(index);
                document.getElementById('prompt')?.focus();
              }}
            />
          </div>
          {session?.id === turn.session ? (
            <OpenTurn store={store} session={session} />
          ) : (
            <ClosedTurn store={store} turn={turn} />
          )}
        </article>
      ))}
    </>
  );
}

// The turn whose session is open.
function OpenTurn({ store, session }: { store: Store; session: OpenSession }) {
  const run = session.run.value;
  const { prompt, reused, generated } = session.counts.value;
  return (
    <>
      <PromptTokens store={store} session={session} />
      <div class="said said-model">
        <TokenText store={store} session={session} part="answer" />
      </div>
      <p class="turn-foot">
        {run && (
          <Counts run={{ ...run, prompt_tokens: prompt, reused_tokens: reused, generated }} />
        )}
        <span class="turn-here">session open</span>
        <Ending store={store} session={session} />
      </p>
    </>
  );
}

function Ending({ store, session }: { store: Store; session: OpenSession }) {
  const text = endingText(store, session);
  return text === null ? null : <span class="warn">{text}</span>;
}

function ClosedTurn({ store, turn }: { store: Store; turn: Turn }) {
  const { run, session } = turn;
  return (
    <>
      <div class="said said-model">
        <p>{run ? run.text : '…'}</p>
        {run && run.text !== '' && (
          <IconButton
            icon="copy"
            label="Copy the answer"
            onClick={() => {
              void copyText(run.text);
            }}
          />
        )}
      </div>
      <p class="turn-foot">
        {run && <Counts run={run} />}
        {!session.includes(':') && (
          <button
            type="button"
            class="link"
            onClick={() => {
              store.navigation.toSession(session);
            }}
          >
            Open its session
          </button>
        )}
      </p>
    </>
  );
}

function Counts({ run }: { run: Run }) {
  const { prompt_tokens, reused_tokens, generated, state, error } = run;
  return (
    <>
      <span>{plural(generated, 'generated token')}</span>
      {prompt_tokens > 0 && (
        <span title="Prompt tokens taken from the KV cache of an earlier request">
          {reused_tokens > 0
            ? `${formatCount(reused_tokens)} of ${plural(prompt_tokens, 'prompt token')} reused`
            : `${plural(prompt_tokens, 'prompt token')}${isActive(state) ? '' : ', none reused'}`}
        </span>
      )}
      {state === 'cancelled' && <span>stopped</span>}
      {state === 'failed' && <span class="bad">{error ?? 'failed'}</span>}
    </>
  );
}
