// The breakpoints of ops in tables, and the op at which the run is stopped.
import { useMemo, useRef } from 'preact/hooks';
import type { Gutter } from '../../grid/column';
import type { Store } from '../../state/store';

// `outputOf`: the name of the output of a row's op; null: it computes nothing. `version` changes with
// the marks. Null: nothing can be stopped.
export function useGutter<Row>(
  store: Store,
  outputOf: (row: Row) => string | null,
): { readonly gutter: Gutter<Row> | null; readonly version: number } {
  const { debug } = store;
  const marks = debug.marks.value;
  const seen = useRef({ marks, version: 0 });
  if (seen.current.marks !== marks) seen.current = { marks, version: seen.current.version + 1 };
  const gutter = useMemo(
    (): Gutter<Row> => ({
      hint: 'A click at the left edge sets or removes a breakpoint (B)',
      mark: (row) => {
        const output = outputOf(row);
        return output === null ? '' : debug.markOf(output);
      },
      press: (row) => {
        const output = outputOf(row);
        if (output !== null) debug.toggleAt(output);
      },
    }),
    [debug],
  );
  return { gutter: store.has('debug') ? gutter : null, version: seen.current.version };
}
