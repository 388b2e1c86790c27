// Totals by token over the whole session: which tokens make the accesses that the filter selects.
import { useMemo, useRef } from 'preact/hooks';
import { formatBytes, formatNs, plural } from '../../format';
import { arrayRows } from '../../grid/rows';
import { nextSort, sortOf, sortText } from '../../grid/column';
import type { VGrid } from '../../grid/vgrid';
import { ok } from '../../result';
import { parseFilter } from '../../state/view/filter';
import type { OpenSession } from '../../state/session/open_session';
import { Resource } from '../../state/resource';
import type { Store } from '../../state/store';
import { withKey } from '../../state/view/view';
import { Grid } from '../../ui/Grid';
import { usePart, useResource } from '../../ui/hooks';
import { Empty, FailedLoad, Loading } from '../../ui/States';
import { Unused } from '../../ui/Unused';
import { accessPlan, type AccessPlan } from './access_rows';
import { copyFromRows, sortedRows } from './body';
import { tokenColumns } from './columns';
import { Note } from './Note';
import { encodeTable } from './table_options';
import { copySelected, type TableProps } from './table_actions';
import { selectsExperts, tokenSql, tokenTotals, type TokenTotal } from './token_totals';

interface Content {
  readonly plan: AccessPlan;
  readonly rows: readonly TokenTotal[];
  readonly ofExperts: boolean;
}

// "40 tokens and 1 prompt step of 27 tokens": which tokens of a prompt make the accesses is not known.
// Those that used an expert are known: "43 tokens".
function tokensText(rows: readonly TokenTotal[]): string {
  const together = rows.filter(({ token_count: count, routed }) => count > 1 && routed === null);
  const known = rows.reduce((sum, { routed }) => sum + (routed?.length ?? 0), 0);
  const alone = rows.filter(({ token_count: count, routed }) => count <= 1 && routed === null);
  const single = plural(known + alone.length, 'token');
  if (together.length === 0) return single;
  const tokens = together.reduce((sum, { token_count: count }) => sum + count, 0);
  return `${single} and ${plural(together.length, 'prompt step')} of ${plural(tokens, 'token')}`;
}

export function TokenTable({ store, session, panel, options, copy }: TableProps) {
  const { navigation } = store;
  const order = usePart(() => navigation.view.value.sorts[panel] ?? 'step');
  const sort = useMemo(() => sortOf(order), [order]);
  const resource = useMemo(() => contentOf(store, session), [store, session]);
  const { value, error } = useResource(resource);
  // Of the rows, not of the filter, whose rows arrive later: columns become as wide as their rows.
  const ofExperts = value?.ofExperts ?? false;
  const columns = useMemo(() => tokenColumns(session.data, ofExperts), [session, ofExperts]);
  const rows = useMemo(() => sortedRows(value?.rows ?? [], columns, sort), [value, columns, sort]);
  const grid = useRef<VGrid<TokenTotal>>(null);
  const selected = session.step.value;
  const isChosen = usePart(() => navigation.view.value.step !== null);
  if (error) {
    return <FailedLoad what="The totals cannot be read." resource={resource} />;
  }
  if (!value) return <Loading>Adding up…</Loading>;
  copy.current = copyFromRows(columns, rows, grid, value.plan.steps.length > 0 ? tokenSql(value.plan, ofExperts) : null); // prettier-ignore
  const sum = (of: 'time' | 'bytes_read' | 'bytes_written' | 'accesses'): number =>
    rows.reduce((all, row) => all + row[of], 0);
  const active = rows.findIndex(({ step }) => step === selected);
  return (
    <>
      <Note>
        <b>whole session</b>
        <span>{tokensText(rows)}</span>
        <span>{plural(sum('accesses'), 'access', 'accesses')}</span>
        <span>{formatBytes(sum('bytes_read'))} read</span>
        <span>{formatNs(sum('time'))}</span>
        <Unused words={value.plan.missing} />
        <span
          class="note-hint"
          title="The tokens of a prompt are evaluated together. Enter lists the accesses, too."
        >
          {ofExperts ? 'The tokens of a prompt share' : 'A prompt is'} one row. Double click lists
          the accesses of a row.
        </span>
      </Note>
      <div class="table">
        {rows.length === 0 && <Empty>{emptyText(navigation.view.value.filter)}</Empty>}
        <Grid
          grid={grid}
          label="Totals by token"
          columns={columns}
          rows={arrayRows(rows)}
          version={0}
          sort={sort}
          active={active < 0 ? null : active}
          revealActive={isChosen && !session.active.value}
          onSort={(key) => {
            const greatest = columns.filter((one) => one.greatestFirst).map((one) => one.key);
            navigation.setSort(panel, sortText(nextSort(sort, key, greatest)));
          }}
          onActivate={({ step }, by) => {
            navigation.toStep(step, by === 'key' ? 'coalesce' : 'push');
          }}
          onEnter={({ step }) => {
            const view = navigation.view.peek();
            const text = encodeTable({ ...options, rows: 'accesses', by: null, all: false, chosen: false, columns: null }); // prettier-ignore
            navigation.go(
              {
                ...view,
                step,
                options: withKey(view.options, panel, text),
                sorts: withKey(view.sorts, panel, null),
              },
              'push',
            );
          }}
          onCopy={() => void copySelected(store, copy)}
        />
      </div>
    </>
  );
}

function contentOf(store: Store, session: OpenSession): Resource<Content> {
  const planOf = (): AccessPlan => {
    const { phase, range, filter } = store.navigation.view.peek();
    return accessPlan(session.data, { phase, range }, parseFilter(filter), null);
  };
  return new Resource<Content>({
    // The totals of a growing session are read again with its facts, once a second.
    key: () => {
      const { phase, range, filter } = store.navigation.view.value;
      const info = session.info.value;
      const isRunning = info.is === 'ready' && info.value.state === 'running';
      if (!isRunning) void session.feed.version.value;
      const steps = isRunning ? (info.value.steps ?? 0) : session.data.stepTotals.steps;
      return JSON.stringify([phase, range, filter, isRunning, steps]);
    },
    load: async (signal) => {
      const plan = planOf();
      const { range, filter } = store.navigation.view.peek();
      const view = { terms: parseFilter(filter), range };
      const ofExperts = selectsExperts(view.terms);
      if (plan.steps.length === 0) return ok({ plan, rows: [], ofExperts });
      const { api } = session.context;
      const rows = await tokenTotals(api, session.id, session.data, plan, view, signal);
      return rows.ok ? ok({ plan, rows: rows.value, ofExperts }) : rows;
    },
    reconnects: session.context.reconnects,
  });
}

const emptyText = (filter: string): string =>
  selectsExperts(parseFilter(filter))
    ? 'No access of the session matches. An expert that was chosen for no token has no accesses.'
    : 'No access of the session matches.';
