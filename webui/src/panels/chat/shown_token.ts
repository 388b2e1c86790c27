// The token that the chat describes: the selected one, else the last one of the shown step.
import type { OpenSession } from '../../state/session/open_session';
import type { Store } from '../../state/store';

export function shownToken(store: Store, session: OpenSession): number | null {
  const { selection, step: chosen } = store.navigation.view.value;
  void session.feed.version.value;
  const step = session.data.steps[session.step.value ?? -1];
  const [first, count] = [step?.token_id ?? 0, step?.token_count ?? 0];
  if (selection?.kind === 'token') {
    const { token } = selection;
    // The keys that go from step to step leave the selection behind.
    if (chosen === null || !step || (token >= first && token < first + count) || session.data.stepOfToken(token) === null)
      return token;
  }
  return count > 0 ? first + count - 1 : null;
} // prettier-ignore
