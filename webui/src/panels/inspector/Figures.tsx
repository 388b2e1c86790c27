// The figures that say why the selection matters, each with its course over the session, and what
// they are the totals of.
import { Fragment } from 'preact';
import { useMemo } from 'preact/hooks';
import { exactBytes, exactNs, formatBytes, formatCount, formatNs } from '../../format';
import type { OpenSession } from '../../state/session/open_session';
import type { Store } from '../../state/store';
import { excludes, parseFilter } from '../../state/view/filter';
import { partNamed } from '../../state/view/selection';
import { scopeText } from '../../state/view/range_query';
import { usePart, useResource } from '../../ui/hooks';
import { Unused } from '../../ui/Unused';
import type { Figure, Now } from './inspection';
import {
  againstMedian,
  coursesOf,
  grouped,
  partsOfLine,
  scopeOf,
  slownessText,
  withGaps,
  type Place,
  type PlaceValue,
} from './place';

const W = 120;
const H = 20;

interface Props {
  readonly store: Store;
  readonly session: OpenSession;
}

export function Figures(
  props: Props & { figures: readonly Figure[]; place: Place | null; now: Now | null },
) {
  const { store, figures, place, now } = props;
  const isPart = usePart(() => isPartShown(store));
  return (
    <div class="figures">
      {figures.map((figure) => (
        <Line
          key={figure.name}
          {...props}
          figure={
            isPart && figure.ofStep
              ? { ...figure, note: [figure.note ?? '', UNFILTERED].filter(Boolean).join(', ') }
              : figure
          }
        />
      ))}
      {place && (
        <PlaceFigures
          key={`${place.axis} ${place.name} ${place.step ?? ''}`}
          {...props}
          place={place}
          now={now}
        />
      )}
    </div>
  );
}

// What phase, range and filter do not apply to.
export const UNFILTERED = 'of the whole step, not filtered';

// Whether the view selects a part of the session.
export function isPartShown(store: Store): boolean {
  const { phase, range, filter } = store.navigation.view.value;
  return phase !== 'all' || range !== null || filter.trim() !== '';
}

// Whether a word of the filter is about experts and selects that of the place.
function isPlaceOf(word: string, { name }: Place): boolean {
  const part = partNamed(name);
  const terms = parseFilter(word).filter(({ key }) => key === 'expert');
  return (
    part?.kind === 'expert' &&
    terms.length > 0 &&
    excludes(terms, 'expert', part.expert).length === 0
  );
}

// What the totals are of, and what of it they cannot honour.
function Scope({ store, session, place }: Props & { place: Place }) {
  const { step } = place;
  const text = usePart(() => scopeText(store.navigation.view.value, store.layers.value));
  const missing = usePart(() =>
    scopeOf(store)
      .value.missing.filter((word) => !isPlaceOf(word, place))
      .join('\n'),
  );
  // While it grows, other panels may have read more of it.
  const isGrowing = session.active.value;
  const whole = step === undefined ? (isGrowing ? 'session so far' : 'whole session') : `step ${step}`; // prettier-ignore
  return (
    <p class="figures-scope">
      <span class="dim">Totals: </span>
      {text === '' ? whole : step === undefined ? text : `${whole} (${text})`}{' '}
      <Unused words={missing === '' ? [] : missing.split('\n')} />
    </p>
  );
}

const NAMES: Readonly<Record<PlaceValue, string>> = {
  time: 'op time',
  bytes: 'bytes',
  bytes_read: 'read',
  bytes_written: 'written',
  accesses: 'accesses',
  faults: 'disk waits',
};
const format = (value: PlaceValue, n: number): string =>
  value === 'time'
    ? formatNs(n)
    : value.startsWith('bytes')
      ? formatBytes(Math.round(n))
      : formatCount(n);
const exact = (value: PlaceValue, n: number): string =>
  value === 'time' ? exactNs(n) : value.startsWith('bytes') ? exactBytes(n) : formatCount(n);

function PlaceFigures({ store, session, place, now }: Props & { place: Place; now: Now | null }) {
  const resource = useMemo(
    () => coursesOf(store, session, place),
    [store, session, place.axis, place.name, place.index, place.step],
  );
  const { value, error } = useResource(resource);
  const view = store.navigation.view.peek(); // of the courses: they are read again with each change
  if (error) return <p class="dim">Its values over the session cannot be read.</p>;
  if (!value) return null;
  const step = place.step ?? session.step.value;
  const ofStep = step === null ? undefined : session.data.steps[step];
  return (
    <>
      <Scope store={store} session={session} place={place} />
      {value.courses === null && <p class="dim">Nothing of it is in this selection.</p>}
      {(value.courses ?? [])
        .filter((course) => course.value !== 'faults' || course.sum > 0)
        .map((course) => {
          const here = place.step === undefined ? now?.[course.value] : course.sum;
          const against = here === undefined ? '' : againstMedian(here, course.usual);
          const because = course.value === 'time' ? slownessText(ofStep) : '';
          const inStep = place.step === undefined ? `this step ${format(course.value, here ?? 0)}` : ''; // prettier-ignore
          return (
            <Line
              key={course.value}
              store={store}
              session={session}
              figure={{
                name: NAMES[course.value],
                value: format(course.value, course.sum),
                exact: exact(course.value, course.sum),
                ...(course.share === null ? {} : { share: course.share }),
                note:
                  here === undefined ? '' : [inStep, against, because].filter(Boolean).join(', '),
                series: withGaps(course.perStep, session.data.steps, view),
              }}
            />
          );
        })}
    </>
  );
}

function Line({ store, session, figure }: Props & { figure: Figure }) {
  const { name, value, share, note = '', series } = figure;
  return (
    <div class="figure" data-figure={name}>
      <span class="figure-name">{name}</span>
      <b title={figure.exact ?? value}>{value}</b>
      {share !== undefined && <span class="figure-share">{percent(share)}</span>}
      {series && series.length > 1 && (
        <Spark store={store} session={session} name={name} series={series} />
      )}
      {note !== '' && <span class="figure-note dim">{note}</span>}
    </div>
  );
}

export const percent = (share: number): string =>
  share > 0 && share < 0.001 ? '< 0.1 %' : `${(100 * share).toFixed(1)} %`;

// The course over the steps of the session; the line marks the selected step.
function Spark(props: Props & { name: string; series: readonly (number | null)[] }) {
  const { store, session, name, series } = props;
  const at = usePart(() => {
    void session.feed.version.value;
    const step = session.step.value;
    const count = session.data.steps.length;
    return step === null || count === 0 ? null : (step + 0.5) / count;
  });
  const shown = grouped(series);
  const most = shown.reduce<number>((max, value) => Math.max(max, value ?? 0), 0) || 1;
  const x = (at: number): string => ((at / shown.length) * W).toFixed(1);
  const point = (at: number, i: number): string =>
    `${x(at)},${(H - 1 - ((shown[i] ?? 0) / most) * (H - 3)).toFixed(1)}`;
  const parts = partsOfLine(shown).map(([from, to]) => ({
    from: x(from),
    to: x(to),
    // A single step is a line of its width.
    points:
      to === from + 1 && shown.length > 1
        ? `${point(from, from)} ${point(to, from)}`
        : Array.from({ length: to - from }, (_, i) => point(from + i + 0.5, from + i)).join(' '),
  }));
  return (
    <button
      type="button"
      class="spark"
      title="Over the steps of the session; a click goes to the step"
      aria-label={`${name} in each step; Enter goes to the highest`}
      onClick={(event) => {
        const box = event.currentTarget.getBoundingClientRect();
        const count = session.data.steps.length;
        // By keyboard: the step with the highest value.
        const highest = (shown.indexOf(most) + 0.5) / shown.length;
        const share = event.detail === 0 ? highest : (event.clientX - box.left) / box.width;
        store.navigation.toStep(Math.min(count - 1, Math.max(0, Math.floor(share * count))));
      }}
    >
      <svg
        viewBox={`0 0 ${W} ${H}`}
        width={W}
        height={H}
        aria-hidden="true"
        preserveAspectRatio="none"
      >
        {parts.map(({ from, to, points }) => (
          <Fragment key={from}>
            <polygon points={`${from},${H} ${points} ${to},${H}`} />
            <polyline points={points} />
          </Fragment>
        ))}
        {at !== null && <line x1={at * W} x2={at * W} y1="0" y2={H} />}
      </svg>
    </button>
  );
}
