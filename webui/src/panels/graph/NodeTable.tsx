// The nodes of a layer as a table.
import { useMemo } from 'preact/hooks';
import { exactBytes, formatBytes, formatNs, formatShape, kindName, partName } from '../../format';
import { findItems, timesOf, type Item, type Scene } from '../../graph/scene';
import { nextSort, sortOf, sortText, type Column, type Sort } from '../../grid/column';
import { graphOf, opsOf } from '../../state/session/per_session';
import { Grid } from '../../ui/Grid';
import { usePart, useResource } from '../../ui/hooks';
import { Empty } from '../../ui/States';
import { useGutter } from '../debug/gutter';
import { placedOf } from './placed_op';
import type { SessionProps } from '../panel';
import { listAccesses } from './list_accesses';
import { nodeFilter } from './node_filter';
import { selectionOf } from './selection_of';

interface Row {
  readonly item: Item;
  readonly ns: number;
  readonly order: number;
}

export function NodeTable({ store, session, panel, scene }: SessionProps & { scene: Scene }) {
  const { navigation } = store;
  const ops = useResource(opsOf(session)).value;
  const query = usePart(() => navigation.view.value.filters[panel] ?? '');
  const order = usePart(() => navigation.view.value.sorts[panel] ?? 'order');
  const sort = useMemo(() => sortOf(order), [order]);
  const view = usePart(() => navigation.view.value);
  const layers = store.layers.value;
  const { gutter, version } = useGutter<Row>(store, ({ item }) => placedOf(item));
  const matches = useMemo(() => nodeFilter(view, layers), [view.filter, view.range, layers]);
  const rows = useMemo(() => {
    const times = timesOf(scene, ops?.rows ?? []);
    const hits = query.trim() === '' ? null : findItems(scene, query);
    const all = scene.items.map((item, i) => ({ item, ns: times[i] ?? 0, order: i }));
    return sorted(
      all.filter((row) => (!hits || hits.has(row.order)) && (!matches || matches(row.item))),
      sort,
    );
  }, [scene, ops, query, sort, matches]);
  const active = usePart(() => {
    const { selection } = navigation.view.value;
    const graph = graphOf(session).state.value.value;
    const tensor = selection?.kind === 'tensor' ? graph?.tensorOf.get(selection.name) : undefined;
    return rows.findIndex(({ item: { node } }) =>
      selection?.kind === 'node' ? node.node === selection.node : node.tensor === tensor,
    );
  });
  return (
    <div class="table">
      {rows.length === 0 && <Empty>No node matches.</Empty>}
      <Grid
        label={`Nodes of layer ${scene.graph.layer}`}
        columns={COLUMNS}
        rows={rows}
        sort={sort}
        active={active < 0 ? null : active}
        {...(gutter && { gutter })}
        version={version}
        onSort={(key) => {
          navigation.setSort(panel, sortText(nextSort(sort, key, ['time', 'size'])));
        }}
        onActivate={({ item: { node } }, by) => {
          const how = by === 'key' ? 'coalesce' : 'push';
          store.selectInGraph(selectionOf(session, node), how);
          if (how === 'push') listAccesses(store);
        }}
      />
    </div>
  );
}

const KEYS: Readonly<Record<string, (row: Row) => number | string>> = {
  order: (row) => row.order,
  op: ({ item }) => item.node.op ?? item.node.kind,
  name: ({ item }) => item.node.name,
  category: ({ item }) => item.node.category,
  component: ({ item }) => item.node.component,
  size: ({ item }) => item.node.size,
  time: (row) => row.ns,
};

function sorted(rows: readonly Row[], sort: Sort): readonly Row[] {
  const key = KEYS[sort.key] ?? ((row: Row) => row.order);
  const sign = sort.descending ? -1 : 1;
  return rows.toSorted((a, b) => {
    const [x, y] = [key(a), key(b)];
    return x === y ? a.order - b.order : x < y ? -sign : sign;
  });
}

// prettier-ignore
const COLUMNS: readonly Column<Row>[] = [
  { key: 'order', title: '#', width: 46, align: 'right', text: (row) => String(row.order) },
  { key: 'op', title: 'op', width: 120, mono: true, text: ({ item }) => item.node.op ?? kindName(item.node.kind, item.node.role) },
  { key: 'name', title: 'name', width: 150, mono: true, text: ({ item }) => item.node.name, exact: ({ item }) => (item.node.label ? `${item.node.name}: ${item.node.label}` : item.node.name) },
  { key: 'category', title: 'category', width: 120, text: ({ item }) => item.node.category.replaceAll('_', ' ') },
  { key: 'component', title: 'component · role', width: 120, text: ({ item: { node } }) => partName(node.component, node.role, ' · ') },
  { key: 'shape', title: 'shape', unsortable: true, width: 120, align: 'right', text: ({ item }) => `${item.node.type} ${formatShape(item.node.shape)}` },
  { key: 'size', title: 'size', width: 80, align: 'right', text: ({ item }) => formatBytes(item.node.size), exact: ({ item }) => exactBytes(item.node.size) },
  { key: 'time', title: 'time', width: 80, align: 'right', text: ({ ns }) => (ns > 0 ? formatNs(ns) : '–') },
];
