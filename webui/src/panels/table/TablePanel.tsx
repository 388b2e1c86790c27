// The table: ops of the selected step, steps, accesses of a step or of the whole session, or their
// totals by tensor, layer and so on. Columns can be chosen, moved and sorted, rows copied.
import { useRef } from 'preact/hooks';
import { plural } from '../../format';
import { COPY_FORMATS, rowsText, type CopyFormat } from '../../grid/copy';
import type { TableColumn } from './columns';
import type { OpenSession } from '../../state/session/open_session';
import type { Store } from '../../state/store';
import { copyText } from '../../ui/clipboard';
import { usePart } from '../../ui/hooks';
import { Menu, MenuItem } from '../../ui/Menu';
import { lazy } from '../../ui/lazy';
import { Segmented } from '../../ui/Segmented';
import type { SessionProps } from '../panel';
import type { CopyRef } from './body';
import { accessColumns, groupColumns, opColumns, stepColumns } from './columns';
import { GROUP_NAMES } from './table_options';
import { OpTable } from './OpTable';
import { StepTable } from './StepTable';
import { MAX_COPIED, setOptions, type TableProps } from './table_actions';
import {
  chosenColumns,
  decodeTable,
  GROUPS,
  type Group,
  type RowKind,
  type TableOptions,
} from './table_options';

// The rows other than ops and steps are loaded when they are first shown.
const AccessTable = lazy(async () => (await import('./AccessTable')).AccessTable);
const GroupTable = lazy(async () => (await import('./GroupTable')).GroupTable);
const TokenTable = lazy(async () => (await import('./TokenTable')).TokenTable);

export function TablePanel(props: SessionProps) {
  const { store, panel } = props;
  const text = usePart(() => store.navigation.view.value.options[panel] ?? '');
  const options = decodeTable(text);
  const copy: CopyRef = useRef(null);
  const table: TableProps = {
    ...props,
    options,
    copy,
    moveColumn: (columns) => {
      setOptions(store, panel, { ...options, columns });
    },
  };
  return (
    <>
      <Toolbar {...table} />
      {options.by === 'token' ? (
        <TokenTable {...table} />
      ) : options.by ? (
        <GroupTable key={options.by} {...table} by={options.by} />
      ) : options.rows === 'steps' ? (
        <StepTable {...table} />
      ) : options.rows === 'ops' ? (
        <OpTable {...table} />
      ) : (
        <AccessTable {...table} />
      )}
    </>
  );
}

const KIND_NAMES: readonly { value: RowKind; text: string; hint: string }[] = [
  { value: 'ops', text: 'Ops', hint: 'The ops of the selected step, in execution order' },
  { value: 'steps', text: 'Steps', hint: 'The steps of the session; each evaluates one graph' },
  { value: 'accesses', text: 'Accesses', hint: 'Every read and write of a tensor by an op' },
];

function Toolbar(props: TableProps) {
  const { store, session, panel, options, copy } = props;
  const set = (change: Partial<TableOptions>): void => {
    setOptions(store, panel, { ...options, ...change });
  };
  return (
    <div class="toolbar table-tools">
      <Segmented
        label="Rows"
        value={options.by ? null : options.rows}
        options={KIND_NAMES}
        choose={(rows: RowKind) => {
          set({ rows, by: null, chosen: false });
        }}
      />
      <label class="toggle">
        <span class="dim">Totals by</span>
        <select
          aria-label="Totals by"
          value={options.by ?? ''}
          onChange={(event) => {
            const by = GROUPS.find((one) => one === event.currentTarget.value) ?? null;
            // Totals are first those of the session.
            set(by !== null && options.by === null ? { by, all: true } : { by });
          }}
        >
          <option value="">nothing</option>
          {groupsOf(session).map((by) => (
            <option key={by} value={by}>
              {GROUP_NAMES[by]}
            </option>
          ))}
        </select>
      </label>
      {(options.by ? options.by !== 'token' : options.rows === 'accesses') && (
        <Segmented
          label="Of"
          value={options.all ? 'session' : 'step'}
          options={[
            { value: 'step', text: 'Step', hint: 'Of the selected step' },
            { value: 'session', text: 'Session', hint: 'Of all steps of the chosen phase' },
          ]}
          choose={(of) => {
            set({ all: of === 'session', chosen: false });
          }}
        />
      )}
      <span class="toolbar-end" />
      {options.by !== 'token' && <ColumnMenu {...props} />}
      <CopyMenu store={store} copy={copy} />
      <Follow store={store} session={session} />
    </div>
  );
}

// Totals by expert exist only for mixtures of experts.
function groupsOf(session: OpenSession): readonly Group[] {
  const info = session.info.value;
  const experts = info.is === 'ready' ? (info.value.n_experts ?? 0) : 0;
  return GROUPS.filter((by) => by !== 'expert' || experts > 0);
}

const NO_SUMS = { time_ns: 0, bytes_read: 0, bytes_written: 0 }; // the columns' names need none

function columnsOfKind({
  options,
  session,
}: TableProps): readonly Pick<TableColumn<never>, 'key' | 'name' | 'hint' | 'hidden'>[] {
  if (options.by) return groupColumns(options.by, NO_SUMS, options.all && !session.active.value);
  // prettier-ignore
  switch (options.rows) {
    case 'ops':
      return opColumns([]);
    case 'steps':
      return stepColumns(session.data);
    case 'accesses':
      return accessColumns(session.data);
  }
}

function ColumnMenu(props: TableProps) {
  const { options, moveColumn } = props;
  const all = columnsOfKind(props);
  const keys = chosenColumns(all, options.columns).map(({ key }) => key);
  return (
    <Menu label="Columns" title="Choose the columns; drag a header to move its column (Alt+← →)">
      {all.map(({ key, name, hint }) => (
        <label key={key} class="toggle menu-item" title={hint}>
          <input
            type="checkbox"
            checked={keys.includes(key)}
            disabled={keys.length === 1 && keys.includes(key)}
            onChange={() => {
              moveColumn(
                keys.includes(key)
                  ? keys.filter((one) => one !== key)
                  : all.map((one) => one.key).filter((one) => one === key || keys.includes(one)),
              );
            }}
          />
          {name}
        </label>
      ))}
    </Menu>
  );
}

function CopyMenu({ store, copy }: { store: Store; copy: CopyRef }) {
  const put = async (text: string, done: string): Promise<void> => {
    if (await copyText(text)) store.toasts.done(done);
    else store.toasts.error('The browser denied access to the clipboard.');
  };
  const copyRows = async (format: CopyFormat): Promise<void> => {
    const source = copy.current;
    if (!source) return;
    const selected = source.selected();
    const isRange = selected !== null && selected.to - selected.from > 1;
    const { from, to } = isRange ? selected : { from: 0, to: source.count };
    const limit = Math.min(to - from, MAX_COPIED);
    const copied = await source.read(from, limit);
    if (!copied.ok) {
      store.toasts.error('The rows cannot be read.');
      return;
    }
    const { names, rows } = copied.value;
    const rest = to - from > rows.length ? `, the first of ${plural(to - from, 'row')}` : '';
    await put(
      rowsText(format, names, rows),
      `${plural(rows.length, 'row')} copied as ${format}${rest}.`,
    );
  };
  return (
    <Menu label="Copy" title="Copy the selected rows, or all (Ctrl+C copies as TSV)">
      {COPY_FORMATS.map((format) => (
        <MenuItem
          key={format}
          run={() => {
            void copyRows(format);
          }}
        >
          Rows as {format}
        </MenuItem>
      ))}
      <MenuItem
        run={() => {
          const sql = copy.current?.sql ?? null;
          if (sql === null) store.toasts.error('These rows have no SQL.');
          else void put(sql, 'SQL copied.');
        }}
      >
        SQL
      </MenuItem>
    </Menu>
  );
}

// During a run the table follows the newest step until a step is selected.
function Follow({ store, session }: { store: Store; session: OpenSession }) {
  if (!session.active.value) return null;
  if (session.following.value) return <span class="following">newest step</span>;
  return (
    <button
      type="button"
      class="pill"
      title="Follow the newest step (L)"
      onClick={() => {
        store.navigation.toStep(null);
      }}
    >
      Jump to live
    </button>
  );
}
