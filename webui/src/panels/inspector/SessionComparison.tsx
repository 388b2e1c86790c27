// The open session beside another one: the causes of differences that the recordings know, the times
// of a step, and the totals by layer, op type, component or tensor.
import { useMemo } from 'preact/hooks';
import { componentName, formatAgo, formatNs, layerName } from '../../format';
import type { SessionComparison as Found } from '../../net/types';
import { finishedSteps } from '../../state/answer';
import type { OpenSession } from '../../state/open_session';
import { Resource } from '../../state/resource';
import { titleOf } from '../../state/session_list';
import type { Store } from '../../state/store';
import { IconButton } from '../../ui/Button';
import { usePart, useResource } from '../../ui/hooks';
import { Segmented } from '../../ui/Segmented';
import { Failed, Loading } from '../../ui/States';
import {
  COMPARED_AXES,
  COMPARED_VALUES,
  comparisonOptions,
  type ComparedAxis,
  type ComparedValue,
} from './compare';
import { DifferenceTable } from './DifferenceTable';
import { setComparison } from './set_comparison';

const MAX_TITLE = 24;

interface Props {
  readonly store: Store;
  readonly session: OpenSession;
}

export function SessionComparison({ store, session }: Props) {
  const other = usePart(() => store.navigation.view.value.other);
  const page = store.sessions.page.value;
  const listed = page.is === 'ready' ? page.value.sessions : [];
  const others = listed.filter(({ id, state }) => id !== session.id && state !== 'unreadable');
  const choose = (id: string | null): void => {
    store.navigation.change({ other: id });
  };
  if (others.length === 0 && other === null) return null;
  const isListed = others.some(({ id }) => id === other);
  return (
    <section class="links comparison" aria-label="Comparison with a session">
      <h3>
        <label>
          Compare with session{' '}
          <select
            value={other ?? ''}
            onChange={(event) => {
              const { value } = event.currentTarget;
              choose(value === '' ? null : value);
            }}
          >
            <option value="">none</option>
            {other !== null && !isListed && <option value={other}>{other}</option>}
            {others.map((one) => (
              <option key={one.id} value={one.id}>
                {shortened(titleOf(one))}, {formatAgo(one.start_utc_ns, store.now.value)}
              </option>
            ))}
          </select>
        </label>
        {other !== null && (
          <IconButton
            icon="close"
            label="End the comparison with the session"
            hint="Esc"
            onClick={() => {
              choose(null);
            }}
          />
        )}
      </h3>
      {other !== null && <Differences store={store} session={session} other={other} />}
    </section>
  );
}

const shortened = (title: string): string =>
  title.length > MAX_TITLE ? `${title.slice(0, MAX_TITLE - 1)}…` : title;

const AXES: Readonly<Record<ComparedAxis, string>> = {
  op_kind: 'op types',
  layer: 'layers',
  component: 'components',
  tensor: 'tensors',
};

function Differences({ store, session, other }: Props & { other: string }) {
  const text = usePart(() => store.navigation.view.value.options.inspector);
  const { value, by } = comparisonOptions(text);
  const resource = useMemo(() => differencesOf(session, other), [session, other]);
  const { value: found, error } = useResource(resource);
  if (session.active.value) return <p class="dim">When this run ends, it is compared.</p>;
  if (error) {
    return (
      <Failed
        what="The comparison cannot be shown."
        error={error}
        retry={() => {
          resource.reload();
        }}
      />
    );
  }
  if (!found) return <Loading>Comparing…</Loading>;
  const rows = found.by[by].map((row) => ({ ...row, name: rowText(by, row.name) }));
  return (
    <>
      <Causes causes={found.causes} />
      <StepTimes times={found.step_ns} />
      <Segmented
        label="Rows"
        options={COMPARED_AXES.map((one) => ({ value: one, text: AXES[one] }))}
        value={by}
        choose={(next: ComparedAxis) => {
          setComparison(store, { by: next });
        }}
      />
      <Segmented
        label="Difference of"
        options={COMPARED_VALUES.map((one) => ({ value: one, text: one }))}
        value={value}
        choose={(next: ComparedValue) => {
          setComparison(store, { value: next });
        }}
      />
      <DifferenceTable
        key={by}
        of={AXES[by].slice(0, -1)}
        names={['this', 'other']}
        found={{ total: rows.length, sums: found.total, rows }}
        value={value}
      />
    </>
  );
}

const rowText = (axis: ComparedAxis, name: string): string =>
  axis === 'layer' ? layerName(name) : axis === 'component' ? componentName(name) : name;

function Causes({ causes }: { causes: readonly string[] }) {
  if (causes.length === 0) {
    return <p>No cause of a difference is recorded: same model, settings, request and machine.</p>;
  }
  return (
    <>
      <p>Causes of differences:</p>
      <ul class="causes" aria-label="Causes of differences">
        {causes.map((cause) => (
          <li key={cause}>{cause}</li>
        ))}
      </ul>
    </>
  );
}

function StepTimes({ times }: { times: Found['step_ns'] }) {
  const phases = Object.entries(times).filter(([, { left, right }]) => left && right);
  if (phases.length === 0) return null;
  return (
    <table class="differences" aria-label="Times of a step">
      <thead>
        <tr>
          <th scope="col">a step</th>
          <th scope="col">this</th>
          <th scope="col">other</th>
        </tr>
      </thead>
      <tbody>
        {phases.flatMap(([phase, { left, right }]) =>
          (['median', 'p5', 'p95'] as const).map((key) => (
            <tr key={`${phase} ${key}`}>
              <th scope="row">
                {phase}, {key}
              </th>
              <td>{left && formatNs(left[key])}</td>
              <td>{right && formatNs(right[key])}</td>
            </tr>
          )),
        )}
      </tbody>
    </table>
  );
}

function differencesOf(session: OpenSession, other: string): Resource<Found> {
  const { api, reconnects } = session.context;
  return new Resource<Found>({
    key: () => finishedSteps(session),
    load: (signal) => api.comparison(session.id, other, signal),
    reconnects,
  });
}
