// The figures that say why the selection matters, each with its course over the session.
import { useMemo } from 'preact/hooks';
import { exactBytes, exactNs, formatBytes, formatCount, formatNs } from '../../format';
import type { OpenSession } from '../../state/open_session';
import type { Store } from '../../state/store';
import { usePart, useResource } from '../../ui/hooks';
import type { Figure } from './inspection';
import { againstMedian, coursesOf, grouped, median, type Place, type PlaceValue } from './place';

const W = 120;
const H = 20;

interface Props {
  readonly store: Store;
  readonly session: OpenSession;
}

export function Figures(
  props: Props & { figures: readonly Figure[]; place: Place | null; now: Now | null },
) {
  const { figures, place, now } = props;
  return (
    <div class="figures">
      {figures.map((figure) => (
        <Line key={figure.name} {...props} figure={figure} />
      ))}
      {place && (
        <PlaceFigures key={`${place.axis} ${place.name}`} {...props} place={place} now={now} />
      )}
    </div>
  );
}

// The values of the selection in the selected step.
export type Now = Readonly<Partial<Record<PlaceValue, number>>>;

const NAMES: Readonly<Record<PlaceValue, string>> = {
  time: 'time',
  bytes: 'bytes',
  accesses: 'accesses',
  faults: 'disk waits',
};
const format = (value: PlaceValue, n: number): string =>
  value === 'time' ? formatNs(n) : value === 'bytes' ? formatBytes(Math.round(n)) : formatCount(n);
const exact = (value: PlaceValue, n: number): string =>
  value === 'time' ? exactNs(n) : value === 'bytes' ? exactBytes(n) : formatCount(n);

function PlaceFigures({ store, session, place, now }: Props & { place: Place; now: Now | null }) {
  const resource = useMemo(
    () => coursesOf(session, place),
    [session, place.axis, place.name, place.index],
  );
  const { value, error } = useResource(resource);
  if (error) return <p class="dim">Its values over the session cannot be read.</p>;
  if (!value) return null;
  return (
    <>
      {value
        .filter((course) => course.value !== 'faults' || course.sum > 0)
        .map((course) => {
          const here = now?.[course.value];
          const usual = median(course.perStep);
          const against = here === undefined ? '' : againstMedian(here, usual);
          return (
            <Line
              key={course.value}
              store={store}
              session={session}
              figure={{
                name: NAMES[course.value],
                value: format(course.value, course.sum),
                exact: exact(course.value, course.sum),
                share: course.share,
                note:
                  here === undefined
                    ? ''
                    : `this step ${format(course.value, here)}${against === '' ? '' : `, ${against}`}`,
                series: course.perStep,
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
function Spark(props: Props & { name: string; series: readonly number[] }) {
  const { store, session, name, series } = props;
  const at = usePart(() => {
    void session.feed.version.value;
    const step = session.step.value;
    const count = session.data.steps.length;
    return step === null || count === 0 ? null : (step + 0.5) / count;
  });
  const shown = grouped(series);
  const most = shown.reduce((max, value) => Math.max(max, value), 0) || 1;
  const points = shown.map((value, i) => {
    const x = ((i + 0.5) / shown.length) * W;
    return `${x.toFixed(1)},${(H - 1 - (value / most) * (H - 3)).toFixed(1)}`;
  });
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
        <polygon points={`0,${H} ${points.join(' ')} ${W},${H}`} />
        <polyline points={points.join(' ')} />
        {at !== null && <line x1={at * W} x2={at * W} y1="0" y2={H} />}
      </svg>
    </button>
  );
}
