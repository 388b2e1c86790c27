// The chat panel: the conversation or the open session, the progress of the run, and the form of
// the next request.
import { Fragment } from 'preact';
import { useRef } from 'preact/hooks';
import type { OpenSession } from '../../state/session/open_session';
import type { Model } from '../../net/types';
import { examplePrompts } from '../../state/request/examples';
import { titleOf } from '../../state/session/session_list';
import type { Store } from '../../state/store';
import { OpenExample } from '../../ui/OpenExample';
import type { PanelProps } from '../panel';
import { ChosenLine } from './Alternatives';
import { AttentionLines } from './AttentionLines';
import { Composer } from './Composer';
import { Conversation } from './Conversation';
import { RecordedSession } from './RecordedSession';
import { RunStrip } from './RunStrip';
import { Tint } from './TokenText';
import { modelNotes } from '../../state/request/model_facts';

export function ChatPanel({ store }: PanelProps) {
  return (
    <div class="chat">
      <Transcript store={store} />
      <OpenRun store={store} />
      {store.canAct.value && <Request store={store} />}
    </div>
  );
}

// What makes a request: the form, or for a page without a model the program that is recorded.
function Request({ store }: { store: Store }) {
  const program = store.recorded.program.value;
  const model = store.models.current.value;
  if (program === null || model !== null) return <Composer store={store} />;
  return (
    <div class="composer" role="note" aria-label="How to make a request">
      {program.ended === null ? (
        <p>
          Recording <b>{program.name}</b>: make a request to it, with its own page or your client.
          The session appears in the list when the program evaluates it.
        </p>
      ) : (
        <p>{program.ended}</p>
      )}
      {program.ended === null && program.request !== '' && <code>{program.request}</code>}
    </div>
  );
}

function OpenRun({ store }: { store: Store }) {
  const session = store.open.value;
  const isLeft = store.leftTurns.value !== null;
  if (!session || (isLeft && !session.active.value)) return null;
  return (
    <Fragment key={session.id}>
      <RunStrip store={store} session={session} />
      <ChosenLine store={store} session={session} />
      <Tint store={store} session={session} />
    </Fragment>
  );
}

// While a run is shown, the box is laid out from its end (chat.css): its end stays in view without
// reading or changing the scroll position, until the user scrolls up. A recorded session begins at
// its top.
function Transcript({ store }: { store: Store }) {
  const session = store.open.value;
  const turns = store.chat.turns.value;
  const isTurn = turns.some((turn) => turn.session === session?.id);
  const isLeft = store.leftTurns.value !== null;
  const live = useRef<OpenSession | null>(null);
  if (session?.active.value === true || (session && isTurn)) live.current = session;
  return (
    <div
      class="transcript"
      role="log"
      aria-label="Prompt and answer"
      aria-live="off"
      tabIndex={0}
      data-from-end={session !== null && live.current === session && !isLeft}
    >
      <div class="transcript-content">
        {session && isLeft ? (
          <>
            <StaysOpen store={store} session={session} />
            <Welcome store={store} />
          </>
        ) : session && !isTurn ? (
          <RecordedSession key={session.id} store={store} session={session} />
        ) : turns.length > 0 ? (
          <Conversation store={store} session={session} turns={turns} />
        ) : (
          <Welcome store={store} />
        )}
        {session && !isLeft && (
          <AttentionLines key={`${session.id} lines`} store={store} session={session} />
        )}
      </div>
    </div>
  );
}

// After New conversation: where the session of the one before is.
function StaysOpen({ store, session }: { store: Store; session: OpenSession }) {
  const info = session.info.value;
  return (
    <p class="stays-open">
      <span>
        <b>{info.is === 'ready' ? titleOf(info.value) : session.id}</b> stays open in the other
        panels.
      </span>{' '}
      <button
        type="button"
        class="link"
        onClick={() => {
          store.backToConversation();
        }}
      >
        Back to its conversation
      </button>
    </p>
  );
}

// The first minute: what this is, prompts to try, an example.
function Welcome({ store }: { store: Store }) {
  const model = store.models.current.value;
  const isLoaded = model?.state === 'loaded';
  const program = store.recorded.program.value;
  const isProgram = program !== null && model === null;
  return (
    <div class="welcome">
      <h2>See where the memory goes</h2>
      <p>
        {isProgram ? `Make a request to ${program.name}` : 'Run a prompt'}: the page shows, while
        the model runs, which bytes of the model it reads for each word, when, and for how long.
      </p>
      {isProgram ? null : isLoaded ? (
        <Examples store={store} model={model} />
      ) : model?.state === 'loading' ? (
        <p class="dim">Loading {model.name}…</p>
      ) : (
        <NotLoaded store={store} />
      )}
      <p>
        <button
          type="button"
          class="link"
          onClick={() => {
            store.settings.set({ tour: true });
          }}
        >
          {store.settings.current.value.tourStep > 0
            ? 'Resume the guided tour'
            : 'Take a guided tour'}
        </button>{' '}
        of five minutes.
      </p>
      <p>
        <OpenExample store={store} />, or drop a .ttrace file anywhere on the page.
      </p>
      {isLoaded &&
        modelNotes(model).map((note) => (
          <p key={note} class="model-note">
            {note}
          </p>
        ))}
    </div>
  );
}

const MAX_MODELS = 5; // that are offered here; the menu of models has all

// No model can run a prompt: those that can be loaded.
function NotLoaded({ store }: { store: Store }) {
  const list = store.models.list.value;
  const models = list.is === 'ready' ? list.value.models : [];
  const available = models.filter(({ state }) => state === 'available').slice(0, MAX_MODELS);
  return (
    <>
      <p class="dim">
        {available.length > 0
          ? 'No model is loaded. Load one to run a prompt:'
          : 'No model is loaded, and the server has none to load: start it with -m FILE or --models-dir FOLDER to run a prompt.'}
      </p>
      {available.length > 0 && (
        <p class="load-models">
          {available.map((one) => (
            <button
              key={one.id}
              type="button"
              class="small"
              onClick={() => void store.models.load(one)}
            >
              Load {one.name}
            </button>
          ))}
        </p>
      )}
      <p class="dim">
        Sessions can be looked at, also those that tt attach records into this folder meanwhile.
      </p>
    </>
  );
}

function Examples({ store, model }: { store: Store; model: Model }) {
  const { chat } = store;
  return (
    <ul class="examples" aria-label="Prompts to try">
      {examplePrompts(model).map(({ mode, text, why }) => (
        <li key={text}>
          <button
            type="button"
            disabled={chat.sending.value}
            onClick={() => void chat.sendText(mode, text)}
          >
            <span>{text}</span>
            <span class="dim">{why}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}
