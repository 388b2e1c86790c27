// The accesses of the selected step or of the session.
import { computed } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { formatBytes, formatCount, plural } from '../../format';
import { arrayRows, PagedRows, type Rows } from '../../grid/rows';
import { nextSort, sortOf, sortText, type Sort } from '../../grid/column';
import type { VGrid } from '../../grid/vgrid';
import { MAX_PAGE_ROWS } from '../../net/api';
import { ok } from '../../result';
import { parseFilter } from '../../state/view/filter';
import type { OpenSession } from '../../state/session/open_session';
import { bothOf, filteredSums } from '../../state/view/range_query';
import { readOrderOf, readOrderText } from '../../state/view/read_order';
import { Resource } from '../../state/resource';
import { executedOp, graphOf, layerOfSelection } from '../../state/session/per_session';
import type { Store } from '../../state/store';
import { withStep } from '../../state/view/view';
import { Grid } from '../../ui/Grid';
import { usePart, useResource } from '../../ui/hooks';
import { Empty, FailedLoad, Loading } from '../../ui/States';
import { Unused } from '../../ui/Unused';
import { DEFAULT_GAP } from '../map/map_options';
import {
  accessPlan,
  accessSql,
  countSql,
  loadAccesses,
  loadSorted,
  opCountSql,
  opRows,
  MAX_SORTED,
  startsOf,
  type AccessPlan,
  type AccessRow,
} from './access_rows';
import { cellsOf, sqlColumns } from './body';
import { accessColumns, accessOf, type TableColumn } from './columns';
import { Note } from './Note';
import { OutsideRange, useOutside } from './OutsideRange';
import { chosenColumns, movedColumn } from './table_options';
import { copySelected, pin, setOptions, type TableProps } from './table_actions';

// An order by a column of the table; null: the order of execution.
function sortFrom(columns: readonly TableColumn<AccessRow>[], order: string): Sort | null {
  const sort = sortOf(order);
  return columns.some(({ key, unsortable }) => key === sort.key && !unsortable) ? sort : null;
}

const NO_ROWS: ReadonlyMap<number, number> = new Map();
const MAX_OPS = MAX_PAGE_ROWS;

interface Content {
  readonly plan: AccessPlan;
  readonly starts: Float64Array;
  readonly sorted: readonly AccessRow[] | null; // the first rows of a sorted list
  readonly opRows: ReadonlyMap<number, number>; // the first row of each op of one step
}

export function AccessTable(props: TableProps) {
  const { store, session, panel, options, copy } = props;
  const { navigation } = store;
  const order = usePart(() => navigation.view.value.sorts[panel] ?? '');
  const columns = useMemo(() => accessColumns(session.data), [session]);
  const sort = useMemo(() => sortFrom(columns, order), [columns, order]);
  const shown = useMemo(
    () => chosenColumns(columns, options.columns),
    [columns, options.columns?.join()],
  );
  const names = sqlColumns(shown);
  const resource = useMemo(
    () => contentOf(store, session, options, names, sort),
    [store, session, options.all, options.chosen, names.join(), sort],
  );
  const content = useResource(resource);
  const { value } = content;
  const paged = useMemo(() => {
    if (!value || value.sorted) return null;
    const { plan, starts } = value;
    const { api } = session.context;
    return new PagedRows<AccessRow>(starts.at(-1) ?? 0, (from, limit, signal) =>
      loadAccesses(api, session.id, plan, starts, names, { from, limit, signal }),
    );
  }, [value, session]);
  useEffect(() => () => paged?.destroy(), [paged]);
  const rows: Rows<AccessRow> | null = useMemo(
    () => paged ?? (value?.sorted ? arrayRows(value.sorted) : null),
    [paged, value],
  );
  if (content.error) {
    return <FailedLoad what="The accesses cannot be read." resource={resource} />;
  }
  if (!value || !rows) return <Loading>{sort ? 'Sorting' : 'Counting'} the accesses…</Loading>;
  return <Shown key={panel} {...props} {...{ value, rows, paged, shown, sort, copy }} />;
}

function Shown(
  props: TableProps & {
    value: Content;
    rows: Rows<AccessRow>;
    paged: PagedRows<AccessRow> | null;
    shown: readonly TableColumn<AccessRow>[];
    sort: Sort | null;
  },
) {
  const { store, session, panel, options, copy, value, rows, paged, shown, sort } = props;
  const { navigation } = store;
  const grid = useRef<VGrid<AccessRow>>(null);
  const active = useRef<number | null>(null);
  const version = paged?.version.value ?? 0;
  const error = paged?.error.value ?? null;
  // The row that was chosen here, else the first one of the selected op: playback moves it.
  const selection = usePart(() => navigation.view.value.selection);
  const opRow = value.opRows.get(executedOp(session, selection) ?? -1) ?? null;
  if (selection?.kind !== 'access') active.current = opRow;
  useEffect(() => {
    if (opRow !== null && selection?.kind !== 'access') grid.current?.reveal(opRow);
  }, [opRow, rows]);
  const { plan } = value;
  const total = value.starts.at(-1) ?? 0;
  const keys = shown.map(({ key }) => key);
  const filter = usePart(() => navigation.view.value.filter);
  const ofSession = (): void => {
    setOptions(store, panel, { ...options, all: true });
  };
  const step = session.step.value ?? 0;
  const isOutside = useOutside(store, session, step) && !options.all;
  const chosen = usePart(() =>
    options.chosen && !options.all ? (chosenOf(store, session)?.name ?? null) : null,
  );
  copy.current = {
    count: rows.count,
    selected: () => grid.current?.selected() ?? null,
    read: async (from, limit) => {
      const some = paged
        ? await paged.range(from, limit, new AbortController().signal)
        : ok((value.sorted ?? []).slice(from, from + limit));
      return some.ok ? ok(cellsOf(shown, some.value)) : some;
    },
    sql: plan.steps.length === 0 ? null : accessSql(plan, sqlColumns(shown), sort),
  };
  return (
    <>
      <Note>
        <b>{options.all ? 'whole session' : `only step ${step}`}</b>
        {!options.all && (
          <button
            type="button"
            class="link"
            title="List the accesses of all steps"
            onClick={ofSession}
          >
            Whole session
          </button>
        )}
        {chosen !== null && (
          <>
            <b>only {chosen}</b>
            <button
              type="button"
              class="link"
              title="List all accesses of the step"
              onClick={() => {
                setOptions(store, panel, { ...options, chosen: false });
              }}
            >
              All of the step
            </button>
          </>
        )}
        <span>{plural(total, 'access', 'accesses')}</span>
        {options.all && <span>{plural(plan.steps.length, 'step')}</span>}
        <ReadOrderOf key={String(options.all)} {...props} />
        {value.sorted && total > MAX_SORTED && (
          <span class="warn" title="Filter, or choose one step, to sort all of them.">
            first {formatCount(MAX_SORTED)} in this order
          </span>
        )}
        <Unused words={plan.missing} />
        {error && (
          <button type="button" class="link bad" onClick={() => paged?.retry()}>
            Rows could not be read. Try again
          </button>
        )}
      </Note>
      <div class="table">
        {isOutside && <OutsideRange store={store} session={session} step={step} />}
        {rows.count === 0 && chosen !== null && !isOutside && (
          <Empty>
            {chosen} makes no access in step {step} that the filter and the range select. A view has
            no accesses of its own, and the nodes of a fused op have those of its last node.
          </Empty>
        )}
        {rows.count === 0 && chosen === null && !isOutside && (
          <Empty>
            {options.all ? 'No access of the session' : `No access of step ${step}`} matches
            {filter === '' ? '' : ` the filter ${filter}`}.{' '}
            {!options.all && (
              <button type="button" class="link" onClick={ofSession}>
                Look in the whole session
              </button>
            )}
          </Empty>
        )}
        <Grid
          grid={grid}
          label={options.all ? 'Accesses of the session' : `Accesses of step ${step}`}
          columns={shown}
          rows={rows}
          version={version}
          sort={sort ?? { key: options.all ? 'step' : 'op', descending: false }}
          active={active.current}
          onSort={(key) => {
            const greatest = shown.filter((one) => one.greatestFirst).map((one) => one.key);
            navigation.setSort(
              panel,
              sortText(nextSort(sort ?? { key: '', descending: false }, key, greatest)),
            );
          }}
          onActivate={(row, by, index) => {
            active.current = index;
            select(store, session, row, by === 'key' ? 'coalesce' : 'push');
          }}
          onMove={(key, before) => {
            props.moveColumn(movedColumn(keys, key, before));
          }}
          onCopy={() => void copySelected(store, copy)}
        />
      </div>
    </>
  );
}

// How sequential the listed reads of the model files are. Nothing if the server cannot select them.
function ReadOrderOf({ store, session, options }: TableProps) {
  const { all } = options;
  const resource = useMemo(() => {
    const query = computed(() => {
      const sums = filteredSums(store.navigation.view.value, store.layers.value);
      if (sums.missing.length > 0) return null;
      const step = session.step.value ?? 0;
      return all ? sums.query : bothOf(sums.query, { from_step: step, to_step: step + 1 });
    });
    return readOrderOf(session, query);
  }, [store, session, all]);
  const share = useResource(resource).value?.share ?? null;
  if (share === null) return null;
  return (
    <span title="Share of the bytes read of the model files that follow the previous read; the rest is random">
      {readOrderText(share)} (gap {formatBytes(DEFAULT_GAP)})
    </span>
  );
}

function select(
  store: Store,
  session: OpenSession,
  row: AccessRow,
  how: 'push' | 'coalesce',
): void {
  const { step, op, access, part } = accessOf(row);
  const selection = { kind: 'access', op, access, part } as const;
  if (session.step.peek() === step) {
    pin(store, session);
    store.select(selection, how);
  } else {
    const view = withStep(store.navigation.view.peek(), step);
    const layer = layerOfSelection(session, selection, step) ?? view.layer;
    store.navigation.go({ ...view, layer, selection }, how);
  }
}

// The selected op or tensor, whose accesses are listed alone; null: none.
function chosenOf(
  store: Store,
  session: OpenSession,
): { readonly name: string; readonly where: readonly string[] } | null {
  const { selection } = store.navigation.view.value;
  const graph = graphOf(session).state.value.value;
  const op = executedOp(session, selection);
  if (op !== null)
    return { name: graph?.outputs.get(op)?.name ?? `op ${op}`, where: [`op = ${op}`] };
  if (selection?.kind === 'node')
    return { name: graph?.nodes[selection.node]?.name ?? 'the node', where: ['0'] }; // it runs no op
  if (selection?.kind !== 'tensor') return null;
  const name = selection.name.replace(/~\d+$/, '');
  return { name, where: [`tensor_name = '${name.replaceAll("'", "''")}'`] };
}

// The number of accesses of each step and, in another order than that of execution, the first rows.
// Steps are counted again when the session grew.
function contentOf(
  store: Store,
  session: OpenSession,
  { all, chosen }: TableProps['options'],
  names: readonly string[],
  sort: Sort | null,
): Resource<Content> {
  const { api, reconnects } = session.context;
  const plan = computed(() => {
    void session.feed.version.value;
    const { phase, range, filter } = store.navigation.view.value;
    const step = all ? null : session.step.value;
    return accessPlan(
      session.data,
      { phase, range },
      parseFilter(filter),
      all ? null : (step ?? 0),
      chosen && !all ? (chosenOf(store, session)?.where ?? []) : [],
    );
  });
  const key = computed(() => {
    const { steps, counts, where } = plan.value;
    const sum = counts?.reduce((total, count) => total + count, 0) ?? '';
    return [steps.length, steps[0], steps.at(-1), sum, ...where].join('|');
  });
  return new Resource<Content>({
    key: () => key.value,
    load: async (signal) => {
      const now = plan.peek();
      if (now.steps.length === 0)
        return ok({ plan: now, starts: startsOf([]), sorted: sort ? [] : null, opRows: NO_ROWS });
      const counts = now.counts ?? (await countsOf(now, signal));
      if (!('length' in counts)) return counts;
      const starts = startsOf(counts);
      if (!sort) {
        const ofOps = all ? null : await api.query(session.id, opCountSql(now), MAX_OPS, signal);
        if (ofOps && !ofOps.ok) return ofOps;
        return ok({
          plan: now,
          starts,
          sorted: null,
          opRows: ofOps ? opRows(ofOps.value.rows) : NO_ROWS,
        });
      }
      const sorted = await loadSorted(api, session.id, now, names, sort, signal);
      return sorted.ok ? ok({ plan: now, starts, sorted: sorted.value, opRows: NO_ROWS }) : sorted;
    },
    reconnects,
  });

  async function countsOf(now: AccessPlan, signal: AbortSignal) {
    const limit = now.steps.length;
    const rows = await api.query(session.id, countSql(now), limit, signal);
    if (!rows.ok) return rows;
    const byStep = new Map(rows.value.rows.map(([step, n]) => [Number(step), Number(n)]));
    return now.steps.map((step) => byStep.get(step) ?? 0);
  }
}
