// What the kinds of rows of the table share: their properties and actions.
import { plural } from '../../format';
import { rowsText } from '../../grid/copy';
import type { OpenSession } from '../../state/session/open_session';
import type { Store } from '../../state/store';
import { withKey } from '../../state/view/view';
import { copyText } from '../../ui/clipboard';
import type { SessionProps } from '../panel';
import type { CopyRef } from './body';
import { decodeTable, encodeTable, type Group, type TableOptions } from './table_options';

export interface TableProps extends SessionProps {
  readonly options: TableOptions;
  readonly copy: CopyRef;
  readonly moveColumn: (keys: readonly string[]) => void;
}

// Other rows have other columns, so they start with their usual ones and order. The columns of
// all totals but those by token are the same.
export function setOptions(store: Store, panel: string, options: TableOptions): void {
  const { options: all, sorts } = store.navigation.view.peek();
  const before = decodeTable(all[panel] ?? '');
  const isOther = before.rows !== options.rows || before.by !== options.by;
  const isTotals = (by: Group | null): boolean => by !== null && by !== 'token';
  const keepsOrder = !isOther || (isTotals(before.by) && isTotals(options.by));
  const text = encodeTable(keepsOrder ? options : { ...options, columns: null });
  store.navigation.change({
    options: withKey(all, panel, text === '' ? null : text),
    sorts: keepsOrder ? sorts : withKey(sorts, panel, null),
  });
}

export const MAX_COPIED = 10_000; // rows

// Copies the selected rows as TSV: Ctrl+C in the table.
export async function copySelected(store: Store, { current }: CopyRef): Promise<void> {
  const selected = current?.selected() ?? null;
  if (!current || !selected) return;
  const limit = Math.min(selected.to - selected.from, MAX_COPIED);
  const copied = await current.read(selected.from, limit);
  if (!copied.ok) return;
  const { names, rows } = copied.value;
  if (await copyText(rowsText('TSV', names, rows)))
    store.toasts.done(`${plural(rows.length, 'row')} copied.`);
}

// Stops following the newest step when an op is selected during a run.
export function pin(store: Store, session: OpenSession): void {
  const step = session.step.peek();
  if (session.following.peek() && session.active.peek() && step !== null) {
    store.navigation.toStep(step, 'replace');
  }
}
