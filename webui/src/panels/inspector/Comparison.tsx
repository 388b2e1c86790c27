// The selected token or layer beside another one: a row per tensor, the largest difference first.
import { computed } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { tokenText } from '../../format';
import type { WithinComparison } from '../../net/types';
import type { OpenSession } from '../../state/session/open_session';
import { scopeText } from '../../state/view/range_query';
import { Resource } from '../../state/resource';
import type { Store } from '../../state/store';
import { comparedOf, type Compared } from '../../state/view/view';
import { IconButton } from '../../ui/Button';
import { usePart, useResource } from '../../ui/hooks';
import { Segmented } from '../../ui/Segmented';
import { Failed, Loading } from '../../ui/States';
import {
  compareQuery,
  indexOf,
  relativeName,
  VALUE_OPTIONS,
  valueIn,
  type ComparedValue,
} from './compare';
import { DifferenceTable, type Sides } from './DifferenceTable';
import { ItemChoice } from './ItemChoice';
import { setComparison } from './set_comparison';

const MAX_ROWS = 500;

interface Props {
  readonly store: Store;
  readonly session: OpenSession;
  readonly selected: Compared;
  readonly count: number; // of tokens or layers
}

export function Comparison(props: Props) {
  const { store, session, selected, count } = props;
  const { kind } = selected;
  const compared = usePart(() => comparedOf(store.navigation.view.value));
  const compare = (other: Compared | null): void => {
    store.navigation.change({ compared: other });
  };
  if (count < 2) return null;
  return (
    <section class="links comparison" aria-label="Comparison">
      <h3>
        <ItemChoice
          session={session}
          selected={selected}
          compared={compared}
          count={count}
          choose={compare}
        />
        {compared && (
          <IconButton
            icon="close"
            label="End the comparison"
            hint="Esc"
            onClick={() => {
              compare(null);
            }}
          />
        )}
      </h3>
      {compared && store.has('compare') && (
        <button
          type="button"
          class="link"
          onClick={() => {
            const [a, b] = [indexOf(selected), indexOf(compared)];
            store.navigation.setOptions('compare', `of:${kind}s,a:${a},b:${b}`, 'push');
            store.reveal('compare');
          }}
        >
          Side by side, in the middle
        </button>
      )}
      {compared ? (
        <Differences {...props} compared={compared} />
      ) : (
        <p class="dim">Or Shift+click another {kind} in the map.</p>
      )}
    </section>
  );
}

function Differences({ store, session, selected, compared }: Props & { compared: Compared }) {
  const value = usePart(() => valueIn(store.navigation.view.value.options.inspector));
  const resource = useMemo(
    () => differencesOf(store, session, selected, compared),
    [store, session, selected.kind, indexOf(selected), indexOf(compared)],
  );
  const { value: found, error } = useResource(resource);
  const isLayer = selected.kind === 'layer';
  return (
    <>
      <Segmented
        label="Difference of"
        options={VALUE_OPTIONS}
        value={value}
        choose={(next: ComparedValue) => {
          setComparison(store, next);
        }}
      />
      {found ? (
        <>
          <Scope store={store} session={session} of={[selected, compared]} phase={found.phase} />
          <DifferenceTable
            of="tensor"
            all={found.phase === null ? 'all' : `${found.phase} step`}
            sides={sidesOf(session, selected, compared)}
            found={isLayer ? withRelativeNames(found) : found}
            value={value}
          />
        </>
      ) : error ? (
        <Failed what="The comparison cannot be shown." error={error} />
      ) : (
        <Loading />
      )}
    </>
  );
}

// What the figures are of. `phase`: of layers.
function Scope(props: {
  store: Store;
  session: OpenSession;
  of: readonly Compared[];
  phase: WithinComparison['phase'];
}) {
  const { store, session, of, phase } = props;
  const isLayer = of[0]?.kind === 'layer';
  const text = usePart(() => {
    const { range, filter } = store.navigation.view.value;
    const view = { phase: 'all' as const, range: isLayer ? range : null, filter };
    return scopeText(view, store.layers.value);
  });
  const isShared = of.some((one) => one.kind === 'token' && isOfPrompt(session, one.token));
  const sums = isLayer
    ? `Of one ${phase ?? ''} step: times are medians, the rest means${text === '' ? '' : `; ${text}`}`
    : `Of the step that reads the token${text === '' ? '' : `, ${text}`}`;
  return (
    <p class="dim">
      {sums}.{isShared && ' Tokens of one prompt step share it equally.'}
    </p>
  );
}

function isOfPrompt({ data }: OpenSession, token: number): boolean {
  const step = data.stepOfToken(token);
  return step !== null && (data.steps[step]?.token_count ?? 1) > 1;
}

const nameOf = (one: Compared): string => `${one.kind} ${indexOf(one)}`;

function sidesOf({ data }: OpenSession, left: Compared, right: Compared): Sides {
  const names = [nameOf(left), nameOf(right)] as const;
  const hint = (one: Compared): string =>
    one.kind === 'token' ? tokenText(data.tokens[one.token]) : nameOf(one);
  return { names, hints: [hint(left), hint(right)], difference: `${names[1]} − ${names[0]}` };
}

const withRelativeNames = (found: WithinComparison): WithinComparison => ({
  ...found,
  rows: found.rows.map((row) => ({ ...row, name: relativeName(row.name) })),
});

function differencesOf(
  store: Store,
  session: OpenSession,
  selected: Compared,
  compared: Compared,
): Resource<WithinComparison> {
  const { api, reconnects } = session.context;
  const query = computed(() => {
    const { view } = store.navigation;
    const { phase, range, filter, options } = view.value;
    const value = valueIn(options.inspector);
    return {
      ...compareQuery(selected, compared, { phase, range, filter }, store.layers.value),
      value,
      limit: MAX_ROWS,
    };
  });
  return new Resource<WithinComparison>({
    key: () => `${session.active.value} ${JSON.stringify(query.value)}`,
    load: (signal) => api.comparisonWithin(session.id, query.peek(), signal),
    reconnects,
  });
}
