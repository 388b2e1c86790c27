// The open session beside another one: the causes of differences that the recordings know, the times
// of a step, and the totals by layer, op type, component or tensor.
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useMemo, useRef } from 'preact/hooks';
import { componentName, formatAgo, layerName, plural } from '../../format';
import type { SessionComparison as Found } from '../../net/types';
import { ok } from '../../result';
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
  comparedNumbers,
  comparisonOptions,
  VALUE_OPTIONS,
  type ComparedAxis,
  type ComparedValue,
  type Pair,
} from './compare';
import { DifferenceTable, SidesHead, TotalRow, type Sides } from './DifferenceTable';
import { generatedMedians } from './generated_medians';
import { setComparison } from './set_comparison';

const MAX_TITLE = 24;

interface Props {
  readonly store: Store;
  readonly session: OpenSession;
}

// While something is selected, for example by playback, the comparison is folded.
export function FoldedComparison({ store, session }: Props) {
  const isKept = usePart(() => {
    const { selection, other } = store.navigation.view.value;
    return selection !== null && other !== null;
  });
  const isOpen = useSignal(false);
  if (!isKept) return null;
  return (
    <details
      class="all-facts"
      onToggle={(event) => {
        isOpen.value = event.currentTarget.open;
      }}
    >
      <summary>Comparison with another session</summary>
      {isOpen.value && <SessionComparison store={store} session={session} />}
    </details>
  );
}

export function SessionComparison({ store, session }: Props) {
  const other = usePart(() => store.navigation.view.value.other);
  const page = store.sessions.page.value;
  const listed = page.is === 'ready' ? page.value.sessions : [];
  const others = listed.filter(({ id, state }) => id !== session.id && state !== 'unreadable');
  const choose = (id: string | null): void => {
    store.navigation.change({ other: id });
  };
  const isListed = others.some(({ id }) => id === other);
  const select = useId();
  if (others.length === 0 && other === null) return null;
  return (
    <section class="links comparison" aria-label="Comparison with a session">
      <h3>
        <label for={select}>Compare with session</label>
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
      <select
        id={select}
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

const SIDES: Sides = { names: ['this session', 'other session'], difference: 'other − this' };

function Differences({ store, session, other }: Props & { other: string }) {
  const text = usePart(() => store.navigation.view.value.options.inspector);
  const { value, by } = comparisonOptions(text);
  const resource = useMemo(() => differencesOf(session, other), [session, other]);
  const medians = useMemo(() => mediansOf(session, other, value), [session, other, value]);
  const { value: found, error } = useResource(resource);
  const median = useResource(medians);
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
    <Shown>
      <Titles found={found} />
      <Causes store={store} found={found} />
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
        options={VALUE_OPTIONS}
        value={value}
        choose={(next: ComparedValue) => {
          setComparison(store, { value: next });
        }}
      />
      <p class="dim">
        {median.value?.pair && 'The first row compares one generated step. '}
        The {median.value?.pair ? 'other ' : ''}rows are sums over all steps: a longer session has
        more.
      </p>
      <DifferenceTable
        key={by}
        of={AXES[by].slice(0, -1)}
        all="all steps"
        sides={SIDES}
        median={median.error ? null : median.value?.pair}
        found={{ total: rows.length, sums: found.total, rows }}
        value={value}
      />
    </Shown>
  );
}

// Scrolls to its content when it appears: the choice of the session is at the end of the panel.
function Shown({ children }: { children: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    box.current?.closest('section')?.scrollIntoView();
  }, []);
  return <div ref={box}>{children}</div>;
}

const quoted = ({ title, id }: { readonly title: string; readonly id: string }): string =>
  `“${title || id}”`;

function Titles({ found }: { found: Found }) {
  const { left, right, tokens } = found;
  return (
    <dl class="facts">
      {([[SIDES.names[0], left, tokens.left], [SIDES.names[1], right, tokens.right]] as const).map(
        ([name, side, count]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd title={side.id}>
              {quoted(side)}, {plural(count, 'token')}
            </dd>
          </div>
        ),
      )}
    </dl>
  );
} // prettier-ignore

const rowText = (axis: ComparedAxis, name: string): string =>
  axis === 'layer' ? layerName(name) : axis === 'component' ? componentName(name) : name;

// What differs of both, as the server says it. A session is named as everywhere on the page.
function Causes({ store, found }: { store: Store; found: Found }) {
  const page = store.sessions.page.value;
  const { causes, left, right } = found;
  const sessionName = (id: string): string => {
    if (id === left.id) return SIDES.names[0];
    if (id === right.id) return SIDES.names[1];
    const listed = page.is === 'ready' ? page.value.sessions.find((one) => one.id === id) : null;
    return quoted(listed ?? { title: '', id });
  };
  if (causes.length === 0) {
    return <p>No cause of a difference is recorded: same model, settings, request and machine.</p>;
  }
  return (
    <table class="differences causes" aria-label="Causes of differences">
      <thead>
        <tr>
          <th scope="col">causes of differences</th>
          {SIDES.names.map((name) => (
            <th key={name} scope="col">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      {causes.map(({ kind, title, reason, facts }) => (
        <tbody key={kind}>
          <tr>
            <th colSpan={3} scope="rowgroup" title={reason}>
              {title}
            </th>
          </tr>
          {facts.map(({ name, label, left: mine, right: other }) => (
            <tr key={name}>
              <th scope="row">{label}</th>
              {[mine, other].map((value, side) => {
                const text =
                  value !== null && name === 'result.reused_from' ? sessionName(value) : value;
                return (
                  <td key={side} title={text ?? ''}>
                    {text === null || text === '' ? '–' : text}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      ))}
    </table>
  );
}

// Quantiles of one step say nothing more than its time.
const isSingle = ({ p5, p95 }: { readonly p5: number; readonly p95: number }): boolean =>
  p5 === p95;

function StepTimes({ times }: { times: Found['step_ns'] }) {
  const rows = Object.entries(times).flatMap(([phase, { left, right }]) => {
    if (!left || !right) return [];
    const keys = isSingle(left) || isSingle(right) ? QUANTILES.slice(0, 1) : QUANTILES;
    return keys.map((key) => ({
      name: `${phase}, ${key}`,
      pair: [left[key], right[key]] as const,
    }));
  });
  if (rows.length === 0) return null;
  return (
    <table class="differences" aria-label="Times of a step">
      <SidesHead of="step time" sides={SIDES} />
      <tbody>
        {rows.map(({ name, pair }) => (
          <TotalRow
            key={name}
            name={name}
            hint="From the start to the end of a step: op times and the waiting between ops"
            text={comparedNumbers(...pair, 'time')}
          />
        ))}
      </tbody>
    </table>
  );
}

const QUANTILES = ['median', 'p5', 'p95'] as const;

function differencesOf(session: OpenSession, other: string): Resource<Found> {
  const { api, reconnects } = session.context;
  return new Resource<Found>({
    key: () => finishedSteps(session),
    load: (signal) => api.comparison(session.id, other, signal),
    reconnects,
  });
}

// The medians of a generated step of both sessions.
function mediansOf(
  session: OpenSession,
  other: string,
  value: ComparedValue,
): Resource<{ readonly pair: Pair }> {
  const { api, reconnects } = session.context;
  return new Resource<{ readonly pair: Pair }>({
    key: () => finishedSteps(session),
    load: async (signal) => {
      const [left, right] = await Promise.all([
        generatedMedians(api, session.id, 'all', value, {}, signal),
        generatedMedians(api, other, 'all', value, {}, signal),
      ]);
      if (!left.ok) return left;
      if (!right.ok) return right;
      const [[a], [b]] = [[...left.value.values()], [...right.value.values()]];
      return ok({ pair: a !== undefined && b !== undefined ? [a, b] : null });
    },
    reconnects,
  });
}
