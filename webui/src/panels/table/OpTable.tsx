// The ops of the selected step.
import { useMemo, useRef } from 'preact/hooks';
import { formatBytes, formatCount, formatNs, plural, timingName } from '../../format';
import { nextSort, sortOf, sortText } from '../../grid/column';
import type { VGrid } from '../../grid/vgrid';
import { durationOf, type Op, type StepSummary } from '../../net/types';
import { filterOps, parseFilter, sqlFilter } from '../../state/view/filter';
import type { OpenSession } from '../../state/session/open_session';
import { opsInRange, type OpPlace } from '../../state/view/step_range';
import { executedOp, opsOf } from '../../state/session/per_session';
import { Grid } from '../../ui/Grid';
import { usePart, useResource } from '../../ui/hooks';
import { Empty, FailedLoad, Loading } from '../../ui/States';
import { Unused } from '../../ui/Unused';
import { rangeSql } from './access_rows';
import { copyFromRows, sortedRows, sqlColumns } from './body';
import { opColumns } from './columns';
import { Note } from './Note';
import { OutsideRange, useOutside } from './OutsideRange';
import type { PlacedOp } from '../../state/request/breakpoint_place';
import { useGutter } from '../debug/gutter';
import { chosenColumns, movedColumn } from './table_options';
import { copySelected, pin, type TableProps } from './table_actions';

export function OpTable(props: TableProps) {
  const { store, session, panel, options, copy } = props;
  const { navigation } = store;
  const ops = useResource(opsOf(session));
  const filter = usePart(() => navigation.view.value.filter);
  const order = usePart(() => navigation.view.value.sorts[panel] ?? 'op');
  const chosen = usePart(() => executedOp(session, store.navigation.view.value.selection));
  const grid = useRef<VGrid<Op>>(null);
  const { gutter, version } = useGutter<Op>(store, placedOf);
  const all = ops.value?.rows;
  const isStopped = usePart(() => Boolean(store.debug.state.value?.stop));
  const sort = useMemo(() => sortOf(order), [order]);
  const columns = useMemo(() => opColumns(all ?? []), [all]);
  const shown = useMemo(
    () => chosenColumns(columns, options.columns),
    [columns, options.columns?.join()],
  );
  const terms = useMemo(() => parseFilter(filter), [filter]);
  const range = usePart(() => navigation.view.value.range);
  const layers = store.layers.value;
  const isOutside = useOutside(store, session, ops.value?.step ?? -1);
  const { rows, unused } = useMemo(() => {
    const found = filterOps(isOutside ? [] : (all ?? []), terms);
    const inRange = opsInRange(range, layers);
    const kept = found.rows.filter((op) => inRange.has(placeOf(op)));
    return {
      rows: sortedRows(kept, columns, sort),
      unused: [...found.missing.map(({ text }) => text), ...inRange.unused],
    };
  }, [all, terms, columns, sort, range, layers, isOutside]);
  if (!ops.value) {
    if (ops.loading) return <Loading>Loading the ops…</Loading>;
    if (!ops.error) return <Empty>Select a column of the map to list the ops of its step.</Empty>;
    return <FailedLoad what="The ops of this step cannot be shown." resource={opsOf(session)} />;
  }
  const { step } = ops.value;
  const { where } = sqlFilter('op', terms);
  const names = sqlColumns(shown).join(', ') || '*';
  copy.current = copyFromRows(
    shown,
    rows,
    grid,
    `SELECT ${names} FROM op WHERE ${[`step = ${step}`, ...where, ...rangeSql(range, layers).where].join(' AND ')} ORDER BY ${sort.key === 'op' ? 'op' : `${sort.key}${sort.descending ? ' DESC' : ''}`}`,
  );
  const active = chosen === null ? -1 : rows.findIndex((op) => op.op === chosen);
  return (
    <>
      <StepNote session={session} step={step} rows={rows} total={all?.length ?? 0}>
        <Unused words={unused} />
      </StepNote>
      <div class="table" data-loading={ops.loading}>
        {isOutside && <OutsideRange store={store} session={session} step={step} />}
        {rows.length === 0 && !isOutside && (
          <NoRows recorded={(all?.length ?? 0) > 0} summary={session.data.steps[step]} />
        )}
        <Grid
          grid={grid}
          label={`Ops of step ${step}`}
          columns={shown}
          rows={rows}
          sort={sort}
          active={active < 0 ? null : active}
          {...(gutter && { gutter })}
          version={version}
          revealActive={!session.active.value || isStopped}
          onSort={(key) => {
            const greatest = columns.filter((one) => one.greatestFirst).map((one) => one.key);
            navigation.setSort(panel, sortText(nextSort(sort, key, greatest)));
          }}
          onActivate={(op, by) => {
            pin(store, session);
            store.select({ kind: 'op', op: op.op }, by === 'key' ? 'coalesce' : 'push');
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

const placedOf = (op: Op): PlacedOp => ({
  output: op.tensor_name,
  op: op.operation_type,
  layer: op.op_layer_id,
});

const placeOf = ({ op_layer_id: layer, timestamp_ns: begin, duration_ns: ns }: Op): OpPlace => ({
  layer,
  begin_ns: ns === null ? null : begin,
  end_ns: ns === null ? null : begin + ns,
});

function NoRows(props: { recorded: boolean; summary: StepSummary | undefined }) {
  const { recorded, summary } = props;
  if (recorded) return <Empty>No op matches the filter and the selected range.</Empty>;
  if (summary?.dropped) {
    return <Empty>The ops of this step were lost: the disk or the CPU did not keep up.</Empty>;
  }
  if (summary?.aborted) return <Empty>This step was aborted before its first op.</Empty>;
  return <Empty>The ops of this step were not recorded: the level was minimal.</Empty>;
}

function StepNote(props: {
  session: OpenSession;
  step: number;
  rows: readonly Op[];
  total: number;
  children: preact.ComponentChildren;
}) {
  const { session, step, rows, total } = props;
  const summary = session.data.steps[step];
  const time = rows.reduce((sum, op) => sum + durationOf(op), 0);
  const bytes = rows.reduce((sum, op) => sum + op.bytes_read + op.bytes_written, 0);
  const whole = summary?.duration_ns ?? 0; // used if the step has no ops
  return (
    <Note>
      <b>step {step}</b>
      {summary && (
        <span>
          {summary.phase}, op times{' '}
          <i class={`timing timing-${summary.timing}`} aria-hidden="true" />{' '}
          {timingName(summary.timing)}
        </span>
      )}
      <span>
        {rows.length === total
          ? plural(total, 'op')
          : `${formatCount(rows.length)} of ${plural(total, 'op')}`}
      </span>
      <span>{formatNs(total === 0 ? whole : time)}</span>
      {total > 0 && <span>{formatBytes(bytes)}</span>}
      {props.children}
    </Note>
  );
}
