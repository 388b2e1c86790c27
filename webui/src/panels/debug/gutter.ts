// The breakpoints of ops in tables, and the op at which the run is stopped.
import { useMemo, useRef } from 'preact/hooks';
import type { Gutter } from '../../grid/column';
import type { PlacedOp } from '../../state/request/breakpoint_place';
import type { Store } from '../../state/store';

// `opOf`: the op of a row; null: it computes nothing. `version` changes with the marks. Null: nothing
// can be stopped.
export function useGutter<Row>(
  store: Store,
  opOf: (row: Row) => PlacedOp | null,
): { readonly gutter: Gutter<Row> | null; readonly version: number } {
  const { debug } = store;
  const marks = debug.marks.value;
  const seen = useRef({ marks, version: 0 });
  if (seen.current.marks !== marks) seen.current = { marks, version: seen.current.version + 1 };
  const gutter = useMemo(
    (): Gutter<Row> => ({
      hint: 'A click at the left edge sets or removes a breakpoint (B)',
      mark: (row) => {
        const op = opOf(row);
        return op === null ? '' : debug.markOf(op);
      },
      press: (row) => {
        const op = opOf(row);
        if (op !== null) debug.toggleAt(op.output);
      },
    }),
    [debug],
  );
  return { gutter: store.has('debug') ? gutter : null, version: seen.current.version };
}
