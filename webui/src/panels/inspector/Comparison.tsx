// The selected token or layer beside another one: a row per tensor, the largest difference first.
import { computed } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import type { WithinComparison } from '../../net/types';
import type { OpenSession } from '../../state/open_session';
import { Resource } from '../../state/resource';
import type { Store } from '../../state/store';
import { comparedOf, type Compared } from '../../state/view';
import { IconButton } from '../../ui/Button';
import { usePart, useResource } from '../../ui/hooks';
import { Segmented } from '../../ui/Segmented';
import { Failed, Loading } from '../../ui/States';
import {
  COMPARED_VALUES,
  compareQuery,
  indexOf,
  itemOf,
  valueIn,
  type ComparedValue,
} from './compare';
import { DifferenceTable } from './DifferenceTable';
import { setComparison } from './set_comparison';

const MAX_ROWS = 500;

interface Props {
  readonly store: Store;
  readonly session: OpenSession;
  readonly selected: Compared;
  readonly count: number; // of tokens or layers
}

export function Comparison(props: Props) {
  const { store, selected, count } = props;
  const { kind } = selected;
  const compared = usePart(() => comparedOf(store.navigation.view.value));
  const compare = (other: Compared | null): void => {
    store.navigation.change({ compared: other });
  };
  if (count < 2) return null;
  return (
    <section class="links comparison" aria-label="Comparison">
      <h3>
        <label title={`Or Shift+click another ${kind} in the map`}>
          Compare with {kind}{' '}
          <input
            type="number"
            min={0}
            max={count - 1}
            value={compared ? indexOf(compared) : ''}
            onChange={(event) => {
              const { value } = event.currentTarget;
              const index = Number(value);
              const exists = value !== '' && Number.isInteger(index) && index >= 0 && index < count;
              compare(exists ? itemOf(kind, index) : null);
            }}
          />
        </label>
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
      {compared && <Differences {...props} compared={compared} />}
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
  return (
    <>
      <Segmented
        label="Difference of"
        options={COMPARED_VALUES.map((one) => ({ value: one, text: one }))}
        value={value}
        choose={(next: ComparedValue) => {
          setComparison(store, { value: next });
        }}
      />
      {found ? (
        <DifferenceTable
          of="tensor"
          names={[`${selected.kind} ${indexOf(selected)}`, `${compared.kind} ${indexOf(compared)}`]}
          found={found}
          value={value}
        />
      ) : error ? (
        <Failed what="The comparison cannot be shown." error={error} />
      ) : (
        <Loading />
      )}
    </>
  );
}

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
