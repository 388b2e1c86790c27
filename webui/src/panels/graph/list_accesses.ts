// A click on a node lists its accesses in the table, unless it shows totals.
import type { Store } from '../../state/store';
import { withKey } from '../../state/view/view';
import { decodeTable, encodeTable } from '../table/table_options';

const TABLE = 'table';

export function listAccesses(store: Store): void {
  const { options, sorts } = store.navigation.view.peek();
  const table = decodeTable(options[TABLE] ?? '');
  if (table.by !== null) return;
  const isOther = table.rows !== 'accesses';
  const text = encodeTable({ ...table, rows: 'accesses', all: false, chosen: true, columns: isOther ? null : table.columns }); // prettier-ignore
  store.navigation.change(
    {
      options: withKey(options, TABLE, text),
      sorts: isOther ? withKey(sorts, TABLE, null) : sorts,
    },
    'replace',
  );
}
