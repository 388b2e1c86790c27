// The choice of the session that the open one is compared with.
import { formatAgo } from '../../format';
import type { Session } from '../../net/types';
import type { OpenSession } from '../../state/session/open_session';
import { titleOf } from '../../state/session/session_list';
import type { Store } from '../../state/store';
import { usePart } from '../../ui/hooks';

const MAX_TITLE = 40;

interface Props {
  readonly store: Store;
  readonly session: OpenSession;
  readonly label?: string; // shown instead of the whole one
}

const LABEL = 'Compare with session';

export function SessionChoice({ store, session, label = LABEL }: Props) {
  const other = usePart(() => store.navigation.view.value.other);
  const page = store.sessions.page.value;
  const listed = page.is === 'ready' ? page.value.sessions : [];
  const others = listed.filter(({ id, state }) => id !== session.id && state !== 'unreadable');
  const isListed = others.some(({ id }) => id === other);
  const chosen = others.find(({ id }) => id === other);
  const titleOfOther = chosen ? nameOf(chosen) : undefined;
  return (
    <span class="compare-choice">
      <span aria-hidden="true">{label}</span>
      <select
        aria-label={LABEL}
        title={titleOfOther}
        value={other ?? ''}
        onChange={(event) => {
          const { value } = event.currentTarget;
          store.navigation.change({ other: value === '' ? null : value });
          if (value !== '') store.reveal('compare');
        }}
      >
        <option value="">none</option>
        {other !== null && !isListed && (
          <option value={other}>{other === session.id ? 'this session itself' : other}</option>
        )}
        {others.map((one) => (
          <option key={one.id} value={one.id}>
            {nameOf(one)}, {formatAgo(one.start_utc_ns, store.now.value)}
          </option>
        ))}
      </select>
    </span>
  );
}

// With the model: sessions of different models may have the same prompt.
function nameOf(session: Session): string {
  const title = titleOf(session);
  const short = title.length > MAX_TITLE ? `${title.slice(0, MAX_TITLE - 1)}…` : title;
  const model = session.model?.path.split('/').at(-1) ?? '';
  return model === '' ? short : `${short} (${model})`;
}
