// The table of the selected step's ops, sorted by the server.
import { useMemo } from 'preact/hooks';
import { formatBytes, formatCount, formatNs, plural } from '../../format';
import { filterOps, parseFilter } from '../../grid/op_filter';
import { nextSort, sortOf, sortText } from '../../grid/vgrid';
import { durationOf, type Op, type StepSummary } from '../../net/types';
import type { OpenSession } from '../../state/open_session';
import { graphOf, opsOf } from '../../state/per_session';
import { opOf } from '../../state/selection';
import type { Store } from '../../state/store';
import { Grid } from '../../ui/Grid';
import { usePart, useResource } from '../../ui/hooks';
import { Empty, Failed, Loading } from '../../ui/States';
import type { SessionProps } from '../panel';
import { opColumns } from './op_columns';

const FILTER_HINT =
  'All words must match. A prefix searches one field: op:, tensor:, type:, layer:, component:, role:, device:, source:, n: (index of the op). A minus excludes: -layer:0.';

export function OpPanel({ store, session, panel }: SessionProps) {
  const { navigation } = store;
  const filter = usePart(() => navigation.view.value.filters[panel] ?? '');
  const ops = useResource(opsOf(session));
  const all = ops.value?.rows;
  const rows = useMemo(() => filterOps(all ?? [], parseFilter(filter)), [all, filter]);
  return (
    <>
      <div class="toolbar">
        <input
          id="filter-ops"
          type="search"
          class="filter mono"
          aria-label="Filter the ops"
          placeholder="op:mul_mat -layer:0 attn_q"
          title={FILTER_HINT}
          value={filter}
          onInput={(event) => {
            navigation.setFilter(panel, event.currentTarget.value);
          }}
        />
        {ops.value && (
          <StepNote session={session} step={ops.value.step} rows={rows} total={all?.length ?? 0} />
        )}
        <span class="toolbar-end" />
        <Follow store={store} session={session} />
      </div>
      <Table {...{ store, session, panel, rows }} />
    </>
  );
}

function Table({ store, session, panel, rows }: SessionProps & { rows: readonly Op[] }) {
  const { navigation } = store;
  const ops = useResource(opsOf(session));
  const chosen = usePart(() => chosenOp(store, session));
  const all = ops.value?.rows;
  const columns = useMemo(() => opColumns(all ?? []), [all]);
  const sort = sortOf(ops.value?.sort ?? 'op');
  if (!ops.value) {
    if (ops.loading) return <Loading>Loading the ops…</Loading>;
    if (!ops.error)
      return <Empty>Select a column of the heat map to list the ops of its step.</Empty>;
    return (
      <Failed
        what="The ops of this step cannot be shown."
        error={ops.error}
        retry={() => {
          opsOf(session).reload();
        }}
      />
    );
  }
  const active = chosen === null ? -1 : rows.findIndex((op) => op.op === chosen);
  return (
    <div class="table" data-loading={ops.loading}>
      {rows.length === 0 && (
        <NoRows recorded={(all?.length ?? 0) > 0} summary={session.data.steps[ops.value.step]} />
      )}
      <Grid
        label={`Ops of step ${ops.value.step}`}
        columns={columns}
        rows={rows}
        sort={sort}
        active={active < 0 ? null : active}
        revealActive={!session.active.value}
        onSort={(key) => {
          navigation.setSort(panel, sortText(nextSort(sort, key, ['duration', 'bytes'])));
        }}
        onActivate={(op, by) => {
          pin(store, session);
          store.select({ kind: 'op', op: op.op }, by === 'key' ? 'coalesce' : 'push');
        }}
      />
    </div>
  );
}

// Stops following the newest step when an op is selected during a run.
function pin(store: Store, session: OpenSession): void {
  const step = session.step.peek();
  if (session.following.peek() && session.active.peek() && step !== null) {
    store.navigation.toStep(step, 'replace');
  }
}

// The selected op, or the op that executed the selected node or tensor.
function chosenOp(store: Store, session: OpenSession): number | null {
  const { selection } = store.navigation.view.value;
  if (selection?.kind !== 'node' && selection?.kind !== 'tensor') return opOf(selection);
  const graph = graphOf(session).state.value.value;
  const node =
    selection.kind === 'node'
      ? graph?.nodes[selection.node]
      : graph?.producers.get(selection.tensor);
  return node?.executed_op ?? null;
}

function NoRows(props: { recorded: boolean; summary: StepSummary | undefined }) {
  const { recorded, summary } = props;
  if (recorded) return <Empty>No op matches this filter.</Empty>;
  if (summary?.dropped) {
    return <Empty>The ops of this step were lost: the disk or the CPU did not keep up.</Empty>;
  }
  if (summary?.aborted) return <Empty>This step was aborted before its first op.</Empty>;
  return <Empty>The ops of this step were not recorded: the trace level was minimal.</Empty>;
}

interface NoteProps {
  readonly session: OpenSession;
  readonly step: number;
  readonly rows: readonly Op[];
  readonly total: number;
}

function StepNote({ session, step, rows, total }: NoteProps) {
  const summary = session.data.steps[step];
  const time = rows.reduce((sum, op) => sum + durationOf(op), 0);
  const bytes = rows.reduce((sum, op) => sum + op.bytes_read + op.bytes_written, 0);
  const whole = summary?.duration_ns ?? 0; // used if the step has no ops
  return (
    <span class="note">
      <b>step {step}</b>
      {summary && (
        <span>
          {summary.phase}, <i class={`timing timing-${summary.timing}`} aria-hidden="true" />{' '}
          {summary.timing}
        </span>
      )}
      <span>
        {rows.length === total
          ? plural(total, 'op')
          : `${formatCount(rows.length)} of ${plural(total, 'op')}`}
      </span>
      <span>{formatNs(total === 0 ? whole : time)}</span>
      {total > 0 && <span>{formatBytes(bytes)}</span>}
    </span>
  );
}

// During a run the table follows the newest step until a step is selected.
function Follow({ store, session }: { store: Store; session: OpenSession }) {
  if (!session.active.value) return null;
  if (session.following.value) return <span class="following">newest step</span>;
  return (
    <button
      type="button"
      class="pill"
      title="Follow the newest step (L)"
      onClick={() => {
        store.navigation.toStep(null);
      }}
    >
      Jump to live
    </button>
  );
}
