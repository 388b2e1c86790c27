// A session that is not part of the current conversation: a text or token ID run, or a session
// from the list.
import { formatAgo, formatCount, plural } from '../../format';
import type { Run, Session } from '../../net/types';
import { streamedText } from '../../state/request/answer_text';
import { EMPTY_RUN, conversationOf } from '../../state/request/chat';
import type { OpenSession } from '../../state/session/open_session';
import { serverSlotText } from '../../state/session/server_slot';
import { titleOf } from '../../state/session/session_list';
import type { Store } from '../../state/store';
import { usePart } from '../../ui/hooks';
import { Failed } from '../../ui/States';
import { PromptTokens, TokenText } from './TokenText';

export function RecordedSession({ store, session }: { store: Store; session: OpenSession }) {
  const info = session.info.value;
  if (info.is === 'failed' && !session.active.value && !session.unrecorded.value) {
    return <Failed what="This session cannot be shown." error={info.error} />;
  }
  return (
    <>
      {info.is === 'ready' && <Head store={store} session={info.value} />}
      <TokensError session={session} />
      <Texts store={store} session={session} />
      <LastTokens session={session} />
    </>
  );
}

const SHOWN_REQUESTS = 50;

// The prompt and the answer; of each request, if the session has several.
function Texts({ store, session }: { store: Store; session: OpenSession }) {
  const known = usePart(() => [...session.sequences.value.keys()].join(' '));
  const sequences = known === '' ? [] : known.split(' ').map(Number);
  if (sequences.length < 2) {
    return (
      <>
        <PromptTokens store={store} session={session} open />
        <div class="said said-model">
          <TokenText store={store} session={session} part="answer" />
        </div>
        <Rejected session={session} />
      </>
    );
  }
  const hidden = Math.max(0, sequences.length - SHOWN_REQUESTS);
  const info = session.info.value;
  const slots = info.is === 'ready' ? info.value.server_slots : undefined;
  return (
    <>
      {hidden > 0 && (
        <p class="dim">
          The texts of the first {plural(hidden, 'request')} are not shown here. SQL has all tokens.
        </p>
      )}
      {sequences.slice(hidden).map((sequence) => (
        <article key={sequence} class="turn" aria-label={`Request ${sequence}`}>
          <h3>
            Request {sequence} <span class="dim">{serverSlotText(slots, sequence)}</span>
          </h3>
          <PromptTokens store={store} session={session} sequence={sequence} open />
          <div class="said said-model">
            <TokenText store={store} session={session} part="answer" sequence={sequence} />
          </div>
          <Rejected session={session} sequence={sequence} />
        </article>
      ))}
    </>
  );
}

// A program that is recorded chooses the last token of an answer, and never evaluates it.
function LastTokens({ session }: { session: OpenSession }) {
  const info = session.info.value;
  const isShown = info.is === 'ready' && info.value.facts?.['attach.pid'] !== undefined;
  const { generated } = session.counts.value;
  if (!isShown || generated === 0 || session.active.value) return null;
  return (
    <p class="turn-foot">
      Without the last token of each answer: the program chose it and did not evaluate it.
    </p>
  );
}

// How many tokens of drafts the text shows that are not part of the answer.
function Rejected({ session, sequence }: { session: OpenSession; sequence?: number }) {
  const count = usePart(() => {
    void session.feed.version.value;
    return sequence === undefined
      ? session.data.tokenTotals.rejected
      : (session.sequences.value.get(sequence)?.rejected ?? 0);
  });
  if (count === 0) return null;
  return (
    <p
      class="turn-foot"
      title="A draft model proposed these tokens and the model rejected them: they are not part of the answer, and are not copied with it"
    >
      {plural(count, 'rejected draft token')}, struck through
    </p>
  );
}

// The error shown if neither the tokens could be read nor a run has the text.
function TokensError({ session }: { session: OpenSession }) {
  const error = usePart(() => {
    void session.feed.version.value;
    const known = session.data.tokens.length > 0 || session.run.value !== null;
    return known ? null : session.feed.tokensError.value;
  });
  const again = (): void => {
    void session.refresh();
  };
  return error && <Failed what="The tokens cannot be read." error={error} retry={again} />;
}

// The button that continues a recorded conversation; needs a model that can chat.
function ContinueButton({ store, session }: { store: Store; session: Session }) {
  const model = store.models.current.value;
  if (!store.canAct.value || model?.state !== 'loaded' || model.can_chat !== true) return null;
  if (session.state === 'running') return null;
  // Without an answer, or with one of invalid numbers, there is nothing to continue after.
  if (session.facts?.['result.invalid_logits'] !== undefined) return null;
  const conversation = (): ReturnType<typeof conversationOf> => {
    const data = store.open.peek()?.data;
    if (session.state === 'failed' && (data?.tokenTotals.generated ?? 0) === 0) return null;
    const tokens = data?.tokens ?? [];
    const run: Run = { ...EMPTY_RUN, id: session.id, state: 'done', text: streamedText(tokens) };
    return conversationOf(session, {
      ...run,
      generated: data?.tokenTotals.generated ?? 0,
      prompt_tokens: data?.tokenTotals.prompt ?? 0,
      reused_tokens: session.reused_tokens ?? 0,
    });
  };
  if (!conversation()) return null;
  return (
    <button
      type="button"
      class="small"
      onClick={() => {
        const recorded = conversation();
        if (recorded) store.chat.continueFrom(recorded);
        document.getElementById('prompt')?.focus();
      }}
    >
      Continue this conversation
    </button>
  );
}

function Head({ store, session }: { store: Store; session: Session }) {
  const { reused_tokens = 0, reused_from = null, server_slots = [], program } = session;
  return (
    <header class="recorded">
      <h2>{titleOf(session)}</h2>
      <p class="turn-foot">
        <span>
          {session.state}, {formatAgo(session.start_utc_ns, store.now.value)}
        </span>
        {session.tokens !== undefined && <span>{plural(session.tokens, 'token')}</span>}
        {program && <span>{program.text}</span>}
        {server_slots.length === 1 && <span>{serverSlotText(server_slots, 1)}</span>}
        {reused_tokens > 0 && (
          <span>
            {formatCount(reused_tokens)} reused
            {reused_from !== null && store.hasServer && (
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
      <ContinueButton store={store} session={session} />
    </header>
  );
}
