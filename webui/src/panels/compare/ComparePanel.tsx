// Two sessions, phases, steps, tokens or layers beside each other, on the same axes and scale: per token
// or per step, because sums of different lengths cannot be compared.
import { computed, useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import '../../charts/charts.css';
import '../analytics/analytics.css';
import './compare.css';
import type { Pointed } from '../../charts/ChartView';
import type { ChartTable } from '../../charts/table';
import { componentName, layerName, plural, tokenText } from '../../format';
import { reportOf, type Api, type ApiResult } from '../../net/api';
import type { Picture } from '../../net/frames';
import type { SessionComparison } from '../../net/types';
import { ok } from '../../result';
import { findingsOf } from '../../state/session/findings';
import { finishedSteps } from '../../state/view/answer';
import type { OpenSession } from '../../state/session/open_session';
import { filteredSums } from '../../state/view/range_query';
import type { SumQuery } from '../../state/view/sum_query';
import { Resource } from '../../state/resource';
import type { Store } from '../../state/store';
import { IconButton } from '../../ui/Button';
import { usePart, useResource } from '../../ui/hooks';
import { Menu } from '../../ui/Menu';
import { Segmented } from '../../ui/Segmented';
import { Empty, Failed, FailedLoad, Loading } from '../../ui/States';
import { Unused } from '../../ui/Unused';
import { scopeOf, unused, type ChartSpec } from '../analytics/spec';
import {
  comparedNumbers,
  rowsThatMatter,
  VALUE_OPTIONS,
  type ComparedValue,
} from '../inspector/compare';
import { DifferenceBar, ShowAll } from '../inspector/DifferenceTable';
import type { SessionProps } from '../panel';
import { Cards } from './Cards';
import {
  decodeCompare,
  encodeCompare,
  isOfSessions,
  KINDS,
  KIND_NAMES,
  PHASES,
  ROWS,
  TOLERANCES,
  UNITS,
  type CompareOptions,
  type Rows,
} from './options';
import { acrossOf, MAP_PIXELS, mapsOf, type Maps, type MapSide } from './maps';
import {
  countedText,
  countsAll,
  differenceOf,
  differenceTable,
  divisor,
  drawnRows,
  hasMedians,
  isDisturbed,
  isSame,
  isTimed,
  pairRows,
  perOf,
  sidesOf,
  sidesTable,
  UNIT_OF,
  withoutLayer,
  type PairRow,
  type Side,
  type TimedSteps,
} from './pair';
import { PairGraphs } from './PairGraphs';
import { SessionChoice } from './SessionChoice';
import { comparisonOf, SessionFacts, SessionHead, SIDES } from './SessionFacts';
import { ValuesView } from './ValuesView';

const ROW_NAMES: Readonly<Record<Rows, string>> = {
  op_kind: 'op types',
  layer: 'layers',
  component: 'components',
  tensor: 'tensors',
};
const MAX_ROWS = 10_000;

export function ComparePanel({ store, session, panel }: SessionProps) {
  const options = decodeCompare(usePart(() => store.navigation.view.value.options[panel] ?? ''));
  const other = usePart(() => store.navigation.view.value.other);
  const set = (change: Partial<CompareOptions>): void => {
    store.navigation.setOptions(panel, encodeCompare({ ...options, ...change }), 'push');
  };
  const missing = usePart(() => {
    const { range, filter } = store.navigation.view.value;
    const layers = store.layers.value;
    const scope = scopeOf({ phase: 'all', range, filter, layer: 0 }, layers, null);
    const lost = [...filteredSums(scope.view, layers).missing];
    return [...lost, ...unused('phase', { ...scope, view: { ...scope.view, filter: '' } })]
      .filter((word, n, all) => all.indexOf(word) === n)
      .join('\n');
  });
  const { of } = options;
  return (
    <>
      <div class="toolbar compare-tools">
        <Segmented
          label="Compare"
          value={of}
          options={KINDS.map((one) => ({ value: one, text: KIND_NAMES[one] }))}
          choose={(one) => {
            set({ of: one });
          }}
        />
        {isOfSessions(of) ? (
          <SessionChoice store={store} session={session} label="with" />
        ) : (
          of !== 'phases' && (
            <>
              <Indices session={session} other={other} options={options} set={set} />
              <SessionChoice store={store} session={session} label="of" none="this session" />
            </>
          )
        )}
        {of !== 'phases' && other !== null && (
          <IconButton
            icon="close"
            label="End the comparison with the session"
            hint="Esc"
            onClick={() => {
              store.navigation.change({ other: null });
            }}
          />
        )}
        {of === 'values' ? (
          <Tolerance options={options} set={set} />
        ) : (
          <What options={options} set={set} />
        )}
        <span class="toolbar-end" />
        <Unused words={missing === '' || of === 'values' ? [] : missing.split('\n')} />
      </div>
      <div class="analytics">
        {session.active.value ? (
          <Empty>When this run ends, it is compared.</Empty>
        ) : isOfSessions(of) && other === null ? (
          <Empty>Choose another session: both are shown side by side, per token or per step.</Empty>
        ) : of === 'values' && other !== null ? (
          <ValuesView key={other} {...{ store, session, panel, options, other, set }} />
        ) : (
          <Found
            key={of === 'phases' ? session.id : (other ?? session.id)}
            store={store}
            session={session}
            options={options}
            other={of === 'phases' ? session.id : (other ?? session.id)}
            showValues={() => {
              set({ of: 'values' });
            }}
            setValue={(value) => {
              set({ value });
            }}
          />
        )}
      </div>
    </>
  );
}

// What is compared of both sides: one button for all that is chosen less often, so that the bar is one
// row.
function What({ options, set }: { options: CompareOptions; set: (change: Partial<CompareOptions>) => void }) {
  const { of, phase, value, by } = options;
  const hasPhase = of === 'sessions' || of === 'layers';
  const valueText = VALUE_OPTIONS.find((one) => one.value === value)?.text ?? '';
  const label = `${valueText}, ${ROW_NAMES[by]}`;
  const all = [label, `per ${perOf(options)}`, hasPhase ? phase : ''].filter(Boolean).join(', ');
  return (
    <Menu label={label} title={`What is compared of both sides: ${all}`}>
      <div class="compare-what">
        {hasPhase && (
          <Segmented
            label="Phase"
            value={phase}
            options={PHASES.map((one) => ({ value: one, text: one }))}
            choose={(chosen) => {
              set({ phase: chosen });
            }}
          />
        )}
        {of !== 'tokens' && (
          <Segmented
            label="Per"
            value={options.per}
            options={UNITS.map((one) => ({ value: one, text: `per ${one}` }))}
            choose={(per) => {
              set({ per });
            }}
          />
        )}
        <Segmented
          label="Difference of"
          value={value}
          options={VALUE_OPTIONS}
          choose={(chosen) => {
            set({ value: chosen });
          }}
        />
        <Segmented
          label="Rows"
          value={by}
          options={ROWS.map((one) => ({ value: one, text: ROW_NAMES[one] }))}
          choose={(chosen) => {
            set({ by: chosen });
          }}
        />
      </div>
    </Menu>
  );
} // prettier-ignore

function Tolerance({ options, set }: { options: CompareOptions; set: (change: Partial<CompareOptions>) => void }) {
  return (
    <label title="The relative error from which an output counts as different: the norm of the difference, divided by the norm of the output of this session">
      tolerance{' '}
      <select
        value={String(options.tolerance)}
        onChange={(event) => {
          set({ tolerance: Number(event.currentTarget.value) });
        }}
      >
        {TOLERANCES.toSorted((a, b) => a - b).map((one) => (
          <option key={one} value={String(one)}>
            {one}
          </option>
        ))}
      </select>
    </label>
  );
} // prettier-ignore

// The numbers of two steps, tokens or layers. `other`: the session of the second one; null: the same.
function Indices(props: {
  session: OpenSession;
  other: string | null;
  options: CompareOptions;
  set: (change: Partial<CompareOptions>) => void;
}) {
  const { session, other, options, set } = props;
  const word = options.of.slice(0, -1);
  const textOf = (side: 'a' | 'b'): string =>
    options.of === 'tokens' && (side === 'a' || other === null)
      ? tokenText(session.data.tokens[options[side]])
      : '';
  return (
    <span class="compare-choice">
      {(['a', 'b'] as const).map((side) => (
        <label key={side} title={textOf(side)}>
          {side === 'a' ? word : `with ${word}`}{' '}
          <input
            type="number"
            min={0}
            value={options[side]}
            onChange={(event) => {
              const value = Number(event.currentTarget.value);
              if (Number.isSafeInteger(value) && value >= 0) set({ [side]: value });
            }}
          />
        </label>
      ))}
    </span>
  );
}

interface FoundProps {
  readonly store: Store;
  readonly session: OpenSession;
  readonly options: CompareOptions;
  readonly other: string; // the session of the right side
  readonly showValues: () => void;
  readonly setValue: (value: ComparedValue) => void;
}

function Found(props: FoundProps) {
  const { store, session, options, other } = props;
  const isSessions = options.of === 'sessions';
  const facts = useMemo(
    () => (isSessions ? comparisonOf(session, other) : null),
    [session, other, isSessions],
  );
  return (
    <div class="analytics-grid compare">
      {facts && (
        <div class="compare-report">
          <IconButton
            icon="download"
            label="Report on both sessions"
            hint="HTML; other formats: Save session as"
            onClick={() => {
              const request = reportOf(session.id, 'html', other);
              void store.saves.save('Report', `${session.id}-compared.html`, request);
            }}
          />
        </div>
      )}
      {facts && <Head resource={facts} />}
      {facts && <ValuesLink session={session} show={props.showValues} />}
      <Pair {...props} facts={facts} />
      {facts && <Facts store={store} resource={facts} />}
    </div>
  );
}

// If the session captured values: they can be compared if the other one captured the same.
function ValuesLink({ session, show }: { session: OpenSession; show: () => void }) {
  const info = session.info.value;
  const facts = info.is === 'ready' ? Object.keys(info.value.facts ?? {}) : [];
  if (!facts.some((name) => name.startsWith('request.capture.'))) return null;
  return (
    <p class="compare-facts">
      <button type="button" class="link" onClick={show}>
        Compare the captured values
      </button>
    </p>
  );
}

function Facts({ store, resource }: { store: Store; resource: Resource<SessionComparison> }) {
  const { value } = useResource(resource);
  return value ? <SessionFacts store={store} found={value} /> : null;
}

function Head({ resource }: { resource: Resource<SessionComparison> }) {
  const { value, error } = useResource(resource);
  if (error) {
    return <FailedLoad what="The comparison cannot be shown." resource={resource} />;
  }
  return value ? <SessionHead found={value} /> : null;
}

// `isOther`: the right side is of another session.
function namesOf({ of, a, b }: CompareOptions, isOther: boolean): readonly [string, string] {
  if (of === 'sessions') return SIDES.names;
  if (of === 'phases') return ['prompt', 'generate'];
  const word = of.slice(0, -1);
  return [`${word} ${a}`, `${word} ${b}${isOther ? ` of the ${SIDES.names[1]}` : ''}`];
}

// The tensors of two layers have the same name on both sides.
const sharedName = ({ of, by, a, b }: CompareOptions, name: string, side: 'left' | 'right') =>
  of === 'layers' && by === 'tensor' ? withoutLayer(name, side === 'left' ? a : b) : name;

function Pair(
  props: Omit<FoundProps, 'showValues'> & { facts: Resource<SessionComparison> | null },
) {
  const { store, session, options, other, facts } = props;
  const key = encodeCompare(options);
  const resource = useMemo(() => sidesResource(store, session, other, options), [store, session, other, key]); // prettier-ignore
  const { value: found, error, loading } = useResource(resource);
  const isIncomparable = usePart(() => facts?.state.value.value?.step_ns[options.phase]?.comparable === false); // prettier-ignore
  const pair = useMemo(() => {
    if (!found) return null;
    return pairRows(found[0], found[1], options, (name, side) => sharedName(options, name, side));
  }, [found, key]);
  // Of the sessions, the facts say what went wrong.
  if (error)
    return options.of === 'sessions' ? null : (
      <Failed what="The comparison cannot be shown." error={error} />
    );
  if (!found || !pair) return <Loading>Comparing…</Loading>;
  const { rows, total } = pair;
  if (rows.length === 0)
    return <Empty>Neither side has a step or an op that is compared here.</Empty>;
  const names = namesOf(options, other !== session.id);
  if (isSame(rows, total)) {
    return (
      <Empty>
        No difference: {names[0]} and {names[1]} have the same {plural(rows.length, 'row')} with the
        same values.
      </Empty>
    );
  }
  const few = isTimed(options) && (isIncomparable || found.some(isDisturbed));
  return (
    <>
      {options.of === 'phases' && <PhasesSentence session={session} />}
      <Shown
        {...{ store, session, other, options, names, rows, total, found, loading, few }}
        setValue={props.setValue}
      />
    </>
  );
}

interface ShownProps {
  readonly store: Store;
  readonly session: OpenSession;
  readonly other: string;
  readonly options: CompareOptions;
  readonly names: readonly [string, string];
  readonly rows: readonly PairRow[];
  readonly total: PairRow;
  readonly found: readonly [Side, Side];
  readonly loading: boolean;
  readonly few: boolean; // too few undisturbed steps to compare times: what is shown is marked
  readonly setValue: (value: ComparedValue) => void;
}

// What the server says of the phases.
function PhasesSentence({ session }: { session: OpenSession }) {
  const { value } = useResource(findingsOf(session));
  const text = value?.findings.find(({ kind }) => kind === 'prompt_and_generation')?.text;
  return text === undefined ? null : (
    <div class="compare-facts">
      <p class="compare-change">{text}</p>
    </div>
  );
}

const NOT_MEASURED = 'not measured'; // the reason is above the table
const TOO_FEW = 'Too few undisturbed steps to compare times: what has a * is not comparable.';

// The sides whose times were not measured, with the reason; null: there are none.
function unmeasuredText({
  options,
  names,
  found,
}: Pick<ShownProps, 'options' | 'names' | 'found'>) {
  if (!isTimed(options)) return null;
  const texts = found.flatMap(({ times }, n) => times?.steps === 0 ? [countedText(names[n] ?? '', times)] : []); // prettier-ignore
  return texts.length > 0 ? `${texts.join('; ')}.` : null;
}

function Shown(props: ShownProps) {
  const { store, session, options, names, rows, loading } = props;
  const { by, value } = options;
  const per = perOf(options);
  const unmeasured = unmeasuredText(props);
  const reason = unmeasured ?? (props.few ? TOO_FEW : null); // of no difference
  const asks = useMemo(() => {
    const view = { phase: 'all' as const, range: null, filter: store.navigation.view.peek().filter, layer: 0 }; // prettier-ignore
    return sidesOf(options, filteredSums(view, store.layers.peek()).query);
  }, [rows, encodeCompare(options)]);
  const texts = rows.map((row) => ({ ...row, name: by === 'component' ? componentName(row.name) : row.name })); // prettier-ignore
  const specs = useMemo((): readonly ChartSpec[] => {
    const key: ChartTable['key'] = { name: ROW_NAMES[by].slice(0, -1), of: by };
    const spec = (id: string, title: string, counts: string, table: ChartTable): ChartSpec => ({
      id,
      page: 'overview',
      title,
      counts,
      kinds: ['bar'],
      half: true,
      height: 300,
      honours: 'own',
      empty: reason ?? 'Both sides have the same values.',
      request: () => ({
        text: `breakdown?by=${by}`,
        sql: null,
        load: () => Promise.resolve(ok(table)),
      }),
    });
    const of = `${value === 'time' ? 'Time of the ops' : value === 'bytes' ? 'Bytes read and written' : 'Accesses'} per ${per}`;
    return [
      spec('compare_sides', 'Side by side', `${of}, both sides on one scale${reason === null ? '' : `. ${reason}`}`, sidesTable(texts, key, names, value)), // prettier-ignore
      spec('compare_difference', `Difference${props.few ? ' *' : ''}`, `${of}: what one side has more than the other`, differenceTable(texts, key, names, value)), // prettier-ignore
    ];
  }, [rows, reason, encodeCompare(options)]);
  return (
    <>
      {unmeasured !== null && <Unmeasured text={unmeasured} set={props.setValue} />}
      <Cards store={store} session={session} specs={specs} of={encodeCompare(options)} />
      {haveMaps(props) && <SideMaps {...props} asks={asks} />}
      {props.found.every(({ step }) => step !== null) && <PairGraphs {...props} asks={asks} />}
      <PairTable {...props} rows={texts} per={per} loading={loading} />
    </>
  );
}

// Without times there are still bytes.
function Unmeasured({ text, set }: { text: string; set: (value: ComparedValue) => void }) {
  return (
    <p class="compare-facts">
      <span>
        The times are not compared. {text}{' '}
        <button
          type="button"
          class="link"
          onClick={() => {
            set('bytes');
          }}
        >
          Compare the bytes
        </button>
      </span>
    </p>
  );
}

// A map of sums over all steps would have the times of steps that do not count.
const haveMaps = ({ options, found }: ShownProps): boolean =>
  !isTimed(options) ||
  acrossOf(options) === 'token' ||
  found.every(({ times }) => times !== null && times.steps > 0 && countsAll(times));

// Both sides as maps, and their difference. The rows are those of the charts.
function SideMaps(props: ShownProps & { asks: readonly [SumQuery, SumQuery] }) {
  const { store, session, other, options, names, rows, found, asks } = props;
  const { by, value, phase } = options;
  const specs = useMemo((): readonly ChartSpec[] => {
    let asked: ApiResult<Maps> | null = null;
    const across = acrossOf(options);
    const key: ChartTable['key'] = { name: ROW_NAMES[by].slice(0, -1), of: by };
    const drawn = drawnRows(rows, key).map(({ name }) => ({ name, label: by === 'component' ? componentName(name) : by === 'layer' ? layerName(name) : name })); // prettier-ignore
    const load = async (): ApiResult<Maps> => {
      const { api } = session.context;
      const picture = (id: string, query: SumQuery) =>
        api.heatmap(id, { ...query, x: across, y: by, value, ...MAP_PIXELS });
      const [left, right] = await Promise.all([picture(session.id, asks[0]), picture(other, asks[1])]); // prettier-ignore
      if (!left.ok) return left;
      if (!right.ok) return right;
      const side = (picture: Picture, which: 'left' | 'right'): MapSide => ({
        picture,
        by: divisor(found[which === 'left' ? 0 : 1].counts, options),
        named: (name) => sharedName(options, name, which),
      });
      return ok(mapsOf([side(left.value, 'left'), side(right.value, 'right')], across, drawn, key, UNIT_OF[value], names)); // prettier-ignore
    };
    const spec = (part: keyof Maps, title: string, counts: string): ChartSpec => ({
      id: `compare_map_${part}`,
      page: 'overview',
      title,
      counts,
      kinds: ['heat'],
      ...(part === 'difference' ? { wide: true as const } : { half: true as const }),
      height: 300,
      honours: 'own',
      empty: 'No token of this phase is on this side.',
      request: () => ({
        text: `heatmap?x=${across}&y=${by}&value=${value}${across === 'token' ? `&phase=${phase}` : ''}`,
        sql: null,
        load: async () => {
          asked ??= load();
          const maps = await asked;
          if (!maps.ok) asked = null; // to be tried again
          return maps.ok ? ok(maps.value[part]) : maps;
        },
      }),
    });
    const columns =
      across === 'token'
        ? `Tokens of the phase ${phase}, from its first one${isTimed(options) ? '; each as it was measured, disturbed ones, too' : ''}`
        : `By ${across}, per ${perOf(options)}`;
    const both = `${columns}; both maps have the same axes, one scale and one cursor`;
    const sides = [
      spec('left', `Map of ${names[0]}`, both),
      spec('right', `Map of ${names[1]}`, both),
    ];
    return [
      ...sides,
      spec('difference', 'Difference of the maps', `${names[1]} − ${names[0]}, of the ${across}s and rows that both have`),
    ]; // prettier-ignore
  }, [rows, found, encodeCompare(options)]);
  const cursor = useSignal<Pointed | null>(null);
  return <Cards {...{ store, session, specs, cursor }} of={encodeCompare(options)} />;
}

function PairTable(props: ShownProps & { per: string }) {
  const { options, names, rows, total, found, per, few } = props;
  const { value, by } = options;
  const showAll = useSignal(false);
  const matter =
    by === 'layer' ? rows.length : rowsThatMatter(rows.map((row) => differenceOf(row) ?? 0));
  const drawn = showAll.value ? rows : rows.slice(0, Math.max(1, matter));
  const most = rows.reduce((max, row) => Math.max(max, Math.abs(differenceOf(row) ?? 0)), 0);
  const only = (side: 'left' | 'right'): number => rows.filter((row) => row.isUnmeasured !== true && row[side] !== null && row[side === 'left' ? 'right' : 'left'] === null).length; // prettier-ignore
  const unmatched = ([['left', names[0]], ['right', names[1]]] as const).flatMap(([side, name]) => only(side) > 0 ? [`${plural(only(side), ROW_NAMES[by].slice(0, -1))} only in ${name}`] : []); // prettier-ignore
  // A dash: the side has no such row.
  const unknown = found.map(({ times }) => isTimed(options) && times?.steps === 0);
  const noValue = (side: 0 | 1): string => (unknown[side] === true ? NOT_MEASURED : '–');
  const cells = (row: PairRow) => {
    const text = comparedNumbers(row.left ?? 0, row.right ?? 0, value);
    return {
      left: row.left === null ? noValue(0) : text.left,
      right: row.right === null ? noValue(1) : text.right,
      difference: unknown.includes(true)
        ? NOT_MEASURED
        : row.isUnmeasured === true
          ? '–'
          : `${text.difference}${few ? ' *' : ''}`,
    };
  };
  const all = cells(total);
  const lengths = found.map(({ counts }, n) => `${names[n] ?? ''}: ${plural(counts.steps, 'step')}, ${plural(counts.tokens, 'token')}`); // prettier-ignore
  return (
    <section class="compare-table">
      <p class="dim">
        {isTimed(options)
          ? `Times are of the ops. ${found.map(({ times }, n) => (times ? timesText(names[n] ?? '', times, per) : '')).join('; ')}.${few ? ` ${TOO_FEW}` : ''}`
          : `Each value is a sum${value === 'bytes' ? ' of bytes read and written' : ''} divided by the ${per}s of its side: a longer side does not count more. ${lengths.join('; ')}.`}
        {unmatched.length > 0 && ` ${unmatched.join(', ')}.`}
      </p>
      <table class="differences" aria-label="Differences">
        <thead>
          <tr>
            <th scope="col">{ROW_NAMES[by].slice(0, -1)}</th>
            <th scope="col">{names[0]}</th>
            <th scope="col">{names[1]}</th>
            <th scope="col">
              {names[1]} − {names[0]}
              <small class="dim"> (+: {names[1]} has more)</small>
            </th>
          </tr>
        </thead>
        <tbody>
          <tr class="total">
            <th scope="row">
              {value === 'bytes' ? 'all, read and written' : 'all'}, per {per}
            </th>
            <td>{all.left}</td>
            <td>{all.right}</td>
            <td>{all.difference}</td>
          </tr>
          {drawn.map((row) => {
            const text = cells(row);
            const share = most > 0 ? (differenceOf(row) ?? 0) / most : 0;
            return (
              <tr
                key={row.name}
                data-only={row.isUnmeasured === true ? undefined : row.left === null ? 'right' : row.right === null ? 'left' : undefined} // prettier-ignore
              >
                <th scope="row" class="mono" title={row.name}>
                  {by === 'layer' ? layerName(row.name) : row.name}
                </th>
                <td>{text.left}</td>
                <td>{text.right}</td>
                <td>
                  <DifferenceBar share={share} />
                  {text.difference}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {drawn.length < rows.length && (
        <p class="dim">
          and {plural(rows.length - drawn.length, `more ${ROW_NAMES[by].slice(0, -1)}`)}
          {drawn.some((row) => !['–', NOT_MEASURED].includes(cells(row).difference)) &&
            ' with hardly any difference'}{' '}
          <ShowAll all={showAll} />
        </p>
      )}
    </section>
  );
}

// What the times of a side are: "this session: median of 1 of 79 generate steps (left out: 78 disturbed)".
function timesText(name: string, times: TimedSteps, per: string): string {
  const text = countedText(name, times);
  if (times.steps === 0) return text;
  if (per === 'step') return `${text}, their median`;
  return times.same_tokens
    ? `${text}: time per token, their median divided by the tokens of a step`
    : `${text}: time per token, their sum divided by all their ${plural(times.tokens, 'token')}`;
}

// ---- Data -----------------------------------------------------------------------------

function sidesResource(
  store: Store,
  session: OpenSession,
  other: string,
  options: CompareOptions,
): Resource<readonly [Side, Side]> {
  const { api, reconnects } = session.context;
  const asked = computed(() => {
    const { filter } = store.navigation.view.value;
    const layers = store.layers.value;
    const view = { phase: 'all' as const, range: null, filter, layer: 0 };
    return sidesOf(options, filteredSums(view, layers).query);
  });
  return new Resource<readonly [Side, Side]>({
    key: () => `${finishedSteps(session) ?? ''} ${JSON.stringify(asked.value)}`,
    load: async (signal) => {
      const [a, b] = asked.peek();
      const left = await sideOf(api, session.id, a, options, signal);
      if (!left.ok) return left;
      const right = await sideOf(api, other, b, options, signal);
      return right.ok ? ok([left.value, right.value] as const) : right;
    },
    reconnects,
  });
}

async function sideOf(
  api: Api,
  id: string,
  query: SumQuery,
  options: CompareOptions,
  signal: AbortSignal,
): ApiResult<Side> {
  const asked = { ...query, by: options.by, step_times: hasMedians(options), limit: MAX_ROWS };
  const found = await api.breakdown(id, asked, signal);
  if (!found.ok) return found;
  const { rows, sums, times, summed_steps: of } = found.value;
  const counts = { steps: of.all_steps, tokens: of.tokens };
  return ok({ rows, sums, times, counts, step: of.last_step });
}
