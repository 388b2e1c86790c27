// The turns of a conversation. Each answer is a session; the one that is open
// shows its tokens, so that they can be pointed at.
import { formatCount, plural } from '../../format';
import type { Run } from '../../net/types';
import type { Turn } from '../../state/chat';
import type { OpenSession } from '../../state/open_session';
import type { Store } from '../../state/store';
import { IconButton } from '../../ui/Button';
import { copyText } from '../../ui/clipboard';
import { usePart } from '../../ui/hooks';
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
              label="Edit this message and go on from there"
              onClick={() => {
                store.chat.edit(index);
                document.getElementById('prompt')?.focus();
              }}
            />
          </div>
          {session?.id === turn.session ? (
            <Shown store={store} session={session} />
          ) : (
            <Other store={store} turn={turn} />
          )}
        </article>
      ))}
    </>
  );
}

// The turn whose session is open.
function Shown({ store, session }: { store: Store; session: OpenSession }) {
  const run = session.run.value;
  const reused = usePart(() => {
    void session.feed.version.value;
    return session.data.tokens.filter((token) => token?.reused).length;
  });
  return (
    <>
      <PromptTokens store={store} session={session} />
      <div class="said said-model">
        <TokenText store={store} session={session} part="answer" />
      </div>
      <p class="turn-foot">
        {run && <Counts run={{ ...run, reused_tokens: Math.max(reused, run.reused_tokens) }} />}
        <span class="turn-here">shown</span>
      </p>
    </>
  );
}

function Other({ store, turn }: { store: Store; turn: Turn }) {
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
            Show its trace
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
      <span>{plural(generated, 'token')}</span>
      {prompt_tokens > 0 && (
        <span title="Prompt tokens whose cache cells an earlier request computed">
          {reused_tokens > 0
            ? `${formatCount(reused_tokens)} of ${plural(prompt_tokens, 'prompt token')} reused`
            : `${plural(prompt_tokens, 'prompt token')}, none reused`}
        </span>
      )}
      {state === 'cancelled' && <span>stopped</span>}
      {state === 'failed' && <span class="bad">{error ?? 'failed'}</span>}
    </>
  );
}
