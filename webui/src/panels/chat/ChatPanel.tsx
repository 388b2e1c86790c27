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
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const grows = (): boolean => store.open.peek()?.active.peek() === true;
    return box.current && end.current ? keepAtEnd(box.current, end.current, grows) : undefined;
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
      <div ref={end} class="transcript-end" />
    </div>
  );
}

// Keeps `end`, the last element of `box`, in view while the answer grows, until the user scrolls
// up. The browser does it by scroll anchoring (chat.css); the observer scrolls when the text first
// exceeds the box, and in browsers without scroll anchoring. Reads no layout while text is added.
function keepAtEnd(box: HTMLElement, end: HTMLElement, grows: () => boolean): () => void {
  let pinned = false;
  let top = 0;
  const pin = (value: boolean): void => {
    if (value === pinned) return;
    pinned = value;
    box.dataset.pinned = String(value);
  };
  const look = (): void => {
    const moved = box.scrollTop;
    if (moved < top) pin(false);
    top = moved;
  };
  pin(true);
  const seen = new IntersectionObserver(
    (entries) => {
      if (entries.at(-1)?.isIntersecting) {
        pin(true);
      } else if (pinned && grows()) {
        box.scrollTop = Number.MAX_SAFE_INTEGER;
        top = 0;
        seen.unobserve(end); // observe() reports the state again
        seen.observe(end);
      }
    },
    { root: box, rootMargin: '0px 0px 32px 0px' },
  );
  seen.observe(end);
  box.addEventListener('scroll', look, { passive: true });
  return () => {
    seen.disconnect();
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
