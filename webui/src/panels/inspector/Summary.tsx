// The summary of the session in six sentences. Each appears as soon as its route has answered, and
// leads to its evidence.
import type { ApiResult } from '../../net/api';
import { ok } from '../../result';
import type { OpenSession } from '../../state/open_session';
import { perSession } from '../../state/per_session';
import { Resource } from '../../state/resource';
import type { Store } from '../../state/store';
import { withKey } from '../../state/view';
import { usePart, useResource } from '../../ui/hooks';
import {
  bytesSentence,
  machineSentence,
  memorySentence,
  orderSentence,
  repeatSentence,
  speedSentence,
  waitSentence,
  type Evidence,
  type Sentence,
  type StepCounts,
} from './summary';

const infoOf = (session: OpenSession) => {
  const info = session.info.peek();
  return info.is === 'ready' ? info.value : null;
};

function countsOf(session: OpenSession): StepCounts {
  const totals = session.data.stepTotals;
  return { generate: totals.count('generate'), all: totals.steps };
}

// A sentence of a session that is no longer running.
const sentence = (load: (session: OpenSession, signal: AbortSignal) => ApiResult<Sentence>) =>
  perSession(
    (session) =>
      new Resource<Sentence>({
        key: () => {
          void session.feed.version.value;
          const info = session.info.value;
          const steps = session.data.stepTotals.steps;
          const isComplete = info.is === 'ready' && info.value.state !== 'running';
          return session.active.value || !isComplete || steps === 0 ? null : String(steps);
        },
        load: (signal) => load(session, signal),
        reconnects: session.context.reconnects,
      }),
  );

// What the machine did to the times: the line above the sentences.
const MACHINE = sentence(async (session, signal) => {
  const machine = await session.context.api.conditions(session.id, signal);
  return machine.ok ? ok(machineSentence(machine.value)) : machine;
});

const SENTENCES = [
  sentence(async (session, signal) => {
    const { api } = session.context;
    const weights = await api.breakdown(session.id, { by: 'all', kind: 'weight', limit: 0 }, signal); // prettier-ignore
    return weights.ok
      ? ok(bytesSentence(weights.value, countsOf(session), infoOf(session)))
      : weights;
  }),
  sentence(async (session, signal) => {
    const { api } = session.context;
    const [ops, report] = await Promise.all([
      api.breakdown(session.id, { by: 'op_kind', sort: '-time', limit: 1 }, signal),
      api.report(session.id, signal),
    ]);
    return ops.ok
      ? ok(speedSentence(ops.value, report.ok ? report.value : null, countsOf(session)))
      : ops;
  }),
  sentence(async (session, signal) => {
    const order = await session.context.api.sequentiality(session.id, { limit: 0 }, signal);
    return order.ok ? ok(orderSentence(order.value)) : order;
  }),
  sentence(async (session, signal) => {
    const pairs = await session.context.api.determinism(session.id, signal);
    return pairs.ok ? ok(repeatSentence(pairs.value)) : pairs;
  }),
  sentence(async (session, signal) => {
    const all = await session.context.api.breakdown(session.id, { by: 'all', limit: 0 }, signal);
    return all.ok ? ok(waitSentence(all.value, infoOf(session))) : all;
  }),
  sentence(async (session, signal) => {
    const reuse = await session.context.api.reuse(session.id, signal);
    return reuse.ok ? ok(memorySentence(reuse.value)) : reuse;
  }),
];

export function Summary({ store, session }: { store: Store; session: OpenSession }) {
  const isOpen = usePart(() => store.navigation.view.value.selection === null);
  const hasAccesses = usePart(() => {
    void session.feed.version.value;
    return session.data.stepTotals.accesses > 0;
  });
  const isRunning = session.active.value;
  if (!hasAccesses) return null;
  return (
    <details class="summary" open={isOpen}>
      <summary>Summary</summary>
      {isRunning ? (
        <p class="dim">Six sentences about this run appear here when it ends.</p>
      ) : (
        <>
          <p aria-label="Machine">
            <Line store={store} resource={MACHINE(session)} />
          </p>
          <ol aria-label="Summary">
            {SENTENCES.map((of, i) => (
              <li key={i}>
                <Line store={store} resource={of(session)} />
              </li>
            ))}
          </ol>
        </>
      )}
    </details>
  );
}

function Line({ store, resource }: { store: Store; resource: Resource<Sentence> }) {
  const { value, error } = useResource(resource);
  if (value) {
    return (
      <button
        type="button"
        class="sentence"
        title={`${value.hint}. Click for the evidence.`}
        onClick={() => {
          show(store, value.evidence);
        }}
      >
        {value.text}
      </button>
    );
  }
  if (error) {
    return (
      <button
        type="button"
        class="sentence bad"
        onClick={() => {
          resource.reload();
        }}
      >
        This figure cannot be read. Try again
      </button>
    );
  }
  return <span class="sentence dim">…</span>;
}

function show(store: Store, { panel, options, sort, filter }: Evidence): void {
  store.reveal(panel);
  const view = store.navigation.view.peek();
  store.navigation.change({
    options: withKey(view.options, panel, options),
    sorts: sort === undefined ? view.sorts : withKey(view.sorts, panel, sort),
    filter: filter ?? '',
    range: null,
  });
}
