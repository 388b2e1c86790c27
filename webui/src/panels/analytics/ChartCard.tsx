// A chart with its title, what it counts, its kinds and its table, and its files.
import { computed, signal, useSignal, type Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { ChartView, measureText, type Pointed } from '../../charts/ChartView';
import { gradientOf } from '../../plane/colours';
import { paintScene, svgOf, themeOf, withHeading } from '../../charts/paint';
import {
  colourOfSeries,
  readableHeight,
  slicesOf,
  strongest,
  type Kind,
  type Scene,
} from '../../charts/scene';
import {
  csvOf,
  exactValue,
  formatValue,
  isDiverging,
  isEmpty,
  labelOf,
  pickOf,
  UNIT_NAMES,
  type ChartTable,
  type Pick,
} from '../../charts/table';
import type { Column } from '../../grid/column';
import type { OpenSession } from '../../state/session/open_session';
import { Resource } from '../../state/resource';
import { encodeSelection } from '../../state/view/selection';
import type { Store } from '../../state/store';
import { copyText } from '../../ui/clipboard';
import { download } from '../../ui/download';
import { Grid } from '../../ui/Grid';
import { usePart, useResource } from '../../ui/hooks';
import { Menu, MenuItem } from '../../ui/Menu';
import { Segmented } from '../../ui/Segmented';
import { Empty, FailedLoad, Loading } from '../../ui/States';
import { TurnOn } from '../../ui/TurnOn';
import { Unused } from '../../ui/Unused';
import {
  CAPTURE_TITLES,
  capturesOf,
  isCaptured,
  withCapture,
  type Capture,
} from '../../state/request/request';
import { choose, pathOf, selectionOf } from './choose';
import { shownOf, type Shown } from './options';
import { applied, scopeOf, unused, type ChartSpec, type Scope } from './spec';

const KIND_NAMES: Readonly<Record<Shown, string>> = {
  bar: 'Bars',
  stacked: 'Stacked',
  share: '100 %',
  line: 'Line',
  pie: 'Pie',
  heat: 'Heat map',
  points: 'Points',
  table: 'Table',
};
const DEFAULT_HEIGHT = 210;

interface Props {
  readonly store: Store;
  readonly session: OpenSession;
  readonly spec: ChartSpec;
  readonly shown: string | undefined; // of the options
  readonly show: (shown: string) => void;
  readonly steps: number; // of the session, of which the figures are
  readonly cursor?: Signal<Pointed | null>; // shared with charts that have the same rows and series
}

export function scopeNow(store: Store, session: OpenSession): Scope {
  return scopeOf(store.navigation.view.value, store.layers.value, session.step.value);
}

export function ChartCard(props: Props) {
  const { store, session, spec, steps } = props;
  const asked = useMemo(
    () => computed(() => spec.request(scopeNow(store, session))),
    [store, session, spec],
  );
  // The picture of fewer steps stays until that of more is there.
  const known = useMemo(() => signal(steps), []);
  useEffect(() => {
    known.value = steps;
  }, [steps]);
  const resource = useMemo(
    () =>
      new Resource<ChartTable>({
        // The server may have more of the same steps when the run has ended.
        key: () => `${known.value} ${session.active.value} ${asked.value.text}`,
        load: () => asked.peek().load(session),
        reconnects: session.context.reconnects,
      }),
    [session, asked],
  );
  const { value, error, loading } = useResource(resource);
  const missing = usePart(() => unused(spec.honours, scopeNow(store, session)).join('\n'));
  const filtered = usePart(() => applied(spec.honours, scopeNow(store, session)).join(' '));
  const scene = useRef<Scene | null>(null);
  const { kind, series } = shownOf(props.shown, spec.kinds, spec.table);
  const table = useMemo(() => (value ? drawn(value, spec, kind, series) : null), [value, spec, kind, series]); // prettier-ignore
  return (
    <section
      role="group"
      class="chart-card"
      data-chart={spec.id}
      data-size={spec.wide ? 'wide' : spec.half ? 'half' : undefined}
      data-loading={loading || (!value && !error)}
      aria-label={spec.title}
    >
      <header>
        <h2>{spec.title}</h2>
        {value && <span class="dim">{unitText(table ?? value, spec.kinds)}</span>}
        {filtered !== '' && (
          <span class="chart-filter" title="The filter applies to this chart.">
            filter {filtered}
          </span>
        )}
        <Unused words={missing === '' ? [] : missing.split('\n')} />
        <span class="toolbar-end" />
        <span class="chart-tools">
          {' '}
          {spec.choose && value && (
            <Segmented
              label={`Value of ${spec.title}`}
              value={String(Math.min(series, value.series.length - 1))}
              options={value.series.map(({ name }, n) => ({ value: String(n), text: name }))}
              choose={(n) => {
                props.show(n === '0' ? kind : `${kind}.${n}`);
              }}
            />
          )}
          <Segmented
            label={`Form of ${spec.title}`}
            value={kind}
            options={[...spec.kinds, 'table' as const].map((one) => ({ value: one, text: KIND_NAMES[one] }))} // prettier-ignore
            choose={(one) => {
              props.show(series === 0 ? one : `${one}.${series}`);
            }}
          />
          <Files {...props} table={value} scene={scene} request={asked.value} />
        </span>
      </header>
      {spec.drill && <Path store={store} />}
      {!error && table?.answer && (
        <p class="chart-answer">
          <button
            type="button"
            class="link"
            onClick={() => {
              if (table.answer) choose(store, session, table.answer.pick);
            }}
          >
            {table.answer.text}
          </button>
        </p>
      )}
      {error ? (
        <FailedLoad what="This cannot be read." resource={resource} />
      ) : !value || !table ? (
        <Loading />
      ) : isEmpty(value) ? (
        <Empty>
          {value.missing !== undefined && spec.captures && store.hasServer ? (
            <Captured {...{ store, session }} what={spec.captures} missing={value.missing} />
          ) : (
            <span>{value.missing ?? spec.empty}</span>
          )}
        </Empty>
      ) : kind === 'table' ? (
        <Rows store={store} session={session} label={spec.title} table={value} />
      ) : (
        <>
          {kind === 'heat' ? (
            <Scale table={table} isLight={store.theme.value === 'light'} />
          ) : (
            <Legend {...{ store, session }} table={table} kind={kind} />
          )}
          {kind === 'heat' ? (
            <Sideways>
              <Picture {...props} table={table} kind={kind} scene={scene} />
            </Sideways>
          ) : (
            <Picture {...props} table={table} kind={kind} scene={scene} />
          )}
        </>
      )}
      <p class="chart-about dim">
        {spec.counts}
        {table?.basis !== undefined && <span class="chart-basis"> {table.basis}</span>}
      </p>
    </section>
  );
}

// A picture that may be wider than its card. Its right edge fades while there is more.
function Sideways({ children }: { children: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  const hasMore = useSignal(false);
  const look = (): void => {
    const { scrollLeft = 0, scrollWidth = 0, clientWidth = 0 } = box.current ?? {};
    hasMore.value = scrollLeft + clientWidth + 1 < scrollWidth;
  };
  useLayoutEffect(() => {
    if (!box.current) return;
    const observer = new ResizeObserver(look);
    observer.observe(box.current);
    for (const child of box.current.children) observer.observe(child);
    return () => {
      observer.disconnect();
    };
  }, []);
  return (
    <>
      <div ref={box} class="chart-scroll" data-more={hasMore.value} onScroll={look}>
        {children}
      </div>
      {hasMore.value && <p class="chart-more dim">More columns at the right: scroll sideways.</p>}
    </>
  );
}

// A run that captures it has it when it ends; else the setting with which the next run captures it.
function Captured(props: { store: Store; session: OpenSession; what: Capture; missing: string }) {
  const { store, session, what, missing } = props;
  const { settings } = store;
  const isOn = usePart(() => capturesOf(settings.current.value).includes(what));
  const title = CAPTURE_TITLES[what];
  const info = session.info.value;
  if (session.active.value && isCaptured(info.is === 'ready' ? info.value.facts : {}, what))
    return <span>This run records it: it is shown here when the run ends.</span>;
  return (
    <>
      <TurnOn
        title={title}
        isOn={isOn}
        set={() => {
          settings.set(withCapture(settings.current.peek(), what));
        }}
      />
      <span>{missing}</span>
    </>
  );
}

// What is drawn of it: one series, or all.
const drawn = (table: ChartTable, { choose: one }: ChartSpec, kind: Shown, series: number): ChartTable => {
  const n = Math.min(series, table.series.length - 1);
  const chosen = table.series[n];
  if (!one || kind === 'table' || !chosen) return table;
  const others = table.series.filter((_, i) => i !== n);
  return { ...table, series: [chosen], more: [...others, ...(table.more ?? [])] };
}; // prettier-ignore

function unitText(table: ChartTable, kinds: readonly Kind[]): string {
  const [x, y] = table.series;
  if (!x) return '';
  const part = table.part ? `, ${table.part}` : '';
  if (kinds.includes('points') && y) return `${y.name} by ${x.name}${part}`;
  const across = table.across ? ` and ${table.across}` : '';
  return `${UNIT_NAMES[x.unit]} by ${table.key.name}${across}${part}`;
}

function Picture(props: Props & { table: ChartTable; kind: Kind; scene: { current: Scene | null } }) {
  const { store, session, spec, table, kind, scene } = props;
  const selected = usePart(() => {
    const { selection } = store.navigation.view.value;
    const step = session.step.value;
    const isSelected = (pick: Pick): boolean => {
      if (pick.step !== undefined && pick.step !== step) return false;
      if (pick.of === 'step') return String(step) === pick.name;
      const own = selection && selectionOf(session, pick);
      return own !== null && selection !== null && encodeSelection(own) === encodeSelection(selection);
    };
    if (kind === 'heat' && selection)
      for (const [n, { picks }] of table.series.entries()) {
        const at = picks?.findIndex(isSelected) ?? -1;
        if (at >= 0) return `${at} ${n}`;
      }
    const row = table.keys.findIndex((_, i) => isSelected(pickOf(table, i, null)));
    return row >= 0 ? `${row}` : '';
  });
  const [selectedRow, selectedSeries] = selected.split(' ');
  const brushed = BRUSHED[table.key.of];
  const range = usePart((): string => {
    const { range: of } = store.navigation.view.value;
    const part = [of?.x, of?.y].find((one) => one?.axis === brushed);
    if (!part) return '';
    const rows = table.keys.flatMap((key, row) =>
      Number(key) >= part.from && Number(key) < part.to ? [row] : [],
    );
    return rows.length === 0 ? '' : `${rows[0] ?? 0} ${(rows.at(-1) ?? 0) + 1}`;
  });
  const [from, to] = range.split(' ').map(Number);
  return (
    <ChartView
      label={`${spec.title}: ${UNIT_NAMES[table.series[0]?.unit ?? 'number']} by ${table.key.name}, ${table.keys.length} rows`}
      table={table}
      kind={kind}
      height={readableHeight(table, kind, spec.height ?? DEFAULT_HEIGHT)}
      theme={store.theme.value}
      selected={
        selected === ''
          ? null
          : { row: Number(selectedRow), series: selectedSeries === undefined ? null : Number(selectedSeries) }
      }
      range={range === '' ? null : [from ?? 0, to ?? 0]}
      scene={scene}
      {...(props.cursor && { cursor: props.cursor })}
      pick={(row, series) => {
        choose(store, session, pickOf(table, row, series));
      }}
      {...(brushed === undefined
        ? {}
        : {
            brush: (first: number, end: number) => {
              const begin = Number(table.keys[first]);
              const last = Number(table.keys[end - 1]);
              if (Number.isNaN(begin) || Number.isNaN(last)) return;
              store.navigation.change({
                range: { x: { axis: brushed, from: begin, to: last + 1 }, y: null },
              });
            },
          })}
    />
  );
} // prettier-ignore

// The axes that a drag selects a range of.
const BRUSHED: Readonly<Record<string, 'step' | 'token' | 'layer' | undefined>> = {
  step: 'step',
  token: 'token',
  layer: 'layer',
};

// The names of the colours. A part can be chosen here, too: its bar may be thin.
function Legend(props: { store: Store; session: OpenSession; table: ChartTable; kind: Kind }) {
  const { store, session, table, kind } = props;
  const names = legendOf(table, kind);
  if (names.length < 2) return null;
  return (
    <ul class="chart-legend">
      {names.map(({ name, n, colour, row }) => {
        const pick = row !== undefined && row >= 0 ? pickOf(table, row, null) : table.series[n]?.pick; // prettier-ignore
        return (
          <li key={name}>
            <i class="chart-swatch" data-series={colour} />
            {pick && pick.of !== 'name' ? (
              <button
                type="button"
                class="link"
                onClick={() => {
                  choose(store, session, pick);
                }}
              >
                {name}
              </button>
            ) : (
              name
            )}
          </li>
        );
      })}
    </ul>
  );
}

// What the colours of a heat map are.
function Scale({ table, isLight }: { table: ChartTable; isLight: boolean }) {
  const unit = table.series[0]?.unit ?? 'number';
  const most = formatValue(unit, strongest(table));
  if (isDiverging(table)) {
    const { sides } = table;
    return (
      <p class="chart-scale dim">
        <span>{sides ? `${most} more in ${sides[0]}` : `−${most}`}</span>
        <i
          class="colour-scale"
          style={{
            background: 'linear-gradient(90deg, var(--series-0), var(--panel), var(--series-1))',
          }}
        />
        <span>{sides ? `${most} more in ${sides[1]}` : most}</span>
      </p>
    );
  }
  return (
    <p class="chart-scale dim">
      <span>{formatValue(unit, 0)}</span>
      <i class="colour-scale" style={{ background: gradientOf('viridis', isLight) }} />
      <span>{most}</span>
    </p>
  );
}

// `n`: of the series or slice.
const legendOf = (table: ChartTable, kind: Kind): readonly { name: string; n: number; colour: number; row?: number }[] =>
  kind === 'pie'
    ? slicesOf(table).map(({ row }, n) => ({ name: row < 0 ? 'the rest' : labelOf(table, row), n, colour: n, row }))
    : kind === 'points'
      ? []
      : table.series.map(({ name }, n) => ({ name, n, colour: colourOfSeries(table, n) })); // prettier-ignore

// The way back out of the parts.
function Path({ store }: { store: Store }) {
  const filter = usePart(() => store.navigation.view.value.filter);
  const path = pathOf(filter);
  if (path.length === 0) return null;
  const upTo = (kept: number): void => {
    const drop = path.slice(kept).map(({ text }) => text);
    store.setFilter(filter.split(/\s+/).filter((word) => !drop.includes(word)).join(' '), 'push'); // prettier-ignore
  };
  return (
    <nav class="chart-path" aria-label="Part">
      <button type="button" class="link" onClick={() => { upTo(0); }}>all</button>
      {path.map(({ text, value }, i) => (
        <span key={text}>
          {' › '}
          {i + 1 < path.length ? (
            <button type="button" class="link" onClick={() => { upTo(i + 1); }}>{value}</button>
          ) : (
            <b>{value}</b>
          )}
        </span>
      ))}
    </nav>
  );
} // prettier-ignore

const ROW_KEY = 'row';

function Rows(props: { store: Store; session: OpenSession; label: string; table: ChartTable }) {
  const { store, session, label, table } = props;
  const columns = useMemo(() => columnsOf(table), [table]);
  const rows = useMemo(() => table.keys.map((_, row) => row), [table]);
  return (
    <div class="chart-table">
      <Grid
        label={`${label} as a table`}
        columns={columns}
        rows={rows}
        sort={null}
        active={null}
        onSort={() => undefined}
        onActivate={(row) => {
          choose(store, session, pickOf(table, row, null));
        }}
      />
    </div>
  );
}

// That the longest name needs, without pushing all numbers out.
const nameWidth = (table: ChartTable): number =>
  table.keys.reduce<number>(
    (most, _, row) => Math.max(most, Math.min(240, 24 + 7.5 * labelOf(table, row).length)),
    90,
  );

function columnsOf(table: ChartTable): readonly Column<number>[] {
  const all = [...table.series, ...(table.more ?? [])];
  return [
    {
      key: ROW_KEY,
      title: table.key.name,
      width: nameWidth(table),
      grow: 1,
      unsortable: true,
      mono: true,
      text: (row) => labelOf(table, row),
    },
    ...all.map((series, n): Column<number> => ({
      key: `series${n}`,
      title:
        n < table.series.length && table.across ? `${table.across} ${series.name}` : series.name,
      width: series.names ? 130 : 92,
      align: 'right',
      unsortable: true,
      ...(series.names ? { hint: `${table.named ?? 'name'}, ${UNIT_NAMES[series.unit]}` } : {}),
      text: (row) => {
        const value = series.values[row];
        const name = series.names?.[row] ?? '';
        return value === null || value === undefined ? '' : `${name} ${formatValue(series.unit, value)}`.trim(); // prettier-ignore
      },
      exact: (row) => {
        const value = series.values[row];
        return value === null || value === undefined ? '' : exactValue(series.unit, value);
      },
    })),
    ...(table.words ?? []).map((words, n): Column<number> => ({
      key: `words${n}`,
      title: words.name,
      width: 120,
      grow: 1,
      unsortable: true,
      text: (row) => words.values[row] ?? '',
    })),
  ];
}

// ---- Files ----------------------------------------------------------------------------

function Files(
  props: Props & {
    table: ChartTable | null;
    scene: { current: Scene | null };
    request: { readonly text: string; readonly sql: string | null };
  },
) {
  const { store, session, spec, table, scene, request } = props;
  const name = `${session.id}-${spec.id}`;
  const copy = (text: string): void => {
    void copyText(text).then((copied) => {
      if (copied) store.toasts.done(`Copied: ${text.length > 80 ? `${text.slice(0, 80)}…` : text}`);
      else store.toasts.error('The browser denied access to the clipboard.');
    });
  };
  const { kind } = shownOf(props.shown, spec.kinds, spec.table);
  const whole = (): { picture: Scene; theme: ReturnType<typeof themeOf> } | null => {
    if (!scene.current || !table) return null;
    const names = kind === 'table' ? [] : legendOf(table, kind);
    const about = `${unitText(table, spec.kinds)} · session ${session.id}`;
    return {
      picture: withHeading(scene.current, spec.title, about, names.length > 1 ? names : [], measureText),
      theme: themeOf(document.documentElement),
    };
  };
  return (
    <Menu icon="download" label={`Save or copy ${spec.title}`}>
      {kind !== 'table' && (
        <>
          <MenuItem
            run={() => {
              const one = whole();
              if (one) download(`${name}.svg`, new Blob([svgOf(one.picture, one.theme)], { type: 'image/svg+xml' }));
            }}
          >
            Save as SVG
          </MenuItem>
          <MenuItem
            run={() => {
              const one = whole();
              if (one) savePng(`${name}.png`, one.picture, one.theme);
            }}
          >
            Save as PNG
          </MenuItem>
        </>
      )}
      <MenuItem
        run={() => {
          if (table) download(`${name}.csv`, new Blob([csvOf(table)], { type: 'text/csv' }));
        }}
      >
        Save as CSV
      </MenuItem>
      {(request.sql !== null || store.hasServer) && (
        <MenuItem
          run={() => {
            copy(request.sql ?? new URL(`api/v1/sessions/${session.id}/${request.text}`, document.baseURI).href);
          }}
        >
          Copy the {request.sql === null ? 'request' : 'SQL'}
        </MenuItem>
      )}
      {request.sql !== null && store.has('sql') && (
        <MenuItem
          run={() => {
            store.navigation.setSearch('sql', request.sql ?? '');
            store.reveal('sql');
          }}
        >
          Open in the SQL editor
        </MenuItem>
      )}
    </Menu>
  );
} // prettier-ignore

const SCALE = 2;

function savePng(name: string, picture: Scene, theme: ReturnType<typeof themeOf>): void {
  const canvas = document.createElement('canvas');
  canvas.width = picture.width * SCALE;
  canvas.height = picture.height * SCALE;
  const ctx = canvas.getContext('2d');
  if (!ctx) return;
  ctx.scale(SCALE, SCALE);
  ctx.fillStyle = theme.back;
  ctx.fillRect(0, 0, picture.width, picture.height);
  paintScene(ctx, picture, theme);
  canvas.toBlob((file) => {
    if (file) download(name, file);
  });
}
