// The selected token or layer beside another one: a row per tensor, the largest difference first.
import { computed, useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { plural } from '../../format';
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
  comparedText,
  compareQuery,
  indexOf,
  itemOf,
  optionOf,
  rowsThatMatter,
  valueIn,
  type ComparedValue,
} from './compare';

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
      <h4>
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
      </h4>
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
          store.navigation.setOptions('inspector', optionOf(next), 'push');
        }}
      />
      {found ? (
        <Table found={found} value={value} selected={selected} compared={compared} />
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

function Table(props: {
  found: WithinComparison;
  value: ComparedValue;
  selected: Compared;
  compared: Compared;
}) {
  const { found, value, selected, compared } = props;
  const showAll = useSignal(false);
  const all = found.rows.map((row) => ({ name: row.name, text: comparedText(row, value) }));
  const matter = rowsThatMatter(all.map(({ text }) => text.amount));
  const rows = showAll.value ? all : all.slice(0, matter);
  const left = found.total - rows.length;
  const most = rows.reduce((max, { text }) => Math.max(max, Math.abs(text.amount)), 0);
  const total = comparedText(found.sums, value);
  return (
    <>
      <table class="differences">
        <thead>
          <tr>
            <th scope="col">tensor</th>
            <th scope="col">
              {selected.kind} {indexOf(selected)}
            </th>
            <th scope="col">
              {compared.kind} {indexOf(compared)}
            </th>
            <th scope="col">difference</th>
          </tr>
        </thead>
        <tbody>
          <tr class="total">
            <th scope="row">all</th>
            <td>{total.left}</td>
            <td>{total.right}</td>
            <td>{total.difference}</td>
          </tr>
          {rows.map(({ name, text }) => (
            <tr key={name}>
              <th scope="row" class="mono" title={name}>
                {name}
              </th>
              <td>{text.left}</td>
              <td>{text.right}</td>
              <td>
                <span
                  class="difference-bar"
                  data-less={text.amount < 0}
                  style={{ width: `${most > 0 ? (100 * Math.abs(text.amount)) / most : 0}%` }}
                />
                {text.difference}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {left > 0 && (
        <p class="dim">
          {rows.length === 0
            ? `no difference in ${plural(left, 'tensor')}`
            : `and ${plural(left, 'more tensor')} with ${rows.length < all.length ? 'hardly any' : 'less'} difference`}{' '}
          {rows.length < all.length && (
            <button
              type="button"
              class="link"
              onClick={() => {
                showAll.value = true;
              }}
            >
              Show all
            </button>
          )}
        </p>
      )}
    </>
  );
}
