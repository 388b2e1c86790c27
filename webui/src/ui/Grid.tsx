// VGrid as a component: created once, then updated with show().
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { arrayRows, type Rows } from '../grid/rows';
import { sortText, type Column, type Gutter, type Sort } from '../grid/column';
import { VGrid } from '../grid/vgrid';

export interface GridProps<Row> {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[] | Rows<Row>;
  readonly version?: number; // changes when `rows` changed in place
  readonly sort: Sort | null;
  readonly active: number | null;
  readonly gutter?: Gutter<Row>; // there always or never; its marks change with `version`
  readonly onSort: (key: string) => void;
  readonly onActivate: (row: Row, by: 'click' | 'key', index: number) => void;
  readonly onMove?: (key: string, before: string | null) => void;
  readonly onCopy?: () => void;
  readonly onEnter?: (row: Row) => void;
  readonly revealActive?: boolean;
  readonly grid?: { current: VGrid<Row> | null }; // set while mounted
}

const isArray = <Row,>(rows: readonly Row[] | Rows<Row>): rows is readonly Row[] =>
  Array.isArray(rows);

export function Grid<Row>(props: GridProps<Row>) {
  const host = useRef<HTMLDivElement>(null);
  const own = useRef<VGrid<Row> | null>(null);
  const grid = props.grid ?? own;
  // Rows that changed in place have another count.
  const rows = useMemo(
    () => (isArray(props.rows) ? arrayRows(props.rows) : props.rows),
    [props.rows, props.version],
  );
  // A row that was reached, or opened, before it was loaded.
  const awaited = useRef<{ readonly index: number; readonly opened: boolean } | null>(null);
  const order = props.sort && sortText(props.sort);
  const shownOrder = useRef(order);
  const latest = useRef({ ...props, rows });
  latest.current = { ...props, rows };

  // In the frame of the render, so that the grid changes together with other views.
  useLayoutEffect(() => {
    if (!host.current) return;
    const { onMove, onCopy, onEnter } = latest.current;
    const made = new VGrid(host.current, latest.current, {
      sort: (key) => {
        latest.current.onSort(key);
      },
      activate: (index, by) => {
        const row = latest.current.rows.at(index);
        awaited.current = row === undefined ? { index, opened: false } : null;
        if (row !== undefined) latest.current.onActivate(row, by, index);
      },
      ...(onMove && {
        move: (key: string, before: string | null) => latest.current.onMove?.(key, before),
      }),
      ...(onCopy && { copy: () => latest.current.onCopy?.() }),
      ...(onEnter && {
        enter: (index: number) => {
          const row = latest.current.rows.at(index);
          awaited.current = row === undefined ? { index, opened: true } : null;
          if (row !== undefined) latest.current.onEnter?.(row);
        },
      }),
    });
    grid.current = made;
    return () => {
      grid.current = null;
      made.destroy();
    };
  }, []);

  useLayoutEffect(() => {
    const { index, opened } = awaited.current ?? { index: null, opened: false };
    grid.current?.show(index === null ? latest.current : { ...latest.current, active: index });
    const row = index === null ? undefined : rows.at(index);
    if (index !== null && row !== undefined) {
      awaited.current = null;
      latest.current.onActivate(row, 'key', index);
      if (opened) latest.current.onEnter?.(row);
    }
    // The first rows of a new order are what it was chosen for.
    const isSorted = shownOrder.current !== order;
    shownOrder.current = order;
    if (isSorted) grid.current?.toTop();
    else if (props.revealActive && props.active !== null) grid.current?.reveal(props.active);
  }, [
    props.label,
    props.columns,
    rows,
    props.version,
    props.sort,
    props.active,
    props.revealActive,
  ]);

  return <div ref={host} />;
}
