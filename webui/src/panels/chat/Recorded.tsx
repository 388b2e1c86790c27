// A session that is no turn of the conversation: a text or token ids that were
// run, or one from the list.
import { formatAgo, formatCount, plural } from '../../format';
import type { Session } from '../../net/types';
import type { OpenSession } from '../../state/open_session';
import { titleOf } from '../../state/session_list';
import type { Store } from '../../state/store';
import { Failed } from '../../ui/States';
import { PromptTokens, TokenText } from './TokenText';

export function Recorded({ store, session }: { store: Store; session: OpenSession }) {
  const info = session.info.value;
  if (info.is === 'failed' && !session.active.value) {
    return <Failed what="This session cannot be shown." error={info.error} />;
  }
  return (
    <>
      {info.is === 'ready' && <Head store={store} session={info.value} />}
      <PromptTokens store={store} session={session} open />
      <div class="said said-model">
        <TokenText store={store} session={session} part="answer" />
      </div>
    </>
  );
}

function Head({ store, session }: { store: Store; session: Session }) {
  const { reused_tokens = 0, reused_from = null } = session;
  return (
    <header class="recorded">
      <h3>{titleOf(session)}</h3>
      <p class="turn-foot">
        <span>
          {session.state}, {formatAgo(session.start_utc_ns, store.now.value)}
        </span>
        {session.tokens !== undefined && <span>{plural(session.tokens, 'token')}</span>}
        {reused_tokens > 0 && (
          <span>
            {formatCount(reused_tokens)} reused
            {reused_from !== null && (
              <>
                {' from '}
                <button
                  type="button"
                  class="link"
                  onClick={() => {
                    store.navigation.toSession(reused_from);
                  }}
                >
                  an earlier session
                </button>
              </>
            )}
          </span>
        )}
      </p>
      {session.error !== null && <p class="bad">{session.error}</p>}
    </header>
  );
}
