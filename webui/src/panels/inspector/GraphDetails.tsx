// What is in the graph of a step: an op with its accesses, one access, a node, a tensor.
import { useMemo } from 'preact/hooks';
import { exactBytes, formatBytes, kindName, plural, sourceName } from '../../format';
import type { Access, Op } from '../../net/types';
import { accessesOf, graphOf, opsOf } from '../../state/session/per_session';
import type { Selection } from '../../state/view/selection';
import type { Store } from '../../state/store';
import { outputOfSelection } from '../../state/view/follow_selection';
import { useExact, usePart, useResource } from '../../ui/hooks';
import { Failed, FailedLoad, Loading } from '../../ui/States';
import { CapturedValues } from './CapturedValues';
import { inspectAccess, inspectNode, inspectOp, inspectTensor } from './inspect_graph';
import { InspectionView, NotFound, type DetailsProps } from './InspectionView';

const MAX_ACCESSES = 60; // that are listed

function useOpsByIndex(rows: readonly Op[] | undefined): ReadonlyMap<number, Op> {
  return useMemo(() => new Map((rows ?? []).map((op) => [op.op, op])), [rows]);
}

type OpSelection = Extract<Selection, { kind: 'op' | 'access' }>;

export function OpDetails({
  store,
  session,
  selection,
}: DetailsProps & { selection: OpSelection }) {
  const ops = useResource(opsOf(session));
  const graph = useExact(graphOf(session));
  const accesses = useExact(accessesOf(session));
  const byIndex = useOpsByIndex(ops.value?.rows);
  const op = byIndex.get(selection.op);
  if (!ops.value) {
    return ops.error ? <Failed what="The op cannot be shown." error={ops.error} /> : <Loading />;
  }
  if (!op)
    return ops.loading ? <Loading /> : <NotFound store={store} session={session} what="op" />;
  const rows = accesses.value;
  if (selection.kind === 'access') {
    const access = rows?.find(
      (one) => one.access === selection.access && one.part === selection.part,
    );
    if (!rows)
      return accesses.error ? (
        <Failed what="The access cannot be shown." error={accesses.error} />
      ) : (
        <Loading />
      );
    if (!access) return <NotFound store={store} session={session} what="access" />;
    return (
      <InspectionView
        store={store}
        session={session}
        what={inspectAccess(access, op, graph.value?.keys ?? null)}
      />
    );
  }
  return (
    <InspectionView
      store={store}
      session={session}
      what={inspectOp(op, graph.value, rows, byIndex)}
    >
      {store.has('debug') && <BreakHere store={store} session={session} selection={selection} />}
      <CapturedValues store={store} session={session} op={op.op} />
      {accesses.error && <Failed what="The accesses cannot be shown." error={accesses.error} />}
      {rows && <Accesses store={store} rows={rows} />}
    </InspectionView>
  );
}

// Sets or removes a breakpoint at the op.
function BreakHere({ store, session, selection }: DetailsProps & { selection: Selection }) {
  const output = usePart(() => outputOfSelection(session, selection));
  const isSet = usePart(() => output !== null && store.debug.breakpointOf(output) !== null);
  if (output === null) return null;
  return (
    <p class="break-here">
      <button
        type="button"
        class="small"
        aria-pressed={isSet}
        title={
          isSet
            ? 'Remove the breakpoint (B)'
            : 'The next run stops when it has computed this output (B)'
        }
        onClick={() => {
          store.debug.toggleAt(output);
        }}
      >
        Breakpoint
      </button>
    </p>
  );
}

// An op or node that is not in the graph of the step.
export function OutputDetails({
  store,
  session,
  selection: { of, name },
}: DetailsProps & { selection: Extract<Selection, { kind: 'output' }> }) {
  const graph = useExact(graphOf(session));
  return graph.loading ? (
    <Loading>Loading the graph…</Loading>
  ) : (
    <NotFound store={store} session={session} what={of} name={name} />
  );
}

type GraphSelection = Extract<Selection, { kind: 'node' | 'tensor' }>;

export function GraphDetails({
  store,
  session,
  selection,
}: DetailsProps & { selection: GraphSelection }) {
  const graph = useExact(graphOf(session));
  const ops = useResource(opsOf(session));
  const byIndex = useOpsByIndex(ops.value?.rows);
  const info = session.info.value;
  if (!graph.value) {
    return graph.error ? (
      <FailedLoad what="The step’s graph cannot be shown." resource={graphOf(session)} />
    ) : (
      <Loading>Loading the graph…</Loading>
    );
  }
  const { nodes, tensors } = graph.value;
  const about = info.is === 'ready' ? info.value : null;
  if (selection.kind === 'node') {
    const node = nodes[selection.node];
    if (!node) return <NotFound store={store} session={session} what="node" />;
    return (
      <InspectionView
        store={store}
        session={session}
        what={inspectNode(node, graph.value, byIndex, about)}
      >
        <BreakHere store={store} session={session} selection={selection} />
        {node.executed_op !== null && (
          <CapturedValues store={store} session={session} op={node.executed_op} />
        )}
      </InspectionView>
    );
  }
  const tensor = tensors[graph.value.tensorOf.get(selection.name) ?? -1];
  if (!tensor) return <NotFound store={store} session={session} what="tensor" />;
  return (
    <InspectionView
      store={store}
      session={session}
      what={inspectTensor(tensor, graph.value, byIndex, about)}
    />
  );
}

function Accesses({ store, rows }: { store: Store; rows: readonly Access[] }) {
  return (
    <section class="links" aria-label="Accesses">
      <h3>
        Accesses <span class="dim">{rows.length}</span>
      </h3>
      {rows.length === 0 && <p class="dim">This op does not access memory.</p>}
      <ul>
        {rows.slice(0, MAX_ACCESSES).map((access, index) => (
          <li key={index}>
            <button
              type="button"
              class="jump access"
              data-write={access.write}
              title={`${access.tensor_name}: ${exactBytes(access.size_bytes)} ${access.write ? 'written' : 'read'}`}
              onClick={() => {
                store.select({
                  kind: 'access',
                  op: access.op,
                  access: access.access,
                  part: access.part,
                });
              }}
            >
              <span class="access-way">{access.write ? 'write' : 'read'}</span>
              <span class="mono">{access.tensor_name}</span>
              <span class="access-bytes">{formatBytes(access.size_bytes)}</span>
              <span class="access-where dim">{whereOf(access)}</span>
            </button>
          </li>
        ))}
      </ul>
      {rows.length > MAX_ACCESSES && (
        <p class="dim">and {plural(rows.length - MAX_ACCESSES, 'more access', 'more accesses')}</p>
      )}
    </section>
  );
}

function whereOf(access: Access): string {
  const { expert_id: expert, expert_rank: rank, routing_score: score } = access;
  const routed =
    expert === null
      ? ''
      : `expert ${expert}${rank === null ? '' : `, rank ${rank}`}${score === null ? '' : `, score ${score.toFixed(3)}`}`;
  return [kindName(access.tensor_kind, access.role), sourceName(access.memory_source), routed]
    .filter(Boolean)
    .join(', ');
}
