// The chat panel: the conversation or the open session, the progress of the run, and the form of
// the next request.
import { useEffect, useRef } from 'preact/hooks';
import type { Store } from '../../state/store';
import { Empty } from '../../ui/States';
import type { PanelProps } from '../panel';
import { Composer } from './Composer';
import { Conversation } from './Conversation';
import { RecordedSession } from './RecordedSession';
import { RunStrip } from './RunStrip';
import { modelNotes } from '../../state/model_facts';

export function ChatPanel({ store }: PanelProps) {
  return (
    <div class="chat">
      <Transcript store={store} />
      <Strip store={store} />
      <Composer store={store} />
    </div>
  );
}

function Strip({ store }: { store: Store }) {
  const session = store.open.value;
  return session && <RunStrip key={session.id} session={session} />;
}

function Transcript({ store }: { store: Store }) {
  const session = store.open.value;
  const turns = store.chat.turns.value;
  const isTurn = turns.some((turn) => turn.session === session?.id);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const grows = (): boolean => store.open.peek()?.active.peek() === true;
    return box.current ? keepAtEnd(box.current, grows) : undefined;
  }, [store]);
  return (
    <div
      ref={box}
      class="transcript"
      role="log"
      aria-label="Prompt and answer"
      aria-live="off"
      tabIndex={0}
    >
      {session && !isTurn ? (
        <RecordedSession key={session.id} store={store} session={session} />
      ) : turns.length > 0 ? (
        <Conversation store={store} session={session} turns={turns} />
      ) : (
        <Welcome store={store} />
      )}
    </div>
  );
}

// Scrolls with a growing answer while its end is in view.
function keepAtEnd(box: HTMLElement, grows: () => boolean): () => void {
  let atEnd = true;
  const look = (): void => {
    atEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 32;
  };
  const grown = new MutationObserver(() => {
    if (atEnd && grows()) box.scrollTop = box.scrollHeight;
  });
  grown.observe(box, { childList: true, subtree: true, characterData: true });
  box.addEventListener('scroll', look, { passive: true });
  return () => {
    grown.disconnect();
    box.removeEventListener('scroll', look);
  };
}

function Welcome({ store }: { store: Store }) {
  const model = store.models.current.value;
  if (model?.state !== 'loaded') {
    return (
      <Empty>
        {model?.state === 'loading' ? (
          <span>Loading {model.name}…</span>
        ) : (
          <span>Load a model to run a prompt. Recorded sessions open without a model.</span>
        )}
      </Empty>
    );
  }
  return (
    <Empty>
      <span>Write a prompt below. The run is recorded and shown live.</span>
      {modelNotes(model).map((note) => (
        <span key={note} class="model-note">
          {note}
        </span>
      ))}
    </Empty>
  );
}
