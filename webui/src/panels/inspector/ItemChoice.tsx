// The choice of the token or layer that the selected one is compared with.
import { useMemo } from 'preact/hooks';
import { positionOf, tokenText } from '../../format';
import type { OpenSession } from '../../state/session/open_session';
import type { Compared } from '../../state/view/view';
import { indexOf, itemOf } from './compare';

const MAX_LISTED = 500; // beyond: a field for the number

interface Props {
  readonly session: OpenSession;
  readonly selected: Compared;
  readonly compared: Compared | null;
  readonly count: number; // of tokens or layers
  readonly choose: (other: Compared | null) => void;
}

export function ItemChoice({ session, selected, compared, count, choose }: Props) {
  const { kind } = selected;
  const own = indexOf(selected);
  const names = useMemo(
    () =>
      Array.from({ length: count > MAX_LISTED ? 0 : count }, (_, i) =>
        kind === 'layer' ? String(i) : `${i} ${tokenText(session.data.tokens[i])}`,
      ),
    [session, kind, count],
  );
  const chosen = (text: string): void => {
    const index = Number(text);
    const exists = text !== '' && Number.isInteger(index) && index >= 0 && index < count;
    choose(exists ? itemOf(kind, index) : null);
  };
  const value = compared ? String(indexOf(compared)) : '';
  return (
    <label>
      Compare with {kind}{' '}
      {count > MAX_LISTED ? (
        <input
          type="number"
          min={0}
          max={count - 1}
          placeholder={positionOf(0, count).replace(/^0 of /, '')}
          value={value}
          onChange={(event) => {
            chosen(event.currentTarget.value);
          }}
        />
      ) : (
        <select
          value={value}
          onChange={(event) => {
            chosen(event.currentTarget.value);
          }}
        >
          <option value="">none</option>
          {names.map((name, i) => (
            <option key={i} value={i} disabled={i === own}>
              {name}
            </option>
          ))}
        </select>
      )}
    </label>
  );
}
