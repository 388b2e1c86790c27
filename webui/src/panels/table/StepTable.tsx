// The steps of the session.
import { useMemo, useRef } from 'preact/hooks';
import { formatNs, plural } from '../../format';
import { SortedRows } from '../../grid/sorted_rows';
import { nextSort, sortOf, sortText, type Sort } from '../../grid/column';
import type { VGrid } from '../../grid/vgrid';
import type { StepSummary } from '../../net/types';
import {
  isStepTerm,
  parseFilter,
  sqlFilter,
  stepMatches,
  type Term,
} from '../../state/view/filter';
import type { HistoryMode } from '../../state/view/navigation';
import { isInRange, unusedOfSteps } from '../../state/view/step_range';
import { isInPhase, type OpenSession } from '../../state/session/open_session';
import type { Store } from '../../state/store';
import type { TraceData } from '../../state/session/trace_data';
import type { PhaseFilter, RangeFilter } from '../../state/view/view';
import { Grid } from '../../ui/Grid';
import { usePart } from '../../ui/hooks';
import { Empty } from '../../ui/States';
import { Unused } from '../../ui/Unused';
import { copyFromRows, sqlColumns } from './body';
import { stepColumns, type TableColumn } from './columns';
import { Note } from './Note';
import { chosenColumns, movedColumn } from './table_options';
import { copySelected, setOptions, type TableProps } from './table_actions';

export function StepTable(props: TableProps) {
  const { store, session, panel, options, copy } = props;
  const { navigation } = store;
  const version = session.feed.version.value;
  const selected = session.step.value;
  const phase = usePart(() => navigation.view.value.phase);
  const filter = usePart(() => navigation.view.value.filter);
  const range = usePart(() => navigation.view.value.range);
  const order = usePart(() => navigation.view.value.sorts[panel] ?? 'step');
  const grid = useRef<VGrid<StepSummary>>(null);
  const sort = useMemo(() => sortOf(order), [order]);
  const terms = useMemo(() => parseFilter(filter), [filter]);
  const columns = useMemo(() => stepColumns(session.data), [session]);
  const shown = useMemo(
    () => chosenColumns(columns, options.columns),
    [columns, options.columns?.join()],
  );
  const steps = useMemo(
    () => new SortedSteps({ phase, range, terms: terms.filter(isStepTerm) }, columns, sort),
    [session, phase, range, terms, columns, sort],
  );
  steps.update(session.data);
  const { rows } = steps;
  const active = steps.indexOf(session.data, selected);
  const unused = terms.filter((term) => !isStepTerm(term));
  const { where } = sqlFilter('step', terms);
  const conditions = [
    ...(phase === 'all' ? [] : [`phase = '${phase}'`]),
    ...where,
    ...stepSql(range),
  ];
  copy.current = copyFromRows(
    shown,
    rows,
    grid,
    `SELECT ${sqlColumns(shown).join(', ')} FROM step${conditions.length > 0 ? ` WHERE ${conditions.join(' AND ')}` : ''} ORDER BY ${sort.key}${sort.descending ? ' DESC' : ''}`,
  );
  return (
    <>
      <Note>
        <b>{plural(rows.length, 'step')}</b>
        <span>{formatNs(steps.durationNs)}</span>
        <Unused words={[...unused.map(({ text }) => text), ...unusedOfSteps(range)]} />
        {unused.length > 0 && (
          <button
            type="button"
            class="link"
            title="Totals of every token over the accesses that the whole filter selects"
            onClick={() => {
              setOptions(store, panel, { ...options, by: 'token' });
            }}
          >
            Apply it: totals by token
          </button>
        )}
      </Note>
      <div class="table">
        {rows.length === 0 && <Empty>No step matches the filter and the selected range.</Empty>}
        <Grid
          grid={grid}
          label="Steps of the session"
          columns={shown}
          rows={rows}
          version={version}
          sort={sort}
          active={active}
          onSort={(key) => {
            const greatest = columns.filter((one) => one.greatestFirst).map((one) => one.key);
            navigation.setSort(panel, sortText(nextSort(sort, key, greatest)));
          }}
          onActivate={(step, by) => {
            showStep(store, session, step, by === 'key' ? 'coalesce' : 'push');
          }}
          onMove={(key, before) => {
            props.moveColumn(
              movedColumn(
                shown.map((one) => one.key),
                key,
                before,
              ),
            );
          }}
          onCopy={() => void copySelected(store, copy)}
        />
      </div>
    </>
  );
}

// Selects the step, and its token if no op or tensor is selected, which stays the same in all steps.
function showStep(
  store: Store,
  session: OpenSession,
  { step, token_id: token }: StepSummary,
  how: HistoryMode,
): void {
  const { selection } = store.navigation.view.peek();
  const isOfStep = session.data.stepOfToken(token) === step;
  if (isOfStep && (selection === null || selection.kind === 'token'))
    store.selectToken(session, token, null, how);
  else store.navigation.toStep(step, how);
}

// The range as conditions of the table `step`.
const stepSql = (range: RangeFilter | null): readonly string[] =>
  [range?.x, range?.y].flatMap((part) => {
    if (!part) return [];
    const { axis, from, to } = part;
    if (axis === 'step') return [`step >= ${from} AND step < ${to}`];
    if (axis === 'token') return [`token_id < ${to} AND token_id + token_count > ${from}`];
    return axis === 'time' ? [`begin_ns < ${to} AND end_ns > ${from}`] : [];
  });

interface Wanted {
  readonly phase: PhaseFilter;
  readonly range: RangeFilter | null;
  readonly terms: readonly Term[];
}

// The matching steps in order. New steps are inserted; only replaced steps sort all again.
class SortedSteps {
  private sorted: SortedRows<StepSummary>;
  private read = 0; // number of steps of the session, in the order of their arrival
  private rewrites = 0;
  durationNs = 0; // of all rows
  private readonly wanted: Wanted;
  private readonly compare: (a: StepSummary, b: StepSummary) => number;

  constructor(wanted: Wanted, columns: readonly TableColumn<StepSummary>[], sort: Sort) {
    const value = columns.find(({ key }) => key === sort.key)?.value ?? ((step) => step.step);
    const sign = sort.descending ? -1 : 1;
    this.wanted = wanted;
    this.compare = (a, b) => {
      const [x, y] = [value(a) ?? -1, value(b) ?? -1];
      return x === y ? a.step - b.step : x < y ? -sign : sign;
    };
    this.sorted = new SortedRows(this.compare);
  }

  get rows(): readonly StepSummary[] {
    return this.sorted.rows;
  }

  update(data: TraceData): void {
    if (data.stepRewrites !== this.rewrites) {
      this.read = 0;
      this.durationNs = 0;
      this.sorted = new SortedRows(this.compare);
    }
    this.rewrites = data.stepRewrites;
    const arrived = [...data.arrivedAfter(this.read)].filter((step) => this.matches(step));
    this.sorted.addAll(arrived);
    for (const step of arrived) this.durationNs += step.duration_ns;
    this.read = data.stepArrivals.length;
  }

  indexOf(data: TraceData, selected: number | null): number | null {
    const step = selected === null ? undefined : data.steps[selected];
    return step && this.matches(step) ? this.sorted.indexOf(step) : null;
  }

  private matches(step: StepSummary): boolean {
    const { phase, range, terms } = this.wanted;
    return (
      isInPhase(step, phase) &&
      isInRange(step, range) &&
      terms.every((term) => stepMatches(step, term))
    );
  }
}
