// The ops of the selected step, as they ran: filtered, sorted, and the accesses
// of the one that is chosen.
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { formatBytes, formatCount, formatNs, plural } from '../format';
import { nextSort, parseFilter, queryOps } from '../grid/op_query';
import type { Sort } from '../grid/vgrid';
import { sentence } from '../net/api';
import type { Op } from '../net/types';
import { isActive } from '../state/state';
import type { Store } from '../state/store';
import { Grid } from '../ui/Grid';
import { Empty, Panel } from '../ui/Panel';
import { Accesses } from './Accesses';
import { opColumns } from './op_columns';

export function OpPanel({ store }: { store: Store }) {
  const filter = useSignal('');
  const sort = useSignal<Sort>({ key: 'op', descending: false });
  const ops = useMemo(() => store.select(({ open }) => open?.ops ?? null), [store]).value;
  const chosen = useMemo(() => store.select(({ open }) => open?.op ?? null), [store]).value;
  const rows = useMemo(
    () => (ops ? queryOps(ops.rows, parseFilter(filter.value), sort.value) : []),
    [ops, filter.value, sort.value],
  );
  const columns = useMemo(() => (ops ? opColumns(ops.rows) : []), [ops]);
  const active = chosen === null ? -1 : rows.findIndex((op) => op.op === chosen);
  return (
    <Panel
      title="Ops"
      class="ops"
      note={<StepNote store={store} shown={rows} total={ops?.rows.length ?? 0} />}
      tools={
        <>
          <Follow store={store} />
          <input
            type="search"
            class="filter mono"
            aria-label="Filter the ops"
            placeholder="op:mul_mat -layer:0 attn_q"
            title="Words that must all match, anywhere or as op:, tensor:, type:, layer:, component:, role:, device:, source:. A minus in front excludes."
            value={filter.value}
            onInput={(event) => {
              filter.value = event.currentTarget.value;
            }}
          />
        </>
      }
    >
      {ops ? (
        <div class="ops-body" data-detail={chosen !== null}>
          {rows.length === 0 && <NoRows recorded={ops.rows.length > 0} />}
          <Grid
            label={`Ops of step ${ops.step}`}
            columns={columns}
            rows={rows}
            sort={sort.value}
            active={active < 0 ? null : active}
            onSort={(key) => {
              sort.value = nextSort(sort.value, key);
            }}
            onActivate={(op) => {
              store.selectOp(op.op);
            }}
          />
          {chosen !== null && (
            <Accesses store={store} op={ops.rows.find((op) => op.op === chosen)} />
          )}
        </div>
      ) : (
        <Nothing store={store} />
      )}
    </Panel>
  );
}

function NoRows({ recorded }: { recorded: boolean }) {
  return recorded ? (
    <Empty>No op matches this filter.</Empty>
  ) : (
    <Empty>The ops of this step were not recorded: the trace was minimal or lost the step.</Empty>
  );
}

function StepNote(props: { store: Store; shown: readonly Op[]; total: number }) {
  const { store, shown, total } = props;
  const step = useMemo(() => store.select(({ open }) => open?.ops?.step ?? null), [store]).value;
  const summary = step === null ? undefined : store.data.steps[step];
  if (step === null) return null;
  const time = shown.reduce((sum, op) => sum + op.end_ns - op.begin_ns, 0);
  const bytes = shown.reduce((sum, op) => sum + op.bytes_read + op.bytes_written, 0);
  return (
    <>
      <b>step {step}</b>
      {summary && (
        <span>
          {summary.phase}, <i class={`timing timing-${summary.timing}`} aria-hidden="true" />{' '}
          {summary.timing}
        </span>
      )}
      <span>
        {shown.length === total
          ? plural(total, 'op')
          : `${formatCount(shown.length)} of ${plural(total, 'op')}`}
      </span>
      <span>{formatNs(time)}</span>
      <span>{formatBytes(bytes)}</span>
    </>
  );
}

// While a run goes on, the table shows its newest step until one is chosen.
function Follow({ store }: { store: Store }) {
  const open = useMemo(() => store.select((state) => state.open), [store]).value;
  if (!open || !isActive(open.run?.state)) return null;
  return open.follow ? (
    <span class="following">newest step</span>
  ) : (
    <button
      type="button"
      class="pill"
      onClick={() => {
        store.follow();
      }}
    >
      Follow newest step
    </button>
  );
}

function Nothing({ store }: { store: Store }) {
  const open = useMemo(() => store.select((state) => state.open), [store]).value;
  if (open?.opsError) {
    return (
      <Empty error>
        {sentence(open.opsError)}{' '}
        <button
          type="button"
          class="link"
          onClick={() => {
            store.reloadOps();
          }}
        >
          Try again
        </button>
      </Empty>
    );
  }
  if (open?.opsLoading) return <Empty>Loading the ops…</Empty>;
  return <Empty>Choose a column of the heat map to see what the model did in that step.</Empty>;
}
