// Totals by tensor, layer, op type, expert, component or phase, computed by the server.
import { computed } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { formatBytes, formatNs, plural, sourceName, sourceText } from '../../format';
import { PagedRows } from '../../grid/rows';
import { nextSort, sortOf, sortText } from '../../grid/column';
import type { VGrid } from '../../grid/vgrid';
import type { Breakdown, BreakdownQuery, BreakdownRow } from '../../net/types';
import { MAX_PAGE_ROWS } from '../../net/api';
import { ok } from '../../result';
import { excludesNumber, parseFilter } from '../../state/view/filter';
import { bothOf, filteredSums } from '../../state/view/range_query';
import type { OpenSession } from '../../state/session/open_session';
import { graphOf } from '../../state/session/per_session';
import { Resource } from '../../state/resource';
import { partNamed, type Selection } from '../../state/view/selection';
import type { Store } from '../../state/store';
import { Grid } from '../../ui/Grid';
import { usePart, useResource } from '../../ui/hooks';
import { Empty, FailedLoad, Loading } from '../../ui/States';
import { Unused } from '../../ui/Unused';
import { cellsOf } from './body';
import { groupColumns } from './columns';
import { GROUP_NAMES } from './table_options';
import { Note } from './Note';
import { OutsideRange, useOutside } from './OutsideRange';
import { chosenColumns, movedColumn, type Group } from './table_options';
import { copySelected, setOptions, type TableProps } from './table_actions';

// Those that the server computes.
type ServerGroup = Exclude<Group, 'token'>;

// The filter word of a row.
const WORDS: Readonly<Record<ServerGroup, (name: string) => string>> = {
  tensor: (name) => `tensor:${name.split(' ')[0] ?? ''}`,
  layer: (name) => `layer:${name === 'outside' ? 'none' : name}`,
  op_kind: (name) => `op:${name}`,
  kernel: (name) => (name === 'unknown' ? '' : `kernel:${name}`),
  expert: (name) => name.replace(/^blk\.(\d+) expert /, 'layer:$1 expert:'),
  component: (name) => `component:${name}`,
  source: (name) => `source:${name}`,
  phase: (name) => `phase:${name}`,
};

interface Content {
  readonly query: BreakdownQuery;
  readonly missing: readonly string[];
  readonly head: Breakdown;
  readonly chosen: readonly BreakdownRow[] | null; // the experts that the filter selects; null: all rows
}

export function GroupTable(props: TableProps & { by: ServerGroup }) {
  const { store, session, panel, options, by } = props;
  const { navigation } = store;
  const order = usePart(() => navigation.view.value.sorts[panel] ?? '-time');
  const sort = useMemo(() => sortOf(order), [order]);
  const resource = useMemo(
    () => contentOf(store, session, by, options.all, order),
    [store, session, by, options.all, order],
  );
  const { value, error } = useResource(resource);
  const paged = useMemo(() => {
    if (!value) return null;
    const { api } = session.context;
    const { chosen } = value;
    if (chosen)
      return new PagedRows<BreakdownRow>(chosen.length, (from, limit) =>
        Promise.resolve(ok(chosen.slice(from, from + limit))),
      );
    return new PagedRows<BreakdownRow>(value.head.total, async (from, limit, signal) => {
      const page = await api.breakdown(session.id, { ...value.query, from, limit }, signal);
      return page.ok ? ok(page.value.rows) : page;
    });
  }, [value, session]);
  useEffect(() => () => paged?.destroy(), [paged]);
  if (error) {
    return <FailedLoad what="The totals cannot be read." resource={resource} />;
  }
  if (!value || !paged) return <Loading>Adding up…</Loading>;
  return <Shown {...props} {...{ value, paged, sort }} />;
}

function Shown(
  props: TableProps & {
    by: ServerGroup;
    value: Content;
    paged: PagedRows<BreakdownRow>;
    sort: ReturnType<typeof sortOf>;
  },
) {
  const { store, session, panel, options, copy, by, value, paged, sort } = props;
  const { navigation } = store;
  const grid = useRef<VGrid<BreakdownRow>>(null);
  const active = useRef<number | null>(null);
  const version = paged.version.value;
  const all = value.chosen ? sumOf(value.chosen) : value.head.sums.all;
  const hasSteps = value.query.step_times === true;
  const tokens = generatedTokens(session, value.query);
  const columns = useMemo(
    () => chosenColumns(groupColumns(by, all, hasSteps), options.columns),
    [by, all, hasSteps, options.columns?.join()],
  );
  const step = session.step.value ?? 0;
  const isOutside = useOutside(store, session, step) && !options.all;
  copy.current = {
    count: paged.count,
    selected: () => grid.current?.selected() ?? null,
    read: async (from, limit) => {
      const some = await paged.range(from, limit, new AbortController().signal);
      return some.ok ? ok(cellsOf(columns, some.value)) : some;
    },
    sql: null,
  };
  const narrow = (row: BreakdownRow): void => {
    setOptions(store, panel, { ...options, rows: 'accesses', by: null, chosen: false });
    const { filter } = navigation.view.peek();
    const word = WORDS[by](row.name);
    if (word !== '' && !filter.split(' ').includes(word))
      store.setFilter(`${filter} ${word}`.trim(), 'push');
  };
  return (
    <>
      <Note>
        <b>
          {options.all ? (session.active.value ? 'session so far' : 'session') : `step ${step}`}
        </b>
        <span>{plural(paged.count, GROUP_NAMES[by])}</span>
        <span>{formatNs(all.time_ns)}</span>
        <span>{formatBytes(all.bytes_read)} read</span>
        {tokens > 0 && (
          <span>{formatBytes(Math.round(all.bytes_read / tokens))} per generated token</span>
        )}
        <span>{formatBytes(all.bytes_written)} written</span>
        {by === 'source' && (
          <span>
            {sourceName('disk')}: {sourceText('disk')}; everything else is in RAM.
          </span>
        )}
        {sort.key === 'faults' && all.faults === 0 && (
          <span>Nothing waited for the disk: no row has a disk wait.</span>
        )}
        <span class="note-hint" title="Enter lists them, too.">
          Double click lists the accesses of a row.
        </span>
        {hasSteps && <StepsOf times={value.head.times} />}
        <Unused words={value.missing} />
      </Note>
      <div class="table">
        {isOutside ? (
          <OutsideRange store={store} session={session} step={step} />
        ) : (
          paged.count === 0 && <Empty>Nothing matches.</Empty>
        )}
        <Grid
          grid={grid}
          label={`Totals by ${GROUP_NAMES[by]}`}
          columns={columns}
          rows={paged}
          version={version}
          sort={sort}
          active={active.current}
          onSort={(key) => {
            const greatest = columns.filter((one) => one.greatestFirst).map((one) => one.key);
            navigation.setSort(panel, sortText(nextSort(sort, key, greatest)));
          }}
          onActivate={(row, by_, index) => {
            active.current = index;
            const selection = selectionOf(session, by, row.name);
            if (selection) store.select(selection, by_ === 'key' ? 'coalesce' : 'push');
          }}
          onMove={(key, before) => {
            props.moveColumn(
              movedColumn(
                columns.map((one) => one.key),
                key,
                before,
              ),
            );
          }}
          onEnter={narrow}
          onCopy={() => void copySelected(store, copy)}
        />
      </div>
    </>
  );
}

// Which steps the times are of, and which the other columns, in the words of the server.
function StepsOf({ times }: { times: Breakdown['times'] }) {
  if (!times) return null;
  return (
    <span class="note-steps" title={times.text}>
      {times.text} Bytes, counts and the sum of time are of every step that the filter lets through.
    </span>
  );
}

type Sums = BreakdownRow['all'];

const sumOf = (rows: readonly BreakdownRow[]): Pick<Sums, 'time_ns' | 'bytes_read' | 'bytes_written' | 'faults'> => {
  const sum = (of: (all: Sums) => number): number => rows.reduce((whole, { all }) => whole + of(all), 0);
  return {
    time_ns: sum(({ time_ns }) => time_ns),
    bytes_read: sum(({ bytes_read }) => bytes_read),
    bytes_written: sum(({ bytes_written }) => bytes_written),
    faults: sum(({ faults }) => faults),
  };
}; // prettier-ignore

// The number of generated tokens that the totals are of; 0: they are of something else.
function generatedTokens(session: OpenSession, query: BreakdownQuery): number {
  const isPart = ['from_step', 'from_token', 'clean'].some((key) => key in query);
  return query.phase === 'generate' && !isPart ? session.data.stepTotals.generated.tokens : 0;
}

const SORTS: readonly string[] = [
  'bytes', 'bytes_read', 'bytes_written', 'accesses', 'reads', 'writes', 'executions', 'time', 'faults',
]; // prettier-ignore

// The selection that a click on a row makes; null: none.
function selectionOf(session: OpenSession, by: ServerGroup, name: string): Selection | null {
  const number = Number(name);
  if (by === 'layer') return Number.isInteger(number) ? { kind: 'layer', layer: number } : null;
  if (by === 'expert') return partNamed(name);
  const isTensor = by === 'tensor' && graphOf(session).state.peek().value?.tensorOf.has(name);
  return isTensor === true ? { kind: 'tensor', name } : null;
}

function contentOf(
  store: Store,
  session: OpenSession,
  by: ServerGroup,
  all: boolean,
  order: string,
): Resource<Content> {
  const { api, reconnects } = session.context;
  const request = computed(() => {
    const { query, missing } = filteredSums(store.navigation.view.value, store.layers.value);
    // The routes do not take experts: their rows are chosen here.
    const terms = parseFilter(store.navigation.view.value.filter);
    const experts = by === 'expert' ? terms.filter(({ key }) => key === 'expert') : [];
    const others = missing.filter((word) => !experts.some(({ text }) => text === word));
    const step = session.step.value ?? 0;
    const ofStep = all ? {} : { from_step: step, to_step: step + 1 };
    const sort = SORTS.includes(order.replace(/^-/, '')) ? order : '-time';
    // The server reads the times of all ops for them: not again and again while a session grows.
    const steps = all && !session.active.value ? { step_times: true } : {};
    return {
      query: { ...bothOf(query, ofStep), by, sort, ...steps } as BreakdownQuery,
      missing: others,
      experts,
    };
  });
  return new Resource<Content>({
    // The totals of a growing session are read again with its facts, once a second.
    key: () => {
      const info = session.info.value;
      const grown =
        all && info.is === 'ready' ? `${info.value.state} ${info.value.steps ?? 0}` : '';
      return `${JSON.stringify(request.value)} ${grown}`;
    },
    load: async (signal) => {
      const { query, missing, experts } = request.peek();
      const limit = experts.length > 0 ? MAX_PAGE_ROWS : 0;
      const head = await api.breakdown(session.id, { ...query, limit }, signal);
      if (!head.ok) return head;
      const isChosen = ({ name }: BreakdownRow): boolean => {
        const part = partNamed(name);
        return (
          part?.kind === 'expert' && experts.every((term) => !excludesNumber(term, part.expert))
        );
      };
      const chosen = experts.length > 0 ? head.value.rows.filter(isChosen) : null;
      return ok({ query, missing, head: head.value, chosen });
    },
    reconnects,
  });
}
