// The choice of the session that the open one is compared with.
import { formatAgo } from '../../format';
import type { OpenSession } from '../../state/session/open_session';
import { titleOf, type ListedSession } from '../../state/session/session_list';
import { byModel, modelNameOf, toldApart } from '../../state/session/told_apart';
import type { Store } from '../../state/store';
import { usePart } from '../../ui/hooks';

const MAX_TITLE = 40;

interface Props {
  readonly store: Store;
  readonly session: OpenSession;
  readonly label?: string; // shown instead of the whole one
  readonly none?: string; // what it means that none is chosen
}

const LABEL = 'Compare with session';

export function SessionChoice({ store, session, label = LABEL, none = 'none' }: Props) {
  const other = usePart(() => store.navigation.view.value.other);
  const page = store.sessions.page.value;
  const listed = page.is === 'ready' ? page.value.sessions : [];
  const others = listed.filter(({ id, state }) => id !== session.id && state !== 'unreadable');
  const isListed = others.some(({ id }) => id === other);
  const chosen = others.find(({ id }) => id === other);
  const known = session.info.value;
  const { same, other: rest } = byModel(others, known.is === 'ready' ? known.value : null);
  const groups = [
    ['the same model', same],
    ['other models', rest],
  ] as const;
  const isGrouped = same.length > 0 && rest.length > 0;
  const titleOfOther = chosen ? `${nameOf(chosen, Infinity)}, ${chosen.id}` : undefined;
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
        <option value="">{none}</option>
        {other !== null && !isListed && (
          <option value={other}>{other === session.id ? 'this session itself' : other}</option>
        )}
        {groups.map(([title, group]) => {
          const options = choicesOf(group, store.now.value, listed).map(({ id, text }) => (
            <option key={id} value={id}>
              {text}
            </option>
          ));
          return isGrouped ? (
            <optgroup key={title} label={title}>
              {options}
            </optgroup>
          ) : (
            options
          );
        })}
      </select>
    </span>
  );
}

// Each with the settings that tell it from others of its title and the time since it began, and of those that still read the same with the id, which has the
// date and the time of day.
export function choicesOf(
  sessions: readonly ListedSession[],
  nowMs: number,
  listed: readonly ListedSession[] = sessions, // with the open one
): readonly { readonly id: string; readonly text: string }[] {
  const apart = toldApart(listed);
  const all = sessions.map((one) => {
    const settings = apart.get(one.id)?.settings ?? '';
    const parts = [nameOf(one), settings, formatAgo(one.start_utc_ns, nowMs)];
    return { id: one.id, text: parts.filter(Boolean).join(', ') };
  });
  const counts = new Map<string, number>();
  for (const { text } of all) counts.set(text, (counts.get(text) ?? 0) + 1);
  return all.map(({ id, text }) => ({
    id,
    text: (counts.get(text) ?? 0) > 1 ? `${text}, ${id}` : text,
  }));
}

// With the model: sessions of different models may have the same prompt.
function nameOf(session: ListedSession, longest = MAX_TITLE): string {
  const title = titleOf(session);
  const short = title.length > longest ? `${title.slice(0, longest - 1)}…` : title;
  const model = modelNameOf(session);
  return model === '' ? short : `${short} (${model})`;
}
