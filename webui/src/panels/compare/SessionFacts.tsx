// What the recordings say about two sessions: which they are, the causes of differences in the words of
// the server, the times of a step, tokens and graphs that only one of them has.
import { plural } from '../../format';
import type { SessionComparison as Found } from '../../net/types';
import { finishedSteps } from '../../state/view/answer';
import type { OpenSession } from '../../state/session/open_session';
import { Resource } from '../../state/resource';
import type { Store } from '../../state/store';
import { aroundDifference } from './pair';
import { comparedNumbers } from '../inspector/compare';
import { SidesHead, TotalRow, type Sides } from '../inspector/DifferenceTable';

export const SIDES: Sides = {
  names: ['this session', 'other session'],
  difference: 'other − this (+: other has more)',
};

// What is compared and what differs, above the figures.
// Of a run that was altered, what that did to the answer is first: its times say little.
export function SessionHead({ found }: { found: Found }) {
  const isAltered = hasAltered(found);
  const change = <p class={isAltered ? undefined : 'compare-change'}>{found.change.text}</p>;
  const effect = (
    <>
      <Chosen found={found} />
      <Unmatched found={found} />
    </>
  );
  return (
    <section class="compare-facts" aria-label="Compared sessions">
      {isAltered ? <p class="compare-change">{found.tokens.text}</p> : change}
      {isAltered && effect}
      <Titles found={found} />
      {found.causes.length > 0 && (
        <ul class="compare-causes" aria-label="What differs">
          {found.causes.map((cause) => (
            <li key={cause.kind}>
              {cause.kind === 'altered' ? <Changes {...cause} /> : cause.text}
            </li>
          ))}
        </ul>
      )}
      {isAltered ? change : effect}
    </section>
  );
}

const hasAltered = ({ causes }: Found): boolean => causes.some(({ kind }) => kind === 'altered');

const MAX_CHANGES = 6; // the table of causes has all

// What was changed at breakpoints in each session, one change in a line.
function Changes({ title, facts }: Found['causes'][number]) {
  const sides = [
    facts.flatMap(({ left }) => left ?? []),
    facts.flatMap(({ right }) => right ?? []),
  ];
  return (
    <>
      {sides.map(
        (changes, side) =>
          changes.length > 0 && (
            <div key={side}>
              {title} in {side === 0 ? SIDES.names[0] : `the ${SIDES.names[1]}`}:
              <ul>
                {changes.slice(0, MAX_CHANGES).map((change, i) => (
                  <li key={i}>{change}</li>
                ))}
                {changes.length > MAX_CHANGES && (
                  <li class="dim">and {changes.length - MAX_CHANGES} more</li>
                )}
              </ul>
            </div>
          ),
      )}
    </>
  );
}

export function SessionFacts({ store, found }: { store: Store; found: Found }) {
  return (
    <section class="compare-facts" aria-label="The sessions">
      <Causes store={store} found={found} />
      <StepTimes found={found} />
    </section>
  );
}

// What the change did to the answer, if both sessions captured the logit lens.
function Chosen({ found }: { found: Found }) {
  const { chosen } = found;
  if (chosen) return <p>{chosen.text}</p>;
  if (!hasAltered(found)) return null;
  return (
    <p class="dim">
      The probabilities of the tokens can be compared if both sessions captured the logit lens: set
      it in the settings of the run.
    </p>
  );
}

// The parts that only one of the sessions has.
function Unmatched({ found }: { found: Found }) {
  const { tokens, templates_text: graphs } = found;
  return (
    <p>
      {!hasAltered(found) && `${tokens.text} `}
      {graphs}
    </p>
  );
}

const quoted = ({ title, id }: { readonly title: string; readonly id: string }): string =>
  `“${title || id}”`;

// With their ids if they have the same title.
function Titles({ found }: { found: Found }) {
  const { left, right, tokens, causes } = found;
  const isSame = quoted(left) === quoted(right);
  const settings = causes.find(({ kind }) => kind === 'settings')?.facts ?? [];
  const settingsOf = (side: 'left' | 'right'): string =>
    settings.map((fact) => `, ${fact.label} ${fact[side] ?? 'none'}`).join('');
  return (
    <dl class="facts">
      {([[`${SIDES.names[0]}, the first`, left, tokens.left], [`${SIDES.names[1]}, the second`, right, tokens.right]] as const).map(
        ([name, side, count]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd title={side.id}>
              {quoted(side)}
              {isSame && `, ${side.id}`}, {plural(count, 'token')}
              {side.model !== null && `, ${side.model.slice(side.model.lastIndexOf('/') + 1)}`}
              {settingsOf(side === left ? 'left' : 'right')}
            </dd>
          </div>
        ),
      )}
    </dl>
  );
} // prettier-ignore

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
                // The verdict on the machine is a sentence, which is shown whole.
                const isWhole = name === 'machine';
                const shown = !isWhole && text !== null && mine !== null && other !== null ? aroundDifference(text, mine, other) : text; // prettier-ignore
                return (
                  <td key={side} title={text ?? ''} class={isWhole ? 'whole' : undefined}>
                    {shown === null || shown === '' ? '–' : shown}
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

// The reason is below the table.
const NOT_MEASURED = 'not measured';

// Quantiles of one step say nothing more than its time.
const isSingle = ({ p5, p95 }: { readonly p5: number; readonly p95: number }): boolean =>
  p5 === p95;

function StepTimes({ found }: { found: Found }) {
  const rows = Object.entries(found.step_ns).flatMap(([phase, { left, right, comparable }]) => {
    if (!left && !right) return [];
    const isShort = [left, right].some((side) => side !== null && isSingle(side));
    const keys = isShort ? QUANTILES.slice(0, 1) : QUANTILES;
    return keys.map((key) => {
      const text = comparedNumbers(left?.[key] ?? 0, right?.[key] ?? 0, 'time');
      return {
        name: `${phase}, ${key}`,
        text: {
          left: left ? text.left : NOT_MEASURED,
          right: right ? text.right : NOT_MEASURED,
          difference: left && right ? `${text.difference}${comparable ? '' : ' *'}` : NOT_MEASURED,
        },
      };
    });
  });
  const counted = Object.values(found.step_ns).flatMap(({ left_text, right_text }) => [
    ...(left_text === null ? [] : [`${SIDES.names[0]}: ${left_text}`]),
    ...(right_text === null ? [] : [`${SIDES.names[1]}: ${right_text}`]),
  ]);
  if (rows.length === 0) return null;
  return (
    <>
      <table class="differences" aria-label="Times of a step">
        <SidesHead of="step time" sides={SIDES} />
        <tbody>
          {rows.map(({ name, text }) => (
            <TotalRow
              key={name}
              name={name}
              hint="From the start to the end of a step: op times and the waiting between ops"
              text={text}
            />
          ))}
        </tbody>
      </table>
      {rows.some(({ text }) => text.difference.endsWith('*')) && (
        <p class="dim">* Not comparable: too few undisturbed steps.</p>
      )}
      {counted.map((text) => (
        <p key={text} class="dim">
          {text}
        </p>
      ))}
    </>
  );
}

const QUANTILES = ['median', 'p5', 'p95'] as const;

export function comparisonOf(session: OpenSession, other: string): Resource<Found> {
  const { api, reconnects } = session.context;
  return new Resource<Found>({
    key: () => finishedSteps(session),
    load: (signal) => api.comparison(session.id, other, signal),
    reconnects,
  });
}
