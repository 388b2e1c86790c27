// The guided tour, a card beside the views: they stay in use. Where one was is stored, so that it can be
// left and resumed.
import { useEffect, useRef } from 'preact/hooks';
import './tour.css';
import { examplePrompts } from '../state/request/examples';
import { findingsOf } from '../state/session/findings';
import type { OpenSession } from '../state/session/open_session';
import type { Store } from '../state/store';
import { IconButton } from '../ui/Button';
import { OpenExample } from '../ui/OpenExample';
import { usePart, useResource } from '../ui/hooks';
import { showStep, TOUR, type TourStep } from './steps';

export function TourCard({ store }: { store: Store }) {
  const { tourStep } = store.settings.current.value;
  const at = Math.min(Math.max(0, tourStep), TOUR.length - 1);
  const step = TOUR[at];
  const title = useRef<HTMLHeadingElement>(null);
  const session = store.open.value;
  // Without a session there is nothing to show yet.
  useEffect(() => {
    if (session && step) showStep(store, step);
    title.current?.focus();
  }, [store, session?.id, at]);
  if (!step) return null;
  const leave = (): void => {
    store.settings.set({ tour: false });
  };
  const go = (to: number): void => {
    store.settings.set({ tourStep: to });
  };
  return (
    <section class="tour" role="region" aria-label="Guided tour">
      <header>
        <h2 ref={title} tabIndex={-1}>
          {step.title}
        </h2>
        <span class="dim">
          {at + 1} of {TOUR.length}
        </span>
        <span class="toolbar-end" />
        <IconButton icon="close" label="Leave the tour" onClick={leave} />
      </header>
      {step.text.map((one) => (
        <p key={one}>{one}</p>
      ))}
      {session ? <Live store={store} session={session} step={step} /> : <Begin store={store} />}
      <p class="tour-try">
        <b>Try it:</b> {step.try}
      </p>
      <footer>
        <button type="button" class="small" disabled={at === 0} onClick={() => { go(at - 1); }}>
          Back
        </button>
        <button type="button" class="small" disabled={!session} onClick={() => { showStep(store, step); }}>
          Show it again
        </button>
        <span class="toolbar-end" />
        {at + 1 < TOUR.length ? (
          <button type="button" class="primary" onClick={() => { go(at + 1); }}>
            Next: {TOUR[at + 1]?.title}
          </button>
        ) : (
          <button
            type="button"
            class="primary"
            onClick={() => {
              store.settings.set({ tour: false, tourStep: 0 });
            }}
          >
            End the tour
          </button>
        )}
      </footer>
    </section>
  );
} // prettier-ignore

function Live({ store, session, step }: { store: Store; session: OpenSession; step: TourStep }) {
  const { value: found } = useResource(findingsOf(session));
  const text = usePart(() => {
    const { live } = step;
    void session.feed.version.value;
    if (typeof live === 'function') return live(session, store);
    return found?.findings.find(({ topic, role }) => topic === live && role === 'main')?.text ?? '';
  });
  return text === '' ? null : <p class="tour-live">{text}</p>;
}

// The tour needs a session: a run of the loaded model, or the example.
function Begin({ store }: { store: Store }) {
  const model = store.models.current.value;
  const [prompt] = model?.state === 'loaded' ? examplePrompts(model) : [];
  return (
    <p>
      {prompt && (
        <>
          <button
            type="button"
            class="primary"
            disabled={store.chat.sending.value}
            onClick={() => {
              const field = prompt.mode === 'chat' ? 'message' : prompt.mode;
              store.chat.selectMode(prompt.mode);
              store.chat.write({ [field]: prompt.text });
              void store.chat.send();
            }}
          >
            Ask the model: {prompt.text}
          </button>{' '}
          or{' '}
        </>
      )}
      <OpenExample store={store} />
    </p>
  );
}
