// SQL over the session: an editor, examples, and the rows as a table or a chart.
import { useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import '../../charts/charts.css';
import '../analytics/analytics.css';
import './sql.css';
import manual from '../../../../docs/sql.md?raw';
import { exactValue, formatValue } from '../../charts/table';
import { formatCount, plural } from '../../format';
import type { Column } from '../../grid/column';
import { errorText, rowsOf } from '../../net/api';
import type { QueryRows } from '../../net/types';
import type { OpenSession } from '../../state/session/open_session';
import { graphOf } from '../../state/session/per_session';
import { Resource } from '../../state/resource';
import { remember, sqlHistory } from '../../state/sql_history';
import type { Store } from '../../state/store';
import { answersOf } from '../../state/view/answer';
import { copyText } from '../../ui/clipboard';
import { Grid } from '../../ui/Grid';
import { usePart, useResource } from '../../ui/hooks';
import { Menu, MenuItem } from '../../ui/Menu';
import { Segmented } from '../../ui/Segmented';
import { Empty, Loading } from '../../ui/States';
import { ChartCard } from '../analytics/ChartCard';
import { choose } from '../analytics/choose';
import { askRows, MAX_ROWS } from '../analytics/ask';
import { statement, type ChartSpec } from '../analytics/spec';
import type { SessionProps } from '../panel';
import { createEditor, type SqlEditor } from './editor';
import { EXAMPLES } from './examples';
import { NoStatistics, readsStatistics } from './NoStatistics';
import { parametersIn, sourcePosition, withValues, type ParameterValue } from './parameters';
import { chartOf, KINDS, MAX_DRAWN, meaningOf, unitOf } from './result';
import { parseSchema } from './schema';

const TABLES = parseSchema(manual);

const PARAMETERS: Readonly<Record<string, string>> = {
  step: 'the shown step',
  layer: 'the shown layer',
  token: 'the selected token, or the first one of the shown step',
  op: 'the selected op',
  tensor: 'name of the selected tensor',
  expert: 'the selected expert',
};

function valuesNow(store: Store, session: OpenSession): Readonly<Record<string, ParameterValue>> {
  const { selection, layer } = store.navigation.view.value;
  const step = session.step.value;
  return {
    step,
    layer,
    token:
      selection?.kind === 'token'
        ? selection.token
        : step === null
          ? null
          : (session.data.steps[step]?.token_id ?? null),
    op: selection?.kind === 'op' || selection?.kind === 'access' ? selection.op : null,
    tensor: selection?.kind === 'tensor' ? selection.name : null,
    expert: selection?.kind === 'expert' ? selection.expert : null,
  };
}

// What runs: the statement as it was written, and with the values of that moment.
interface Asked {
  readonly source: string;
  readonly sql: string;
  readonly values: Readonly<Record<string, ParameterValue>>;
  readonly count: number; // runs of this panel: the same statement can be run again
}

export function SqlPanel({ store, session, panel }: SessionProps) {
  const { navigation } = store;
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<SqlEditor | null>(null);
  const text = usePart(() => navigation.view.value.filters[panel] ?? '');
  const asked = useSignal<Asked | null>(null);
  const run = (source: string): void => {
    if (source.trim() === '') return;
    const values = valuesNow(store, session);
    editor.current?.mark(null);
    remember(source);
    asked.value = { source, sql: withValues(source, values), values, count: (asked.peek()?.count ?? 0) + 1 }; // prettier-ignore
  };
  const open = (source: string): void => {
    editor.current?.set(source);
    navigation.setSearch(panel, source);
    run(source);
  };
  useEffect(() => {
    if (!host.current) return;
    const made = createEditor({
      parent: host.current,
      text: navigation.view.peek().filters[panel] ?? '',
      label: 'SQL statement',
      tables: TABLES,
      parameters: PARAMETERS,
      changed: (next) => {
        navigation.setSearch(panel, next);
      },
      run: () => {
        run(made.text());
      },
    });
    editor.current = made;
    // A link with a statement shows its rows.
    run(made.text());
    return () => {
      made.destroy();
      editor.current = null;
    };
  }, [session, panel]);
  // Back, and other panels that open a statement here.
  useEffect(() => {
    const now = editor.current;
    // Not `text`: while this was rendered, more may have been typed.
    const latest = navigation.view.peek().filters[panel] ?? '';
    if (!now || now.text() === latest) return;
    now.set(latest);
    run(latest);
  }, [text]);

  // A question that is asked again has the same statement.
  const answers = usePart(() => answersOf(session).value.sql ?? 0);
  useEffect(() => {
    if (answers > 0) run(navigation.view.peek().filters[panel] ?? '');
  }, [answers]);
  // The rows of a session that has ended are not those of its steps so far.
  const isActive = session.active.value;
  const wasActive = useRef(isActive);
  useEffect(() => {
    const hasEnded = wasActive.current && !isActive;
    wasActive.current = isActive;
    if (hasEnded && asked.peek()) run(asked.peek()?.source ?? '');
  }, [isActive]);

  const resource = useMemo(
    () =>
      new Resource<QueryRows>({
        key: () => (asked.value ? `${asked.value.count} ${asked.value.sql}` : null),
        load: () => askRows(session, asked.peek()?.sql ?? ''),
        reconnects: session.context.reconnects,
      }),
    [session],
  );
  const { value, error, loading } = useResource(resource);
  useEffect(() => {
    const now = asked.peek();
    if (!now || error?.kind !== 'rejected' || error.position === undefined) return;
    editor.current?.mark(sourcePosition(now.source, now.values, error.position));
  }, [error]);
  const kind = usePart(() => navigation.view.value.options[panel] ?? '');
  const isChart = kind.startsWith('chart');
  return (
    <>
      <div class="toolbar">
        <button
          type="button"
          class="small sql-run"
          title="Ctrl+Enter in the editor"
          onClick={() => {
            run(editor.current?.text() ?? '');
          }}
        >
          Run
        </button>
        <Examples session={session} open={open} />
        <History open={open} />
        <Tables
          add={(name) => {
            open(`SELECT *\nFROM ${name}\nLIMIT 100`);
          }}
        />
        <span class="toolbar-end" />
        <Segmented
          label="Show the rows as"
          value={isChart ? 'chart' : 'table'}
          options={[
            { value: 'table', text: 'Table' },
            { value: 'chart', text: 'Chart' },
          ]}
          choose={(one) => {
            navigation.setOptions(panel, one === 'chart' ? 'chart' : '', 'replace');
          }}
        />
        <Out store={store} session={session} asked={asked.value} />
      </div>
      <div ref={host} class="sql-editor" />
      <Values store={store} session={session} text={text} />
      <div class="sql-status" role="status">
        {loading ? (
          'Running…'
        ) : error ? (
          <span class="bad" role="alert">
            {errorText(error)}
          </span>
        ) : value ? (
          <>
            {plural(value.rows.length, 'row')}
            {value.more && (
              <span class="warn">
                {' '}
                There are more: these are the first {formatCount(MAX_ROWS)}. CSV and Parquet have
                all, up to 1,000,000.
              </span>
            )}
          </>
        ) : (
          'One SELECT over the tables of the session; Ctrl+Space completes names.'
        )}
      </div>
      {asked.value && readsStatistics(asked.value.sql) && (
        <NoStatistics store={store} session={session} />
      )}
      {value && !error && asked.value && (isChart ? (
        <Chart {...{ store, session, panel, kind }} rows={value} sql={asked.value.sql} />
      ) : (
        <Rows store={store} session={session} rows={value} />
      ))}
      {!value && loading && <Loading>Running…</Loading>}
    </>
  );
} // prettier-ignore

function Examples({ session, open }: { session: OpenSession; open: (sql: string) => void }) {
  const hasExperts = usePart(() => {
    const info = session.info.value;
    return info.is === 'ready' && (info.value.n_experts ?? 0) > 0;
  });
  return (
    <Menu label="Examples">
      {EXAMPLES.filter(({ only }) => only === undefined || hasExperts).map(({ question, sql }) => (
        <MenuItem
          key={question}
          run={() => {
            open(sql);
          }}
        >
          {question}
        </MenuItem>
      ))}
    </Menu>
  );
}

const SHOWN = 25;

function History({ open }: { open: (sql: string) => void }) {
  const all = sqlHistory().value;
  return (
    <Menu label="History" title="The statements that ran in this browser">
      {all.length === 0 && <span class="dim">No statement has run yet.</span>}
      {all.slice(0, SHOWN).map((sql) => (
        <MenuItem
          key={sql}
          run={() => {
            open(sql);
          }}
        >
          <span class="mono sql-line">{sql.replace(/\s+/g, ' ')}</span>
        </MenuItem>
      ))}
    </Menu>
  );
}

function Tables({ add }: { add: (name: string) => void }) {
  return (
    <Menu label="Tables" title="The tables and views; a click shows the first rows">
      {TABLES.map(({ name, about, columns }) => (
        <MenuItem
          key={name}
          run={() => {
            add(name);
          }}
        >
          <span class="mono">{name}</span>{' '}
          <span class="dim sql-line" title={columns.map((one) => one.name).join(', ')}>
            {about.split(/[.:](?:\s|$)/)[0]}
          </span>
        </MenuItem>
      ))}
    </Menu>
  );
}

// The parameters of the statement, with the values that they have now.
function Values(props: { store: Store; session: OpenSession; text: string }) {
  const { store, session, text } = props;
  const line = usePart(() => {
    const values = valuesNow(store, session);
    return parametersIn(text)
      .map(
        (name) =>
        name in values ? `:${name} = ${String(values[name] ?? 'NULL (nothing is selected)')}` : `:${name} is not known`, // prettier-ignore
      )
      .join(', ');
  });
  return line === '' ? null : <p class="sql-values dim">{line}. They follow the selection when the statement runs.</p>; // prettier-ignore
}

function Rows(props: { store: Store; session: OpenSession; rows: QueryRows }) {
  const { store, session, rows } = props;
  const { columns: names } = rows;
  const columns = useMemo(() => names.map((_, at) => columnOf(rows, at)), [rows]);
  const indices = useMemo(() => rows.rows.map((_, i) => i), [rows]);
  const clicked = useRef<number | null>(null); // a column
  const active = useRef<number | null>(null);
  // The graph has the names of the tensors.
  useResource(graphOf(session));
  if (rows.rows.length === 0) return <Empty>The statement has no rows.</Empty>;
  return (
    <div
      class="table"
      onPointerDownCapture={(event) => {
        const cell = event.target instanceof Element ? event.target.closest('.vgrid-cell') : null;
        clicked.current = cell ? [...(cell.parentElement?.children ?? [])].indexOf(cell) : null;
      }}
      onKeyDownCapture={() => {
        clicked.current = null;
      }}
    >
      <Grid
        label="Rows of the statement"
        columns={columns}
        rows={indices}
        sort={null}
        active={active.current}
        onSort={() => undefined}
        onActivate={(row, by) => {
          active.current = row;
          const own = clicked.current;
          // By keyboard: the first column that selects something.
          const at = own ?? names.findIndex((name) => meaningOf(name) !== null);
          if (by === 'click' || at >= 0) select(store, session, rows, row, at);
        }}
      />
    </div>
  );
}

function columnOf(rows: QueryRows, at: number): Column<number> {
  const name = rows.columns[at] ?? '';
  const unit = unitOf(name);
  const isNumber = rows.rows.some((row) => typeof row[at] === 'number');
  const of = meaningOf(name);
  return {
    key: `c${at}`,
    title: name,
    width: isNumber ? 96 : 130,
    ...(isNumber ? { align: 'right' as const } : { grow: 1, mono: true }),
    ...(of === null ? {} : { hint: 'A click on a cell selects it in every view' }),
    unsortable: true,
    text: (row) => {
      const value = rows.rows[row]?.[at] ?? null;
      if (value === null) return 'NULL';
      if (typeof value === 'string') return value;
      return of !== null || unit === 'number' ? String(value) : formatValue(unit, value);
    },
    exact: (row) => {
      const value = rows.rows[row]?.[at] ?? null;
      return typeof value === 'number' ? exactValue(unit, value) : (value ?? 'NULL');
    },
    tone: (row) => (rows.rows[row]?.[at] === null ? 'null' : of === null ? '' : 'link'),
  };
}

// Selects what the cell names; an op together with the step of its row.
function select(store: Store, session: OpenSession, rows: QueryRows, row: number, at: number): void {
  const cells = rows.rows[row];
  const name = rows.columns[at] ?? '';
  const value = cells?.[at];
  const of = meaningOf(name);
  if (of === null || value === null || value === undefined) return;
  const step = cells?.[rows.columns.indexOf('step')];
  if (of === 'op_index') {
    if (typeof value !== 'number') return;
    if (typeof step === 'number') store.navigation.toStep(step);
    store.select({ kind: 'op', op: value });
  } else {
    if (typeof step === 'number' && of !== 'step') store.navigation.toStep(step);
    choose(store, session, { of, name: String(value) });
  }
} // prettier-ignore

function Chart(props: {
  store: Store;
  session: OpenSession;
  panel: string;
  kind: string;
  rows: QueryRows;
  sql: string;
}) {
  const { store, session, panel, kind, rows, sql } = props;
  const spec = useMemo(
    (): ChartSpec => ({
      id: 'result',
      page: 'overview',
      title: 'Result',
      counts: `The first column by the numbers of one unit.${rows.rows.length > MAX_DRAWN ? ` The first ${formatCount(MAX_DRAWN)} rows.` : ''}`,
      kinds: KINDS,
      request: () => statement(sql, chartOf),
      honours: 'own',
      wide: true,
      height: 280,
      empty: 'A chart needs a first column of names or numbers, and at least one further column of numbers.',
    }),
    [sql, rows],
  );
  return (
    <div class="analytics"><div class="analytics-grid">
      <ChartCard
        store={store}
        session={session}
        spec={spec}
        steps={session.answeredSteps.value}
        shown={kind.replace(/^chart:?/, '') || undefined}
        show={(one) => {
          store.navigation.setOptions(panel, `chart:${one}`, 'replace');
        }}
      />
</div>    </div>
  );
} // prettier-ignore

const FILE_NAMES = { csv: 'CSV', parquet: 'Parquet' } as const;

// Files and other programs.
function Out(props: { store: Store; session: OpenSession; asked: Asked | null }) {
  const { store, session, asked } = props;
  const copy = (text: string): void => {
    void copyText(text).then((copied) => {
      if (copied) store.toasts.done('Copied.');
      else store.toasts.error('The browser denied access to the clipboard.');
    });
  };
  if (!asked) return null;
  const quoted = `'${asked.sql.replaceAll("'", "'\\''")}'`;
  return (
    <Menu icon="download" label="Save or copy the rows">
      {(['csv', 'parquet'] as const).map((format) => (
        <MenuItem
          key={format}
          run={() => {
            const name = FILE_NAMES[format];
            const request = rowsOf(session.id, asked.sql, format);
            void store.saves.save(`Rows as ${name}`, `${session.id}-rows.${format}`, request);
          }}
        >
          Save all rows as {FILE_NAMES[format]}
        </MenuItem>
      ))}
      <MenuItem
        run={() => {
          copy(`tt sql ${session.id}.ttrace ${quoted}`);
        }}
      >
        Copy the command: tt sql
      </MenuItem>
      <MenuItem
        run={() => {
          const url = new URL(`api/v1/sessions/${session.id}/query`, document.baseURI).href;
          const body = JSON.stringify({ sql: asked.sql }).replaceAll("'", "'\\''");
          copy(`curl ${url} -H 'Content-Type: application/json' -d '${body}'`);
        }}
      >
        Copy the request: curl
      </MenuItem>
      <MenuItem
        run={() => {
          copy(new URL(store.navigation.link(), document.baseURI).href);
        }}
      >
        Copy the link
      </MenuItem>
    </Menu>
  );
}
