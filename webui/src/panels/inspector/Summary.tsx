// The summary of a session: its findings, as the server words them, each with a link to its
// evidence.
import { useEffect, useRef } from 'preact/hooks';
import { formatCount } from '../../format';
import type { Validation } from '../../net/types';
import type { OpenSession } from '../../state/session/open_session';
import { CLEAN_STEPS, parseFilter, toggleWord } from '../../state/view/filter';
import {
  answeredTopic,
  cleanFilter,
  finishedSteps,
  machineOf,
  showAnswer,
} from '../../state/view/answer';
import { findingsOf } from '../../state/session/findings';
import { perSession } from '../../state/session/per_session';
import { Resource } from '../../state/resource';
import type { Store } from '../../state/store';
import { Check } from '../../ui/Check';
import { Prose } from '../../ui/Prose';
import { usePart, useResource } from '../../ui/hooks';
import { NanWays } from '../debug/NanWays';
import { isPartShown } from './Figures';
import { linesOf, type Line } from './summary';

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
      <Program session={session} />
      {isRunning ? (
        <p class="dim">
          When this run ends, this says what it read, what limited its speed and how much memory it
          needs.
        </p>
      ) : (
        <>
          <Found store={store} session={session} />
          <CleanOnly store={store} session={session} />
          <Verdict session={session} />
        </>
      )}
    </details>
  );
}

// The program that tt attach recorded.
function Program({ session }: { session: OpenSession }) {
  const info = session.info.value;
  const program = info.is === 'ready' ? info.value.program : null;
  return (
    program && (
      <p aria-label="Program" class="dim">
        Recorded program: {program.text}
      </p>
    )
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
  const { disturbed, all, impossible } = cleanFilter(value);
  if (disturbed === 0 && !isOn) return null;
  if (impossible !== null && !isOn)
    return (
      <>
        <Check text="Only clean steps: there are none" hint={impossible} on={false} set={() => undefined} disabled />
        <p class="dim">{impossible}</p>
      </>
    ); // prettier-ignore
  return (
    <Check
      text={`Only clean steps: leaves out ${formatCount(disturbed)} of ${formatCount(all)}`}
      hint={`Adds ${CLEAN_STEPS} to the filter`}
      on={isOn}
      set={() => {
        const { navigation } = store;
        navigation.setFilter(toggleWord(navigation.view.peek().filter, CLEAN_STEPS), 'push');
      }}
    />
  );
}

// The figures that the session comes down to, then a line for each topic, then the warnings.
function Found({ store, session }: { store: Store; session: OpenSession }) {
  const resource = findingsOf(session);
  const { value, error } = useResource(resource);
  if (!value && error)
    return (
      <button
        type="button"
        class="sentence bad"
        onClick={() => {
          resource.reload();
        }}
      >
        The findings cannot be read. Try again
      </button>
    );
  if (!value) return <p class="dim">The whole session is being read…</p>;
  const all = linesOf(value, 'warning');
  // Values that are no numbers make the rest meaningless.
  const invalid = all.filter(({ topic }) => topic === 'values');
  const warnings = all.filter(({ topic }) => topic !== 'values');
  const advice = value.advice[0];
  return (
    <>
      <Warnings {...{ store, session }} label="Invalid values" lines={invalid} />
      {invalid.length > 0 && (
        <p class="summary-ways">
          <NanWays store={store} />
        </p>
      )}
      <dl class="headline" aria-label="Headline">
        {value.headline.map(({ name, value: figure, topic }) => (
          <div key={name} data-topic={topic}>
            <dt>{name}</dt>
            <dd>{figure}</dd>
          </div>
        ))}
      </dl>
      <ol aria-label="Summary">
        {linesOf(value, 'main').map((line) => (
          <li key={line.topic}>
            <Sentence store={store} session={session} line={line} />
          </li>
        ))}
      </ol>
      {advice && (
        <p aria-label="Advice" title={advice.because}>
          <Prose text={advice.text} />
        </p>
      )}
      <Warnings {...{ store, session }} label="Warnings" lines={warnings} />
    </>
  );
}

function Warnings(props: {
  store: Store;
  session: OpenSession;
  label: string;
  lines: readonly Line[];
}) {
  const { store, session, label, lines } = props;
  if (lines.length === 0) return null;
  return (
    <ul class="warnings" aria-label={label}>
      {lines.map((line) => (
        <li key={line.text}>
          <Sentence store={store} session={session} line={line} />
        </li>
      ))}
    </ul>
  );
}

function Sentence({ store, session, line }: { store: Store; session: OpenSession; line: Line }) {
  const topic = usePart(() => answeredTopic(store, session));
  const button = useRef<HTMLButtonElement>(null);
  const { text, hint, evidence } = line;
  const isCurrent = evidence.topic !== null && evidence.topic === topic;
  useEffect(() => {
    if (isCurrent) button.current?.scrollIntoView({ block: 'nearest' });
  }, [isCurrent]);
  // The panel with the evidence needs a server.
  if (!store.has(evidence.panel))
    return (
      <p class="sentence" data-topic={line.topic} title={hint}>
        <Prose text={text} />
      </p>
    );
  return (
    <button
      ref={button}
      type="button"
      class="sentence"
      data-topic={line.topic}
      aria-current={isCurrent ? 'true' : undefined}
      title={`${hint}. A click shows it.`}
      onClick={() => {
        void showAnswer(store, evidence);
      }}
    >
      <Prose text={text} />
    </button>
  );
}
