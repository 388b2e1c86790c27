// The summary of the session in six sentences. Each appears as soon as its route has answered, and
// leads to its evidence.
import { useEffect, useRef } from 'preact/hooks';
import { formatCount } from '../../format';
import type { ApiResult } from '../../net/api';
import type { Validation } from '../../net/types';
import { ok } from '../../result';
import type { OpenSession } from '../../state/open_session';
import { CLEAN_STEPS, parseFilter, toggleWord } from '../../state/filter';
import {
  answeredTopic,
  finishedSteps,
  isDisturbed,
  machineOf,
  showAnswer,
} from '../../state/answer';
import { perSession } from '../../state/per_session';
import { Resource } from '../../state/resource';
import { generationSpeed } from '../../state/speed';
import type { Store } from '../../state/store';
import { modelMemory } from '../../strip/bands';
import { Check } from '../../ui/Check';
import { usePart, useResource } from '../../ui/hooks';
import { isPartShown } from './Figures';
import {
  bytesSentence,
  cleanOpsSql,
  cleanSteps,
  disturbedSpeedSentence,
  layersText,
  layerSteps,
  machineSentence,
  memorySentence,
  orderSentence,
  repeatSentence,
  sharedExperts,
  speedSentence,
  waitSentence,
  type Sentence,
  type StepCounts,
} from './summary';

const infoOf = (session: OpenSession) => {
  const info = session.info.peek();
  return info.is === 'ready' ? info.value : null;
};

// Generated tokens are those whose step has times, as in the strip.
function countsOf(session: OpenSession): StepCounts {
  const totals = session.data.stepTotals;
  return { generate: totals.generated.tokens, all: totals.steps };
}

// A sentence of a session that is no longer running.
const sentence = (load: (session: OpenSession, signal: AbortSignal) => ApiResult<Sentence>) =>
  perSession(
    (session) =>
      new Resource<Sentence>({
        key: () => finishedSteps(session),
        load: (signal) => load(session, signal),
        reconnects: session.context.reconnects,
      }),
  );

const SENTENCES = [
  sentence(async (session, signal) => {
    const { api } = session.context;
    const [all, weights] = await Promise.all([
      api.breakdown(session.id, { by: 'all', limit: 0 }, signal),
      api.breakdown(session.id, { by: 'source', kind: 'weight', limit: 20 }, signal),
    ]);
    if (!all.ok) return all;
    return weights.ok
      ? ok(bytesSentence(all.value, weights.value, countsOf(session), infoOf(session)))
      : weights;
  }),
  sentence(async (session, signal) => {
    const { api } = session.context;
    const counts = countsOf(session);
    const speed = generationSpeed(session.data, infoOf(session), false);
    const machine = await api.conditions(session.id, signal);
    if (!machine.ok) return machine;
    const phase = counts.generate > 0 ? 'generate' : 'all';
    const facts = infoOf(session)?.facts;
    const layersOf = (clean: boolean) =>
      api.breakdown(session.id, { by: 'layer', sort: '-time', clean }, signal);
    if (isDisturbed(machine.value)) {
      const ops = await api.query(session.id, cleanOpsSql(counts.generate > 0), 100, signal);
      if (!ops.ok) return ops;
      const clean = cleanSteps(ops.value);
      // Without a clean step there are still layers to compare.
      const layers = await layersOf(clean.steps > 0);
      if (!layers.ok) return layers;
      const slowest = layersText(layers.value, phase, layerSteps(clean.steps, counts[phase]));
      return ok(disturbedSpeedSentence(machine.value, clean, speed, slowest, facts));
    }
    const layers = await layersOf(false);
    if (!layers.ok) return layers;
    const slowest = layersText(layers.value, phase);
    const [ops, report] = await Promise.all([
      api.breakdown(session.id, { by: 'op_kind', sort: '-time', limit: 1 }, signal),
      api.report(session.id, signal),
    ]);
    return ops.ok
      ? ok(speedSentence(ops.value, report.ok ? report.value : null, counts, speed, slowest, facts))
      : ops;
  }),
  sentence(async (session, signal) => {
    const order = await session.context.api.sequentiality(session.id, { limit: 0 }, signal);
    return order.ok ? ok(orderSentence(order.value)) : order;
  }),
  sentence(async (session, signal) => {
    const { api } = session.context;
    const hasExperts = (infoOf(session)?.n_experts ?? 0) > 0;
    const [pairs, experts] = await Promise.all([
      api.determinism(session.id, signal),
      hasExperts ? api.experts(session.id, { phase: 'generate' }, signal) : null,
    ]);
    if (!pairs.ok) return pairs;
    if (experts && !experts.ok) return experts;
    const shared = experts ? sharedExperts(experts.value.routers) : null;
    return ok(repeatSentence(pairs.value, hasExperts, shared));
  }),
  sentence(async (session, signal) => {
    const all = await session.context.api.breakdown(session.id, { by: 'all', limit: 0 }, signal);
    return all.ok ? ok(waitSentence(all.value, infoOf(session))) : all;
  }),
  sentence(async (session, signal) => {
    const { api } = session.context;
    const template = session.data.latestTemplate();
    const [reuse, tensors] = await Promise.all([
      api.reuse(session.id, signal),
      api.tensors(session.id, template, signal),
    ]);
    if (!reuse.ok) return reuse;
    if (!tensors.ok) return tensors;
    const memory = modelMemory(tensors.value, infoOf(session)?.facts);
    return ok(memorySentence(reuse.value, memory));
  }),
];

export function Summary({ store, session }: { store: Store; session: OpenSession }) {
  // An answer that is shown opens it: one of its sentences is that answer.
  const isOpen = usePart(() => {
    const { selection, other } = store.navigation.view.value;
    return (selection === null && other === null) || answeredTopic(store, session) !== null;
  });
  const hasAccesses = usePart(() => {
    void session.feed.version.value;
    return session.data.stepTotals.accesses > 0;
  });
  const isPart = usePart(() => isPartShown(store));
  const isRunning = session.active.value;
  if (!hasAccesses) return null;
  return (
    <details class="summary" open={isOpen}>
      <summary>Summary{isPart && <span class="dim"> of the whole session</span>}</summary>
      {isRunning ? (
        <p class="dim">
          When this run ends, this says what it read, what limited its speed and how much memory it
          needs.
        </p>
      ) : (
        <>
          <p aria-label="Machine">
            <Line
              store={store}
              session={session}
              resource={machineOf(session)}
              text={(machine) => machineSentence(machine, infoOf(session)?.facts)}
            />
          </p>
          <CleanOnly store={store} session={session} />
          <ol aria-label="Summary">
            {SENTENCES.map((of, i) => (
              <li key={i}>
                <Line store={store} session={session} resource={of(session)} text={asIs} />
              </li>
            ))}
          </ol>
          <Verdict session={session} />
        </>
      )}
    </details>
  );
}

const validationOf = perSession(
  (session) =>
    new Resource<Validation>({
      key: () => finishedSteps(session),
      load: (signal) => session.context.api.validation(session.id, signal),
      reconnects: session.context.reconnects,
    }),
);

// Whether the recording is valid and complete, in the words of the server.
function Verdict({ session }: { session: OpenSession }) {
  const { value } = useResource(validationOf(session));
  if (!value) return null;
  const isComplete = value.verdict === 'valid';
  return (
    <p
      aria-label="Verdict"
      class={isComplete ? 'dim' : 'warn'}
      title="validation: tt parse --validate lists the checks"
    >
      The recording is {value.verdict}.
    </p>
  );
}

// The switch that leaves the disturbed steps out of every view.
function CleanOnly({ store, session }: { store: Store; session: OpenSession }) {
  const isOn = usePart(() =>
    parseFilter(store.navigation.view.value.filter).some(({ text }) => text === CLEAN_STEPS),
  );
  const { value } = useResource(machineOf(session));
  if (!value) return null;
  const { clean, contended, throttled, disk, unknown } = value.steps;
  const disturbed = contended + throttled + disk;
  if (disturbed === 0 && !isOn) return null;
  return (
    <Check
      text={`Only clean steps: leaves out ${formatCount(disturbed)} of ${formatCount(disturbed + clean + unknown)}`}
      hint={`Adds ${CLEAN_STEPS} to the filter`}
      on={isOn}
      set={() => {
        const { navigation } = store;
        navigation.setFilter(toggleWord(navigation.view.peek().filter, CLEAN_STEPS), 'push');
      }}
    />
  );
}

const asIs = (one: Sentence): Sentence => one;

function Line<T>(props: {
  store: Store;
  session: OpenSession;
  resource: Resource<T>;
  text: (value: T) => Sentence;
}) {
  const { store, session, resource } = props;
  const { value, error } = useResource(resource);
  const topic = usePart(() => answeredTopic(store, session));
  const button = useRef<HTMLButtonElement>(null);
  const shown = value && props.text(value);
  const isCurrent = shown !== null && shown.evidence.topic === topic;
  useEffect(() => {
    if (isCurrent) button.current?.scrollIntoView({ block: 'nearest' });
  }, [isCurrent]);
  if (shown) {
    const { text, hint, evidence } = shown;
    return (
      <button
        ref={button}
        type="button"
        class="sentence"
        aria-current={isCurrent ? 'true' : undefined}
        title={`${hint}. Click for the evidence.`}
        onClick={() => {
          void showAnswer(store, evidence);
        }}
      >
        {text}
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
