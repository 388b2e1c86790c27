// VGrid as a component: created once, then updated with show().
import { useLayoutEffect, useRef } from 'preact/hooks';
import { VGrid, type Column, type Sort } from '../grid/vgrid';

export function Grid<Row>(props: {
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  version?: number; // changes when `rows` changed in place
  sort: Sort | null;
  active: number | null;
  onSort: (key: string) => void;
  onActivate: (row: Row, by: 'click' | 'key') => void;
  revealActive?: boolean;
}) {
  const host = useRef<HTMLDivElement>(null);
  const grid = useRef<VGrid<Row> | null>(null);
  const latest = useRef(props);
  latest.current = props;

  // In the frame of the render, so that the grid changes together with other views.
  useLayoutEffect(() => {
    if (!host.current) return;
    const made = new VGrid(host.current, latest.current.columns, {
      sort: (key) => {
        latest.current.onSort(key);
      },
      activate: (index, by) => {
        const row = latest.current.rows[index];
        if (row !== undefined) latest.current.onActivate(row, by);
      },
    });
    grid.current = made;
    return () => {
      made.destroy();
    };
  }, []);

  useLayoutEffect(() => {
    grid.current?.show(props.label, props.columns, props.rows, props.sort, props.active);
    if (props.revealActive && props.active !== null) grid.current?.reveal(props.active);
  }, [
    props.label,
    props.columns,
    props.rows,
    props.version,
    props.sort,
    props.active,
    props.revealActive,
  ]);

  return <div ref={host} />;
}
