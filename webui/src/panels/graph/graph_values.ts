// The values of the ops that the heat of the graph shows: of the selected step, or of everything that
// phase, range and filter select.
import { computed, type ReadonlySignal } from '@preact/signals';
import { decodeGraph, type Heat } from '../../graph/graph_options';
import type { BreakdownQuery, TraceSums } from '../../net/types';
import { ok } from '../../result';
import type { OpenSession } from '../../state/session/open_session';
import { graphOf } from '../../state/session/per_session';
import { bothOf, filteredSums } from '../../state/view/range_query';
import { Resource } from '../../state/resource';
import type { Store } from '../../state/store';

const MAX_OPS = 10_000;

export interface GraphValues {
  readonly byOp: ReadonlyMap<number, number>;
  readonly missing: readonly string[]; // parts of the filter that do not apply
}

const valueOf = (sums: TraceSums, heat: Heat): number => {
  switch (heat) {
    case 'time':
      return sums.time_ns;
    case 'bytes':
      return sums.bytes_read + sums.bytes_written;
    case 'faults':
      return sums.faults;
    case 'none':
      return 0;
  }
};

export function graphValuesOf(
  store: Store,
  session: OpenSession,
  panel: string,
): Resource<GraphValues> {
  const { api, reconnects } = session.context;
  const options = computed(() => decodeGraph(store.navigation.view.value.options[panel] ?? ''));
  const request = computed(() => {
    const { query, missing } = filteredSums(store.navigation.view.value, store.layers.value);
    const step = session.step.value ?? 0;
    const ofStep = options.value.all ? {} : { from_step: step, to_step: step + 1 };
    const { phase, ...rest } = query;
    const inPhase = options.value.all && phase ? { phase } : {};
    return {
      query: { ...bothOf({ ...rest, ...inPhase }, ofStep), by: 'op' } satisfies BreakdownQuery,
      missing,
    };
  });
  return new Resource<GraphValues>({
    key: () => {
      if (options.value.heat === 'none') return null;
      const info = session.info.value;
      const grown = options.value.all && info.is === 'ready' ? (info.value.steps ?? 0) : 0;
      return `${options.value.heat} ${JSON.stringify(request.value.query)} ${grown}`;
    },
    load: async (signal) => {
      const { query, missing } = request.peek();
      const { heat } = options.peek();
      const rows = await api.breakdown(session.id, { ...query, limit: MAX_OPS }, signal);
      if (!rows.ok) return rows;
      return ok({ byOp: byOp(rows.value.rows, namesOf(session), heat), missing });
    },
    reconnects,
  });
}

// The names of the outputs of the ops of the shown graph, by op.
const namesOf = (session: OpenSession): ReadonlyMap<number, string> => {
  const outputs = graphOf(session).state.peek().value?.outputs ?? [];
  return new Map([...outputs].map(([op, { name }]) => [op, name]));
};

// Rows without accesses are left out, so that a row is found by the name of its op: the N-th op with
// this name is the N-th row with it.
export function byOp(
  rows: readonly { readonly name: string; readonly all: TraceSums }[],
  names: ReadonlyMap<number, string>,
  heat: Heat,
): ReadonlyMap<number, number> {
  const queues = new Map<string, number[]>();
  for (const { name, all } of rows) {
    const queue = queues.get(name);
    if (queue) queue.push(valueOf(all, heat));
    else queues.set(name, [valueOf(all, heat)]);
  }
  const values = new Map<number, number>();
  for (const [op, name] of [...names].sort(([a], [b]) => a - b)) {
    const value = queues.get(name)?.shift();
    if (value !== undefined) values.set(op, value);
  }
  return values;
}

export type OpValues = ReadonlySignal<ReadonlyMap<number, number>>;
