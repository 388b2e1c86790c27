// That the run of the session was changed at a stop, how, and the comparison with the unaltered run.
import { useSignal } from '@preact/signals';
import { plural } from '../../format';
import { runToEnd, unalteredOf, unalteredRequest } from '../../state/session/altered';
import { changesOf } from '../../state/session/changes';
import type { OpenSession } from '../../state/session/open_session';
import type { Store } from '../../state/store';

const MAX_LISTED = 5;

export function Altered({ store, session }: { store: Store; session: OpenSession }) {
  const isBusy = useSignal(false);
  const info = session.info.value;
  if (info.is !== 'ready') return null;
  const facts = info.value.facts ?? {};
  const changes = changesOf(facts);
  if (changes.length === 0) return null;
  const compare = async (): Promise<void> => {
    const page = store.sessions.page.peek();
    const listed = page.is === 'ready' ? page.value.sessions : [];
    const earlier = await unalteredOf(store.api, info.value, listed);
    const request = store.debug.requestOf(session.id);
    const other = earlier ?? (request ? await runToEnd(store.api, unalteredRequest(request, facts)) : null); // prettier-ignore
    void store.sessions.refresh();
    if (store.open.peek() !== session) return;
    if (other !== null) {
      store.navigation.change({ other });
      store.reveal('compare');
    } else
      store.toasts.error(
        'No session of the same request is listed. Run the prompt again without breakpoints and with the same seed.',
      );
  };
  return (
    <section class="altered" aria-label="Altered run">
      <b class="warn">Altered run</b> <span>{plural(changes.length, 'change')} at breakpoints</span>
      <ul>
        {changes.slice(0, MAX_LISTED).map((change, i) => (
          <li key={i}>{change}</li>
        ))}
        {changes.length > MAX_LISTED && <li class="dim">and {changes.length - MAX_LISTED} more</li>}
      </ul>
      {store.has('compare') && store.canAct.value && !session.active.value && (
        <button
          type="button"
          class="small"
          disabled={isBusy.value}
          title="With a session of the same request; if none is listed, the request runs again without stops"
          onClick={() => {
            isBusy.value = true;
            void compare().finally(() => {
              isBusy.value = false;
            });
          }}
        >
          {isBusy.value ? 'Running the unaltered request…' : 'Compare with the unaltered run'}
        </button>
      )}
    </section>
  );
}
