// Whose attention is shown over the text, and the tokens that the token under the pointer looks at: each
// is a button, which emphasises its line and selects the token. So the keyboard walks along the lines.
import { formatValue } from '../../charts/table';
import { tokenText } from '../../format';
import { errorText } from '../../net/api';
import type { OpenSession } from '../../state/session/open_session';
import type { Store } from '../../state/store';
import { usePart, useResource } from '../../ui/hooks';
import {
  encodeLook,
  lookedAtOf,
  lookOf,
  mostLookedAt,
  pointedLine,
  type Look,
  type LookedAt,
} from './token_attention';

export function LookedAtBar({ store, session }: { store: Store; session: OpenSession }) {
  const look = usePart(() => lookOf(store));
  return look && <Bar {...{ store, session, look }} />;
}

function Bar({ store, session, look }: { store: Store; session: OpenSession; look: Look }) {
  const resource = lookedAtOf(store, session);
  const { value, error } = useResource(resource);
  const info = session.info.value;
  const heads = info.is === 'ready' ? (info.value.n_heads ?? 0) : 0;
  const set = (change: Partial<Look>): void => {
    store.navigation.setOptions('chat', encodeLook({ ...look, ...change }), 'replace');
  };
  return (
    <div class="looked-at">
      <Choice
        label="Layer"
        all="mean of all"
        count={store.layers.value}
        value={look.layer}
        set={(layer) => {
          set(layer === null ? { layer, head: null } : { layer });
        }}
      />
      <Choice
        label="Head"
        all="mean of all"
        count={look.layer === null ? 0 : heads}
        value={look.head}
        set={(head) => {
          set({ head });
        }}
      />
      <p role="group" tabIndex={0} aria-label="Attention of a token">
        {error ? (
          errorText(error)
        ) : value && value.weights.length > 0 ? (
          <Names {...{ store, session, value }} />
        ) : value ? (
          `The attention of token ${value.token} was not captured.`
        ) : (
          'Point at a token of the text, or select one.'
        )}
      </p>
    </div>
  );
}

function Names(props: { store: Store; session: OpenSession; value: LookedAt }) {
  const { store, session, value } = props;
  const nameOf = (token: number): string => tokenText(session.data.tokens[token]);
  const pointed = pointedLine(session);
  // By place in the list: the button that has the focus stays when its token is selected.
  const point = (index: number | null) => (): void => {
    pointed.value = index;
  };
  return (
    <>
      <b class="mono">{nameOf(value.token)}</b> (token {value.token}) looks at{' '}
      {mostLookedAt(value.weights).map(({ token, weight }, i) => (
        <span key={i}>
          {i > 0 && ', '}
          <button
            type="button"
            class="link"
            title="Select this token"
            onClick={() => {
              store.selectToken(session, token);
            }}
            onFocus={point(i)}
            onBlur={point(null)}
            onPointerEnter={point(i)}
            onPointerLeave={point(null)}
          >
            <span class="mono">{nameOf(token)}</span> ({token})
          </button>{' '}
          {formatValue('share', weight)}
        </span>
      ))}
    </>
  );
}

function Choice(props: {
  label: string;
  all: string;
  count: number; // 0: there is nothing to choose
  value: number | null;
  set: (value: number | null) => void;
}) {
  const { label, all, count, value, set } = props;
  return (
    <label>
      {label}{' '}
      <select
        disabled={count === 0}
        value={value === null ? '' : String(value)}
        onChange={({ currentTarget }) => {
          set(currentTarget.value === '' ? null : Number(currentTarget.value));
        }}
      >
        <option value="">{all}</option>
        {Array.from({ length: count }, (_, n) => (
          <option key={n} value={String(n)}>
            {n}
          </option>
        ))}
      </select>
    </label>
  );
}
